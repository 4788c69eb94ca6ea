"""What `layertrace` does where pip could not build its command in C++: the same, through Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from models import FromForms
from support import BIN, TRACES, run

import layertrace
from layertrace import _without_command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a model, and a trace of torch.profiler."""
    folder = tmp_path_factory.mktemp("runs")
    torch.manual_seed(0)
    model, x = FromForms(), torch.randn(16, 10)
    for name in ("a.pftrace", "b.pftrace"):
        with layertrace.profile(model, output=folder / name) as session:
            for _ in range(3):
                model(x).sum().backward()
                session.step()
            session.add_metric("accuracy", 0.5)
    with torch.profiler.profile(with_stack=True) as profiler:
        model(x).sum().backward()
    profiler.export_chrome_trace(str(folder / "kineto.json"))
    return folder


@dataclass
class Ended:
    returncode: int
    stdout: str
    stderr: str


class Python:
    """The command as Python does it: in this process, since another would load torch again."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *words: str) -> Ended:
        try:
            code = _without_command.main(list(words))
        except SystemExit as error:  # of argparse
            code = int(error.code or 0)
        return Ended(code, *self._capsys.readouterr())

    def same(self, *words: str) -> str:
        """What both print, which is the same."""
        theirs, ours = run(BIN, *words, cwd=self.folder), self(*words)
        assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
        text = ours.stdout.replace("\r\n", "\n")  # as run() reads the other's
        assert text == theirs.stdout
        return text


@pytest.fixture
def python(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Python:
    monkeypatch.chdir(folder)
    return Python(folder, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("tree", "a.pftrace"),
        (
            "tree",
            "a.pftrace",
            "--view",
            "cost",
            "--style",
            "brackets",
            "--ascii",
            "--sort",
            "flops",
        ),
        ("tree", "a.pftrace", "--start", "linear4", "--type", "Linear", "--min-share", "0.1%"),
        ("tree", "a.pftrace", "--format", "repr", "--trainable"),
        ("layers", "a.pftrace"),
        ("layers", "a.pftrace", "--convention", "fvcore"),
        ("layers", "a.pftrace", "--convention", "moduleprofiler", "--format", "csv"),
        ("layers", "a.pftrace", "--format", "md", "--depth", "1", "--root", "__root__"),
        ("kernels", "a.pftrace", "--format", "csv", "--by-layer"),
        ("ops", "a.pftrace", "--by-layer", "--limit", "3"),
        ("operators", "a.pftrace", "--format", "html"),
        ("calls", "a.pftrace", "--module", "linear4", "--columns", "path,phase"),
        ("steps", "a.pftrace", "--format", "json"),
        ("parameters", "a.pftrace", "--by-layer", "--leading-dot", "--format", "latex"),
        ("sizes", "a.pftrace"),
        ("ledger", "a.pftrace"),
        ("metrics", "a.pftrace"),
        ("compare", "a.pftrace", "b.pftrace", "--all", "--ascii"),
        ("compare", "a.pftrace", "b.pftrace", "--format", "csv"),
        ("graph", "a.pftrace", "--depth", "1", "--no-fold"),
    ],
    ids=" ".join,
)
def test_it_prints_the_same(python: Python, words: tuple[str, ...]) -> None:
    assert python.same(*words)


def test_kernels_are_those_of_a_gpus_run(python: Python) -> None:
    trace = str(TRACES / "residual_cnn_gpu.pftrace")
    assert python.same("kernels", trace, "--limit", "5", "--sort", "count")
    assert python.same("kernels", trace, "--module", "blocks.0")


def test_nested_json_is_the_same(python: Python) -> None:
    words = ("tree", "a.pftrace", "--format", "json")
    theirs = run(BIN, *words, cwd=python.folder).stdout
    assert json.loads(python(*words).stdout) == json.loads(theirs)


def test_files_are_the_same(python: Python) -> None:
    for name in ("layers.parquet", "layers.tex", "layers.json"):
        words = ("layers", "a.pftrace", "-o")
        assert run(BIN, *words, f"c-{name}", cwd=python.folder).returncode == 0
        assert python(*words, name) == Ended(0, "", "")
        written = (python.folder / name).read_bytes()
        assert written == (python.folder / f"c-{name}").read_bytes()


def test_pages_pictures_and_imports(python: Python) -> None:
    folder = python.folder
    report = python("report", "a.pftrace", "-o", "a.html", "--title", "Monday")
    assert report == Ended(0, "a.html\n", "")
    assert "Monday" in (folder / "a.html").read_text()
    assert python("graph", "a.pftrace", "-o", "a.svg") == Ended(0, "", "")
    assert "<svg" in (folder / "a.svg").read_text()
    assert "attributed" in python.same("import", "kineto.json")
    assert layertrace.load(folder / "kineto.pftrace").layers


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("tree", "a.pftrace", "--start", "nothing"), 1, "no layer has this path"),
        (("tree", "missing.pftrace"), 1, "cannot read missing.pftrace"),
        (("tree", "a.pftrace", "--columns", "speed"), 2, "Use one of: type"),
        (("layers", "a.pftrace", "--limit", "3"), 2, "--format csv"),
        (("layers", "a.pftrace", "-o", "a.xlsx"), 2, "json, csv, md"),
        (("sizes", "a.pftrace", "--columns", "speed"), 2, "Use one of: module"),
        (("compare", "a.pftrace"), 2, "nothing to compare with"),
        (("compare", "a.pftrace", "b.pftrace", "--fail-if", "params > 1"), 3, "params"),
        (("graph", "a.pftrace", "-o", "a.txt"), 2, ".svg"),
        (("info", "a.pftrace"), 1, "libcli11-dev"),
        (("view", "a.pftrace"), 1, "libcli11-dev"),
        (("doctor",), 1, "libcli11-dev"),
        (("simgpu", "--list"), 1, "libcli11-dev"),
    ],
)
def test_it_ends_alike(python: Python, words: tuple[str, ...], code: int, text: str) -> None:
    result = python(*words)
    assert result.returncode == code
    assert text in result.stderr
    assert result.stderr.startswith("layertrace: ")
