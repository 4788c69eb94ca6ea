"""Memory by layer and phase, as the CPU's allocator tells of it: to the byte."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from recorded import record
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.checkpoint import checkpoint

import layertrace

BATCH, WIDE, NARROW = 32, 64, 8
FLOAT = 4


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW))


class Training:
    """A step of training that holds nothing afterwards but what training keeps."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.inputs = torch.ones(BATCH, NARROW)

    def __call__(self) -> float:
        self.optimizer.zero_grad()
        loss = self.model(self.inputs).square().mean()
        loss.backward()
        self.optimizer.step()
        return float(loss.item())


def witnessed(body: Callable[[], object]) -> tuple[int, int]:
    """What torch.profiler hears: bytes allocated, and given back."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        body()
    results: Any = profiler.profiler
    sizes = [e.nbytes() for e in results.kineto_results.events() if e.name() == "[memory]"]
    return sum(n for n in sizes if n > 0), -sum(n for n in sizes if n < 0)


def all_phases(profile: layertrace.Profile) -> list[layertrace.MemoryStats]:
    """Of the root and of what is outside any layer: each block is in one of them."""
    roots = [layer for layer in profile.layers if layer.parent is None]
    phases = [layer.phases for layer in roots] + [profile.outside]
    return [stats.memory for each in phases for stats in each.values()]


def totals(profile: layertrace.Profile) -> tuple[float, float]:
    every = all_phases(profile)
    return sum(each.allocated for each in every), sum(each.freed for each in every)


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()
        self.head = nn.Linear(NARROW, NARROW)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(checkpoint(self.body, x, use_reentrant=False))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": mlp,
    "norms": lambda: nn.Sequential(mlp(), nn.LayerNorm(NARROW), nn.Dropout(0.5), nn.GELU()),
    "transformer": lambda: nn.TransformerEncoderLayer(NARROW, 2, 16, batch_first=True),
    "checkpointed": Checkpointed,
}


@pytest.mark.parametrize("name", MODELS)
def test_sums_are_those_of_another_run_that_the_profiler_heard(name: str, ops: bool) -> None:
    torch.manual_seed(0)
    expected = witnessed(Training(MODELS[name]()))
    torch.manual_seed(0)
    training = Training(MODELS[name]())
    profile = record(training.model, training, ops=ops).profile
    assert totals(profile) == expected
    (host,) = profile.device_memory
    assert host.device is None
    assert (host.allocated, host.freed) == expected


def test_the_profiler_hears_the_same_while_a_session_does_and_after() -> None:
    alone = witnessed(Training(mlp()))
    training = Training(mlp())
    heard: list[tuple[int, int]] = []
    profile = record(training.model, lambda: heard.append(witnessed(training))).profile
    assert heard == [alone]
    assert totals(profile) == alone
    assert witnessed(Training(mlp())) == alone


def test_layers_have_what_is_known_by_hand() -> None:
    training = Training(mlp())
    profile = record(training.model, training).profile
    wide, narrow = BATCH * WIDE * FLOAT, BATCH * NARROW * FLOAT
    linear, relu, last = (layer.forward.memory for layer in profile.layers[1:])
    # ReLU keeps what it gives, for itself and for the layer after it; what it is given goes.
    assert (linear.allocated, linear.freed, linear.kept, linear.peak) == (wide, wide, 0, wide)
    assert (relu.allocated, relu.freed, relu.kept, relu.peak) == (wide, wide, wide, 2 * wide)
    # square() keeps its input, the last layer's output.
    assert (last.allocated, last.freed, last.kept) == (narrow, narrow, narrow)
    assert last.peak == wide + narrow
    root = profile.layers[0].forward.memory
    assert (root.allocated, root.kept, root.peak) == (2 * wide + narrow, wide + narrow, 2 * wide)


def test_gradients_optimizer_state_and_the_forecast() -> None:
    training = Training(mlp())
    profile = record(training.model, training).profile
    size = sum(p.numel() * FLOAT for p in training.model.parameters())
    assert profile.gradient_bytes == size
    state = [t for each in training.optimizer.state.values() for t in each.values()]
    assert profile.optimizer_bytes == sum(t.numel() * t.element_size() for t in state)
    forecast = profile.forecast()
    assert forecast.gradients == size
    assert forecast.optimizer == profile.optimizer_bytes
    assert forecast.activations == sum(each.kept for each in all_phases(profile))


def test_the_peak_has_its_layer_and_moment() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.small, self.large = nn.Linear(NARROW, NARROW), nn.Linear(NARROW, 1024)

        def forward(self, x: torch.Tensor) -> Any:
            return self.small(self.large(self.small(x))[:, :NARROW])

    model = Net()
    x = torch.ones(BATCH, NARROW)

    def infer() -> None:
        with torch.no_grad():
            model(x)

    profile = record(model, infer).profile
    (host,) = profile.device_memory
    assert host.peak_layer is not None
    assert profile.layers[host.peak_layer].path == "large"  # the last only comes to the same
    assert host.peak_phase == "forward"
    # its output, and its input
    assert host.peak == BATCH * 1024 * FLOAT + BATCH * NARROW * FLOAT
    assert 0 < host.peak_ns < profile.steps[0].wall_ns
    assert all(each.kept == 0 for each in all_phases(profile))
    assert profile.gradient_bytes == 0
    large = profile.find("large")
    assert large is not None
    assert large.forward.memory.peak == host.peak


def test_a_recomputation_keeps_what_the_forward_did_not() -> None:
    model = Checkpointed()
    training = Training(model)
    training()  # Adam's state and the gradients are there
    profile = record(model, training).profile
    body = profile.find("body")
    assert body is not None
    # The checkpoint keeps its input, which was there; the head keeps the body's output.
    assert body.forward.memory.kept == BATCH * NARROW * FLOAT
    assert body.recompute.memory.kept >= BATCH * WIDE * FLOAT
    assert profile.optimizer_bytes == 0


def state_size(optimizer: torch.optim.Optimizer) -> int:
    """As the optimizer would save it."""
    saved = optimizer.state_dict()["state"].values()
    tensors = [t for each in saved for t in each.values() if isinstance(t, torch.Tensor)]
    return sum(t.nbytes for t in tensors)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_state_that_was_there_before_is_forecast(
    optimizer: type[torch.optim.Optimizer], tmp_path: Path
) -> None:
    training = Training(mlp())
    training.optimizer = optimizer(training.model.parameters(), lr=0.1)  # type: ignore[call-arg]
    training()
    path = tmp_path / "run.pftrace"
    with layertrace.profile(training.model, path, layertrace.schedule(skip=2)) as session:
        for _ in range(4):
            training()
            session.step()
    for profile in (session.profile, layertrace.load(path)):
        assert profile.optimizer_bytes == 0
        assert profile.forecast().optimizer_known
        assert profile.forecast().optimizer == state_size(training.optimizer)
        assert profile.optimizer_state_bytes == state_size(training.optimizer)
    forecast = json.loads(session.profile.to_json())["memory"]["forecast"]
    assert forecast["optimizer"] == state_size(training.optimizer)


def test_an_optimizer_that_is_gone_at_the_end_has_told() -> None:
    training = Training(mlp())
    training()
    size = state_size(training.optimizer)
    with layertrace.profile(training.model) as session:
        training()
        session.step()
        gone = weakref.ref(training.optimizer)
        del training.optimizer
        gc.collect()
        assert gone() is None  # nothing of ours keeps it
    assert session.profile.forecast().optimizer == size


def test_an_optimizer_that_was_replaced_is_not_in_the_forecast() -> None:
    training = Training(mlp())
    with layertrace.profile(training.model) as session:
        training()
        session.step()
        adams = state_size(training.optimizer)
        gone = weakref.ref(training.optimizer)
        training.optimizer = torch.optim.SGD(  # type: ignore[assignment]
            training.model.parameters(), lr=0.1, momentum=0.9
        )
        gc.collect()
        assert gone() is None
        training()
        session.step()
    sgds = state_size(training.optimizer)
    assert 0 < sgds < adams
    assert session.profile.optimizer_state_bytes == sgds
    assert session.profile.forecast().optimizer == sgds


def test_optimizers_that_take_turns_are_added_up() -> None:
    training, other = Training(mlp()), Training(mlp())
    with layertrace.profile({"a": training.model, "b": other.model}) as session:
        for _ in range(2):
            training()
            other()
            session.step()
    both = state_size(training.optimizer) + state_size(other.optimizer)
    assert session.profile.forecast().optimizer == both


class Handmade:
    """Steps by itself, and is no class of torch's."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())
        self.kept = [torch.zeros_like(p) for p in self.parameters]

    def step(self) -> None:
        with torch.no_grad(), layertrace.scope("optimizer"):
            for parameter, kept in zip(self.parameters, self.kept, strict=True):
                assert parameter.grad is not None
                kept += parameter.grad
                parameter -= 0.1 * kept


def test_state_of_which_nobody_tells_is_unknown_and_not_nothing() -> None:
    model = mlp()
    optimizer = Handmade(model)

    def train() -> None:
        model(torch.ones(BATCH, NARROW)).square().mean().backward()
        optimizer.step()

    session = record(model, train)
    forecast = session.profile.forecast()
    assert (forecast.optimizer, forecast.optimizer_known) == (0, False)
    assert session.profile.optimizer_state_bytes is None
    assert json.loads(session.profile.to_json())["memory"]["forecast"]["optimizer"] is None
    assert "What the optimizer's state takes is not known" in session.profile.tree()


def test_an_optimizer_that_raises_when_asked_is_unknown() -> None:
    class Secretive(torch.optim.SGD):
        @property
        def state(self) -> Any:
            raise RuntimeError("no")

        @state.setter
        def state(self, value: Any) -> None: ...

    model = mlp()
    parameter = nn.Parameter(torch.ones(1))
    optimizer = Secretive([parameter], lr=0.1)
    with layertrace.profile(model, optimizer=optimizer) as session:
        model(torch.ones(BATCH, NARROW))
        optimizer.step()  # without a gradient: nothing to do
    assert session.profile.optimizer_state_bytes is None


def test_other_threads_count() -> None:
    model = mlp()

    def body() -> None:
        thread = threading.Thread(target=lambda: torch.empty(1000, dtype=torch.uint8))
        thread.start()
        thread.join()

    profile = record(model, body).profile
    assert totals(profile) == (1000, 1000)


def test_only_the_first_of_steps_that_are_alike_is_told_of() -> None:
    training = Training(mlp())
    with layertrace.profile(training.model) as session:
        training()
        session.step()
        for _ in range(3):
            training()
            session.step()
    one = Training(mlp())
    alone = record(one.model, one).profile
    assert totals(session.profile) == totals(alone)
    assert session.profile.optimizer_bytes == alone.optimizer_bytes


def test_the_program_computes_the_same() -> None:
    plain = Training(mlp())
    expected = [plain() for _ in range(3)]
    training = Training(mlp())
    with layertrace.profile(training.model) as session:
        losses = []
        for _ in range(3):
            losses.append(training())
            session.step()
    assert losses == expected
    for mine, theirs in zip(training.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_an_optimizer_that_cannot_be_hashed_is_asked_all_the_same() -> None:
    class Unhashable(torch.optim.SGD):
        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = None  # type: ignore[assignment]

    model = torch.nn.Linear(4, 4)
    optimizer = Unhashable(model.parameters(), lr=0.1, momentum=0.9)
    with layertrace.profile(model) as session:
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
            session.step()
    # A momentum for each parameter.
    assert session.profile.optimizer_state_bytes == (4 * 4 + 4) * 4


def test_a_session_that_ends_while_another_threads_optimizer_steps_does_not_disturb_it() -> None:
    """PyTorch goes through its hooks while they run: one that is gone by then would be an error."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inside, stopped = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def wait(*_: object) -> None:
        inside.set()
        stopped.wait(30)

    def step() -> None:
        try:
            optimizer.step()
        except BaseException as error:
            raised.append(error)

    session = layertrace.profile(model).start()
    hooks = [register_optimizer_step_pre_hook(each) for each in (wait, lambda *_: None)]
    try:
        thread = threading.Thread(target=step)
        thread.start()
        assert inside.wait(30)
        session.stop()
        stopped.set()
        thread.join()
    finally:
        for hook in hooks:
            hook.remove()
    assert raised == []
