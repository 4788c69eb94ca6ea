"""Who made each autograd node: told by the graph and by plain hooks, with nothing of layertrace.

A node that can be reached from a module's inputs before its forward was made by its caller, or
earlier; one that can be reached only from its outputs was made inside. Hooks of an
unprofiled run see both moments. A gradient's accumulation belongs to the module that registered the
parameter first.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from recorded import Node
from torch import Tensor, nn
from torch.autograd.graph import Node as GraphNode
from torch.utils._python_dispatch import TorchDispatchMode


def tensors_in(value: object) -> Iterator[Tensor]:
    """Those in nested containers, as modules take and return them."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name))


def reachable(tensors: Iterable[Tensor]) -> list[GraphNode]:
    """The autograd nodes behind these tensors, each once."""
    waiting = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    found: dict[GraphNode, None] = {}
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found[node] = None
        waiting.extend(below for below, _ in node.next_functions if below is not None)
    return list(found)


def short_name(node: GraphNode) -> str:
    return node.name().removeprefix("torch::autograd::")


def names_made(function: Callable[..., object], *inputs: Any) -> str:
    """The nodes of one function run alone, without the accumulation into its inputs."""
    inside = [short_name(node) for node in reachable(tensors_in(function(*inputs)))]
    return " ".join(sorted(inside))


def count_runs(roots: list[Tensor], backward: Callable[[], object]) -> Counter[GraphNode]:
    """How often each node behind these tensors runs, by hooks of the nodes' own."""
    runs: Counter[GraphNode] = Counter()
    for node in reachable(roots):
        node.register_prehook(lambda _, node=node: runs.update([node]))
    backward()
    return runs


class Witness:
    """Watches a model's calls by hooks, from `with` to its end."""

    def __init__(self, model: nn.Module) -> None:
        self.calls: Counter[str] = Counter()
        self._model = model
        self._makers: dict[GraphNode, str | None] = {}
        self._running = threading.local()
        self._handles: list[Any] = []
        self._owners = {
            parameter: path
            for path, module in reversed(list(model.named_modules()))
            for parameter in module.parameters(recurse=False)
        }

    def __enter__(self) -> Witness:
        for path, module in self._model.named_modules():
            self._handles += [
                module.register_forward_pre_hook(self._before(path), with_kwargs=True),
                module.register_forward_hook(self._after(path), with_kwargs=True),
            ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def claim(self, value: object, maker: str | None) -> None:
        """What lies behind these tensors and has no maker yet, is this one's."""
        for node in reachable(tensors_in(value)):
            self._makers.setdefault(node, maker)

    def nodes(self, *roots: Tensor) -> Counter[Node]:
        """What a backward from these runs: each node behind them, once."""
        return Counter((short_name(node), self._owner(node)) for node in reachable(roots))

    @property
    def inside(self) -> str | None:
        """The module whose forward runs on this thread."""
        stack = self._stack()
        return stack[-1] if stack else None

    def _owner(self, node: GraphNode) -> str | None:
        variable = getattr(node, "variable", None)
        return self._makers.get(node) if variable is None else self._owners.get(variable)

    def _stack(self) -> list[str]:
        if not hasattr(self._running, "stack"):
            self._running.stack = []
        return self._running.stack  # type: ignore[no-any-return]

    def _before(self, path: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: object, kwargs: object) -> None:
            stack = self._stack()
            self.claim([args, kwargs], stack[-1] if stack else None)
            stack.append(path)
            self.calls[path] += 1

        return hook

    def _after(self, path: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: object, ___: object, output: object) -> None:
            self._stack().pop()
            self.claim(output, path)

        return hook


class OperatorWitness(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Which operators each module's forward dispatches, with a kernel of their own."""

    def __init__(self, witness: Witness) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: Counter[tuple[str, str]] = Counter()
        self._witness = witness

    def __torch_dispatch__(
        self, operator: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        path = self._witness.inside
        is_view = any(each.alias_info is not None for each in operator._schema.returns)
        if (
            path is not None
            and not is_view
            and not has_kernel(operator, "CompositeImplicitAutograd")
        ):
            self.found[operator.name().partition(".")[0], path] += 1
        return operator(*args, **(kwargs or {}))


def has_kernel(operator: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key))


def watch(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[Counter[Node], Counter[str]]:
    """Runs forward and backward once, unprofiled: the nodes that ran, and the calls per module."""
    with Witness(model) as witness:
        value = loss()
    expected = witness.nodes(value)
    torch.autograd.backward(value)
    model.zero_grad()
    return expected, witness.calls


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    return {
        name: None if each.grad is None else each.grad.clone()
        for name, each in model.named_parameters()
    }


def same_gradients(model: nn.Module, others: Mapping[str, Tensor | None]) -> bool:
    """To the last bit; where one has none, the other has none."""

    def same(one: Tensor | None, other: Tensor | None) -> bool:
        if one is None or other is None:
            return one is other
        return torch.equal(one, other)

    mine = gradients(model)
    return mine.keys() == others.keys() and all(same(mine[name], others[name]) for name in mine)
