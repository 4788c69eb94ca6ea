"""`layertrace benchmark`: what it prints and writes, its errors, and the bar."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from support import BIN, BUILD_DIR, ENVIRONMENT, TIMEOUT_S, run

import layertrace
from layertrace._benchmark import Progress, call_times


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_and_none_in_pipes() -> None:
    for stream, is_shown in ((Terminal(), True), (io.StringIO(), False)):
        with Progress(40, None, stream) as bar:
            bar.say("whole model")
            assert len(call_times(lambda: None, 40, 0, progress=bar)) == 40
        assert ("40 of 40 calls" in stream.getvalue()) is is_shown
        assert stream.getvalue().endswith("\r\x1b[K") is is_shown
    assert stream.getvalue() == ""


def test_the_bar_is_drawn_between_few_calls() -> None:
    stream = Terminal()
    with Progress(100_000, None, stream) as bar:
        bar.say("x")
        call_times(lambda: None, 100_000, 0, progress=bar)
    assert stream.getvalue().count("calls") < 1000


# ---- the command --------------------------------------------------------------------------------

MODELS = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.randn(2, 4)

def without_inputs():
    return nn.Linear(4, 8)

def wrong():
    return nn.Linear(4, 8), torch.randn(2, 5)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(
        BIN,
        "benchmark",
        *words,
        cwd=folder,
        LAYERTRACE_PYTHON=sys.executable,
        PYTHONPATH=str(BUILD_DIR / "python"),
    )


FEW = ("--iterations", "6", "--drop-first", "2")


def test_the_command_prints_a_table(folder: Path) -> None:
    result = command(folder, "models:build", *FEW, "--root", "__root__")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Sequential · 4 of 6 calls, without the first 2 · ")
    assert lines[2].split()[:4] == ["module", "type", "calls", "mean"]
    assert [line.split()[0] for line in lines[3:7]] == ["total,", "__root__", "0", "1"]
    assert lines[8].startswith("With scopes in it the model takes ")


def test_the_command_writes_every_format(folder: Path) -> None:
    for name in ("times.csv", "times.json", "times.md", "times.html", "times.tex", "times.parquet"):
        result = command(folder, "models:build", *FEW, "-o", name)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    rows = list(csv.DictReader(io.StringIO((folder / "times.csv").read_text())))
    assert [row["module"] for row in rows] == ["", "", "0", "1"]
    assert (folder / "times.parquet").read_bytes()[:4] == b"PAR1"
    single = command(folder, "models:build", *FEW, "--total", "--single", "--format", "json")
    document = json.loads(single.stdout)
    assert [row["iteration"] for row in document["rows"]] == [2, 3, 4, 5]
    chosen = command(folder, "models:build", *FEW, "--format", "csv", "--columns", "module,mean_ms")
    assert chosen.stdout.splitlines()[0] == "module,mean_ms"


def test_files_say_where_they_were_made(folder: Path) -> None:
    named = ("--name", "nightly", "-o", "made.json")
    for words in ((), ("--batch-sizes", "1,2")):
        result = command(folder, "models:build", *FEW, *words, *named)
        assert (result.returncode, result.stderr) == (0, "")
        row = json.loads((folder / "made.json").read_text())["rows"][0]
        assert row["run_name"] == "nightly"
        assert row["python_version"] == platform.python_version()
        assert row["layertrace_version"] == layertrace.__version__
        assert row["torch_version"].split("+")[0] == torch.__version__.split("+")[0]
        assert "benchmark models:build" in row["command"]
        assert row["created"].endswith("Z")
        assert "commit" in row


def test_the_command_sweeps_batch_sizes(folder: Path) -> None:
    result = command(
        folder,
        "models:build",
        *FEW,
        "--batch-sizes",
        "1,2,4",
        "--plot",
        "sweep.svg",
        "--format",
        "json",
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert [row["batch_size"] for row in json.loads(result.stdout)["rows"]] == [1, 2, 4]
    assert (folder / "sweep.svg").read_bytes().startswith(b"<?xml")


def test_the_command_sets_threads(folder: Path) -> None:
    result = command(
        folder,
        "models:build",
        *FEW,
        "--intra-op-threads",
        "2",
        "--inter-op-threads",
        "3",
        "--format",
        "json",
    )
    assert (result.returncode, result.stderr) == (0, "")
    row = json.loads(result.stdout)["rows"][0]
    assert (row["intra_op_threads"], row["inter_op_threads"]) == (2, 3)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("models:build", "--iterations", "5", "--drop-first", "5"), 2, "of 5 iterations"),
        (("models:build", "--batch-sizes", "1,x"), 2, "--batch-sizes is 1,x"),
        (("models:build", "--batch-sizes", "1", "--total"), 2, "--total has no meaning"),
        (("models:build", "--plot", "a.png"), 2, "--plot draws what --batch-sizes gives"),
        (("models:build", "--intra-op-threads", "0"), 2, "--intra-op-threads is 0"),
        (("models",), 2, "models is not of the form module:function"),
        ((), 2, "required: module:function"),
        (("models:build", "--format", "xls"), 2, "Use one of: text, json, csv, md, html, latex"),
        (("models:build", "-o", "times.xlsx"), 2, "Use one of: text, json, csv, md, html, latex"),
        (("models:build", "--format", "csv", "--columns", "speed"), 2, "Use one of: module, type"),
        (("models:build", "--single", "--format", "csv", "--columns", "mean_ms"), 2, "time_ms"),
        (("models:without_inputs", *FEW), 1, "gives no inputs to call it with"),
        (("models:wrong", *FEW), 1, "cannot time the model of models:wrong: addmm: mat1 and mat2"),
        (("models:missing", *FEW), 1, "cannot build a model by models:missing"),
        (("models:build", *FEW, "-o", "no/such/folder.csv"), 1, "cannot write no/such/folder.csv"),
        (
            ("models:build", *FEW, "--batch-sizes", "1", "--plot", "a.gif"),
            1,
            "ends in one of: .png",
        ),
    ],
)
def test_the_commands_errors(folder: Path, words: tuple[str, ...], code: int, text: str) -> None:
    result = command(folder, *words)
    assert (result.returncode, result.stdout) == (code, "")
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "times.xlsx").exists()


def test_the_command_tells_of_itself(folder: Path) -> None:
    result = command(folder, "--help")
    assert result.returncode == 0
    assert "examples:\n  layertrace benchmark models:build" in result.stdout
    assert "benchmark" in run(BIN, "--help").stdout


LONG = """
import pathlib, torch

class Long(torch.nn.Module):
    def forward(self, x):
        pathlib.Path("begun").touch()
        return x

def build():
    return Long(), torch.ones(1)
"""


def started(folder: Path, stderr: int, *words: str) -> subprocess.Popen[bytes]:
    (folder / "long.py").write_text(LONG)
    paths = {"LAYERTRACE_PYTHON": sys.executable, "PYTHONPATH": str(BUILD_DIR / "python")}
    return subprocess.Popen(
        [BIN, "benchmark", "long:build", *words],
        cwd=folder,
        env={**ENVIRONMENT, **paths},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


def test_an_interrupted_command_ends_as_such(folder: Path) -> None:
    process = started(folder, subprocess.PIPE, "--iterations", str(10**9))
    deadline = time.monotonic() + TIMEOUT_S
    while not (folder / "begun").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, errors) == (130, b"layertrace: interrupted\n")


@pytest.mark.parametrize("words", [(), ("--no-progress",)])
def test_a_terminal_shows_the_bar(folder: Path, words: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    process = started(folder, theirs, "--iterations", "40", *words)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=TIMEOUT_S) == 0
    assert (b"80 of 80 calls" in shown) is (words == ())
    assert shown.endswith(b"\r\x1b[K") is (words == ())
