"""torch.compile: nothing breaks, nothing is compiled twice, and the report says what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from models import PAIR, Pair, prefixed, train
from recorded import Recorded, assert_nodes, record, times
from torch import Tensor, nn
from witness import gradients, same_gradients

import layertrace


@pytest.fixture
def compiler() -> Iterator[Callable[[], Counter[str]]]:
    """Says what Dynamo has counted so far; a graph break or a second compilation is an error."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()

    def counted() -> Counter[str]:
        assert not counters["graph_break"]
        return Counter(counters["stats"])

    with torch._dynamo.config.patch(error_on_recompile=True):
        yield counted
    torch._dynamo.reset()
    counters.clear()


@pytest.fixture(params=["eager", "aot_eager"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compiled(model: nn.Module, backend: str) -> Any:
    return torch.compile(model, backend=backend, fullgraph=True)


# The backward of a compiled Pair: as its nodes, or as one.
COMPILED = {
    "eager": "AddmmBackward0 TBackward0 TanhBackward0 AddmmBackward0 TBackward0",
    "aot_eager": "CompiledFunctionBackward",
}


def assert_compiled(run: Recorded, backend: str, path: str, passes: int = 1) -> None:
    """All is the compiled module's, except for the gradients that its layers own."""
    prefix = f"{path}." if path else ""
    owned = times(2 * passes, "AccumulateGrad")
    want = {
        None: times(passes, "SumBackward0"),
        path: times(passes, COMPILED[backend]),
        f"{prefix}a": owned,
        f"{prefix}b": owned,
    }
    assert_nodes(run, want)
    calls = run.forward_calls()
    assert calls[path] == passes
    assert not {f"{prefix}a", f"{prefix}b"} & calls.keys()


def assert_says_compiled(run: Recorded, kind: str) -> None:
    (note,) = run.profile.health.notes
    assert note.startswith(f"{kind} runs as torch.compile has compiled it")
    assert note in run.profile.tree()


Counted = Callable[[], Counter[str]]


def test_compiled_before_the_session(compiler: Counted, backend: str, ops: bool) -> None:
    plain, x = Pair(), torch.randn(2, 3)
    model = compiled(plain, backend)
    want = model(x)
    want.sum().backward()
    unprofiled = gradients(plain)
    before = compiler()
    assert before["unique_graphs"] == 1
    plain.zero_grad()
    run = record(model, lambda: train(model, x), ops=ops)
    assert compiler() == before
    assert same_gradients(plain, unprofiled)
    assert_compiled(run, backend, "_orig_mod")
    assert_says_compiled(run, "OptimizedModule")
    assert torch.equal(model(x), want)
    assert compiler() == before


def test_compiled_inside_and_used_across_sessions(compiler: Counted, backend: str) -> None:
    plain, x = Pair(), torch.randn(2, 3)
    want = plain(x)
    model = compiled(plain, backend)
    got: list[Tensor] = []
    run = record(model, lambda: got.append(model(x)))
    assert_says_compiled(run, "OptimizedModule")
    assert not {"_orig_mod.a", "_orig_mod.b"} & run.forward_calls().keys()
    first = compiler()
    assert first["unique_graphs"] == 1
    got.append(model(x))  # between sessions
    for ops in (True, False):
        run = record(model, lambda: train(model, x), ops=ops)
        assert_compiled(run, backend, "_orig_mod")
        got.append(model(x))
    assert compiler() == first
    assert all(torch.equal(each, want) for each in got)


def test_compiled_names_can_be_folded(compiler: Counted, backend: str) -> None:
    model, x = compiled(Pair(), backend), torch.randn(2, 3)
    train(model, x)
    run = record(model, lambda: train(model, x), fold_wrappers=True)
    assert compiler()["unique_graphs"] == 1
    assert_compiled(run, backend, "")
    assert [layer.path for layer in run.profile.layers] == ["", "a", "b"]


def test_the_wrapper_is_called_and_what_it_wraps_is_profiled(compiler: Counted) -> None:
    """Between the model's forward and the backward is the loss, whoever called the model."""
    inner, x = Pair(), torch.randn(2, 3)
    model = compiled(inner, "eager")
    train(model, x)
    run = record(inner, lambda: train(model, x))
    assert compiler()["unique_graphs"] == 1
    assert_compiled(run, "eager", "")
    assert run.profile.outside["loss"].activities.mean > 0


@pytest.mark.parametrize("schedule", [{"skip": 1, "record": 1}, {"record": 1}, {"warmup": 1}])
def test_compiled_while_the_session_is_idle(compiler: Counted, schedule: dict[str, int]) -> None:
    """Recording or not makes no difference to the compiler's guards."""
    model, x = compiled(Pair(), "eager"), torch.randn(2, 3)
    with layertrace.profile(model, schedule=layertrace.schedule(**schedule)) as session:
        for _ in range(4):
            train(model, x)
            session.step()
    train(model, x)
    assert compiler()["unique_graphs"] == 1


def test_a_module_compiled_in_place(compiler: Counted, backend: str, ops: bool) -> None:
    model, x = Pair(), torch.randn(2, 3)
    model.compile(backend=backend, fullgraph=True)
    train(model, x)
    before, own = compiler(), vars(model)["_compiled_call_impl"]
    assert before["unique_graphs"] == 1
    for _ in range(2):
        run = record(model, lambda: train(model, x), ops=ops)
        assert_compiled(run, backend, "")
        assert_says_compiled(run, "Pair")
        assert vars(model)["_compiled_call_impl"] is own
        assert model._compiled_call_impl is own
        train(model, x)
    assert compiler() == before


def test_a_module_compiled_in_place_inside(compiler: Counted, backend: str) -> None:
    """The class's descriptor takes what compile() puts onto the instance, and it stays there."""
    model, x = Pair(), torch.randn(2, 3)
    want = model(x)

    def body() -> None:
        model.compile(backend=backend, fullgraph=True)
        assert torch.equal(model(x), want)

    run = record(model, body)
    assert run.forward_calls() == {"": 1}
    assert "_compiled_call_impl" in vars(model)
    assert torch.equal(model(x), want)
    run = record(model, lambda: train(model, x))
    assert_compiled(run, backend, "")
    assert compiler()["unique_graphs"] == 1


def test_the_report_says_what_was_compiled_inside(compiler: Counted) -> None:
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        model.compile(backend="eager", fullgraph=True)
        train(model, x)

    run = record(model, body)
    assert compiler()["unique_graphs"] == 1
    assert_says_compiled(run, "Pair")


@pytest.mark.xfail(
    strict=True,
    reason="the engine comes to a node that is only asked for its gradient, and PyTorch reports it",
)
def test_nodes_that_the_compiler_does_not_run(compiler: Counted) -> None:
    model, x = compiled(Pair(), "aot_eager"), torch.randn(2, 3)
    run = record(model, lambda: train(model, x))
    assert compiler()["unique_graphs"] == 1
    assert run.by_layer[None] == "SumBackward0"


@pytest.mark.parametrize("how", ["compile", "method"])
def test_a_part_of_the_model_is_compiled(
    compiler: Counted, backend: str, how: str, ops: bool
) -> None:
    """The other parts have their layers as ever."""
    model, x = nn.Sequential(Pair(), Pair()), torch.randn(2, 3)
    if how == "method":
        model[1].compile(backend=backend, fullgraph=True)
    else:
        model[1] = compiled(model[1], backend)
    train(model, x)
    run = record(model, lambda: train(model, x), ops=ops)
    assert compiler()["unique_graphs"] == 1
    path = "1" if how == "method" else "1._orig_mod"
    owned = "AccumulateGrad AccumulateGrad"
    want = prefixed(PAIR, "0") | {
        path: COMPILED[backend],
        f"{path}.a": owned,
        f"{path}.b": owned,
    }
    assert_nodes(run, want)
    assert_says_compiled(run, "Pair" if how == "method" else "OptimizedModule")


def test_a_module_compiled_in_place_between_two_sessions(compiler: Counted) -> None:
    """The second one runs what was compiled: people compare the two."""
    model, x = Pair(), torch.randn(2, 3)
    with layertrace.profile(model):
        model(x)
    model.compile(backend="eager", fullgraph=True)
    run = record(model, lambda: train(model, x))
    assert compiler()["unique_graphs"] == 1
    assert_compiled(run, "eager", "")
    assert_says_compiled(run, "Pair")
