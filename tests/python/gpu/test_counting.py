"""FLOPs on the simulated GPU: layer by layer those of the same step on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from on_simgpu import needs_simgpu, result_of

pytestmark = needs_simgpu


@pytest.mark.parametrize("model", ["resnet18", "mobilenet", "encoder", "lstm"])
def test_a_device_counts_what_the_cpu_counts(tmp_path: Path, model: str) -> None:
    result = result_of(tmp_path, "counted.py", model)
    assert result["device"] == result["cpu"]
    assert result["device"][""]["forward"] > 0
    assert result["hfu"] == result["mfu"] > 0
    assert result["origin"] == "simulated", "and no GPU's"


def test_checkpointing_raises_what_was_done_not_what_it_was_for(tmp_path: Path) -> None:
    result = result_of(tmp_path, "counted.py", "checkpointed")
    root = result["device"][""]
    assert root["recompute"] == root["forward"]
    assert result["device"] == result["cpu"]
    model_flops = root["forward"] + root["backward"]
    assert result["hfu"] / result["mfu"] == pytest.approx(1 + root["recompute"] / model_flops)
