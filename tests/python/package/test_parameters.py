"""Parameters, kernel sizes and shapes, compared with what plain PyTorch says of a model."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from models import Calls, Pair
from torch import Tensor, nn

import layertrace


def profiled(
    model: nn.Module, body: Callable[[], object], output: Path | None = None
) -> layertrace.Profile:
    with layertrace.profile(model, output=output) as session:
        body()
        session.step()
    return session.profile


def layer(profile: layertrace.Profile, path: str) -> layertrace.Layer:
    found = profile.find(path)
    assert found is not None, path
    return found


# ---- Parameters ----


def size(tensors: list[Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def assert_as_pytorch_says(profile: layertrace.Profile, model: nn.Module) -> None:
    """Every module at each of its places; PyTorch's iterators give a shared tensor once."""
    for path, module in model.named_modules(remove_duplicate=False):
        found = layer(profile, path)
        parameters = list(module.parameters())
        assert found.params == sum(each.numel() for each in parameters), path
        trainable = [each for each in parameters if each.requires_grad]
        assert found.params_trainable == sum(each.numel() for each in trainable), path
        assert found.param_bytes == size(list(parameters)), path
        assert found.buffer_bytes == size(list(module.buffers())), path
        own = list(module.parameters(recurse=False))
        assert found.self_params == sum(each.numel() for each in own), path
        assert found.self_param_bytes == size(list(own)), path
        named = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        assert [
            (each.name, each.shape, f"torch.{each.dtype}", each.elements, each.trainable)
            for each in found.parameters
        ] == [
            (name, tuple(each.shape), str(each.dtype), each.numel(), each.requires_grad)
            for name, each in named
        ], path


def facts(each: layertrace.Layer) -> tuple[object, ...]:
    return (
        each.path,
        each.params,
        each.params_trainable,
        each.param_bytes,
        each.buffer_bytes,
        each.self_params,
        each.self_params_trainable,
        each.self_param_bytes,
        each.kernel_size,
        [
            (p.name, p.shape, p.dtype, p.elements, p.bytes, p.trainable, p.buffer, p.shared_with)
            for p in each.parameters
        ],
    )


def resnet18() -> tuple[nn.Module, Callable[[nn.Module], object]]:
    from torchvision.models import resnet18  # type: ignore[import-untyped]

    return resnet18(), lambda model: model(torch.randn(2, 3, 32, 32))


def mobilenet() -> tuple[nn.Module, Callable[[nn.Module], object]]:
    from torchvision.models import mobilenet_v3_small

    return mobilenet_v3_small().eval(), lambda model: model(torch.randn(1, 3, 32, 32))


def gpt2() -> tuple[nn.Module, Callable[[nn.Module], object]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=100, n_positions=16)
    return GPT2LMHeadModel(config), lambda model: model(torch.arange(8).reshape(1, 8))


def lstm() -> tuple[nn.Module, Callable[[nn.Module], object]]:
    return nn.LSTM(3, 5, num_layers=2, bidirectional=True), lambda model: model(
        torch.randn(4, 2, 3)
    )


def frozen() -> tuple[nn.Module, Callable[[nn.Module], object]]:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2).bfloat16())
    model[0].requires_grad_(False)
    return model, lambda model: model[:2](torch.randn(3, 4))


@pytest.mark.parametrize("make", [resnet18, mobilenet, gpt2, lstm, frozen])
def test_parameters_are_pytorchs(
    make: Callable[[], tuple[nn.Module, Callable[[nn.Module], object]]], tmp_path: Path
) -> None:
    model, run = make()
    path = tmp_path / "run.pftrace"
    profile = profiled(model, lambda: run(model), path)
    assert_as_pytorch_says(profile, model)
    loaded = layertrace.load(path)
    assert [facts(each) for each in loaded.layers] == [facts(each) for each in profile.layers]


def test_known_figures() -> None:
    model = nn.Linear(8, 32)
    root = profiled(model, lambda: model(torch.randn(1, 8))).layers[0]
    assert root.params == 288
    assert root.param_bytes * 8 == 9216


def test_tied_weight_is_shown_twice_and_counted_once() -> None:
    model, run = gpt2()
    profile = profiled(model, lambda: run(model))
    first, second = layer(profile, "transformer.wte"), layer(profile, "lm_head")
    assert first.params == second.params == 3200
    assert first.parameters[0].shared_with == ""
    assert second.parameters[0].shared_with == "transformer.wte.weight"
    assert profile.layers[0].params == sum(each.numel() for each in model.parameters())


def test_shared_module_has_its_parameters_at_each_place() -> None:
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, nn.Sequential(shared, nn.ReLU()))
    profile = profiled(model, lambda: model(torch.randn(1, 3)))
    assert_as_pytorch_says(profile, model)
    assert layer(profile, "1.0").shared_with == "0"
    assert [each.shared_with for each in layer(profile, "1.0").parameters] == [
        "0.weight",
        "0.bias",
    ]
    assert profile.layers[0].params == 12


def test_parameter_that_a_module_gets_later_takes_the_place_of_the_former() -> None:
    model = Pair()

    def body() -> None:
        model.a.weight = nn.Parameter(torch.eye(3, dtype=torch.float32), requires_grad=False)
        model.a.register_parameter("extra", nn.Parameter(torch.zeros(7)))
        model(torch.randn(1, 3))

    found = layer(profiled(model, body), "a")
    names = [(each.name, each.trainable) for each in found.parameters]
    assert names == [("weight", False), ("bias", True), ("extra", True)]
    assert found.params == 9 + 3 + 7


def test_tensors_without_data_are_no_obstacle() -> None:
    with torch.device("meta"):
        meta = nn.Linear(4, 5)
    lazy = nn.LazyLinear(4)
    model = Calls(lambda self, x: self.used(x), used=nn.Linear(2, 2), meta=meta, lazy=lazy)
    profile = profiled(model, lambda: model(torch.randn(1, 2)))
    assert layer(profile, "meta").params == 25
    assert layer(profile, "lazy").params == 0


def test_script_module_shows_what_is_in_it() -> None:
    script = torch.jit.trace(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), torch.randn(4, 2))
    model = nn.Sequential(script)
    profile = profiled(model, lambda: model(torch.randn(4, 2)))
    assert layer(profile, "0").params == sum(each.numel() for each in script.parameters())
    assert layer(profile, "").buffer_bytes == size(list(script.buffers()))


# ---- Kernel sizes ----


def test_kernel_sizes() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 1, 3),
        nn.Conv1d(1, 1, 5),
        nn.MaxPool2d(2),
        nn.AvgPool2d((2, 3)),
        nn.ConvTranspose3d(1, 1, (1, 2, 3)),
        nn.Linear(1, 1),
    )
    profile = profiled(model, lambda: model[0](torch.randn(1, 1, 4, 4)))
    sizes = [layer(profile, str(i)).kernel_size for i in range(6)]
    assert sizes == ["3 × 3", "5", "2 × 2", "2 × 3", "1 × 2 × 3", ""]


# ---- Shapes ----


def shapes(forward: Callable[..., object], *args: object, **kwargs: object) -> tuple[str, str]:
    """What goes into a module with this forward, and what comes out."""

    class Model(nn.Module):
        def forward(self, *args: object, **kwargs: object) -> object:
            return forward(*args, **kwargs)

    model = Model()
    results: list[object] = []
    profile = profiled(model, lambda: results.append(model(*args, **kwargs)))
    (found,) = profile.layers[0].shapes
    assert found.calls == 1
    return found.input, found.output


class Both(NamedTuple):
    first: Tensor
    second: Tensor | None


@dataclass
class Record:
    x: Tensor
    name: str = ""
    more: list[Tensor] | None = None


@dataclass(slots=True)
class Slots:
    x: Tensor
    y: Tensor | None = None


X = torch.zeros(2, 64, 512)
N = torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (X, "float32[2, 64, 512]"),
        (torch.tensor(1.0, dtype=torch.bfloat16), "bfloat16[]"),
        ((X, None, N), "float32[2, 64, 512], int64[3]"),
        ([N, [N, (N,)]], "int64[3], int64[3], int64[3]"),
        ({"a": N, "b": {"c": X}}, "int64[3], float32[2, 64, 512]"),
        (UserDict(a=N), "int64[3]"),
        (Both(N, None), "int64[3]"),
        (Record(N, "a name", [X]), "int64[3], float32[2, 64, 512]"),
        (Slots(X, N), "float32[2, 64, 512], int64[3]"),
        (nn.Parameter(torch.zeros(2, 1)), "float32[2, 1]"),
        (torch.zeros(2, 0, dtype=torch.bool), "bool[2, 0]"),
        (torch.max(torch.zeros(2, 3), dim=1), "float32[2], int64[2]"),
        ("text", ""),
        (None, ""),
        ([N] * 70, ", ".join(["int64[3]"] * 64) + ", …"),
        ([[[[[[[[N]]]]]]]], "…"),
    ],
)
def test_shapes_of_values(value: object, text: str) -> None:
    assert shapes(lambda value: value, value) == (text, text)


def test_shapes_of_keyword_arguments() -> None:
    assert shapes(lambda x, *, mask: (x, mask), X, mask=N) == (
        "float32[2, 64, 512], int64[3]",
        "float32[2, 64, 512], int64[3]",
    )


def test_shapes_of_hugging_face() -> None:
    from transformers.modeling_outputs import BaseModelOutput

    assert shapes(lambda: BaseModelOutput(last_hidden_state=X))[1] == "float32[2, 64, 512]"


def test_unknown_objects_are_left_alone() -> None:
    class Trap:
        def __iter__(self) -> Any:
            raise AssertionError("was iterated")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"was asked for {name}")

    trap = Trap()
    assert shapes(lambda x: x, trap) == ("", "")


def test_registered_types() -> None:
    class Batch:
        def __init__(self, *tensors: Tensor) -> None:
            self.tensors = tensors

    class Derived(Batch):
        pass

    class Broken:
        pass

    layertrace.register_shapes(Batch, lambda batch: iter(batch.tensors))
    layertrace.register_shapes(Broken, lambda broken: 1 / 0)  # type: ignore[arg-type,return-value]
    assert shapes(lambda x: x, Batch(N, X)) == ("int64[3], float32[2, 64, 512]",) * 2
    assert shapes(lambda x: x, Derived(N)) == ("int64[3]",) * 2
    assert shapes(lambda x, y: y, Broken(), N) == ("int64[3]",) * 2
    with pytest.raises(TypeError, match="takes a class"):
        layertrace.register_shapes(3, list)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a function"):
        layertrace.register_shapes(Batch, 3)  # type: ignore[arg-type]


def test_shapes_of_inner_layers_and_of_calls_that_differ() -> None:
    model = Pair()

    def body() -> None:
        model(torch.zeros(2, 3))
        model(torch.zeros(5, 3))
        model(torch.zeros(5, 3))

    found = layer(profiled(model, body), "a").shapes
    assert [(each.input, each.output, each.calls) for each in found] == [
        ("float32[5, 3]", "float32[5, 3]", 2),
        ("float32[2, 3]", "float32[2, 3]", 1),
    ]


def test_new_shapes_are_seen_in_a_later_step() -> None:
    model = Pair()
    with layertrace.profile(model) as session:
        for rows in (2, 2, 2, 7, 7):
            model(torch.zeros(rows, 3)).sum().backward()
            session.step()
    inputs = {each.input for each in layer(session.profile, "b").shapes}
    assert inputs == {"float32[2, 3]", "float32[7, 3]"}


def test_a_call_that_raises_has_no_output() -> None:
    def refuse(x: Tensor) -> Tensor:
        raise KeyError(x.shape)

    model = Calls(lambda self, x: refuse(x))

    def body() -> None:
        with pytest.raises(KeyError):
            model(N)

    assert profiled(model, body).layers[0].shapes == []


def test_nothing_of_the_program_is_changed() -> None:
    torch.manual_seed(3)
    model, x = Pair(), torch.randn(2, 3)
    expected = model(x)
    holder = {"x": x}
    before = sys.getrefcount(x)
    results: list[Tensor] = []
    profiled(model, lambda: results.append(model(holder["x"])))
    assert torch.equal(results[0], expected)
    assert holder == {"x": x}
    results.clear()
    del expected
    assert sys.getrefcount(x) <= before
