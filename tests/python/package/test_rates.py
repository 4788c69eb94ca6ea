"""What was counted, and how far that is from what the device can do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import train, trained
from models import Pair
from torch import nn
from torch.utils.checkpoint import checkpoint

import layertrace

PEAKS: dict[str, str | float] = {
    "name": "My CPU",
    "fp32_tflops": 2,
    "bandwidth_gbs": 100,
    "source": "made up",
}
LINEAR = 2 * 3 * 3  # of one row


def pair(**options: Any) -> layertrace.Profile:
    return trained(Pair(), **options)


def test_layers_tell_what_they_computed() -> None:
    profile = pair(device_peaks=PEAKS)
    rows = profile.find("a").forward.amounts.flops / LINEAR  # type: ignore[union-attr]
    assert rows == int(rows) > 0
    forward = profile.layers[0].forward
    assert forward.amounts.flops == 2 * rows * LINEAR
    assert forward.amounts.macs == rows * LINEAR
    assert forward.amounts.flops_by_format == {"fp32": forward.amounts.flops}
    assert forward.self_amounts.flops == 0
    assert forward.rates.flops_per_s == pytest.approx(
        forward.amounts.flops / forward.busy_ns.mean * 1e9
    )
    assert forward.rates.roof in ("compute", "memory")
    assert profile.counted_share == 1
    assert isinstance(profile.operators, Sequence)
    addmm = next(op for op in profile.operators if op.name == "aten::addmm")
    assert (addmm.calls, addmm.amounts.flops, addmm.uncounted) == (2, 2 * rows * LINEAR, 0)
    assert [profile.layers[use.layer or 0].path for use in addmm.uses] == ["a", "b"]
    assert {use.phase for use in addmm.uses} == {"forward"}
    assert addmm.host_ns > 0


def test_peaks_are_given_as_a_dict_as_text_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "peaks.json"
    text = '{"name": "My CPU", "fp32_tflops": 2, "bandwidth_gbs": 100, "source": "made up"}'
    file.write_text(text)
    for given in (PEAKS, text, file, str(file)):
        device = pair(device_peaks=given).device
        assert (device.name, device.origin, device.source) == ("My CPU", "given", "made up")
        assert (device.flops_per_s, device.bytes_per_s, device.count) == ({"fp32": 2e12}, 1e11, 1)
    with pytest.raises(layertrace.Error, match="fp33_tflops"):
        pair(device_peaks={"name": "My CPU", "fp33_tflops": 2})
    with pytest.raises(layertrace.Error, match="nowhere"):
        pair(device_peaks=tmp_path / "nowhere")


def test_a_cpu_is_measured_where_operators_were_counted(tmp_path: Path) -> None:
    output = tmp_path / "run.pftrace"
    profile = pair(output=output)
    assert profile.device.origin == "measured"
    assert profile.device.flops_per_s["fp32"] > 1e9
    assert 0 < profile.mfu == profile.hfu < 1
    assert profile.device.name in str(profile)
    loaded = layertrace.load(output).device
    assert loaded.flops_per_s == profile.device.flops_per_s
    assert loaded.bytes_per_s == profile.device.bytes_per_s
    told = pair(count="off")
    assert (told.device.origin, told.mfu, told.counted_share) == ("", 0, 0)
    assert "FLOP" not in str(told)


def test_recomputation_raises_hfu_alone() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.a, x, use_reentrant=False)  # type: ignore[no-any-return]

    model = Twice()
    with layertrace.profile(model, device_peaks=PEAKS) as session:
        train(model)
        session.step()
    profile = session.profile
    again = profile.layers[0].recompute.amounts.flops
    assert again == profile.layers[0].forward.amounts.flops > 0
    assert profile.hfu > profile.mfu > 0
    model_flops = sum(
        profile.layers[0].phases[phase].amounts.flops for phase in ("forward", "backward")
    )
    assert profile.hfu / profile.mfu == pytest.approx(1 + again / model_flops)


def test_counting_has_three_ways() -> None:
    with pytest.raises(ValueError, match="'never'; it is one of: first, always, off"):
        layertrace.profile(Pair(), count="never")
    assert pair(count="always").counted_share == 1
    uncounted = pair(count="off").operators
    assert len(uncounted) > 0, "by their times"
    assert not any(op.counted or op.uses or op.amounts.flops for op in uncounted)
