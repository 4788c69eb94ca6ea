"""Kernels of CUDA graphs belong to the layers that were at work when the graph was captured."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from on_simgpu import needs_simgpu, result_of, same_times_in_every_run

pytestmark = needs_simgpu
REPLAYS = 3
# Before each replay PyTorch sets the seed and the offset of the graph's random numbers (the
# network has a dropout): two kernels that are none of the graph's.
SEED = 2
EARLIER = "of a CUDA graph that was captured while nothing was recorded"
NOWHERE = "ran outside any module and any known phase"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    ways = ("eager", "captured", "callables", "earlier")
    return result_of(tmp_path_factory.mktemp("graphs"), "graphed.py", *ways)


def of_replays(eager: dict[str, int]) -> Counter[str]:
    return Counter({key: REPLAYS * count for key, count in eager.items()})


def test_the_witness_saw_every_layer(told: Any) -> None:
    eager = told["eager"]
    leaves = ("0.0", "0.1", "0.2", "0.3", "1", "2")
    assert set(eager["counts"]) == {
        f"{p} {leaf}" for p in ("forward", "backward") for leaf in leaves
    }
    assert sum(eager["counts"].values()) + eager["outside"] == eager["all"]


def test_each_replay_of_a_captured_pass_belongs_to_its_layers(told: Any) -> None:
    eager, captured = told["eager"], told["captured"]
    assert captured["counts"] == of_replays(eager["counts"])
    assert captured["all"] == REPLAYS * (eager["all"] + SEED)


@same_times_in_every_run
def test_each_replay_takes_as_long_as_the_pass_itself(told: Any) -> None:
    eager, captured = told["eager"], told["captured"]
    for key, took in eager["ns"].items():
        times = captured["ns"][key]
        assert times == pytest.approx(REPLAYS * took, abs=2 * captured["counts"][key]), key


def test_what_a_graph_does_outside_the_model_keeps_its_phase(told: Any) -> None:
    eager, captured = told["eager"], told["captured"]
    outside = captured["outside"]
    assert outside["other"] == REPLAYS * SEED
    assert outside["loss"] + outside["backward"] == REPLAYS * eager["outside"]
    assert captured["unattributed"] == {
        "backward of operators outside any module": outside["backward"],
        NOWHERE: REPLAYS * SEED,
    }


def test_a_capture_itself_runs_nothing(told: Any) -> None:
    """Its step has module calls and no kernels; each replay's has all kernels and no calls."""
    of_forward = {k: n for k, n in told["eager"]["counts"].items() if k.startswith("forward")}
    assert told["captured"]["least"] == 0
    assert told["captured"]["most"] == sum(of_forward.values())


def test_no_event_is_recorded_on_a_stream_that_is_captured(told: Any) -> None:
    """The capture is whole, and the pairs that were not made are counted: one for each call and
    each backward of the eight modules, at the least."""
    gpu = told["captured"]["gpu"]
    assert gpu["events_capturing"] >= 2 * 8
    assert gpu["events_missed"] == 0


def test_graphed_callables(told: Any) -> None:
    """Forward and backward are graphs of their own; the model launches them, and copies the
    gradient of its output to where the backward's graph expects it."""
    expected = of_replays(told["eager"]["counts"])
    expected["forward "] += REPLAYS * SEED
    expected["backward "] += REPLAYS
    assert told["callables"]["counts"] == expected


def test_a_graph_of_before_belongs_to_the_scope_that_launches_it(told: Any) -> None:
    eager, earlier = told["eager"], told["earlier"]
    one = eager["all"] + SEED
    assert earlier["counts"] == {"forward replayer": 2 * one}
    assert earlier["outside"] == {"other": one}
    assert earlier["unattributed"] == {EARLIER: eager["all"], NOWHERE: SEED}
    assert EARLIER in earlier["tree"]


def test_all_kernels_of_a_graph_of_before_are_counted(told: Any) -> None:
    """Also those that have a layer by the module that launched it."""
    assert told["earlier"]["gpu"]["earlier_graphs"] == 3 * told["eager"]["all"]
    assert told["captured"]["gpu"]["earlier_graphs"] == 0
    assert told["callables"]["gpu"]["earlier_graphs"] == 0
