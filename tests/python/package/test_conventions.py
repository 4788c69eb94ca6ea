"""Other tools' numbers, rebuilt from one recorded forward, against the tools themselves.

fvcore looks at operators; torchinfo and moduleprofiler attach hooks to modules. Each module's
number is compared, and each must be equal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import moduleprofiler
import pytest
import torch
import torchinfo
import torchvision
from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis
from support import layertrace as layertrace_command
from support import layertrace_output
from torch import Tensor, nn
from torch.nn import functional

import layertrace

Case = tuple[nn.Module, Tensor]
Analysis = FlopCountAnalysis | ActivationCountAnalysis


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.lstm = nn.LSTM(16, 24, 2, batch_first=True)
        self.head = nn.Linear(24, 100)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.lstm(self.embed(ids))[0])  # type: ignore[no-any-return]


def resnet18() -> Case:
    return torchvision.models.resnet18(), torch.randn(1, 3, 64, 64)


def mobilenet() -> Case:
    return torchvision.models.mobilenet_v3_small(), torch.randn(2, 3, 64, 64)


def language_model() -> Case:
    return LanguageModel(), torch.randint(100, (4, 8))


def encoder() -> Case:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(2, 8, 32)


models = pytest.mark.parametrize("make", [resnet18, mobilenet, language_model, encoder])


def counted(model: nn.Module, *inputs: Tensor, output: Path | None = None) -> layertrace.Profile:
    """One forward. Gradients are on: without them an encoder layer is one operator, and its modules
    are not called."""
    model.eval()
    with layertrace.profile(model, count="first", output=output) as session:
        model(*inputs)
        session.step()
    return session.profile


def nonzero(counts: dict[str, float]) -> dict[str, float]:
    return {name: count for name, count in counts.items() if count != 0}


def quiet(analysis: Analysis) -> Analysis:
    return (
        analysis.unsupported_ops_warnings(False)
        .uncalled_modules_warnings(False)
        .tracer_warnings("none")
    )


# ---- fvcore ---------------------------------------------------------------------------------


@models
def test_fvcore(make: Callable[[], Case]) -> None:
    model, x = make()
    ours = counted(model, x).counts("fvcore")
    theirs = quiet(FlopCountAnalysis(model, x))
    assert ours.unit == "MACs"
    assert nonzero(ours.by_module) == nonzero(theirs.by_module())
    assert nonzero(ours.by_operator) == nonzero(theirs.by_operator())


@models
def test_fvcore_activations(make: Callable[[], Case]) -> None:
    model, x = make()
    ours = counted(model, x).counts("fvcore")
    theirs = quiet(ActivationCountAnalysis(model, x))
    assert nonzero(ours.activations_by_module) == nonzero(theirs.by_module())
    assert nonzero(ours.activations_by_operator) == nonzero(theirs.by_operator())


def test_fvcore_of_products() -> None:
    """Operators of the model's own, in one layer: each has its activations back."""

    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 5))

        def forward(self, x: Tensor) -> Tensor:
            x = functional.linear(x, self.weight)  # (4, 3, 6)
            return x @ x.transpose(1, 2)  # (4, 3, 3)

    model, x = Products(), torch.randn(4, 3, 5)
    ours = counted(model, x).counts("fvcore")
    assert ours.by_operator == {"linear": 4 * 3 * 5 * 6, "matmul": 4 * 9 * 6}
    assert ours.activations_by_operator == {"linear": 72, "matmul": 36}
    assert nonzero(quiet(FlopCountAnalysis(model, x)).by_operator()) == ours.by_operator
    theirs = quiet(ActivationCountAnalysis(model, x))
    assert nonzero(theirs.by_operator()) == ours.activations_by_operator


def test_fvcore_of_products_by_the_same_operator() -> None:
    """Both ask mm, with other outputs for a multiply-add; so does the program itself."""

    class Products(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 5))
            self.other = nn.Parameter(torch.randn(6, 2))

        def forward(self, x: Tensor) -> Tensor:
            x = functional.linear(x, self.weight)  # (12, 6)
            y = torch.matmul(x, self.other)  # (12, 2)
            y = torch.einsum("ij,kj->ik", y, y)  # (12, 12)
            return torch.bmm(torch.mm(y, x)[None], self.other[None])  # (1, 12, 2)

    model, x = Products(), torch.randn(12, 5)
    ours = counted(model, x).counts("fvcore")
    theirs = quiet(ActivationCountAnalysis(model, x))
    assert nonzero(theirs.by_operator()) == ours.activations_by_operator
    assert ours.activations_by_operator == {"einsum": 144, "linear": 72, "matmul": 24, "bmm": 24}
    assert nonzero(theirs.by_module()) == nonzero(ours.activations_by_module)


def test_fvcore_does_not_see_attention() -> None:
    model, x = encoder()
    profile = counted(model, x)
    fvcore, own = profile.counts("fvcore"), profile.counts()
    attention = 2 * 2 * (2 * 4 * 8 * 8 * 16)  # layers, products; batch, heads, pairs, dimensions
    # Its norms are no products: 5 for each element.
    norms = 2 * 2 * 5 * x.numel()
    assert fvcore.by_module[""] - norms + attention / 2 == own.by_module[""] / 2
    assert any("attention" in note for note in fvcore.notes)


# ---- torchinfo ------------------------------------------------------------------------------


@models
def test_torchinfo(make: Callable[[], Case]) -> None:
    model, x = make()
    ours = counted(model, x).counts("torchinfo")
    theirs = torchinfo.summary(model, input_data=x, mode="eval", verbose=0)
    paths = {id(module): path for path, module in model.named_modules()}
    leaves: Counter[str] = Counter()
    for info in theirs.summary_list:
        if info.is_leaf_layer:
            leaves[paths[info.layer_id]] += info.macs
    assert {path: ours.by_module[path] for path in leaves} == leaves
    assert ours.by_module[""] == theirs.total_mult_adds
    assert ours.parameters == theirs.total_params


def test_torchinfo_ignores_the_length_of_a_sequence() -> None:
    model = nn.Sequential(nn.Linear(8, 8))
    short = counted(model, torch.randn(2, 3, 8)).counts("torchinfo")
    long = counted(model, torch.randn(2, 300, 8)).counts("torchinfo")
    assert short.by_module == long.by_module == {"": 144, "0": 144}
    assert long.notes == ["torchinfo ignores the length of a sequence (0)."]


def test_torchinfo_counts_every_call() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.layer(x)[:1])  # type: ignore[no-any-return]

    model, x = Twice(), torch.randn(3, 4)
    ours = counted(model, x).counts("torchinfo")
    assert ours.by_module == {"": 80, "layer": 80}
    theirs = torchinfo.summary(model, input_data=x, mode="eval", verbose=0)
    assert theirs.total_mult_adds == 80


# ---- moduleprofiler -------------------------------------------------------------------------


@models
def test_moduleprofiler(make: Callable[[], Case]) -> None:
    model, x = make()
    ours = counted(model, x).counts("moduleprofiler")
    theirs = {
        "" if path == "__root__" else path: module["ops"]
        for path, module in moduleprofiler.ModuleProfiler().estimate_ops(model, x).items()
        if module["ops"] is not None
    }
    assert {path: ours.by_module[path] for path in theirs} == theirs
    assert ours.by_module[""] == sum(theirs.values())


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv2d(6, 9, 3, groups=3), (2, 6, 8, 8)),
        (nn.Conv2d(6, 9, (1, 3), bias=False, stride=2), (2, 6, 8, 8)),
        (nn.Conv1d(4, 6, 3, padding=1), (2, 4, 10)),
        (nn.BatchNorm1d(5), (7, 5)),
        (nn.BatchNorm2d(5, affine=False), (2, 5, 3, 3)),
        (nn.LayerNorm((3, 5)), (2, 4, 3, 5)),
        (nn.LayerNorm(5, bias=False), (2, 5)),
        (nn.AvgPool1d(3), (2, 4, 9)),
        (nn.AvgPool2d((2, 3)), (2, 4, 6, 6)),
        (nn.MaxPool2d(2), (2, 4, 6, 6)),
        (nn.GRU(4, 5, 2, bidirectional=True), (3, 2, 4)),
        (nn.GRU(4, 5, bias=False), (3, 2, 4)),
        (nn.LSTM(4, 5, 3, bidirectional=True, bias=False), (3, 2, 4)),
        (nn.GRUCell(4, 5), (3, 4)),
        (nn.Softmax(-1), (3, 4, 5)),
        (nn.SELU(), (3, 4)),
        (nn.PReLU(), (3, 4)),
    ],
    ids=str,
)
def test_moduleprofiler_of_one_module(module: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    ours = counted(module, x).counts("moduleprofiler")
    theirs = moduleprofiler.ModuleProfiler().estimate_ops(module, x)
    assert ours.by_module == {"": theirs["__root__"]["ops"]}


def test_moduleprofiler_of_a_linear_layer() -> None:
    ours = counted(nn.Linear(8, 32), torch.randn(1, 8)).counts("moduleprofiler")
    assert ours.by_module == {"": 512}
    assert ours.by_operator == {"Linear": 512}
    assert ours.parameters == 288
    assert ours.parameter_bytes * 8 == 9_216


# ---- deeplite -------------------------------------------------------------------------------


class BasicBlock(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class SmallResNet(nn.Module):
    """ResNet18 for images of 32 × 32, of which deeplite has published its figures."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.layers = nn.Sequential(
            *(
                nn.Sequential(BasicBlock(a, b, stride), BasicBlock(b, b, 1))
                for a, b, stride in widths
            )
        )
        self.linear = nn.Linear(512, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(functional.relu(self.bn1(self.conv1(x))))
        return self.linear(functional.avg_pool2d(x, 4).flatten(1))  # type: ignore[no-any-return]


def test_deeplite() -> None:
    """The four figures that deeplite-profiler 1.1.12 gives."""
    counts = counted(SmallResNet(), torch.randn(1, 3, 32, 32)).counts("deeplite")
    assert counts.by_module[""] == 556_697_700
    assert counts.parameters == 11_220_132
    assert counts.model_size_mb is not None and counts.footprint_mb is not None
    assert round(counts.model_size_mb, 4) == 42.8014
    assert round(counts.footprint_mb, 4) == 48.4389
    assert counts.footprint_mb * 2**20 == 44_880_528 + 12_288 + 5_899_040


# ---- All of them ----------------------------------------------------------------------------


def test_an_unknown_convention_names_those_that_there_are() -> None:
    profile = counted(nn.Linear(2, 2), torch.randn(1, 2))
    with pytest.raises(layertrace.Error, match="layertrace, fvcore, torchinfo, moduleprofiler"):
        profile.counts("thop")


def test_a_saved_run_gives_the_same(tmp_path: Path) -> None:
    output = tmp_path / "run.pftrace"
    profile = counted(*resnet18(), output=output)
    loaded = layertrace.load(output)
    for convention in ("layertrace", "fvcore", "torchinfo", "moduleprofiler", "deeplite"):
        counts, again = profile.counts(convention), loaded.counts(convention)
        assert again.by_module == counts.by_module
        assert again.by_operator == counts.by_operator
        assert again.activations_by_module == counts.activations_by_module
        assert again.notes == counts.notes
        printed = json.loads(layertrace_output("layers", output, "--convention", convention))
        assert printed["convention"] == convention
        assert printed["unit"] == counts.unit
        assert printed["by_module"] == counts.by_module
        assert printed["by_operator"] == counts.by_operator
    refused = layertrace_command("layers", output, "--convention", "thop")
    assert refused.returncode == 2
    assert "Use one of: layertrace, fvcore" in refused.stderr
