"""What devices did, as Perfetto's own protos have it: the trace that write_device_trace makes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BuiltinClock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from support import BUILD_DIR
from trace_decoder import Decoded, Slice, Track, decode

STEPS = 3


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    path = tmp_path_factory.mktemp("devices") / "devices.pftrace"
    subprocess.run([BUILD_DIR / "bin" / "write_device_trace", path], check=True, timeout=60)
    return decode(path)


def tracks(trace: Decoded, beginning: str) -> list[Track]:
    return [each for each in trace.tracks.values() if each.name.startswith(beginning)]


def kernels(trace: Decoded) -> list[Slice]:
    names = {"stream 7", "stream 7, overlapping"}
    wanted = {track.uuid for track in trace.tracks.values() if track.name in names}
    return [each for each in trace.slices if each.track in wanted]


def calls(trace: Decoded) -> list[Slice]:
    wanted = {track.uuid for track in tracks(trace, "CUDA calls")}
    return [each for each in trace.slices if each.track in wanted]


def test_streams_and_counters_are_in_the_devices_group(trace: Decoded) -> None:
    (gpu,) = tracks(trace, "GPU")
    assert gpu.name == "GPU 0"
    names = sorted(track.name for track in trace.tracks.values() if track.parent == gpu.uuid)
    assert names == [
        "busy",
        "launch queue",
        "memory allocated",
        "memory reserved",
        "stream 7",
        "stream 7 layers, depth 1",
        "stream 7, overlapping",
    ]


def test_calls_are_below_their_threads(trace: Decoded) -> None:
    parents = {track.parent for track in tracks(trace, "CUDA calls")}
    assert parents == {thread.uuid for thread in trace.threads}
    assert Counter(each.name for each in calls(trace)) == {
        "cudaLaunchKernel": 4 * STEPS,
        "cudaGraphLaunch": STEPS,
    }
    assert {each.args["kind"] for each in calls(trace)} == {"ask"}


def test_slices_of_a_track_do_not_overlap(trace: Decoded) -> None:
    assert len(kernels(trace)) == 6 * STEPS
    assert all(each.parent is None for each in kernels(trace) + calls(trace))


def test_kernels_tell_whose_they_are(trace: Decoded) -> None:
    gemms = [each for each in kernels(trace) if each.name == "gemm"]
    assert Counter((each.path, each.category) for each in gemms) == {
        (path, phase): STEPS for path in ("a", "b") for phase in ("forward", "backward")
    }
    for each in gemms:
        assert each.args["grid"] == "128x2x1"
        assert each.args["block"] == "256x1x1"
        assert each.args["registers"] == 64
        assert each.args["occupancy"] == 32.8125
        assert "inferred" not in each.args
        assert "unattributed" not in each.args
    graphs = [each for each in kernels(trace) if each.name == "multi_tensor_adam"]
    assert {each.path for each in graphs} == {""}
    assert all("inferred" in each.args and each.args["graph_node"] for each in graphs)


def test_each_kernel_has_a_flow_from_its_call(trace: Decoded) -> None:
    by_flow: dict[int, list[Slice]] = defaultdict(list)
    for each in calls(trace):
        (flow,) = each.flows
        by_flow[flow].append(each)
    assert all(len(each) == 1 for each in by_flow.values())
    threads = {track.uuid: track.parent for track in tracks(trace, "CUDA calls")}
    for each in kernels(trace):
        (flow,) = (flow for flow in each.flows if flow in by_flow)
        (call,) = by_flow[flow]
        assert call.args["correlation"] == each.args["correlation"]
        assert call.start_ns == each.args["launch_ns"]
        assert trace.tracks[threads[call.track]].tid == each.args["launch_tid"]
        assert call.path == each.path
        assert (call.end_ns or 0) <= each.start_ns


def test_a_flow_leads_from_the_modules_call_too(trace: Decoded) -> None:
    threads = {thread.uuid for thread in trace.threads}
    forward = {
        flow: each.path
        for each in trace.slices
        if each.track in threads and each.category == "forward"
        for flow in each.flows
    }
    for each in kernels(trace):
        if each.name == "gemm":
            assert [forward[flow] for flow in each.flows if flow in forward] == [each.path]


def test_layers_have_their_time_on_the_stream(trace: Decoded) -> None:
    (track,) = tracks(trace, "stream 7 layers")
    pairs = [(each.path, each.start_ns, each.end_ns) for each in trace.on(track.uuid)]
    gemms = [each for each in kernels(trace) if each.name == "gemm"]
    assert sorted(pairs, key=str) == sorted(
        ((each.path, each.start_ns, each.end_ns) for each in gemms), key=str
    )
    for each in trace.on(track.uuid):
        assert each.name == each.path
        assert each.args["depth"] == 1
        assert int(str(each.args["host_ns"])) < each.start_ns


def samples(trace: Decoded, name: str) -> list[tuple[int, float]]:
    (track,) = (track for track in trace.tracks.values() if track.name == name)
    return [(each.ns, each.value) for each in trace.samples if each.track == track.uuid]


def test_memory_is_as_it_was_told(trace: Decoded) -> None:
    values = [value for _, value in samples(trace, "memory allocated")]
    assert values == [3 << 20, 1 << 20] * STEPS
    assert [value for _, value in samples(trace, "memory reserved")] == [8 << 20] * STEPS


def test_what_was_counted_is_on_slices(trace: Decoded) -> None:
    """Where one clicks: on an operator, or on a module's call. All else is an instant."""
    linears = [each for each in trace.slices if "bytes" in each.end_args]
    assert len(linears) == 4 * STEPS
    for each in linears:
        assert each.track in {trace.ops_track(thread) for thread in trace.threads}
        assert each.end_args == {
            "flops": 2**63 + 5,
            "flops_causal": 0,
            "bytes": 96,
            "format": "fp32",
        }
    calls = [each for each in trace.slices if "input" in each.end_args]
    assert Counter((each.path, each.category) for each in calls) == {
        (path, "forward"): STEPS for path in ("a", "b")
    }
    assert all(
        each.end_args
        == {
            "input": "gemm",
            "output": "multi_tensor_adam",
            "flops": 2**63 + 5,
            "macs": (2**63 + 5) // 2,
        }
        for each in calls
    )
    # Two of them are more than fits: the most there is, and not what is left over.
    roots = [each for each in trace.slices if each.path == "" and "flops" in each.end_args]
    assert Counter(each.category for each in roots) == {"forward": STEPS, "backward": STEPS}
    assert all(each.end_args == {"flops": 2**64 - 1, "macs": 2**63 - 1} for each in roots)
    others = [each for each in trace.instants if "aux_flops" in each.args]
    assert Counter((each.name, each.category, each.args["path"]) for each in others) == {
        ("gemm", phase, path): STEPS for path in ("a", "b") for phase in ("forward", "backward")
    }


def test_stretches_and_blocks_are_instants(trace: Decoded) -> None:
    stretches = [each for each in trace.instants if "key" in each.args]
    assert {trace.tracks[each.track].name for each in stretches} == {"counting"}
    assert [each.name for each in stretches] == ["counted"] + ["as counted before"] * (STEPS - 1)
    blocks = [each for each in trace.instants if "address" in each.args]
    assert {trace.tracks[each.track].name for each in blocks} == {"memory"}
    assert Counter(each.name for each in blocks) == {"allocated": 2 * STEPS, "freed": 2 * STEPS}
    held = [value for _, value in samples(trace, "memory allocated (host)")]
    assert held == [512, 512, 0, 0] * STEPS


def test_busy_and_queue_add_up(trace: Decoded) -> None:
    """The figures of each millisecond, summed over the run, are the times that the slices have."""

    def sum_ns(name: str) -> float:
        at = samples(trace, name)
        assert at[-1][1] == 0
        return sum(value * (after - ns) for (ns, value), (after, _) in pairwise(at))

    busy = 0
    until = 0
    for each in sorted(kernels(trace), key=lambda each: each.start_ns):
        end_ns = each.end_ns or 0
        busy += max(0, end_ns - max(until, each.start_ns))
        until = max(until, end_ns)
    assert sum_ns("busy") / 100 == pytest.approx(busy, rel=1e-9)
    waited = sum((each.end_ns or 0) - int(str(each.args["launch_ns"])) for each in kernels(trace))
    assert sum_ns("launch queue") == pytest.approx(waited, rel=1e-9)


def test_clocks_are_tied_to_the_systems_at_both_ends(trace: Decoded) -> None:
    first, last = (each for each in trace.clocks if len(each) > 1)
    assert (
        first.keys()
        == last.keys()
        == {
            BuiltinClock.BUILTIN_CLOCK_BOOTTIME,
            BuiltinClock.BUILTIN_CLOCK_MONOTONIC,
            BuiltinClock.BUILTIN_CLOCK_MONOTONIC_RAW,
            BuiltinClock.BUILTIN_CLOCK_REALTIME,
        }
    )
    assert all(first[clock] < last[clock] for clock in first)
