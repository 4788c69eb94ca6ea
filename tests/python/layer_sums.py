"""The layers' figures, computed from the slices of a trace: docs/json.md, in Python.

Written from the definitions and from the trace's own slices, with plain intervals instead of
layertrace's running sums, so that the two can disagree.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from trace_decoder import Decoded, Slice, Track

FIGURES = (
    "calls",
    "host_ns",
    "self_host_ns",
    "activities",
    "activity_ns",
    "self_activity_ns",
    "busy_ns",
)
Interval = tuple[int, int]
Key = tuple[str, str]  # path, phase


@dataclass
class Step:
    index: int
    start_ns: int
    end_ns: int
    sums: dict[Key, dict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: dict.fromkeys(FIGURES, 0))
    )
    busy: dict[Key, list[Interval]] = field(default_factory=lambda: defaultdict(list))


def union_ns(intervals: list[Interval]) -> int:
    total = 0
    reached = 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def is_layer_span(each: Slice) -> bool:
    """A module call or a layer's backward span; not a node or region within one."""
    inner = "seq" in each.args or "accumulates" in each.args or "region" in each.args
    return each.path is not None and not inner


def is_part_of_layer(each: Slice) -> bool:
    """A node or a region that divides a layer's own time."""
    return each.path is not None and not is_layer_span(each)


class LayerSums:
    def __init__(self, trace: Decoded) -> None:
        layers = trace.instants_on(trace.track_named("layers"))
        self.types = {str(each.args["path"]): str(each.args["type"]) for each in layers}
        self.parents = {str(each.args["path"]): each.args.get("parent") for each in layers}
        self.steps = [
            Step(int(each.end_args["step"]), each.start_ns, each.end_ns)  # type: ignore[call-overload, arg-type]
            for each in trace.on(trace.track_named("steps"))
            if "step" in each.end_args
        ]
        for thread in trace.threads:
            self._add_scopes(trace, thread)
            self._add_activities(trace, thread)
        for step in self.steps:
            for key, intervals in step.busy.items():
                step.sums[key]["busy_ns"] = union_ns(intervals)

    def per_step(self, path: str, phase: str, figure: str) -> list[int]:
        return [step.sums[path, phase][figure] for step in self.steps]

    def _step_at(self, ns: int) -> Step | None:
        for step in self.steps:
            if step.start_ns <= ns < step.end_ns:
                return step
        return None

    def _and_above(self, path: str) -> list[str]:
        line = [path]
        while (above := self.parents[line[-1]]) is not None:
            line.append(str(above))
        return line

    def _add_scopes(self, trace: Decoded, thread: Track) -> None:
        spans = trace.on(thread.uuid)
        inside_ns: dict[int, int] = defaultdict(int)  # by the order of the span around
        for each in spans:
            if is_part_of_layer(each):
                continue
            around = next((a for a in each.ancestors() if not is_part_of_layer(a)), None)
            if around is not None:
                inside_ns[around.order] += each.duration_ns
        for each in spans:
            step = self._step_at(each.start_ns)
            if step is None or not is_layer_span(each):
                continue
            path, phase = str(each.path), each.category
            step.sums[path, phase]["calls"] += 1
            step.sums[path, phase]["self_host_ns"] += each.duration_ns - inside_ns[each.order]
            outer = {
                layer
                for around in each.ancestors()
                if is_layer_span(around) and around.category == phase
                for layer in self._and_above(str(around.path))
            }
            for layer in self._and_above(path):
                if layer not in outer:  # else it is counted there
                    step.sums[layer, phase]["host_ns"] += each.duration_ns

    def _add_activities(self, trace: Decoded, thread: Track) -> None:
        activities = trace.on(trace.ops_track(thread))
        inside_ns: dict[int, int] = defaultdict(int)
        for each in activities:
            if each.parent is not None:
                inside_ns[each.parent.order] += each.duration_ns
        for each in activities:
            step = self._step_at(each.start_ns)
            if step is None or each.path is None:
                continue
            own_ns = each.duration_ns - inside_ns[each.order]
            step.sums[each.path, each.category]["self_activity_ns"] += own_ns
            for layer in self._and_above(each.path):
                sums = step.sums[layer, each.category]
                sums["activities"] += 1
                sums["activity_ns"] += own_ns
                step.busy[layer, each.category].append((each.start_ns, int(each.end_ns or 0)))
