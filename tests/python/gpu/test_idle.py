"""When GPUs wait, and for what: on the virtual clock, where every run has the same nanoseconds.

The witness are the slices of the trace, which are read with nothing of layertrace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import needs_simgpu, result_of
from trace_decoder import Decoded, Slice, decode

pytestmark = needs_simgpu
LAUNCH_LATENCY_NS = 3_000  # of the simulated device
WAYS = ["plain", "launches_late", "waits", "loads", "copies", "loads_and_copies"]
STEPS = 3
PHASES = ("forward", "backward")

Span = tuple[int, int]


@dataclass
class Run:
    profile: Any
    file: Path
    trace: Decoded

    def idle(self, path: str | None, phase: str, cause: str) -> float:
        """Per step."""
        found = [
            i["ns"]
            for i in self.profile["idle"]
            if i["path"] == path and i["phase"] == phase and i["cause"] == cause
        ]
        return sum(found)

    def layer(self, path: str) -> Any:
        (layer,) = (layer for layer in self.profile["layers"] if layer["path"] == path)
        return layer

    def calls(self, kind: str) -> list[Slice]:
        return [
            e for e in self.trace.slices if e.args.get("kind") == kind and "context" not in e.args
        ]

    def busy(self, device: int) -> list[Span]:
        """When it did anything, in order and without overlaps."""
        group = self.trace.track_named(f"GPU {device}")
        joined: list[Span] = []
        ran = [e for e in self.trace.slices if "context" in e.args]
        ran = [e for e in ran if self.trace.tracks[e.track].parent == group]
        for start, end in sorted((e.start_ns, e.end_ns or 0) for e in ran):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((start, end))
        return joined


def covered(spans: list[Span], start_ns: int, end_ns: int) -> int:
    return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("idle")
    options = ("--clock", "virtual", "--devices", "2")
    told = result_of(folder, "idled.py", *WAYS, options=options)
    files = {way: folder / f"{way}.pftrace" for way in WAYS}
    return {way: Run(told[way], files[way], decode(files[way])) for way in WAYS}


@pytest.fixture(params=WAYS)
def run(runs: dict[str, Run], request: pytest.FixtureRequest) -> Run:
    return runs[request.param]


def test_a_step_is_what_a_device_was_busy_and_idle(run: Run) -> None:
    steps = run.profile["steps"]
    assert len(steps) == STEPS
    for step in steps:
        begin, end = step["start_ns"], step["start_ns"] + step["wall_ns"]
        for device in step["devices"]:
            busy_ns = covered(run.busy(device["device"]), begin, end)
            assert device["busy_ns"] == busy_ns > 0
            assert device["busy_ns"] + device["idle_ns"] == step["wall_ns"]


def test_every_gap_has_a_place_and_a_cause(run: Run) -> None:
    """By cause, by layer and by phase they add up to what the devices were idle."""
    devices = [device for step in run.profile["steps"] for device in step["devices"]]
    idle_ns = sum(device["idle_ns"] for device in devices) / STEPS
    idle = run.profile["idle"]
    assert sum(each["ns"] for each in idle) == pytest.approx(idle_ns)
    assert all(each["ns"] > 0 and each["gaps"] > 0 for each in idle)
    assert {each["cause"] for each in idle} <= {"launch", "synchronisation", "copy", "data"}
    outside = sum(phase["idle_ns"] for phase in run.profile["phases"].values())
    inside = sum(run.layer("")[phase]["idle_ns"] for phase in PHASES)
    assert inside + outside == pytest.approx(idle_ns)
    for layer in run.profile["layers"]:
        for phase in PHASES:
            below = [
                i["ns"] for i in idle if i["phase"] == phase and is_in(i["path"], layer["path"])
            ]
            assert layer[phase]["idle_ns"] == pytest.approx(sum(below)), layer["path"]


def is_in(path: str | None, layer: str) -> bool:
    return path is not None and (layer in ("", path) or path.startswith(layer + "."))


def test_a_layer_that_asks_late_is_bound_by_its_launches(runs: dict[str, Run]) -> None:
    """All that the host takes longer than in the plain run, the device is idle."""
    plain, late = runs["plain"], runs["launches_late"]
    added = late.layer("middle")["forward"]["host_ns"] - plain.layer("middle")["forward"]["host_ns"]
    assert added > 100_000
    # What it had been asked for before, it does meanwhile.
    done_meanwhile = plain.layer("first")["forward"]["busy_ns"]
    idle_ns = late.idle("middle", "forward", "launch")
    assert added - done_meanwhile <= idle_ns <= added
    assert idle_ns == max(each["ns"] for each in late.profile["idle"])
    assert plain.idle("middle", "forward", "launch") == 0
    first, last = (
        late.layer(path)["forward"]["idle_ns"] - plain.layer(path)["forward"]["idle_ns"]
        for path in ("first", "last")
    )
    assert first == 0
    # From asking to starting the host goes on: what the middle asked for last starts there.
    assert 0 <= last <= LAUNCH_LATENCY_NS


def test_the_launch_bound_share_is_of_the_hosts_time(runs: dict[str, Run]) -> None:
    tree = support.layertrace_output(
        "tree", runs["launches_late"].file, "--columns", "idle,launch_bound"
    )
    shown = dict(re.findall(r"── (\w+) .*?([\d.]+ %|–)$", tree, re.M))
    assert set(shown) == {"first", "middle", "last"}
    for path, share in shown.items():
        layer = runs["launches_late"].layer(path)
        idle_ns, host_ns = (sum(layer[p][name] for p in PHASES) for name in ("idle_ns", "host_ns"))
        assert share == (f"{100 * idle_ns / host_ns:.1f} %" if idle_ns else "–"), path
    assert float(shown["middle"].split()[0]) > 50


def test_a_wait_inside_a_layer_is_a_synchronisation_there(runs: dict[str, Run]) -> None:
    """.item() of what one device computes leaves the other one idle."""
    run = runs["waits"]
    waits = [
        each for each in run.calls("wait") if (each.path, each.category) == ("middle", "forward")
    ]
    assert len(waits) == STEPS
    expected = 0
    for device in (0, 1):
        busy = run.busy(device)
        for each in waits:
            expected += each.duration_ns - covered(busy, each.start_ns, each.end_ns or 0)
    told = run.idle("middle", "forward", "synchronisation")
    assert told == pytest.approx(expected / STEPS)
    assert told == max(each["ns"] for each in run.profile["idle"])
    assert told > 100_000
    plain = [each for each in runs["plain"].profile["idle"] if each["path"] is not None]
    assert [each for each in plain if each["cause"] == "synchronisation"] == []


def test_slow_loading_is_data(runs: dict[str, Run]) -> None:
    """The device has done all that it was asked for, so it waits for all that loading takes."""
    plain, loads = runs["plain"], runs["loads"]
    phases = [run.profile["steps"][-1]["phases"]["data"] for run in (plain, loads)]
    added = phases[1] - phases[0]
    assert added > 100_000
    assert loads.idle(None, "data", "data") == plain.idle(None, "data", "data") + added
    for each in loads.profile["idle"]:
        if each["cause"] != "data":
            assert each in plain.profile["idle"], "all else is as it was"


def test_a_device_that_waits_for_a_copy(runs: dict[str, Run]) -> None:
    run = runs["copies"]
    assert run.idle(None, "data", "copy") > 0
    assert run.idle(None, "data", "launch") == 0
    assert runs["plain"].idle(None, "data", "copy") == 0


def test_loading_before_a_copy_is_data_until_the_call(runs: dict[str, Run]) -> None:
    copies, both = runs["copies"], runs["loads_and_copies"]
    phases = [run.profile["steps"][-1]["phases"]["data"] for run in (copies, both)]
    added = phases[1] - phases[0]
    assert added > 100_000
    assert both.idle(None, "data", "data") == copies.idle(None, "data", "data") + added
    assert both.idle(None, "data", "copy") == copies.idle(None, "data", "copy")


def test_no_layer_waits_longer_than_the_host_is_in_it(run: Run) -> None:
    """With two devices, twice as long."""
    devices = {device["device"] for step in run.profile["steps"] for device in step["devices"]}
    for layer in run.profile["layers"]:
        for phase in PHASES:
            most = len(devices) * layer[phase]["host_ns"]
            assert layer[phase]["idle_ns"] <= most, (layer["path"], phase)
