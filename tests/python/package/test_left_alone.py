"""What card(), benchmark() and throughput() leave as it was, of programs that make that hard."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import layertrace


class Merging(nn.Linear):
    """As LoRA has it: eval mode puts a part of the weights into the others, and train mode takes
    it out again."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.part = nn.Parameter(torch.ones(4, 4))
        self.merged = False

    def train(self, mode: bool = True) -> Merging:
        super().train(mode)
        if self.merged == mode:
            self.weight.data += -self.part.data if mode else self.part.data
            self.merged = not mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y if self.merged else y + x @ self.part.t()


FUNCTIONS: dict[str, Callable[[nn.Module], Any]] = {
    "card": lambda model: layertrace.card(model, torch.ones(2, 4), iterations=2, warmup=0),
    "benchmark": lambda model: layertrace.benchmark(
        model, torch.ones(2, 4), iterations=2, drop_first=0
    ),
    "throughput": lambda model: layertrace.throughput(
        model, torch.ones(2, 4), [1, 2], iterations=2, drop_first=0
    ),
}
each_function = pytest.mark.parametrize("function", FUNCTIONS)


@each_function
def test_modules_with_a_train_of_their_own(function: str) -> None:
    model = nn.Sequential(Merging(), nn.Dropout(), Merging())
    model[1].eval()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    FUNCTIONS[function](model)
    assert [module.training for module in model.modules()] == [True, True, False, True]
    assert not model[0].merged
    assert not model[2].merged
    for parameter, value in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.detach(), value)
    model(torch.ones(2, 4)).sum().backward()
    assert model[0].part.grad is not None


@each_function
def test_a_mode_that_cannot_be_had(function: str) -> None:
    class Refusing(nn.Linear):
        def train(self, mode: bool = True) -> Refusing:
            super().train(mode)
            if not mode:
                raise RuntimeError("only trains")
            return self

    model = nn.Sequential(nn.Dropout(), Refusing(4, 4))
    with pytest.raises(RuntimeError, match="only trains"):
        FUNCTIONS[function](model)
    assert all(module.training for module in model.modules())


def test_inputs_made_for_a_sweep_take_no_random_numbers_of_the_programs() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    model = nn.ReLU()
    layertrace.throughput(model, lambda size: torch.randn(size, 8), [1, 2], 2, 0)
    assert torch.equal(torch.rand(3), expected)


def test_the_first_size_may_be_too_large_for_its_inputs() -> None:
    def inputs(size: int) -> Tensor:
        raise MemoryError

    with pytest.raises(layertrace.Error, match="which is the first size"):
        layertrace.throughput(nn.ReLU(), inputs, [4], 2, 0)


def test_a_program_without_a_stream_for_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert len(FUNCTIONS["benchmark"](nn.Linear(4, 4)).total_ns) == 2
    assert len(FUNCTIONS["throughput"](nn.Linear(4, 4)).table()) == 2


def test_data_that_can_be_gone_through_once() -> None:
    batches = [(torch.ones(2, 4), torch.ones(2)) for _ in range(4)]

    def count(_model: nn.Module, data: Any) -> float:
        return sum(len(labels) for _, labels in data)

    for data in (batches, iter(batches)):
        card = layertrace.card(nn.Linear(4, 4), data, evaluate=count, iterations=1, warmup=0)
        assert card["evaluation"] == 8


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_an_evaluation_that_is_interrupted(ending: type[BaseException]) -> None:
    def evaluate(_model: nn.Module, _data: Any) -> float:
        raise ending

    with pytest.raises(ending):
        layertrace.card(nn.Linear(4, 4), torch.ones(2, 4), evaluate=evaluate, iterations=1)
