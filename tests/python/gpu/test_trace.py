"""What a live trace tells of GPUs, read by Perfetto's own protos.

Beside it, torch.profiler's records of one more step of the same program.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import needs_simgpu, result_of
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BuiltinClock
from trace_decoder import Decoded, Sample, Slice, decode

pytestmark = needs_simgpu
STEPS = 3
BIN_NS = 1_000_000  # of the counters that are made from activities
CALLS = 1 << 63  # flows with this bit lead from the call with the correlation in the others
OF_LAYERS = ("forward", "backward")


@dataclass
class Run:
    file: Path
    trace: Decoded
    told: Any
    witness: list[Any]  # torch.profiler's activities of one step

    @property
    def all_activities(self) -> list[Slice]:
        """Without layers' times by events, which stand on tracks beside them."""
        return [each for each in self.trace.slices if "context" in each.args]

    @property
    def activities(self) -> list[Slice]:
        """Those that recorded steps asked for."""
        return [each for each in self.all_activities if not self.is_of_warm_up(each)]

    def is_of_warm_up(self, each: Slice) -> bool:
        return int(str(each.args["launch_ns"])) < self.told["begin_ns"]

    @property
    def kernels(self) -> list[Slice]:
        return [each for each in self.activities if "kind" not in each.args]

    def place(self, activity: Slice) -> tuple[str, str]:
        """The names of the group and of the track in it."""
        track = self.trace.tracks[activity.track]
        return self.trace.tracks[track.parent].name, track.name

    def thread_of(self, each: Slice) -> int | None:
        track = self.trace.tracks[each.track]
        return track.tid or self.trace.tracks[track.parent].tid


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("traced")
    told = result_of(folder, "traced.py", options=("--devices", "2"))
    events = json.loads((folder / "witness.json").read_text())["traceEvents"]
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    witness = [event for event in events if event.get("cat") in kinds]
    file = folder / "traced.pftrace"
    return Run(file, decode(file), told, witness)


def test_all_that_ran_is_on_its_stream(run: Run) -> None:
    """In a group for each device, as often as in the profile and by the witness."""
    assert len(run.activities) == run.told["health"]["activities"]
    expected: Counter[tuple[str, str]] = Counter()
    for event in run.witness:
        where = event["args"]
        expected[f"GPU {where['device']}", f"stream {where['stream']}"] += STEPS
    assert Counter(run.place(each) for each in run.activities) == expected
    assert len(expected) == 3, "two streams on one device, one on the other"
    groups = [each for each in run.trace.tracks.values() if each.name.startswith("GPU ")]
    assert sorted(each.name for each in groups) == ["GPU 0", "GPU 1"], "one for each"


def test_kernels_are_as_the_witness_has_them(run: Run) -> None:
    def as_told(each: Slice) -> tuple[Any, ...]:
        names = ("grid", "block", "registers", "occupancy")
        shared = each.args.get("shared_bytes", 0)
        return (each.name, *(each.args[name] for name in names), shared)

    def as_seen(event: Any) -> tuple[Any, ...]:
        args = event["args"]
        grid, block = ("x".join(map(str, args[name])) for name in ("grid", "block"))
        threads = args["block"][0] * args["block"][1] * args["block"][2]
        # Of an H100's multiprocessor, which has room for 64 warps.
        warps = args["occupancy"]["activeBlocksPerMultiprocessor"] * -(-threads // 32)
        sizes = (args["registers per thread"], 100 * warps / 64, args["shared memory"])
        return (event["name"], grid, block, *sizes)

    seen = Counter(as_seen(event) for event in run.witness if event["cat"] == "kernel")
    assert Counter(map(as_told, run.kernels)) == Counter({k: STEPS * n for k, n in seen.items()})
    assert len({kernel[4] for kernel in seen}) > 1, "occupancies differ"


def test_each_names_its_layer_and_phase(run: Run) -> None:
    """The same as in the profile; without a layer only where there is none, and then why."""
    uses: Counter[tuple[str, str | None, str]] = Counter()
    for kernel in run.told["kernels"]:
        for use in kernel["uses"]:
            if kernel["kind"] == "kernel":
                uses[kernel["name"], use["path"], use["phase"]] += use["count"]
    assert Counter((each.name, each.path, each.category) for each in run.kernels) == uses
    for each in run.activities:
        assert (each.path is None) == (
            each.category not in OF_LAYERS or bool(each.args.get("unattributed"))
        ), each
    paths = {(each.path, each.category) for each in run.kernels if each.category in OF_LAYERS}
    for path in ("stem.0", "stem.1", "stem.2", "aside", "head"):
        assert {(path, phase) for phase in OF_LAYERS} <= paths


def test_layers_tell_their_copies_and_sets(run: Run) -> None:
    """Beside all that ran for them and for those below."""
    found = 0
    for layer in run.told["layers"]:
        prefix = f"{layer['path']}." if layer["path"] else ""
        for phase in OF_LAYERS:
            inside = [
                each
                for each in run.activities
                if each.category == phase and each.path is not None
                if not prefix or f"{each.path}.".startswith(prefix)
            ]
            copies = [each for each in inside if "kind" in each.args]
            assert layer[phase]["activities"] == len(inside) / STEPS, layer["path"]
            assert layer[phase]["copies"] == len(copies) / STEPS, layer["path"]
            found += len(copies)
    assert found > 0


def test_a_flow_leads_from_the_call_to_each(run: Run) -> None:
    numbers = [each.args["correlation"] for each in run.activities]
    assert len(set(numbers)) == len(numbers)
    calls: defaultdict[int, list[Slice]] = defaultdict(list)
    for each in run.trace.slices:
        if "context" not in each.args and "correlation" in each.args:
            (flow,) = each.flows
            assert flow == CALLS + int(str(each.args["correlation"]))
            calls[flow].append(each)
    for each in run.activities:
        assert each.flows[0] == CALLS + int(str(each.args["correlation"]))
        (call,) = calls[each.flows[0]]
        assert (call.path, call.category) == (each.path, each.category), each
        assert call.start_ns == each.args["launch_ns"] <= each.start_ns, each
        assert run.thread_of(call) == each.args["launch_tid"], each


def test_what_the_warm_up_asked_for_refers_to_no_call(run: Run) -> None:
    """It is shown, and counts for nothing; the calls of its modules are not in the trace."""
    earlier = [each for each in run.all_activities if run.is_of_warm_up(each)]
    assert len(earlier) == len(run.activities) / STEPS
    assert len(earlier) == run.told["health"]["gpu"]["outside_steps"]
    for each in earlier:
        assert each.flows == [CALLS + int(str(each.args["correlation"]))], each


def test_a_flow_leads_from_the_forward_call_to_each_of_a_layer(run: Run) -> None:
    """Also to what its backward asked for, on another thread."""
    begins: dict[int, Slice] = {}
    for thread in run.trace.threads:
        for each in run.trace.on(thread.uuid):
            if each.category == "forward" and "region" not in each.args:
                (flow,) = each.flows
                assert flow not in begins
                begins[flow] = each
    of_layers = [each for each in run.activities if each.path is not None]
    assert {each.category for each in of_layers} == set(OF_LAYERS)
    for each in of_layers:
        _, flow = each.flows
        call = begins[flow]
        assert call.path == each.path, each
        launch_ns = int(str(each.args["launch_ns"]))
        assert call.end_ns is not None
        is_inside = call.start_ns <= launch_ns <= call.end_ns
        assert is_inside == (each.category == "forward"), each
        assert launch_ns >= call.start_ns, each
    for each in run.activities:
        assert len(each.flows) == (1 if each.path is None else 2), each


@pytest.mark.parametrize("module", ["stem", "stem.0", "head"])
def test_the_table_of_a_layers_kernels_is_that_of_its_slices(run: Run, module: str) -> None:
    """Of the layer and all below it, and of nobody else."""
    inside = [e for e in run.activities if e.path and f"{e.path}.".startswith(f"{module}.")]
    assert inside
    words = ("kernels", run.file, "--module", module)
    told = json.loads(support.layertrace_output(*words, "--format", "json"))["kernels"]
    uses = {
        (kernel["name"], use["path"], use["phase"]): (use["count"], use["ns"])
        for kernel in told
        for use in kernel["uses"]
    }
    expected: defaultdict[tuple[str, str | None, str], list[int]] = defaultdict(list)
    for each in inside:
        expected[each.name, each.path, each.category].append(each.duration_ns)
    assert uses == {key: (len(times), sum(times)) for key, times in expected.items()}
    for kernel in told:
        for name in ("count", "ns"):
            assert kernel[name] == sum(use[name] for use in kernel["uses"])
    text = support.layertrace_output(*words)
    named = set(re.findall(r"([\w.]+) (?:forward|backward)", text))
    assert set() < named <= {each.path for each in inside}, "of many layers it names the first"
    assert f" ran in {module} {len(inside)} times " in text


# ---- Counters -------------------------------------------------------------------------------


def samples(run: Run, device: int, name: str) -> list[Sample]:
    group = run.trace.track_named(f"GPU {device}")
    (track,) = (t for t in run.trace.tracks.values() if (t.parent, t.name) == (group, name))
    return [each for each in run.trace.samples if each.track == track.uuid]


def within(bin_ns: int, start_ns: int, end_ns: int) -> int:
    return max(0, min(end_ns, bin_ns + BIN_NS) - max(start_ns, bin_ns))


@pytest.mark.parametrize("device", [0, 1])
def test_load_is_that_of_the_slices(run: Run, device: int) -> None:
    """Of each millisecond, the part in which anything ran, and how many were asked for and not yet
    done; a value holds until the next one."""
    ran = [each for each in run.all_activities if run.place(each)[0] == f"GPU {device}"]
    for name in ("busy", "launch queue"):
        told = samples(run, device, name)
        first, last = told[0].ns, told[-1].ns
        assert first % BIN_NS == 0
        assert first <= min(each.start_ns for each in ran)
        assert last >= max(each.end_ns or 0 for each in ran) - BIN_NS
        values = {each.ns: each.value for each in told}
        value = 0.0
        for bin_ns in range(first, last + 1, BIN_NS):
            value = values.get(bin_ns, value)
            expected = load(ran, bin_ns, name)
            assert value == pytest.approx(expected, abs=1e-3), (name, bin_ns)
        assert max(values.values()) > 0


def load(ran: list[Slice], bin_ns: int, name: str) -> float:
    if name == "launch queue":
        return (
            sum(within(bin_ns, int(str(e.args["launch_ns"])), e.end_ns or 0) for e in ran) / BIN_NS
        )
    busy = 0
    reached = bin_ns
    for each in sorted(ran, key=lambda each: each.start_ns):
        start_ns = max(each.start_ns, reached)
        busy += within(bin_ns, start_ns, each.end_ns or 0)
        reached = max(reached, each.end_ns or 0)
    return 100 * busy / BIN_NS


@pytest.mark.parametrize("device", [0, 1])
def test_memory_is_what_pytorch_had_in_use(run: Run, device: int) -> None:
    """Most of the recording is one stretch in which the program loads its data."""
    (step,) = (each for each in run.trace.slices if each.name == "step 1")  # after one to warm up
    allocated = samples(run, device, "memory allocated")
    assert [each.value for each in allocated].count(run.told["loading"][device]) >= 1
    assert all(0 < each.value <= run.told["peak"][device] for each in allocated)
    assert min(each.ns for each in allocated) < (step.end_ns or 0)
    reserved = samples(run, device, "memory reserved")
    for inner, outer in zip(allocated, reserved, strict=True):
        assert (inner.ns, inner.value <= outer.value) == (outer.ns, True)


def test_clocks_are_tied_to_the_systems_at_both_ends(run: Run) -> None:
    names = ("BOOTTIME", "MONOTONIC", "MONOTONIC_RAW", "REALTIME")
    clocks = [BuiltinClock.Value(f"BUILTIN_CLOCK_{name}") for name in names]
    first, last = (each for each in run.trace.clocks if len(each) > 1)
    assert sorted(first) == sorted(last) == sorted(clocks)
    boottime = clocks[0]
    assert first[boottime] <= min(each.start_ns for each in run.trace.slices)
    assert last[boottime] >= max(each.end_ns or 0 for each in run.activities)
    for clock in clocks:
        took_ns = last[clock] - first[clock]
        assert took_ns == pytest.approx(last[boottime] - first[boottime], rel=0.01, abs=5e6)
