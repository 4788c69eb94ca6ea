"""Small models that several files train."""

from __future__ import annotations

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
