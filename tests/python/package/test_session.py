"""What a user does with the package: profile(), its steps, its regions, results on the way."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import calls, train, trained
from models import Calls, Pair
from recorded import record
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import layertrace
import layertrace._session

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


# ---- From start to stop ---------------------------------------------------------------------


def test_as_a_context_manager() -> None:
    model = Pair()
    with layertrace.profile(model) as session:
        for _ in range(3):
            train(model)
            session.step()
        assert session.recording
    assert not session.recording
    profile = session.profile
    assert profile.step_count == len(profile.steps) == 3
    assert [step.index for step in profile.steps] == [0, 1, 2]
    assert profile.steps_marked
    assert calls(profile) == {"": 1, "a": 1, "b": 1}
    assert profile.health.nodes == 3 * 10


def test_the_profile_is_plain_data() -> None:
    model = Pair()
    profile = trained(model)
    root, a, b = profile.layers
    assert [each.path for each in (root, a, b)] == ["", "a", "b"]
    assert [each.name for each in (root, a, b)] == ["Pair", "a", "b"]
    assert [each.type for each in (root, a, b)] == ["Pair", "Linear", "Linear"]
    assert (root.parent, a.parent, b.parent) == (None, 0, 0)
    assert list(root.children) == [1, 2]
    assert profile.find("b").path == "b"  # type: ignore[union-attr]
    assert profile.find("c") is None
    for layer in profile.layers:
        assert layer.ran
        assert layer.registered
        assert layer.phases.keys() == PHASES
        for phase, stats in layer.phases.items():
            assert stats.empty == (phase not in ("forward", "backward"))
        assert layer.forward.host_ns.mean >= layer.forward.self_host_ns.mean > 0
        assert layer.forward.host_ns.min <= layer.forward.host_ns.median
        assert layer.forward.host_ns.median <= layer.forward.host_ns.max
        assert layer.backward.activities.mean > 0
    # The children's figures are in the root's, and the root has some of its own.
    for phase in ("forward", "backward"):
        inside = sum(each.phases[phase].host_ns.mean for each in (a, b))
        assert root.phases[phase].host_ns.mean > inside
    for step in profile.steps:
        assert sum(step.phase_ns.values()) == step.wall_ns
        assert step.phase_ns["forward"] > 0
    assert profile.outside["loss"].activities.mean > 0
    assert profile.run.torch_version == torch.__version__.partition("+")[0]
    assert profile.run.layertrace_version == layertrace.__version__
    assert profile.run.ops


def test_started_and_stopped_by_hand() -> None:
    model = Pair()
    session = layertrace.profile(model)
    assert not session.recording
    assert session.start() is session
    train(model)
    session.step()
    profile = session.stop()
    assert calls(profile) == {"": 1, "a": 1, "b": 1}
    train(model)  # is no longer recorded
    assert session.profile.to_json() == profile.to_json()


def test_stopped_inside_its_block() -> None:
    model = Pair()
    with layertrace.profile(model) as session:
        train(model)
        session.step()
        session.stop()
        train(model)
    assert session.profile.step_count == 1
    assert session.profile.health.nodes == 10


def test_without_a_step() -> None:
    """The whole recording is one step, and the result says so."""
    model = Pair()
    with layertrace.profile(model) as session:
        train(model, 2)
    assert not session.profile.steps_marked
    assert session.profile.find("a").calls == 2  # type: ignore[union-attr]
    assert "No step was marked" in session.tree()


def test_as_a_decorator() -> None:
    """Each call is a session of its own."""
    model = Pair()

    @layertrace.profile(model, ops=False)
    def run(n: int, *, scale: float = 1.0) -> float:
        """Trains."""
        train(model, n)
        return n * scale

    assert run.__doc__ == "Trains."
    assert run.session is None  # type: ignore[attr-defined]
    assert run(2, scale=1.5) == 3.0
    first = run.session  # type: ignore[attr-defined]
    assert run(3) == 3.0
    second = run.session  # type: ignore[attr-defined]
    assert first is not second
    assert first.profile.find("a").calls == 2
    assert second.profile.find("a").calls == 3
    assert not second.profile.run.ops


def test_a_decorated_function_may_raise() -> None:
    model = Pair()

    @layertrace.profile(model)
    def run() -> None:
        train(model)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run()
    assert run.session.profile.find("a").calls == 1  # type: ignore[attr-defined]


def test_a_session_that_nobody_keeps() -> None:
    session: layertrace.Session | None = layertrace.profile(Pair()).start()
    assert torch.nn.Module.__dict__["_compiled_call_impl"] is not None
    session = None
    gc.collect()
    assert session is None
    assert torch.nn.Module.__dict__["_compiled_call_impl"] is None
    assert trained(Pair()).step_count == 2


def test_without_a_model() -> None:
    """What is called is seen all the same, as part of no model."""
    model = Pair()
    with layertrace.profile() as session:
        train(model)
    assert calls(session.profile) == {"(Pair)": 1, "(Pair).a": 1, "(Pair).b": 1}
    assert not any(layer.registered for layer in session.profile.layers)


def test_several_models_by_name() -> None:
    models = {"generator": Pair(), "discriminator": nn.Sequential(nn.Linear(3, 1))}
    with layertrace.profile(models) as session:
        fake = models["generator"](torch.randn(2, 3))
        for _ in range(2):
            models["discriminator"](fake.detach()).sum().backward()
    profile = session.profile
    assert calls(profile) == {
        "generator": 1,
        "generator.a": 1,
        "generator.b": 1,
        "discriminator": 2,
        "discriminator.0": 2,
    }
    assert [layer.path for layer in profile.layers if layer.parent is None] == list(models)
    roots = [layer for layer in profile.layers if layer.parent is None]
    assert [layer.type for layer in roots] == ["Pair", "Sequential"]
    assert profile.find("generator").backward.empty  # type: ignore[union-attr]
    assert not profile.find("discriminator").backward.empty  # type: ignore[union-attr]


def test_its_repr_tells_where_it_stands() -> None:
    model = Pair()
    session = layertrace.profile(model)
    assert "not started" in repr(session)
    with session:
        assert "active" in repr(session)
        train(model)
    assert "stopped" in repr(session)
    assert repr(session.profile) == (
        "<layertrace.Profile of Pair: 3 layers, 1 step, which nobody marked>"
    )


# ---- Steps ----------------------------------------------------------------------------------


def test_steps_are_the_optimizers() -> None:
    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with layertrace.profile(model, optimizer=optimizer) as session:
        for _ in range(4):
            optimizer.zero_grad()
            train(model, 2)  # two passes of gradients make one step
            optimizer.step()
    profile = session.profile
    assert profile.step_count == 4
    assert calls(profile) == {"": 2, "a": 2, "b": 2}
    assert profile.outside["optimizer"].calls.mean == 2  # zero_grad and step
    assert profile.outside["optimizer"].activities.mean > 0
    optimizer.step()
    assert not optimizer._optimizer_step_post_hooks
    assert session.profile.step_count == 4


def test_an_optimizers_closure_is_no_part_of_it() -> None:
    """LBFGS runs forward and backward itself: they stay the model's."""
    model, x = Pair(), torch.randn(2, 3)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss  # type: ignore[no-any-return]

    run = record(model, lambda: optimizer.step(closure))  # type: ignore[no-untyped-call]
    n = run.calls["", "forward"]
    assert n >= 2
    assert run.nodes["AddmmBackward0", "a"] == n
    assert run.operators_of("a", "forward")["aten::addmm"] == n
    assert run.operators_of(None, "optimizer").total() > 0


@pytest.mark.parametrize("first", ["generator", "discriminator"])
def test_steps_of_two_optimizers(first: str) -> None:
    """As in a GAN: the step ends with the last one that was named."""
    models = {"generator": nn.Linear(3, 3), "discriminator": nn.Linear(3, 1)}
    optimizers = {
        name: torch.optim.SGD(model.parameters(), lr=0.1) for name, model in models.items()
    }
    order = sorted(models, key=lambda name: name != first)
    with layertrace.profile(models, optimizer=[optimizers[name] for name in order]) as session:
        for _ in range(3):
            for name in order:
                score = models["discriminator"](models["generator"](torch.randn(2, 3)))
                score.sum().backward()
                optimizers[name].step()
    assert session.profile.step_count == 3
    assert calls(session.profile) == {"generator": 2, "discriminator": 2}
    for step in session.profile.steps:
        assert step.phase_ns["optimizer"] > 0


def test_an_optimizer_of_ones_own() -> None:
    class Halve(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data.mul_(0.5)

    model = Pair()
    optimizer = Halve(model.parameters(), {})
    with layertrace.profile(model, optimizer=optimizer) as session:
        for _ in range(2):
            train(model)
            optimizer.step()
    assert session.profile.step_count == 2


def recorded_steps(n: int, **schedule: int) -> tuple[list[int], list[bool], layertrace.Profile]:
    model = Pair()
    said = []
    with layertrace.profile(model, schedule=layertrace.schedule(**schedule)) as session:
        for _ in range(n):
            said.append(session.recording)
            train(model)
            session.step()
    return [step.index for step in session.profile.steps], said, session.profile


@pytest.mark.parametrize(
    ("schedule", "recorded"),
    [
        ({}, range(9)),
        ({"skip": 2}, range(2, 9)),
        ({"warmup": 2}, range(2, 9)),
        ({"skip": 1, "warmup": 2, "record": 3}, range(3, 6)),
        ({"skip": 1, "warmup": 1, "record": 2, "repeat": 2}, [2, 3, 6, 7]),
        ({"skip": 1, "record": 1, "repeat": 0}, [1, 3, 5, 7]),
        ({"skip": 20, "record": 1}, []),
    ],
)
def test_a_schedule(schedule: dict[str, int], recorded: list[int]) -> None:
    indices, said, profile = recorded_steps(9, **schedule)
    assert indices == list(recorded)
    assert [i for i, each in enumerate(said) if each] == list(recorded)
    assert profile.step_count == len(indices)
    assert profile.health.nodes == 10 * len(indices)
    if indices:
        assert calls(profile) == {"": 1, "a": 1, "b": 1}


def test_a_schedule_is_of_whole_steps() -> None:
    chosen = layertrace.schedule(skip=1, warmup=2, record=3, repeat=4)
    assert (chosen.skip, chosen.warmup, chosen.record, chosen.repeat) == (1, 2, 3, 4)
    for name in ("skip", "warmup", "record", "repeat"):
        with pytest.raises(ValueError, match=rf"{name} is -1; it is a number of steps"):
            layertrace.schedule(**{name: -1})


def test_the_file_is_complete_although_the_program_goes_on(tmp_path: Path) -> None:
    """After the last recorded step nothing more is kept."""
    model, output = Pair(), tmp_path / "run.pftrace"
    with layertrace.profile(
        model, output=output, schedule=layertrace.schedule(record=1)
    ) as session:
        train(model)
        session.step()
        emitted = session.profile.health.emitted
        train(model, 20)
        session.step()
        assert session.profile.health.emitted - emitted <= 2  # that a step ended
    assert layertrace.load(output).step_count == 1


# ---- Without operators ----------------------------------------------------------------------


def test_without_operators() -> None:
    profile = trained(Pair(), ops=False)
    assert not profile.run.ops
    assert calls(profile) == {"": 1, "a": 1, "b": 1}
    assert profile.health.nodes == 20
    assert profile.health.activities == 0
    for layer in profile.layers:
        assert layer.backward.host_ns.mean > 0
        assert layer.forward.activities.max == 0
    assert "Operators were not recorded" in profile.tree()


# ---- Regions and phases ---------------------------------------------------------------------


def test_scopes_are_regions() -> None:
    def forward(_: nn.Module, x: Tensor) -> Tensor:
        with layertrace.scope("double"), layertrace.scope("loss"):
            return x * 2

    model = Calls(forward)

    @layertrace.scope("augment")
    def augment(x: Tensor, by: float) -> Tensor:
        """Adds noise."""
        return x + by

    def body() -> None:
        model(augment(torch.randn(2, 3), by=0.5))
        with layertrace.scope("outer"):
            augment(torch.randn(2, 3), 1)

    assert augment.__doc__ == "Adds noise."
    run = record(model, body)
    assert run.regions("other") == ["augment", "outer", "augment"]
    (inner,) = (each for each in run.slices if each.name == "augment" and each.parent is not None)
    assert inner.parent is not None
    assert inner.parent.name == "outer"
    # Inside a module they divide its forward, and no name makes another phase of it.
    assert run.regions("forward") == ["double", "loss"]
    assert {each.path for each in run.slices if each.name in ("double", "loss")} == {""}
    assert run.operators_of("", "forward")["aten::mul"] == 1


@pytest.mark.parametrize("phase", ["data", "loss", "optimizer", "communication"])
def test_scopes_that_name_a_phase(phase: str) -> None:
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        with layertrace.scope(phase):
            torch.ones(3).cosh()
        model(x)

    run = record(model, body)
    assert run.operators_of(None, phase)["aten::cosh"] == 1
    assert run.profile.outside[phase].calls.mean == 1 + (phase == "loss")  # after the forward
    assert run.profile.outside[phase].activities.mean > 0
    assert run.profile.steps[0].phase_ns[phase] > 0
    assert run.profile.health.unattributed == []
    assert f"({phase})" in run.profile.tree()


def test_the_loss_is_between_forward_and_backward() -> None:
    model, x = Pair(), torch.randn(2, 3)
    run = record(model, lambda: model(x).cosh().sum().backward())
    assert run.operators_of(None, "loss")["aten::cosh"] == 1
    assert run.regions("loss") == ["loss"]


def test_scopes_outside_a_session_and_left_by_exceptions() -> None:
    with layertrace.scope("idle"):
        pass

    def body() -> None:
        with pytest.raises(ValueError, match="mine"), layertrace.scope("broken"):
            raise ValueError("mine")
        with layertrace.scope("whole"):
            pass

    run = record(Pair(), body)
    ends = {each.name: each.end_args for each in run.slices}
    assert ends == {"broken": {"ended_by": "exception"}, "whole": {}}


def test_record_function_is_a_region() -> None:
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        with torch.profiler.record_function("augment"):
            x.cosh()
        model(x)

    run = record(model, body)
    assert run.regions("other") == ["augment"]
    (region,) = (each for each in run.slices if each.name == "augment")
    (cosh,) = (each for each in run.operators if each.name == "aten::cosh")
    assert region.start_ns <= cosh.start_ns < (region.end_ns or 0)


@pytest.mark.parametrize("ops", [True, False])
def test_what_pytorch_reports_is_seen_with_and_without_operators(ops: bool) -> None:
    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(6, 3)), batch_size=2)
    with layertrace.profile(model, optimizer=optimizer, ops=ops) as session:
        for (x,) in loader:
            with torch.profiler.record_function("augment"):
                x = x + 1
            with pytest.raises(ValueError), torch.profiler.record_function("broken"):
                raise ValueError
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    phases = session.profile.outside
    assert phases["data"].calls.mean > 0
    assert phases["optimizer"].calls.mean > 0
    assert phases["other"].calls.mean == 2  # the two regions of the program's own


def test_record_function_is_left_as_it_was() -> None:
    from torch.autograd.profiler import record_function

    before = dict(vars(record_function))
    inside = torch.profiler.record_function("begun before")
    inside.__enter__()
    with layertrace.profile(Pair(), ops=False) as session:
        inside.__exit__(None, None, None)
        open_at_the_end = torch.profiler.record_function("ended after")
        open_at_the_end.__enter__()
        with pytest.raises(layertrace.Error), layertrace.profile(Pair(), ops=False):
            pass
        session.step()
    assert dict(vars(record_function)) == before
    open_at_the_end.__exit__(None, None, None)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_is_the_phase_data(workers: int) -> None:
    model = Pair()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(6, 3)), batch_size=2, num_workers=workers)
    with layertrace.profile(model, optimizer=optimizer) as session:
        for (x,) in loader:
            model(x).sum().backward()
            optimizer.step()
    profile = session.profile
    assert profile.step_count == 3
    assert profile.outside["data"].calls.mean == 1
    for step in profile.steps:
        assert step.phase_ns["data"] > 0
    assert calls(profile) == {"": 1, "a": 1, "b": 1}


# ---- Reading while recording ----------------------------------------------------------------


def test_results_can_be_read_while_recording_goes_on() -> None:
    model = Pair()
    with layertrace.profile(model) as session:
        seen = []
        for _ in range(3):
            train(model)
            session.step()
            seen.append(session.profile)
            assert session.tree().startswith("Pair")
            assert session._repr_html_() is not None
            assert session.recording
    assert [each.step_count for each in seen] == [1, 2, 3]
    assert [each.health.nodes for each in seen] == [10, 20, 30]
    # What was read before stays as it was.
    assert [len(each.steps) for each in seen] == [1, 2, 3]
    assert session.profile.step_count == 3
    assert session.profile.steps[0].wall_ns == seen[0].steps[0].wall_ns


def test_another_thread_may_read() -> None:
    model = Pair()
    done = threading.Event()
    counts: list[int] = []

    def read() -> None:
        while not done.is_set():
            counts.append(session.profile.step_count)

    with layertrace.profile(model) as session:
        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(100):
            train(model)
            session.step()
        done.set()
        reader.join(60)
    assert counts == sorted(counts)
    assert session.profile.step_count == 100
    assert session.profile.health.nodes == 1000
    assert session.profile.health.dropped == 0


# ---- Traps ----------------------------------------------------------------------------------


def test_a_start_that_failed_can_be_tried_again(tmp_path: Path) -> None:
    model = Pair()
    session = layertrace.profile(model)
    with layertrace.profile(Pair()), pytest.raises(layertrace.Error, match="already active"):
        session.start()
    session.start()
    train(model)
    assert calls(session.stop()) == {"": 1, "a": 1, "b": 1}


@pytest.mark.parametrize("decorator", [layertrace.scope("x"), layertrace.profile()])
def test_coroutines_are_refused(decorator: Any) -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match=f"{function.__name__}.*use `with` inside"):
            decorator(function)


def test_a_scope_that_two_threads_share() -> None:
    model, shared, inside = Pair(), layertrace.scope("shared"), threading.Barrier(2)

    def enter(first: bool) -> None:
        with shared:
            inside.wait()
            if first:
                train(model)
            inside.wait()

    with layertrace.profile(model) as session:
        threads = [threading.Thread(target=enter, args=(first,)) for first in (True, False)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert session.profile.health.cut_scopes == 0
    assert session.profile.health.thrown_scopes == 0


def test_parameters_made_while_another_thread_looks_for_a_module() -> None:
    """Looking may run Python code, and so the other thread: neither may wait for ever."""
    done = threading.Event()

    def make_modules() -> None:
        while not done.is_set():
            nn.Linear(2, 2)

    class Slow(Pair):
        """Takes its time when it is asked for its parameters."""

    def slow_name(module: nn.Module) -> str:
        time.sleep(0.001)
        return "slow"

    session = layertrace._session.Session(None, None, None, None, True, False, 8 << 20, slow_name)
    thread = threading.Thread(target=make_modules, daemon=True)
    thread.start()
    with session:
        for _ in range(50):
            Slow()(torch.randn(2, 3))
    done.set()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_a_module_made_while_another_is_looked_for() -> None:
    """On the same thread: what is asked for a name makes modules and calls them."""
    other = Pair()

    def name(module: nn.Module) -> str:
        nn.Linear(2, 2)
        other(torch.randn(2, 3))
        return "model"

    session = layertrace._session.Session(None, None, None, None, True, False, 8 << 20, name)
    model = Pair()
    with session:
        train(model)
        train(other)
    paths = calls(session.profile)
    assert paths["model"] == 1
    assert paths["model#2"] == 1, "it is found the next time"
