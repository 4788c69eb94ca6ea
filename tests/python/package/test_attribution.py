"""Whose is each autograd node? In the cases where layer profilers fail.

Each table is written by hand from the forward's operators; where the graph can tell, it is asked as
a second witness (see witness.py). Nodes that ran are counted in the saved trace.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from models import LINEAR, PAIR, TWO_CALLS, Calls, FromForms, Pair
from recorded import Recorded, Table, assert_nodes, names, record, times
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from witness import count_runs, names_made, short_name, watch

OUTSIDE = "backward of operators outside any module"
FOREIGN_LEAF = "gradient of a tensor that no registered module owns"
MADE_BEFORE = "backward of operators that ran before the recording began"


def causes(run: Recorded) -> dict[str, str]:
    """Why nodes have no layer, as the report says it."""
    return {
        each.cause: names(*(name for n in each.names for name in [n.name] * n.count))
        for each in run.profile.health.unattributed_nodes
    }


def expect(model: nn.Module, loss: Callable[[], Tensor], table: Table, ops: bool) -> Recorded:
    """One step's nodes are those of the table, and those that the graph tells."""
    expected, calls = watch(model, loss)
    run = record(model, lambda: torch.autograd.backward(loss()), ops=ops)
    assert_nodes(run, table)
    assert run.nodes == expected
    assert run.forward_calls() == calls
    return run


# ---- The root, and inputs -------------------------------------------------------------------


def test_the_roots_own_backward(ops: bool) -> None:
    model, x = FromForms(), torch.randn(16, 10)
    run = expect(
        model,
        lambda: model(x).sum(),
        {
            None: "SumBackward0",
            "": "AddBackward0 TanhBackward0 MmBackward0 AccumulateGrad",
            "linear1": LINEAR,
            "linear2": LINEAR,
            "linear3.0": LINEAR,
            "linear3.1": LINEAR,
            "linear4.0": LINEAR,
            "linear4.1": "TanhBackward0",
            "linear4.2": LINEAR,
            "linear5.a": LINEAR,
            "linear5.b": LINEAR,
        },
        ops,
    )
    assert causes(run) == {OUTSIDE: "SumBackward0"}
    # Containers that are never called have no call, and their children's time.
    for path, calls in {"": 1, "linear3": 0, "linear4": 1, "linear5": 0, "linear5.b": 1}.items():
        layer = run.profile.find(path)
        assert layer is not None
        assert layer.calls == calls
        assert layer.backward.host_ns.mean > 0
        assert layer.recompute.empty


def test_inputs_without_gradient(ops: bool) -> None:
    """Nothing leads back beyond the first layer, and that layer has its nodes all the same."""
    model, x = Pair(), torch.randn(2, 3)
    expect(model, lambda: model(x).sum(), PAIR, ops)


def test_inputs_of_whole_numbers(ops: bool) -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2))
    tokens = torch.tensor([0, 3])
    table: Table = {
        None: "SumBackward0",
        "0": "EmbeddingBackward0 AccumulateGrad",
        "1": LINEAR,
    }
    expect(model, lambda: model(tokens).sum(), table, ops)


def test_inputs_with_gradient(ops: bool) -> None:
    """The input is a leaf that no module owns; everything else is as before."""
    model, x = Pair(), torch.randn(2, 3, requires_grad=True)
    run = expect(model, lambda: model(x).sum(), PAIR | {None: "SumBackward0 AccumulateGrad"}, ops)
    assert causes(run) == {OUTSIDE: "SumBackward0", FOREIGN_LEAF: "AccumulateGrad"}


def test_frozen_parameters_and_detached_outputs(ops: bool) -> None:
    model = Calls(
        lambda self, x: self.c(self.b(self.a(x)).detach()) + self.b(x),
        a=nn.Linear(3, 3),
        b=nn.Linear(3, 3),
        c=nn.Linear(3, 3).requires_grad_(False),
    )
    x = torch.randn(2, 3)
    table: Table = {None: "SumBackward0", "": "AddBackward0", "b": LINEAR}
    run = expect(model, lambda: model(x).sum(), table, ops)
    for path in ("a", "c"):
        assert run.profile.find(path).backward.empty  # type: ignore[union-attr]


def test_a_loss_that_is_a_module(ops: bool) -> None:
    model, criterion = Pair(), nn.MSELoss()
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    run = record(model, lambda: criterion(model(x), y).backward(), ops=ops)
    assert_nodes(
        run,
        {"(MSELoss)": "MseLossBackward0", "": "TanhBackward0", "a": LINEAR, "b": LINEAR},
    )
    assert causes(run) == {}
    assert not run.profile.find("(MSELoss)").registered  # type: ignore[union-attr]


def test_autocast(ops: bool) -> None:
    """The casts of weights and biases are made, and undone, in the layers that use them."""
    model, x = Pair(), torch.randn(2, 3)

    def loss() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).sum()  # type: ignore[no-any-return]

    cast = times(2, "ToCopyBackward0")
    expect(model, loss, PAIR | {"a": f"{LINEAR} {cast}", "b": f"{LINEAR} {cast}"}, ops)


# ---- In-place operators ---------------------------------------------------------------------


def test_in_place_operators(ops: bool) -> None:
    model = Calls(
        lambda self, x: self.b(self.relu(self.a(x)).mul(2).tanh_()),
        a=nn.Linear(3, 3),
        relu=nn.ReLU(inplace=True),
        b=nn.Linear(3, 3),
    )
    x = torch.randn(2, 3)
    table: Table = {
        None: "SumBackward0",
        "": "TanhBackward0 MulBackward0",
        "a": LINEAR,
        "relu": "ReluBackward0",
        "b": LINEAR,
    }
    expect(model, lambda: model(x).sum(), table, ops)


def test_writes_into_views(ops: bool) -> None:
    def body(self: Any, x: Tensor) -> Tensor:
        y = self.a(x).clone()
        y[:, :2].mul_(2)
        return self.b(y)  # type: ignore[no-any-return]

    model = Calls(body, a=nn.Linear(3, 3), b=nn.Linear(3, 3))
    x = torch.randn(2, 3)
    table: Table = {
        None: "SumBackward0",
        "": "CopySlices CloneBackward0",
        "a": LINEAR,
        "b": LINEAR,
    }
    expect(model, lambda: model(x).sum(), table, ops)


def resnet18_by_hand() -> Table:
    """From the architecture: each block adds once, and calls its one in-place ReLU twice."""
    conv, norm = "ConvolutionBackward0 AccumulateGrad", "NativeBatchNormBackward0"
    norm += " AccumulateGrad AccumulateGrad"
    table: Table = {
        None: "NllLossBackward0 LogSoftmaxBackward0",
        "": "ViewBackward0",
        "conv1": conv,
        "bn1": norm,
        "relu": "ReluBackward0",
        "maxpool": "MaxPool2DWithIndicesBackward0",
        "avgpool": "MeanBackward1",
        "fc": LINEAR,
    }
    for stage in range(1, 5):
        for block in range(2):
            path = f"layer{stage}.{block}"
            table |= {
                path: "AddBackward0",
                f"{path}.relu": "ReluBackward0 ReluBackward0",
                f"{path}.conv1": conv,
                f"{path}.conv2": conv,
                f"{path}.bn1": norm,
                f"{path}.bn2": norm,
            }
        if stage > 1:
            table |= {
                f"layer{stage}.0.downsample.0": conv,
                f"layer{stage}.0.downsample.1": norm,
            }
    return table


def test_resnet18(ops: bool) -> None:
    """Full backward hooks raise on its in-place ReLUs."""
    from torchvision.models import resnet18  # type: ignore[import-untyped]

    model, x, labels = resnet18(), torch.randn(2, 3, 32, 32), torch.tensor([1, 2])
    run = expect(
        model,
        lambda: nn.functional.cross_entropy(model(x), labels),
        resnet18_by_hand(),
        ops,
    )
    assert run.profile.find("layer1.0.relu").calls == 2  # type: ignore[union-attr]


# ---- Outputs of any kind --------------------------------------------------------------------


@dataclass
class Output:
    hidden: Tensor
    extra: dict[str, Tensor] | None = None


class Returns(nn.Module):
    """A layer that hands its result over in another form."""

    def __init__(self, pack: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.pack = pack

    def forward(self, x: Tensor) -> object:
        return self.pack(self.fc(x).relu())


PACKED: dict[str, tuple[Callable[[Tensor], object], Callable[[Any], Tensor]]] = {
    "dataclass": (lambda y: Output(y), lambda out: out.hidden),
    "nested": (lambda y: Output(y, {"y": y}), lambda out: out.extra["y"]),
    "dict": (lambda y: {"y": y, "n": 3}, lambda out: out["y"]),
    "tuple": (lambda y: (None, y), lambda out: out[1]),
    "list": (lambda y: [[y], None], lambda out: out[0][0]),
}


@pytest.mark.parametrize("form", PACKED)
def test_outputs_of_any_kind(form: str, ops: bool) -> None:
    pack, unpack = PACKED[form]
    model = Calls(lambda self, x: unpack(self.inner(x)).sin(), inner=Returns(pack))
    x = torch.randn(2, 3)
    table: Table = {
        None: "SumBackward0",
        "": "SinBackward0",
        "inner": "ReluBackward0",
        "inner.fc": LINEAR,
    }
    expect(model, lambda: model(x).sum(), table, ops)


def test_a_module_that_returns_none(ops: bool) -> None:
    """It leaves its result elsewhere, where no hook sees it."""
    kept: list[Tensor] = []
    model = Calls(lambda self, x: self.inner(x) or kept.pop().sin(), inner=Returns(kept.append))
    x = torch.randn(2, 3)
    run = record(model, lambda: model(x).sum().backward(), ops=ops)
    assert_nodes(
        run,
        {
            None: "SumBackward0",
            "": "SinBackward0",
            "inner": "ReluBackward0",
            "inner.fc": LINEAR,
        },
    )


# ---- Calls of another number than one -------------------------------------------------------


def test_a_module_that_is_used_twice(ops: bool) -> None:
    """Each call makes its nodes; each parameter gets one gradient."""
    model = Calls(lambda self, x: self.fc(self.fc(x).relu()), fc=nn.Linear(3, 3))
    x = torch.randn(2, 3)
    table: Table = {
        None: "SumBackward0",
        "": "ReluBackward0",
        "fc": TWO_CALLS,
    }
    run = expect(model, lambda: model(x).sum(), table, ops)
    layer = run.profile.find("fc")
    assert layer is not None
    assert (layer.calls, layer.backward.calls.mean) == (2, 2)


def test_a_module_in_two_places(ops: bool) -> None:
    """It is counted where it is called from; its gradients are those of its first place."""
    shared = nn.Linear(3, 3)
    model = Calls(
        lambda self, x: self.right(self.left(x)),
        left=Calls(lambda self, x: self.fc(x).relu(), fc=shared),
        right=Calls(lambda self, x: self.again(x).tanh(), again=shared),
    )
    x = torch.randn(2, 3)
    run = record(model, lambda: model(x).sum().backward(), ops=ops)
    assert_nodes(
        run,
        {
            None: "SumBackward0",
            "left": "ReluBackward0",
            "left.fc": LINEAR,
            "right": "TanhBackward0",
            "right.again": "AddmmBackward0 TBackward0",
        },
    )
    assert run.profile.find("right.again").shared_with == "left.fc"  # type: ignore[union-attr]


def test_tied_weights(ops: bool) -> None:
    """The gradient of a weight that two modules hold is the first one's."""
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    tokens = torch.tensor([[0, 3], [1, 1]])
    table: Table = {
        None: "SumBackward0",
        "0": "EmbeddingBackward0 AccumulateGrad",
        "1": "UnsafeViewBackward0 MmBackward0 TBackward0 ViewBackward0",
    }
    expect(model, lambda: model(tokens).sum(), table, ops)


def test_a_module_that_calls_itself(ops: bool) -> None:
    def body(self: Any, x: Tensor, depth: int = 0) -> Tensor:
        return x.sin() if depth == 3 else self(x * 2, depth + 1) + 1

    model, x = Calls(body), torch.randn(2, 3, requires_grad=True)
    table: Table = {
        None: "SumBackward0 AccumulateGrad",
        "": "SinBackward0" + times(3, " AddBackward0 MulBackward0"),
    }
    expect(model, lambda: model(x).sum(), table, ops)


@pytest.mark.parametrize("mode", ["forward_only", "no_grad", "inference_mode"])
def test_no_backward(mode: str, ops: bool) -> None:
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        if mode == "forward_only":
            model(x)
        else:
            with getattr(torch, mode)():
                model(x)

    run = record(model, body, ops=ops)
    assert_nodes(run, {})
    assert run.calls == {("", "forward"): 1, ("a", "forward"): 1, ("b", "forward"): 1}
    for layer in run.profile.layers:
        assert layer.ran
        assert layer.backward.empty


def test_no_grad_around_a_part_of_the_model(ops: bool) -> None:
    def body(self: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.a(x)
        return self.b(x)  # type: ignore[no-any-return]

    model, x = Calls(body, a=Pair(), b=Pair()), torch.randn(2, 3)
    table: Table = {None: "SumBackward0", "b": "TanhBackward0", "b.a": LINEAR, "b.b": LINEAR}
    expect(model, lambda: model(x).sum(), table, ops)


def test_gradient_accumulation(ops: bool) -> None:
    """Three backward passes in one step: three times the nodes, in each layer."""
    model, x = Pair(), torch.randn(2, 3)
    run = record(model, lambda: [model(x).sum().backward() for _ in range(3)], ops=ops)
    assert_nodes(run, {path: times(3, text) for path, text in PAIR.items()})
    assert run.profile.step_count == 1
    for path in ("", "a", "b"):
        layer = run.profile.find(path)
        assert layer is not None
        assert layer.calls == 3
        assert layer.backward.calls.mean == 3


# ---- Checkpointing --------------------------------------------------------------------------


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.block = Calls(
            lambda self, x: self.fc2(self.fc1(x).relu()), fc1=nn.Linear(3, 3), fc2=nn.Linear(3, 3)
        )
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        y = checkpoint(self.block, self.first(x), use_reentrant=self.reentrant)
        return y.sin()  # type: ignore[no-any-return]


CHECKPOINTED: Table = {
    None: "SumBackward0",
    "": "SinBackward0",
    "first": LINEAR,
    "block": "ReluBackward0",
    "block.fc1": LINEAR,
    "block.fc2": LINEAR,
}
BLOCK = ("block", "block.fc1", "block.fc2")


def assert_recomputed(run: Recorded) -> None:
    """The block ran twice, and the second time is no forward."""
    calls = {(path, "forward"): 1 for path in ("", "first", *BLOCK)}
    assert run.calls == calls | {(path, "recompute"): 1 for path in BLOCK}
    for path in BLOCK:
        layer = run.profile.find(path)
        assert layer is not None
        assert layer.calls == 2
        assert layer.forward.calls.mean == layer.recompute.calls.mean == 1
        assert layer.recompute.host_ns.mean > 0
    assert run.profile.find("first").recompute.empty  # type: ignore[union-attr]


def test_checkpointing_reentrant(ops: bool) -> None:
    """A backward inside a backward runs what the recomputation has made."""
    model, x = Checkpointed(reentrant=True), torch.randn(2, 3)
    run = record(model, lambda: model(x).sum().backward(), ops=ops)
    table = CHECKPOINTED | {
        "": "SinBackward0 CheckpointFunctionBackward",
        None: "SumBackward0 AccumulateGrad",  # of the leaf that the checkpoint makes of its input
    }
    assert_nodes(run, table)
    assert causes(run) == {OUTSIDE: "SumBackward0", FOREIGN_LEAF: "AccumulateGrad"}
    assert_recomputed(run)
    # Each layer alone has the nodes that its recomputation must have had.
    for layer, path in ((model.block.fc1, "block.fc1"), (model.block.fc2, "block.fc2")):
        assert run.by_layer[path] == names_made(layer, x)  # type: ignore[arg-type]


@pytest.mark.parametrize("early_stop", [True, False])
def test_checkpointing_not_reentrant(early_stop: bool, ops: bool) -> None:
    """The recomputed nodes never run: the first forward's do."""
    model, x = Checkpointed(reentrant=False), torch.randn(2, 3)
    with set_checkpoint_early_stop(early_stop):
        run = expect(model, lambda: model(x).sum(), CHECKPOINTED, ops)
    assert_recomputed(run)


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_recomputed_is_what_the_forward_did(reentrant: bool) -> None:
    model, x = Checkpointed(reentrant), torch.randn(2, 3)
    with set_checkpoint_early_stop(False):
        run = record(model, lambda: model(x).sum().backward())
    for path in BLOCK:
        recomputed = run.operators_of(path, "recompute")
        if not reentrant:
            del recomputed["detach"]  # each saved tensor is handed to the checkpoint so
        assert recomputed == run.operators_of(path, "forward")
        assert recomputed.total() > 0


# ---- Functions of one's own -----------------------------------------------------------------


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (x,) = context.saved_tensors
        return gradient * 3 * x * x  # type: ignore[no-any-return]


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        return x / 2, x / 2

    @staticmethod
    def backward(context: Any, one: Tensor, other: Tensor) -> Tensor:
        return (one + other) / 2


def test_functions_of_ones_own(ops: bool) -> None:
    """All are nodes of one C++ class: each must have its own name."""

    def body(self: Any, x: Tensor) -> Tensor:
        one, other = Halves.apply(self.cube(self.a(x)))
        return one * Cube.apply(other)  # type: ignore[no-any-return]

    model = Calls(body, a=nn.Linear(3, 3), cube=Calls(lambda _, x: Cube.apply(x)))
    x = torch.randn(2, 3)
    table: Table = {
        None: "SumBackward0",
        "": "MulBackward0 CubeBackward HalvesBackward",
        "cube": "CubeBackward",
        "a": LINEAR,
    }
    expect(model, lambda: model(x).sum(), table, ops)


# ---- More than one backward -----------------------------------------------------------------


def test_double_backward(ops: bool) -> None:
    """A gradient penalty: the second pass runs nodes that the first one made, for their layers.

    The first pass goes from the sum to the input: b's Addmm makes `grad.mm(weight.t().t())`, so an
    Mm and a T; the root's Tanh a TanhBackward; a's Addmm an Mm and a T again. The second goes back
    through all of these, through the first forward as far as it led to the slope (so not through
    b's Addmm, nor to b's bias), and to the input.
    """
    model = Calls(lambda self, x: self.b(self.a(x).tanh()), a=nn.Linear(3, 3), b=nn.Linear(3, 1))

    def body() -> None:
        x = torch.randn(2, 3, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        torch.autograd.backward(slope.pow(2).sum())

    run = record(model, body, ops=ops)
    made = "MmBackward0 TBackward0"
    assert run.by_layer.keys() == {None, "", "a", "b"}
    assert run.by_layer[""] == names("TanhBackward0 TanhBackward0 TanhBackwardBackward0")
    assert run.by_layer["a"] == names("AddmmBackward0", LINEAR, made)
    assert run.by_layer["b"] == names("AddmmBackward0", made, "TBackward0 AccumulateGrad")
    nobodys = [name for name in run.by_layer[None].split() if name != "AccumulateGrad"]
    assert names(*nobodys) == names("SumBackward0 SumBackward0 PowBackward0")


def test_a_gradient_inside_the_forward(ops: bool) -> None:
    """A force field differentiates in its forward: backward work of the layers, inside the root."""

    def body(self: Any, x: Tensor) -> Tensor:
        (force,) = torch.autograd.grad(self.energy(x), x, create_graph=True)
        return force.neg().pow(2)

    model = Calls(body, energy=Calls(lambda self, x: self.fc(x).sin().sum(), fc=nn.Linear(3, 1)))
    x = torch.randn(2, 3, requires_grad=True)
    run = record(model, lambda: model(x).sum().backward(), ops=ops)
    assert run.by_layer[""] == names("PowBackward0 NegBackward0")
    # First pass: Sum, Sin. It makes `grad * x.cos()`: a Mul and a Cos; the gradient itself is
    # expanded from ones and needs none. The second pass does not come to the sum and the sine.
    assert run.by_layer["energy"] == names("SumBackward0 SinBackward0 MulBackward0 CosBackward0")
    # First pass: Addmm, which makes an Mm and a T. The second runs these and the first forward's.
    assert run.by_layer["energy.fc"] == names(
        "AddmmBackward0 MmBackward0 TBackward0 AddmmBackward0 TBackward0",
        "AccumulateGrad AccumulateGrad",
    )
    assert set(run.calls) == {("", "forward"), ("energy", "forward"), ("energy.fc", "forward")}


def test_one_graph_twice(ops: bool) -> None:
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    run = record(model, body, ops=ops)
    assert_nodes(run, {path: times(2, text) for path, text in PAIR.items()})
    layer = run.profile.find("a")
    assert layer is not None
    assert (layer.calls, layer.backward.calls.mean) == (1, 2)
    assert run.regions("backward") == ["backward", "backward"]


def test_a_graph_from_before_the_session(ops: bool) -> None:
    """Nobody saw who made it, and the report says so; the parameters' owners are known."""
    model, x = Pair(), torch.randn(2, 3)
    loss = model(x).sum()
    run = record(model, loss.backward, ops=ops)
    before = "SumBackward0 TanhBackward0" + times(2, " AddmmBackward0 TBackward0")
    owned = "AccumulateGrad AccumulateGrad"
    assert_nodes(run, {None: before, "a": owned, "b": owned})
    assert causes(run) == {MADE_BEFORE: names(before)}


# ---- Parts of a graph -----------------------------------------------------------------------


def test_a_gradient_of_some_parameters_only(ops: bool) -> None:
    model, x = Pair(), torch.randn(2, 3)
    run = record(model, lambda: torch.autograd.grad(model(x).sum(), model.b.weight), ops=ops)
    assert "a" not in run.by_layer
    assert "" not in run.by_layer
    without_leaf = [name for name in run.by_layer["b"].split() if name != "AccumulateGrad"]
    assert names(*without_leaf) == names("AddmmBackward0 TBackward0")


@pytest.mark.xfail(
    strict=True,
    reason="the engine comes to a node that is only asked for its gradient, and PyTorch reports it",
)
def test_a_gradient_that_stops_at_a_hidden_tensor(ops: bool) -> None:
    """What is only asked for its gradient does not run."""
    model = Calls(lambda self, x: self.b(self.a(x)), a=nn.Linear(3, 3), b=nn.Linear(3, 3))
    x = torch.randn(2, 3)

    def hidden_and_loss() -> tuple[Tensor, Tensor]:
        hidden = model.a(x)  # type: ignore[operator]
        return hidden, model.b(hidden).sum()  # type: ignore[operator]

    hidden, loss = hidden_and_loss()
    ran = count_runs([loss], lambda: torch.autograd.grad(loss, hidden))
    assert names(*map(short_name, ran.elements())) == names("SumBackward0 AddmmBackward0")

    def body() -> None:
        hidden, loss = hidden_and_loss()
        torch.autograd.grad(loss, hidden)

    run = record(model, body, ops=ops)
    assert_nodes(run, {None: "SumBackward0", "b": "AddmmBackward0"})
    assert run.profile.find("a").backward.empty  # type: ignore[union-attr]


def test_a_hook_on_a_tensor_runs_for_the_node_that_made_it() -> None:
    def body(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        y.register_hook(lambda gradient: gradient.cosh())
        return y.sin()  # type: ignore[no-any-return]

    model, x = Calls(body, a=nn.Linear(3, 3)), torch.randn(2, 3)
    run = record(model, lambda: model(x).sum().backward())
    assert run.operators_of("a", "backward")["aten::cosh"] == 1
    assert sum(each.name == "aten::cosh" for each in run.operators) == 1


def test_saved_tensors_that_are_packed(ops: bool) -> None:
    """They are unpacked by the nodes that need them, for the layers of these."""
    model, x = Pair(), torch.randn(2, 3)

    def body() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.exp(), lambda t: t.log()):
            loss = model(x).sum()
        loss.backward()

    run = record(model, body, ops=ops)
    assert_nodes(run, PAIR)
    if ops:
        for path, saved in {"": 1, "a": 1, "b": 2}.items():  # tanh: y; addmm: x, and W for dx
            assert run.operators_of(path, "forward")["aten::exp"] == saved
            assert run.operators_of(path, "backward")["aten::log"] == saved


def test_an_optimizer_inside_the_backward(ops: bool) -> None:
    """Each parameter is updated as soon as its gradient is there: that is no backward."""
    model, x = Pair(), torch.randn(2, 3)
    optimizers = {each: torch.optim.SGD([each], lr=0.1) for each in model.parameters()}

    def update(parameter: Tensor) -> None:
        optimizers[parameter].step()  # type: ignore[index]
        optimizers[parameter].zero_grad()  # type: ignore[index]

    for each in model.parameters():
        each.register_post_accumulate_grad_hook(update)  # type: ignore[no-untyped-call]
    run = record(model, lambda: model(x).sum().backward(), ops=ops)
    assert_nodes(run, PAIR)
    assert run.regions("optimizer") == ["SGD.step", "zero_grad"] * 4
    if ops:
        assert run.operators_of(None, "optimizer")["aten::add_"] == 4


# ---- Threads --------------------------------------------------------------------------------


def in_threads(n: int, function: Callable[[], object]) -> list[Any]:
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(function())) for _ in range(n)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(results) == n
    return results


def test_forward_in_threads(ops: bool) -> None:
    """Each thread numbers its nodes for itself: the same numbers, of different scopes."""
    together = threading.Barrier(2)

    def body(self: Any, x: Tensor) -> Tensor:
        together.wait(60)  # both are in the root's scope now
        y = self.a(x).tanh()
        together.wait(60)
        return self.b(y)  # type: ignore[no-any-return]

    model, x = Calls(body, a=nn.Linear(3, 3), b=nn.Linear(3, 3)), torch.randn(2, 3)
    run = record(
        model, lambda: [loss.backward() for loss in in_threads(2, lambda: model(x).sum())], ops=ops
    )
    assert_nodes(run, {path: times(2, text) for path, text in PAIR.items()})
    assert run.calls == {("", "forward"): 2, ("a", "forward"): 2, ("b", "forward"): 2}
    called_on = {each.track for each in run.slices if each.category == "forward"}
    assert len(called_on) == 2


def test_forward_and_backward_in_threads(ops: bool) -> None:
    model, x = Pair(), torch.randn(2, 3)
    run = record(model, lambda: in_threads(2, lambda: model(x).sum().backward()), ops=ops)
    assert_nodes(run, {path: times(2, text) for path, text in PAIR.items()})
    assert causes(run) == {OUTSIDE: "SumBackward0 SumBackward0"}


@pytest.mark.xfail(
    strict=True,
    reason="of a thread that has entered no module yet, nobody knows when it made its nodes: the "
    "cause says that it was before the recording",
)
def test_a_loss_on_a_thread_of_its_own(ops: bool) -> None:
    """It is made after the recording began, outside any module."""
    model, x = Pair(), torch.randn(2, 3)

    def train() -> None:
        (output,) = in_threads(1, lambda: model(x))
        output.sum().backward()

    run = record(model, lambda: in_threads(1, train), ops=ops)
    assert_nodes(run, PAIR)
    assert causes(run) == {OUTSIDE: "SumBackward0"}
