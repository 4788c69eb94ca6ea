"""Memory on the simulated GPU: to the byte what torch.cuda.memory_stats() says of the step."""

from __future__ import annotations

from pathlib import Path

from on_simgpu import needs_simgpu, result_of

pytestmark = needs_simgpu


def test_memory_is_that_of_pytorchs_own_statistics(tmp_path: Path) -> None:
    first, later = result_of(tmp_path, "allocated.py")
    assert first["device"] == first["torch"]
    assert first["phases"] == first["torch"]
    assert later["device"] == later["torch"]
    # The gradients of the step before are given back in it, and are none of its layers'.
    assert later["phases"]["allocated"] == later["torch"]["allocated"]
    assert later["phases"]["freed"] == later["torch"]["freed"] - later["parameters"]


def test_what_training_keeps_is_known_by_hand(tmp_path: Path) -> None:
    first, later = result_of(tmp_path, "allocated.py")
    assert first["gradients"] == later["gradients"] == first["parameters"]
    assert first["optimizer"] == 2 * first["parameters"]  # Adam's two averages
    assert later["optimizer"] == 0  # they were there
    assert first["relu_kept"] == later["relu_kept"] == 128 * 256 * 4
