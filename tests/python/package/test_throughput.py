"""throughput(): latency and samples per second, over sizes of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from models import Pair
from torch import Tensor, nn

import layertrace
import layertrace._benchmark
from layertrace._benchmark import is_out_of_memory


class Sizes(nn.Module):
    """Notes the shapes that it is called with."""

    def __init__(self, most: int = 1 << 20) -> None:
        super().__init__()
        self.most = most
        self.seen: list[tuple[tuple[int, ...], ...]] = []

    def forward(self, x: Tensor, mask: Tensor, *, other: Tensor) -> Tensor:
        shapes = tuple(tuple(each.shape) for each in (x, mask, other))
        if shapes not in self.seen:
            self.seen.append(shapes)
        if len(x) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return x


def swept(model: nn.Module, inputs: Any, sizes: list[int]) -> layertrace.Throughput:
    def forward(called: nn.Module, given: Any) -> object:
        return called(given["x"], given["mask"], other=given["other"])

    return layertrace.throughput(model, inputs, sizes, iterations=4, drop_first=1, forward=forward)


def batch(size: int) -> dict[str, Tensor]:
    return {"x": torch.randn(size, 5), "mask": torch.ones(size), "other": torch.ones(7, 2)}


def test_batches_are_made_of_the_inputs_rows() -> None:
    model = Sizes()
    sweep = swept(model, batch(2), [1, 2, 5])
    other = (7, 2)
    assert model.seen == [((1, 5), (1,), other), ((2, 5), (2,), other), ((5, 5), (5,), other)]
    table = sweep.table()
    assert table["batch_size"] == sweep.batch_sizes == [1, 2, 5]
    assert table["iterations"] == [3, 3, 3]
    for size, mean, per_s, each in zip(
        table["batch_size"],
        table["mean_ms"],
        table["samples_per_s"],
        table["sample_ms"],
        strict=True,
    ):
        assert per_s == pytest.approx(size / mean * 1e3)
        assert each == pytest.approx(mean / size)
    assert sweep.out_of_memory_at is None


def test_batches_are_made_by_a_function() -> None:
    model = Sizes()
    swept(model, batch, [3, 1])
    assert [shapes[0] for shapes in model.seen] == [(3, 5), (1, 5)]


def test_rows_keep_their_order_and_layout() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    made: Any = layertrace._benchmark._resized((x, 4), 7)
    assert made[0][:, 0].tolist() == [0, 2, 4, 0, 2, 4, 0]
    assert made[1] == 4
    images = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    made = layertrace._benchmark._resized(images, 5)
    assert made.is_contiguous(memory_format=torch.channels_last)


def test_out_of_memory_ends_a_sweep() -> None:
    sweep = swept(Sizes(most=4), batch(1), [1, 4, 8, 16])
    assert sweep.batch_sizes == [1, 4]
    assert sweep.out_of_memory_at == 8
    assert "Memory does not suffice for batches of 8" in str(sweep)
    with pytest.raises(layertrace.Error, match="which is the first size"):
        swept(Sizes(most=0), batch(1), [1])


def test_out_of_memory_is_told_from_other_errors() -> None:
    assert is_out_of_memory(MemoryError())
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 60)
    assert is_out_of_memory(raised.value)
    assert not is_out_of_memory(RuntimeError("a bug"))

    class Broken(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        layertrace.throughput(Broken(), torch.ones(1), [1])


@pytest.mark.parametrize("sizes", [[], [0], [1.5], [True]])
def test_wrong_sizes(sizes: list[Any]) -> None:
    with pytest.raises(ValueError, match="batch_sizes is"):
        layertrace.throughput(Pair(), torch.randn(1, 3), sizes)
    with pytest.raises(ValueError, match="no tensor among the inputs has rows"):
        layertrace.throughput(Pair(), (torch.tensor(1.0),), [1])


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_sweep_is_drawn(tmp_path: Path, suffix: str) -> None:
    sweep = layertrace.throughput(Pair(), torch.randn(1, 3), [1, 2, 16], iterations=5, drop_first=1)
    figure = sweep.plot(tmp_path / f"sweep.{suffix}")
    content = (tmp_path / f"sweep.{suffix}").read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    above, below = figure.axes
    (line,) = below.get_lines()
    assert list(line.get_xdata()) == [1, 2, 16]
    assert list(line.get_ydata()) == sweep.table()["samples_per_s"]
    assert (above.get_ylabel(), below.get_ylabel()) == (
        "time of a call (ms)",
        "samples per second",
    )
    with pytest.raises(layertrace.Error, match=r"Give a name that ends in one of: \.png"):
        sweep.plot(tmp_path / "sweep.gif")
