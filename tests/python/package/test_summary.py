"""summary(): what a model is and computes, by one call that leaves no trace in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from support import BUILD_DIR
from torch import Tensor, nn

import layertrace
from layertrace import _summary_command


class Pairing(nn.Module):
    """Takes several inputs, by place and by name."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 6)
        self.b = nn.Linear(5, 6)

    def forward(self, x: Tensor, y: Tensor, scale: float = 1.0) -> dict[str, Tensor]:
        return {"sum": self.a(x) + self.b(y) * scale}


def flops(profile: layertrace.Profile, path: str = "", phase: str = "forward") -> float:
    layer = profile.find(path)
    assert layer is not None
    return layer.phases[phase].amounts.flops if phase in layer.phases else 0


def test_inputs_as_tuple_and_as_dict() -> None:
    model = Pairing()
    x, y = torch.randn(2, 4), torch.randn(2, 5)
    expected = 2 * 2 * 6 * (4 + 5)
    assert flops(layertrace.summary(model, (x, y))) == expected
    assert flops(layertrace.summary(model, {"x": x, "y": y, "scale": 0.5})) == expected


def test_without_inputs_the_parameters_alone() -> None:
    profile = layertrace.summary(nn.Linear(8, 32))
    layer = profile.find("")
    assert layer is not None
    assert (layer.params, layer.param_bytes * 8) == (288, 9216)
    assert flops(profile) == 0


@pytest.mark.parametrize("training", [False, True])
def test_leaves_the_model_as_it_was(training: bool) -> None:
    model = torchvision.models.mobilenet_v3_small().train(training)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    numbers = torch.random.get_rng_state()
    fired = []
    hook = next(model.parameters()).register_post_accumulate_grad_hook(fired.append)
    layertrace.summary(model, torch.randn(2, 3, 64, 64), backward=True)
    hook.remove()
    torch.random.set_rng_state(numbers)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is not None and bool((p.grad == 1).all()) for p in model.parameters())
    assert model.training is training
    assert fired == []


def test_running_means_are_kept_on_the_same_device() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    layertrace.summary(model, torch.randn(8, 4), device="cpu")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_list_is_one_input() -> None:
    class Adding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, parts: list[Tensor]) -> Tensor:
            return sum(self.linear(part) for part in parts)  # type: ignore[return-value]

    profile = layertrace.summary(Adding(), [torch.randn(2, 4), torch.randn(3, 4)[:2]])  # type: ignore[arg-type]
    assert flops(profile) == 2 * (2 * 2 * 4 * 4)


def test_its_own_memory_is_none_of_the_models() -> None:
    profile = layertrace.summary(nn.Linear(4, 4), torch.randn(2, 4))
    (host,) = profile.device_memory
    assert host.allocated == 32 == host.peak  # what came out: 2 × 4 of 4 bytes


def test_random_numbers_are_given_back() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.randn(2, 4)
    before = torch.random.get_rng_state()
    layertrace.summary(model, x)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_backward_on_another_device_is_the_same() -> None:
    model = torchvision.models.resnet18().eval()
    x = torch.randn(1, 3, 64, 64)
    here = layertrace.summary(model, x, backward=True)
    meta = layertrace.summary(model, x, backward=True, device="meta")
    for phase in ("forward", "backward"):
        assert flops(here, "", phase) == flops(meta, "", phase) > 0
    assert next(model.parameters()).device.type == "cpu"
    # The host's allocator tells of little there, and nothing of what the model would take.
    assert "Memory on the host was highest" in here.tree(depth=0)
    assert meta.device_memory == []
    assert "Memory on" not in meta.tree(depth=0)


def test_a_model_of_70_billion_parameters() -> None:
    """Counted on the meta device, without memory for it."""
    width, layers, tokens = 8192, 80, 16
    with torch.device("meta"):
        block = nn.ModuleDict(
            {
                "qkv": nn.Linear(width, 3 * width, bias=False),
                "out": nn.Linear(width, width, bias=False),
                "up": nn.Linear(width, 4 * width, bias=False),
                "down": nn.Linear(4 * width, width, bias=False),
            }
        )
        model = Blocks(layers, block)
        x = torch.randn(1, tokens, width)
    profile = layertrace.summary(model, x)
    assert "Memory on" not in profile.tree(depth=0)
    root = profile.find("")
    assert root is not None
    assert root.params == layers * 12 * width * width > 64e9
    attention = 2 * tokens * tokens * (width + width)
    assert flops(profile) == layers * (2 * tokens * 12 * width * width + attention)


class Blocks(nn.Module):
    """A decoder's blocks, as far as products go."""

    def __init__(self, count: int, block: nn.ModuleDict) -> None:
        super().__init__()
        import copy

        self.blocks = nn.ModuleList(copy.deepcopy(block) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            assert isinstance(block, nn.ModuleDict)
            q, k, v = (each.unsqueeze(1) for each in block["qkv"](x).chunk(3, -1))
            x = x + block["out"](nn.functional.scaled_dot_product_attention(q, k, v)[:, 0])
            x = x + block["down"](block["up"](x).relu())
        return x


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"takes an nn\.Module"):
        layertrace.summary(lambda x: x, torch.randn(1))  # type: ignore[arg-type]
    frozen = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(layertrace.Error, match="no output of the model needs a gradient"):
        layertrace.summary(frozen, torch.randn(1, 2), backward=True)
    layertrace.summary(frozen, torch.randn(1, 2))  # no session was left behind


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def build():\n"
        "    return torch.nn.Linear(8, 32), torch.randn(1, 8)\n"
        "def nothing():\n"
        "    return 3\n"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BUILD_DIR / "bin" / "layertrace", "summary", *words],
            cwd=tmp_path,
            env={**os.environ, "LAYERTRACE_PYTHON": sys.executable},
            capture_output=True,
            text=True,
        )

    told = run("mine:build", "--format", "json", "--backward")
    assert told.returncode == 0, told.stderr
    layer = json.loads(told.stdout)["layers"][0]
    assert layer["forward"]["flops"] == 512
    assert layer["params"] == 288
    assert "Linear" in run("mine:build").stdout
    for wrong, cause in (
        ("mine:nothing", "it gives a int"),
        ("mine:missing", "no attribute"),
        ("nowhere:build", "No module named"),
    ):
        told = run(wrong)
        assert told.returncode == 1
        assert cause in told.stderr
    for words, cause in (
        (("mine",), "not of the form"),
        (("mine:build", "--view", "fast"), "Use one of: time, cost"),
        (("mine:build", "--columns", "speed"), "Use one of: type"),
        (("mine:build", "--speed"), "unrecognized arguments"),
    ):
        told = run(*words)
        assert told.returncode == 2
        assert cause in told.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is run, in this process: another would load torch again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "summarised", raising=False)
    (tmp_path / "summarised.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "def build():\n"
        "    torch.manual_seed(0)\n"
        "    frozen = nn.Linear(8, 8).requires_grad_(False)\n"
        "    blocks = nn.Sequential(nn.Linear(8, 4), nn.Tanh())\n"
        "    return nn.Sequential(frozen, blocks, nn.Linear(4, 20)), torch.randn(3, 8)\n"
        "def raises():\n"
        "    raise KeyError('x')\n"
    )
    return tmp_path


Printed = Callable[..., str]


@pytest.fixture
def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Printed:
    def command(*words: str) -> str:
        assert _summary_command.main(["summarised:build", *words]) == 0
        out, errors = capsys.readouterr()
        assert errors == ""
        return out

    return command


def test_the_command_takes_the_trees_options(printed: Printed) -> None:
    text = printed(
        "--columns", "type,parameters,macs", "--style", "brackets", "--ascii", "--no-fold"
    )
    assert "|-- 1 [Type=Sequential, Parameters=36, MACs=96]" in text
    assert text.isascii()
    names = [line.split("-- ")[1].split()[0] for line in text.splitlines() if "-- " in line]
    assert names == ["0", "1", "0", "1", "2"]
    trainable = printed("--trainable", "--style", "brackets", "--no-fold")
    assert "Tanh" not in trainable and "└── 2 " in trainable
    below = printed("--start", "1", "--columns", "parameters", "--style", "brackets")
    assert "├── 0 [Parameters=36]" in below and "└── 2" not in below
    assert "Tanh" not in printed("--type", "Linear", "--no-fold")
    assert "└── 2" not in printed("--match", "1.*", "--no-fold")
    by_size = printed("--sort", "params", "--depth", "1", "--no-fold").splitlines()
    order = [line.split()[1] for line in by_size if line.startswith(("├── ", "└── "))]
    assert order == ["2", "0", "1"]
    represented = printed("--repr")
    assert represented == printed("--format", "repr")
    assert "(0): Linear(in_features=8, out_features=8, bias=True" in represented


@pytest.mark.parametrize("suffix", ["csv", "md", "html", "tex", "parquet"])
def test_the_command_writes_tables(folder: Path, printed: Printed, suffix: str) -> None:
    """The same files as `summary().table()` saves."""
    built: dict[str, Any] = {}
    exec((folder / "summarised.py").read_text(), built)
    summary = layertrace.summary(*built["build"]())
    columns = ["path", "type", "params", "macs", "flops", "output_shapes"]
    for words, table in (
        (
            ("--columns", ",".join(columns)),
            summary.table("layers", root="__root__", columns=columns),
        ),
        (("--table", "sizes"), summary.table("sizes", root="__root__")),
        (
            ("--table", "parameters", "--by-layer"),
            summary.table("parameters", by_layer=True, root="__root__"),
        ),
        (
            ("--convention", "moduleprofiler", "--depth", "1"),
            summary.counts_table("moduleprofiler", depth=1, root="__root__"),
        ),
    ):
        path = folder / f"table.{suffix}"
        assert printed(*words, "--root", "__root__", "-o", path.name) == ""
        table.save(folder / f"mine.{suffix}")
        assert path.read_bytes() == (folder / f"mine.{suffix}").read_bytes()


def test_the_command_draws_and_counts(folder: Path, printed: Printed) -> None:
    assert "Sequential" in printed("--graph", "tree.svg")
    assert "<svg" in (folder / "tree.svg").read_text()
    counts = json.loads(printed("--convention", "fvcore"))
    assert counts["by_module"][""] == 3 * (64 + 32 + 80)
    assert json.loads(printed("--format", "json"))["layers"][0]["path"] == ""
    table = json.loads(printed("--table", "layers", "--format", "json"))
    assert table["table"] == "layers"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("summarised:build", "--start", "nothing"), 1, "no layer has this path"),
        (("summarised:build", "-o", "layers.xlsx"), 2, "Use one of: text, repr, json, csv"),
        (("summarised:build", "--format", "xls"), 2, "Use one of: text, repr, json, csv"),
        (
            ("summarised:build", "--format", "csv", "--columns", "speed"),
            2,
            "Use one of: path, type",
        ),
        (("summarised:build", "--format", "csv", "--match", "1.*"), 2, "cannot use --match"),
        (("summarised:build", "--format", "json", "--limit", "1"), 2, "JSON is the whole of it"),
        (("summarised:build", "--graph", "tree.txt"), 2, ".svg"),
        (("summarised:build", "--convention", "thop"), 2, "Use one of: layertrace, fvcore"),
        (("summarised:build", "--depth", "many"), 2, "give a whole number, 0 or more"),
        (("summarised:build", "--sort", "speed"), 2, "Use one of: definition"),
        (("summarised:build", "-o", "no/such/folder.csv"), 1, "cannot write no/such/folder.csv"),
        (("summarised:raises",), 1, "KeyError: 'x'"),
    ],
)
def test_the_commands_errors(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    try:
        ended = _summary_command.main(list(words))
    except SystemExit as error:  # of argparse
        ended = int(error.code or 0)
    out, errors = capsys.readouterr()
    assert (ended, out) == (code, "")
    assert text in errors
    assert {path.suffix for path in folder.iterdir()} <= {".py", ""}, "nothing is written"
