"""The demo's trace, read by Perfetto's own protos: is it what docs and reports say it is?"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

import pytest
from layer_sums import FIGURES, LayerSums, is_layer_span, is_part_of_layer
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BuiltinClock
from support import Demo, layertrace_output
from trace_decoder import Decoded, Slice, decode

BOOTTIME = BuiltinClock.BUILTIN_CLOCK_BOOTTIME
MONOTONIC = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
MONOTONIC_RAW = BuiltinClock.BUILTIN_CLOCK_MONOTONIC_RAW
REALTIME = BuiltinClock.BUILTIN_CLOCK_REALTIME

STEPS = 4
PHASES = {
    "forward",
    "loss",
    "backward",
    "recompute",
    "optimizer",
    "communication",
    "data",
    "other",
}
# Phases whose activities need no layer.
OWN_PHASES = {"loss", "optimizer", "communication", "data"}


@pytest.fixture(scope="session")
def trace(demo: Demo) -> Decoded:
    return decode(demo.trace)  # checks that slices are balanced and nested, and that time goes on


@pytest.fixture(scope="session")
def profile(demo: Demo) -> dict[str, Any]:
    return json.loads(layertrace_output("layers", demo.trace, "--format", "json"))


@pytest.fixture(scope="session")
def sums(trace: Decoded) -> LayerSums:
    return LayerSums(trace)


def activities(trace: Decoded) -> list[Slice]:
    return [each for thread in trace.threads for each in trace.on(trace.ops_track(thread))]


def scopes(trace: Decoded) -> list[Slice]:
    return [each for thread in trace.threads for each in trace.on(thread.uuid)]


def test_it_has_a_beginning_and_an_end(trace: Decoded) -> None:
    assert trace.header["format_version"] == 1
    assert trace.header["program"] == "train_residual_cnn"
    assert trace.footer is not None
    assert trace.footer["emitted"] == trace.footer["recorded"] + trace.footer["dropped"]  # type: ignore[operator]
    (process,) = (track for track in trace.tracks.values() if track.parent == 0)
    assert process.pid == trace.header["pid"]
    assert {thread.pid for thread in trace.threads} == {process.pid}


def test_everything_lies_between_beginning_and_end(trace: Decoded) -> None:
    first = min(each.ns for each in trace.instants)
    last = max(each.ns for each in trace.instants)
    for each in trace.slices:
        assert first <= each.start_ns <= (each.end_ns or 0) <= last


def test_clocks_are_tied_to_the_systems_at_both_ends(trace: Decoded) -> None:
    first, *between, last = (each for each in trace.clocks if len(each) > 1)
    assert not between
    assert first.keys() == last.keys() == {BOOTTIME, MONOTONIC, MONOTONIC_RAW, REALTIME}
    assert first[BOOTTIME] <= min(each.start_ns for each in trace.slices)
    took_ns = last[BOOTTIME] - first[BOOTTIME]
    for clock in (MONOTONIC, MONOTONIC_RAW, REALTIME):
        assert last[clock] - first[clock] == pytest.approx(took_ns, rel=0.01, abs=5e6)
    created = datetime.fromisoformat(str(trace.header["created"]))
    assert first[REALTIME] / 1e9 == pytest.approx(created.timestamp(), abs=60)


def test_steps_are_whole_and_follow_each_other(trace: Decoded, sums: LayerSums) -> None:
    assert [step.index for step in sums.steps] == [2, 3, 4, 5]  # two were for warming up
    assert len(sums.steps) == STEPS
    for before, after in zip(sums.steps, sums.steps[1:], strict=False):
        assert before.end_ns == after.start_ns
    names = [each.name for each in trace.on(trace.track_named("steps"))]
    assert names[:STEPS] == ["step 2", "step 3", "step 4", "step 5"]


def test_each_path_has_a_type_and_a_known_parent(trace: Decoded, sums: LayerSums) -> None:
    paths = {each.path for each in trace.slices if each.path is not None}
    assert paths <= sums.types.keys()
    assert sums.types[""] == "ResidualNet"
    assert sums.types["stem.0"] == "Conv2d"
    assert sums.types["blocks.3.shortcut.1"] == "BatchNorm2d"
    for path, parent in sums.parents.items():
        assert parent == (None if path == "" else path.rpartition(".")[0])


def test_categories_are_phases(trace: Decoded) -> None:
    found = {each.category for each in scopes(trace) + activities(trace)}
    assert found <= PHASES
    assert found >= {"forward", "loss", "backward", "optimizer", "data"}


def test_layer_spans_are_named_by_their_path(trace: Decoded) -> None:
    for each in scopes(trace):
        if is_layer_span(each):
            assert each.name == (each.path or "ResidualNet")


def test_each_activity_names_its_layer_or_says_why_it_has_none(trace: Decoded) -> None:
    for each in activities(trace):
        has_path = each.path is not None
        assert has_path != ("unattributed" in each.args or each.category in OWN_PHASES), each


def test_the_path_is_that_of_the_scope_around(trace: Decoded) -> None:
    """By time alone: the innermost slice of the thread that holds an activity has its path."""
    for thread in trace.threads:
        around = trace.on(thread.uuid)
        checked = 0
        for each in trace.on(trace.ops_track(thread)):
            holding = [
                scope
                for scope in around
                if scope.start_ns <= each.start_ns and (each.end_ns or 0) <= (scope.end_ns or 0)
            ]
            innermost = max(holding, key=lambda scope: scope.order, default=None)
            assert each.path == (innermost.path if innermost else None), (each, innermost)
            assert each.category == (innermost.category if innermost else "other")
            checked += each.path is not None
        assert checked > 0


def test_nodes_lie_in_their_layers_backward_span(trace: Decoded) -> None:
    nodes = [each for each in scopes(trace) if "seq" in each.args or "accumulates" in each.args]
    assert len(nodes) == 356
    for node in nodes:
        assert node.category == "backward"
        if node.path is None:
            assert "unattributed" in node.args
        else:
            assert node.parent is not None
            assert is_layer_span(node.parent)
            assert node.parent.path == node.path


def test_backward_spans_nest_as_the_model_does(trace: Decoded, sums: LayerSums) -> None:
    for each in scopes(trace):
        if not is_layer_span(each) or each.parent is None or each.parent.path is None:
            continue
        assert not is_part_of_layer(each.parent)
        outer, inner = each.parent.path, str(each.path)
        assert outer == "" or inner.startswith(outer + ".")


def test_flows_lead_from_a_forward_call_to_its_backward(trace: Decoded) -> None:
    by_flow: dict[int, list[Slice]] = defaultdict(list)
    for each in trace.slices:
        assert len(each.flows) <= 1
        for flow in each.flows:
            by_flow[flow].append(each)
    connected: Counter[str] = Counter()
    for linked in by_flow.values():
        forward = [each for each in linked if each.category == "forward"]
        backward = [each for each in linked if each.category == "backward"]
        assert len(forward) == 1
        assert len(forward) + len(backward) == len(linked)
        assert {each.path for each in linked} == {forward[0].path}
        assert all(each.start_ns >= (forward[0].end_ns or 0) for each in backward)
        connected[str(forward[0].path)] += bool(backward)
    # Each of a step's module calls has a backward, the root's and the in-place ReLUs' too.
    calls = Counter(
        each.path for each in scopes(trace) if is_layer_span(each) and each.category == "forward"
    )
    assert connected == calls
    assert connected[""] == STEPS
    assert connected["blocks.0.relu"] == 2 * STEPS


def test_the_layers_figures_are_the_sums_of_the_slices(
    profile: dict[str, Any], sums: LayerSums
) -> None:
    assert len(profile["steps"]) == STEPS
    assert [layer["path"] for layer in profile["layers"]] == list(sums.types)
    figures_with_a_value = 0
    for layer in profile["layers"]:
        path = layer["path"]
        assert layer["type"] == sums.types[path]
        assert layer["parent"] == sums.parents[path]
        assert layer["calls"] == statistics.fmean(sums.per_step(path, "forward", "calls"))
        phases = {phase for step in sums.steps for (p, phase) in step.sums if p == path}
        assert phases | {"forward", "backward"} == PHASES & layer.keys()
        for phase in phases:
            for figure in FIGURES:
                values = sums.per_step(path, phase, figure)
                what = (path, phase, figure, values)
                reported = layer[phase]
                # Whole nanoseconds of four steps: each of these has an exact value.
                assert reported[figure] == sum(values) / STEPS, what
                assert reported["min"][figure] == min(values), what
                assert reported["max"][figure] == max(values), what
                assert reported["median"][figure] == statistics.median(values), what
                # A sum of squares of nanoseconds loses the last digits.
                assert reported["stdev"][figure] == pytest.approx(
                    statistics.stdev(values), rel=1e-3, abs=1e-5 * max(values)
                ), what
                figures_with_a_value += any(values)
    assert figures_with_a_value > 40 * 2 * len(FIGURES) * 0.8


def test_the_steps_are_those_of_the_trace(profile: dict[str, Any], sums: LayerSums) -> None:
    for reported, step in zip(profile["steps"], sums.steps, strict=True):
        assert reported["index"] == step.index
        assert reported["start_ns"] == step.start_ns
        assert reported["wall_ns"] == step.end_ns - step.start_ns
        assert sum(reported["phases"].values()) == reported["wall_ns"]


def test_health_counts_what_is_there(
    profile: dict[str, Any], trace: Decoded, sums: LayerSums
) -> None:
    def in_a_step(each: Slice) -> bool:
        return any(step.start_ns <= each.start_ns < step.end_ns for step in sums.steps)

    ops = [each for each in activities(trace) if in_a_step(each)]
    health = profile["health"]
    assert health["activities"] == len(ops)
    without = Counter(each.args["unattributed"] for each in ops if "unattributed" in each.args)
    assert {cause: group["count"] for cause, group in health["unattributed"].items()} == without
    nodes = [
        each
        for each in scopes(trace)
        if in_a_step(each) and ("seq" in each.args or "accumulates" in each.args)
    ]
    assert health["nodes"] == len(nodes)
    assert health["cut"] is False
    assert trace.footer is not None
    for key in ("emitted", "recorded", "dropped"):
        assert health[key] == trace.footer[key]
