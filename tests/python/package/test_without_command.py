"""What `layertrace` does where pip could not build its command in C++: the same, through Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models import FromForms
from support import BIN, BUILD_DIR, TRACES, run

import layertrace

PROGRAM = "import sys; from layertrace import _without_command as c; sys.exit(c.main(sys.argv[1:]))"


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


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(
        sys.executable,
        "-c",
        PROGRAM,
        *words,
        cwd=folder,
        PYTHONPATH=str(BUILD_DIR / "python"),
    )


def same(folder: Path, *words: str) -> str:
    """What both print, which is the same."""
    theirs, ours = run(BIN, *words, cwd=folder), python(folder, *words)
    assert (ours.returncode, ours.stderr) == (theirs.returncode, theirs.stderr)
    assert ours.stdout == theirs.stdout
    return ours.stdout


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
def test_it_prints_the_same(folder: Path, words: tuple[str, ...]) -> None:
    assert same(folder, *words)


def test_kernels_are_those_of_a_gpus_run(tmp_path: Path) -> None:
    trace = str(TRACES / "residual_cnn_gpu.pftrace")
    assert same(tmp_path, "kernels", trace, "--limit", "5", "--sort", "count")
    assert same(tmp_path, "kernels", trace, "--module", "blocks.0")


def test_nested_json_is_the_same(folder: Path) -> None:
    words = ("tree", "a.pftrace", "--format", "json")
    assert json.loads(python(folder, *words).stdout) == json.loads(
        run(BIN, *words, cwd=folder).stdout
    )


def test_files_are_the_same(folder: Path) -> None:
    for name in ("layers.parquet", "layers.tex", "layers.json"):
        for command, prefix in (((BIN,), "c-"), ((sys.executable, "-c", PROGRAM), "p-")):
            words = ("layers", "a.pftrace", "-o", prefix + name)
            result = run(*command, *words, cwd=folder, PYTHONPATH=str(BUILD_DIR / "python"))
            assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        assert (folder / f"c-{name}").read_bytes() == (folder / f"p-{name}").read_bytes()


def test_pages_pictures_and_imports(folder: Path) -> None:
    report = python(folder, "report", "a.pftrace", "-o", "a.html", "--title", "Monday")
    assert (report.returncode, report.stdout, report.stderr) == (0, "a.html\n", "")
    assert "Monday" in (folder / "a.html").read_text()
    graph = python(folder, "graph", "a.pftrace", "-o", "a.svg")
    assert (graph.returncode, graph.stderr) == (0, "")
    assert "<svg" in (folder / "a.svg").read_text()
    imported = python(folder, "import", "kineto.json")
    assert imported.returncode == 0, imported.stderr
    assert imported.stdout == same(folder, "import", "kineto.json")
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
    ids=" ".join,
)
def test_it_ends_alike(folder: Path, words: tuple[str, ...], code: int, text: str) -> None:
    result = python(folder, *words)
    assert result.returncode == code
    assert text in result.stderr
    assert result.stderr.startswith("layertrace: ")
    assert "Traceback" not in result.stderr
