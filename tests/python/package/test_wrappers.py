"""Modules in other hands: scripted, traced, wrapped for many devices, or run as generators."""

from __future__ import annotations

import copy
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from models import LINEAR, PAIR, TWO_CALLS, Calls, Pair, prefixed, train
from recorded import assert_nodes, names, record, times
from torch import Tensor, nn
from witness import gradients, same_gradients

import layertrace

# ---- Scripted and traced ----------------------------------------------------------------------


def scripted(model: nn.Module) -> Any:
    return torch.jit.script(model)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
def test_a_scripted_module_is_attributed_whole(ops: bool) -> None:
    """Nothing of ours is inside: its layers are not called, and its nodes are its own."""
    model, x = (
        Calls(lambda self, x: self.head(self.inner(x)), head=nn.Linear(3, 3)),
        torch.randn(2, 3),
    )
    model.add_module("inner", scripted(Pair()))
    for _ in range(3):  # it is optimised in its first calls
        train(model, x)
    run = record(model, lambda: train(model, x), ops=ops)
    assert run.forward_calls() == {"": 1, "inner": 1, "head": 1}
    assert run.by_layer["head"] == names(LINEAR)
    inner = run.by_layer["inner"].replace("AccumulateGrad", "").split()
    assert inner
    without = run.by_layer[None].replace("AccumulateGrad", "").split()
    assert without == ["SumBackward0"]
    if ops:
        assert run.operators_of("inner", "forward")["aten::addmm"] == 2
        assert run.operators_of("inner", "backward")["aten::mm"] > 0
    assert [layer.path for layer in run.profile.layers] == ["", "head", "inner"]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
def test_a_scripted_modules_gradients_are_its_own(ops: bool) -> None:
    x = torch.randn(2, 3)
    model = scripted(Pair())
    run = record(model, lambda: train(model, x), ops=ops)
    assert run.nodes["AccumulateGrad", ""] == 4
    assert run.by_layer[None] == "SumBackward0"


def test_a_model_of_fx(ops: bool) -> None:
    """Its class has the name of what compilers make, and it is the user's own."""
    x = torch.randn(2, 3)
    model = torch.fx.symbolic_trace(Pair())
    assert_nodes(record(model, lambda: train(model, x), ops=ops), PAIR)
    outer = nn.Sequential(model)
    assert_nodes(record(outer, lambda: train(outer, x), ops=ops), prefixed(PAIR, "0"))


TOOLS: dict[str, Callable[[nn.Module, Tensor], Any]] = {
    "fx": lambda model, x: torch.fx.symbolic_trace(model),
    "jit.trace": lambda model, x: torch.jit.trace(model, x),  # type: ignore[no-untyped-call]
    "jit.script": lambda model, x: scripted(model),
    "export": lambda model, x: torch.export.export(model, (x,)).module(),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.* is deprecated")
@pytest.mark.parametrize("tool", TOOLS)
def test_tools_that_take_a_model_apart(tool: str, ops: bool) -> None:
    """They call it in ways of their own, while a session records: their results are the same."""
    model, x = Pair(), torch.randn(2, 3)
    made: list[Any] = []

    def body() -> None:
        made.append(TOOLS[tool](model, x))
        train(model, x)

    run = record(model, body, ops=ops)
    assert torch.equal(made[0](x), model(x))
    assert run.nodes["AddmmBackward0", "a"] == 1
    assert run.nodes["AccumulateGrad", "a"] == 2


# ---- Wrappers -------------------------------------------------------------------------------


def assert_wrapped(model: nn.Module, folded: bool, ops: bool) -> None:
    """The wrapper's `module.` is in the paths, or is not."""
    x = torch.randn(2, 3)
    train(model, x)
    model.zero_grad()
    run = record(model, lambda: train(model, x), ops=ops, fold_wrappers=folded)
    root = run.profile.layers[0]
    if folded:
        assert_nodes(run, PAIR)
        assert run.forward_calls() == {"": 1, "a": 1, "b": 1}
        assert (root.name, root.type) == ("Pair", "Pair")
    else:
        assert_nodes(run, prefixed(PAIR, "module"))
        assert run.forward_calls() == {"": 1, "module": 1, "module.a": 1, "module.b": 1}
        assert root.type == type(model).__name__
    assert len(run.profile.layers) == 3 + (not folded)


@pytest.mark.parametrize("folded", [False, True])
def test_data_parallel(folded: bool, ops: bool) -> None:
    assert_wrapped(nn.DataParallel(Pair()), folded, ops)


def replicate(module: Any) -> nn.Module:
    """As torch.nn.parallel.replicate does it, for which devices are needed."""
    replica = module._replicate_for_data_parallel()
    for name, parameter in module._parameters.items():
        setattr(replica, name, parameter.clone())
    for name, child in module._modules.items():
        replica._modules[name] = replicate(child)
    return replica  # type: ignore[no-any-return]


def in_replicas(self: Any, x: Tensor) -> Tensor:
    outputs: dict[int, Tensor] = {}

    def run(i: int, replica: nn.Module) -> None:
        outputs[i] = replica(x)

    threads = [threading.Thread(target=run, args=(i, replicate(self.module))) for i in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return outputs[0] + outputs[1]


@pytest.mark.parametrize("folded", [False, True])
def test_replicas_of_data_parallel(folded: bool, ops: bool) -> None:
    """Each is a copy for one call, on a thread of its own: it stands for its original."""
    model, x = nn.DataParallel(Pair()), torch.randn(2, 3)
    model.forward = types.MethodType(in_replicas, model)  # type: ignore[method-assign]
    run = record(model, lambda: train(model, x), ops=ops, fold_wrappers=folded)
    root = "AddBackward0 " + times(8, "CloneBackward0")
    tanh = "TanhBackward0 TanhBackward0"
    if folded:
        want = {None: "SumBackward0", "": f"{root} {tanh}", "a": TWO_CALLS, "b": TWO_CALLS}
        calls = {"a": 2, "b": 2}
    else:
        want = {
            None: "SumBackward0",
            "": root,
            "module": tanh,
            "module.a": TWO_CALLS,
            "module.b": TWO_CALLS,
        }
        calls = {"": 1, "module": 2, "module.a": 2, "module.b": 2}
    assert_nodes(run, want)
    assert run.forward_calls().items() >= calls.items()
    assert all(each.registered for each in run.profile.layers)


@pytest.fixture(scope="module")
def process_group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    store = tmp_path_factory.mktemp("gloo") / "store"
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("folded", [False, True])
def test_distributed_data_parallel(folded: bool, ops: bool) -> None:
    plain, x = Pair(), torch.randn(2, 3)
    model = nn.parallel.DistributedDataParallel(copy.deepcopy(plain))
    assert_wrapped(model, folded, ops)
    train(plain, x)
    model.zero_grad()
    with layertrace.profile(model, ops=ops, fold_wrappers=folded):
        train(model, x)
    assert same_gradients(model.module, gradients(plain))


class FullyShardedDataParallel(nn.Module):
    """Stands for the wrapper of that name, which needs an accelerator: it holds what it wraps."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._fsdp_wrapped_module = module

    def forward(self, x: Tensor) -> Tensor:
        return self._fsdp_wrapped_module(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("folded", [False, True])
def test_fully_sharded_names(folded: bool, ops: bool) -> None:
    """At any depth, and one in another."""
    x = torch.randn(2, 3)
    model = FullyShardedDataParallel(nn.Sequential(FullyShardedDataParallel(Pair())))
    run = record(model, lambda: train(model, x), ops=ops, fold_wrappers=folded)
    inner = "_fsdp_wrapped_module"
    path = "0" if folded else f"{inner}.0.{inner}"
    assert_nodes(run, prefixed(PAIR, path))
    every = {"", "0"} if folded else {"", inner, f"{inner}.0", path}
    assert set(run.forward_calls()) == every | {f"{path}.a", f"{path}.b"}


@pytest.mark.usefixtures("process_group")
def test_fully_shard(ops: bool) -> None:
    """FSDP2 wraps nothing: it changes the class, and puts other parameters in for a while."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, x, mesh = Pair(), torch.randn(2, 3), init_device_mesh("cpu", (1,))
    fully_shard(model.a, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, x)
    run = record(model, lambda: train(model, x), ops=ops)
    assert run.forward_calls() == {"": 1, "a": 1, "b": 1}
    assert [layer.type for layer in run.profile.layers] == ["FSDPPair", "FSDPLinear", "Linear"]
    own = Counter({node: n for node, n in run.nodes.items() if node[0] != "AccumulateGrad"})
    assert own == {
        ("SumBackward0", None): 1,
        ("TanhBackward0", ""): 1,
        ("AddmmBackward0", "a"): 1,
        ("TBackward0", "a"): 1,
        ("AddmmBackward0", "b"): 1,
        ("TBackward0", "b"): 1,
    }


@pytest.mark.parametrize("folded", [False, True])
def test_checkpoint_wrapper(folded: bool) -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model, x = nn.Sequential(nn.Linear(3, 3), checkpoint_wrapper(Pair())), torch.randn(2, 3)
    run = record(model, lambda: train(model, x), fold_wrappers=folded)
    path = "1" if folded else "1._checkpoint_wrapped_module"
    assert_nodes(run, prefixed(PAIR, path) | {"0": LINEAR})
    assert run.operators_of(path, "recompute")["aten::tanh"] == 1
    for each in (path, f"{path}.a", f"{path}.b"):
        assert run.calls[each, "recompute"] == 1


# ---- Generators -----------------------------------------------------------------------------


class Yields(nn.Module):
    """A forward that is a generator: its body runs after the call, where it is asked to."""

    def __init__(self, own: Callable[[Tensor], Tensor] = lambda x: x) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.own = own

    def forward(self, x: Tensor) -> Iterator[Tensor]:
        for layer in self.layers:
            x = self.own(layer(x))
            yield x


def test_a_generator_as_forward(ops: bool) -> None:
    model, x = Yields(), torch.randn(2, 3)
    run = record(model, lambda: list(model(x))[-1].sum().backward(), ops=ops)
    assert run.forward_calls() == {"": 1, "layers.0": 1, "layers.1": 1}
    assert_nodes(run, {None: "SumBackward0", "layers.0": LINEAR, "layers.1": LINEAR})


def test_generators_that_take_turns(ops: bool) -> None:
    model, x = Yields(), torch.randn(2, 3)

    def body() -> None:
        for pair in zip(model(x), model(x), strict=True):
            last = pair
        (last[0] + last[1]).sum().backward()

    run = record(model, body, ops=ops)
    assert run.forward_calls() == {"": 2, "layers.0": 2, "layers.1": 2}
    assert_nodes(
        run, {None: "SumBackward0 AddBackward0", "layers.0": TWO_CALLS, "layers.1": TWO_CALLS}
    )


def test_a_generator_inside_a_model(ops: bool) -> None:
    """What its body does is in the scope of the module that asks it to go on."""
    model = Calls(
        lambda self, x: self.head(list(self.steps(x))[-1]), steps=Yields(torch.sin), head=Pair()
    )
    x = torch.randn(2, 3)
    run = record(model, lambda: train(model, x), ops=ops)
    table = prefixed(PAIR, "head") | {"": times(2, "SinBackward0")}
    assert_nodes(run, table | {"steps.layers.0": LINEAR, "steps.layers.1": LINEAR})


def test_a_region_that_a_generator_holds_open(ops: bool) -> None:
    """It is entered in one scope and left in another: both stay what they are."""
    model, x = Pair(), torch.randn(2, 3)

    def holding() -> Iterator[None]:
        with layertrace.scope("held"):
            yield

    def body() -> None:
        held = holding()
        with layertrace.scope("outer"):
            next(held)
        train(model, x)
        next(held, None)
        train(model, x)

    run = record(model, body, ops=ops)
    assert_nodes(run, {path: f"{text} {text}" for path, text in PAIR.items()})
    assert run.forward_calls() == {"": 2, "a": 2, "b": 2}
    for each in run.slices:
        if each.category == "forward" and each.path == "":
            assert each.parent is None
