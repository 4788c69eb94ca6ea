"""Small models that several files train."""

from __future__ import annotations

import torch
from recorded import Table
from torch import Tensor, nn

# What the backward of one Linear runs, where its input comes from another layer or needs none.
LINEAR = "AddmmBackward0 TBackward0 AccumulateGrad AccumulateGrad"

# The same where it is called twice: its parameters get one gradient each.
TWO_CALLS = "AddmmBackward0 TBackward0 AddmmBackward0 TBackward0 AccumulateGrad AccumulateGrad"


class Pair(nn.Module):
    """Two layers, and an operator of the root's own between them."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).tanh())  # type: ignore[no-any-return]


# The autograd nodes of `Pair()(x).sum().backward()`.
PAIR = {None: "SumBackward0", "": "TanhBackward0", "a": LINEAR, "b": LINEAR}


class FromForms(nn.Module):
    """A parameter and functional operators in the root; a list, a dict, a Sequential below it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 1))
        self.linear1 = nn.Linear(10, 11)
        self.linear2 = nn.Linear(10, 10)
        self.linear3 = nn.ModuleList([nn.Linear(11, 12), nn.Linear(12, 11)])
        self.linear4 = nn.Sequential(nn.Linear(11, 7), nn.Tanh(), nn.Linear(7, 8))
        self.linear5 = nn.ModuleDict({"a": nn.Linear(8, 3), "b": nn.Linear(3, 1)})

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.linear2(x) @ self.weight) + self.linear3[0](self.linear1(x))
        x = self.linear4(self.linear3[1](x))
        return self.linear5["b"](self.linear5["a"](x))  # type: ignore[no-any-return]


class Calls(nn.Module):
    """A root whose forward is given as a function of itself and the input."""

    def __init__(self, body: object, **children: nn.Module) -> None:
        super().__init__()
        self.body = body
        for name, child in children.items():
            self.add_module(name, child)

    def forward(self, *args: object) -> object:
        return self.body(self, *args)  # type: ignore[operator]


def train(model: nn.Module, x: Tensor) -> None:
    model(x).sum().backward()


def prefixed(by_layer: Table, prefix: str) -> Table:
    return {
        path if path is None else f"{prefix}.{path}".rstrip("."): text
        for path, text in by_layer.items()
    }
