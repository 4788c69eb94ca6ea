"""Runs held against each other, from Python and by the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas
import pytest
import torch
from support import TRACES, layertrace_output
from support import layertrace as command

import layertrace

HOST = TRACES / "residual_cnn.pftrace"
GPU = TRACES / "residual_cnn_gpu.pftrace"
COUNTED = TRACES / "residual_cnn_counted_gpu.pftrace"


def train(width: int, name: str = "") -> layertrace.Session:
    model = torch.nn.Sequential(
        torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
    )
    with layertrace.profile(model, name=name) as session:
        for _ in range(3):
            model(torch.randn(4, 8)).sum().backward()
            session.step()
    return session


def figure(comparison: layertrace.Comparison, metric: str, path: str | None = None):
    kind = "total" if path is None else "layer"
    (row,) = (
        row
        for row in comparison.rows
        if (row.kind, row.name, row.metric) == (kind, path or "", metric)
    )
    return row.runs[-1]


def test_a_run_is_within_its_own_noise() -> None:
    comparison = layertrace.compare(COUNTED, COUNTED)
    assert {run.verdict for row in comparison.rows for run in row.runs[1:]} <= {
        "same",
        "within noise",
    }
    assert {row.kind for row in comparison.rows} == {"total", "layer", "kernel"}
    assert comparison.not_in_all == []
    assert len(set(comparison.names)) == 2


def test_what_is_counted_follows_from_the_shapes() -> None:
    comparison = layertrace.compare(train(16, "narrow"), train(32, "wide"))
    assert comparison.names == ["narrow", "wide"]
    params = figure(comparison, "params")
    assert (params.value, params.verdict) == (8 * 32 + 32 + 32 + 1, "more")
    assert params.change == pytest.approx((8 * 32 + 32 + 32 + 1) / (8 * 16 + 16 + 16 + 1) - 1)
    flops = figure(comparison, "flops", "0")
    # Forward, and the gradient of the weight: the input needs none.
    assert flops.value == 2 * (2 * 4 * 8 * 32)
    assert flops.change == 1.0
    assert comparison.check("flops@0 > +50%") is not None
    assert comparison.check("flops@0 > +150%") is None


def test_the_table_is_the_same_comparison() -> None:
    comparison = layertrace.compare(train(16), train(32), names=["a", "b"])
    frame = comparison.table().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(comparison.rows)
    assert list(frame["metric"]) == [row.metric for row in comparison.rows]
    for value, row in zip(frame["after"], comparison.rows, strict=True):
        assert value == row.runs[1].value
    assert "Total, per step" in str(comparison)
    assert "<table" in comparison._repr_html_()


def test_wrong_arguments_say_what_is_wrong() -> None:
    with pytest.raises(layertrace.Error, match="Give two runs or more"):
        layertrace.compare(HOST)
    with pytest.raises(ValueError, match="one for each of 2 runs"):
        layertrace.compare(HOST, HOST, names=["one"])
    with pytest.raises(TypeError, match="this is a int"):
        layertrace.compare(HOST, 5)  # type: ignore[arg-type]
    comparison = layertrace.compare(HOST, HOST)
    with pytest.raises(layertrace.Error, match="Use one of: step_ms"):
        comparison.check("speed > 5")
    with pytest.raises(layertrace.Error, match="limit is no number"):
        comparison.check("step_ms > fast")


def test_runs_in_files_keep_their_names(tmp_path: Path) -> None:
    for name in ("narrow", "wide"):
        train(16, name).save(tmp_path / f"{name}.pftrace")
    files = [tmp_path / "narrow.pftrace", tmp_path / "wide.pftrace"]
    assert layertrace.compare(*files).names == ["narrow", "wide"]
    assert layertrace_output("compare", *files).startswith("A: narrow\nB: wide\n")
    assert layertrace.compare(files[0], HOST).names == ["narrow", HOST.name]
    assert layertrace.compare(files[0], files[0], files[1]).names[2] == "wide"


def test_how_sure_a_comparison_must_be_can_be_said() -> None:
    comparison = layertrace.compare(HOST, HOST, error_rate=0)
    assert all(run.verdict != "slower" for row in comparison.rows for run in row.runs)
    with pytest.raises(ValueError, match="it is in 0…1"):
        layertrace.compare(HOST, HOST, error_rate=2)
    assert command("compare", HOST, HOST, "--error-rate", "2").returncode == 2
    assert command("compare", HOST, HOST, "--error-rate", "0.01").returncode == 0


def test_a_table_says_what_was_left_out() -> None:
    table = layertrace.compare(HOST, COUNTED).table()
    assert "times, kernels and memory are not compared" in table.note
    assert "*Simulated: recorded on a" in table.to_markdown()
    document = json.loads(layertrace_output("compare", HOST, COUNTED, "--format", "json"))
    assert document["note"] == table.note
    assert all(row["simulated"] for row in document["rows"])


# ---- The command ----


def test_the_command_compares_two_files() -> None:
    text = layertrace_output("compare", GPU, COUNTED)
    assert text.startswith("A: residual_cnn_gpu.pftrace\nB: residual_cnn_counted_gpu.pftrace\n")
    assert "step_ms" in text
    assert "no time is a real GPU's" in text


def test_a_host_and_a_gpu_are_not_compared_by_their_times() -> None:
    text = layertrace_output("compare", HOST, COUNTED, "--all")
    assert "times, kernels and memory are not compared" in text.replace("\n  ", " ")
    assert "step_ms" not in text
    comparison = layertrace.compare(train(16), COUNTED)
    assert {row.metric for row in comparison.rows} == {"flops", "params"}


def test_the_table_has_formats(tmp_path: Path) -> None:
    document = json.loads(layertrace_output("compare", GPU, COUNTED, "--format", "json"))
    names = [column["name"] for column in document["columns"]]
    assert {"kind", "name", "metric", "before", "after", "change", "verdict"} <= set(names)
    target = tmp_path / "comparison.parquet"
    assert layertrace_output("compare", GPU, COUNTED, "-o", target) == ""
    frame = pandas.read_parquet(target)
    assert len(frame) == len(document["rows"])


def test_a_condition_decides_the_exit_code() -> None:
    holds = command("compare", HOST, HOST, "--fail-if", "step_ms > 0.001")
    assert holds.returncode == 3
    assert holds.stderr.count("\n") == 1
    assert "step_ms > 0.001: step_ms of" in holds.stderr
    assert command("compare", HOST, HOST, "--fail-if", "step_ms > +0%").returncode == 0
    several = command(
        "compare", COUNTED, COUNTED, "--fail-if", "step_ms > +0%", "--fail-if", "params > 1"
    )
    assert several.returncode == 3
    assert "params > 1" in several.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((HOST,), 2, "nothing to compare with"),
        ((HOST, "missing.pftrace"), 1, "missing.pftrace"),
        ((HOST, HOST, "--fail-if", "speed > 5"), 2, "Use one of: step_ms"),
        ((HOST, HOST, "--fail-if", "gpu_ms > 5"), 1, "no gpu_ms in common"),
        ((HOST, HOST, "--format", "xml"), 2, "use one of"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str | Path, ...], code: int, said: str) -> None:
    result = command("compare", *arguments)
    assert result.returncode == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    copy = tmp_path / "run.pftrace"
    copy.write_bytes(COUNTED.read_bytes())
    for arguments in (("compare", copy, HOST), ("compare", HOST, copy), ("steps", copy)):
        result = command(*arguments, "-o", copy, "--format", "csv")
        assert result.returncode == 1
        assert "Name another file with -o" in result.stderr
    assert copy.read_bytes() == COUNTED.read_bytes()


# ---- Where a run was made ----


def test_a_run_tells_where_it_was_made(tmp_path: Path) -> None:
    session = train(16, name="narrow")
    session.save(tmp_path / "run.pftrace")
    for run in (session.profile.run, layertrace.load(tmp_path / "run.pftrace").run):
        assert run.name == "narrow"
        assert "pytest" in run.command
        assert run.python_version == ".".join(map(str, sys.version_info[:3]))
    assert "narrow" in session.tree().splitlines()[0]
    info = layertrace_output("info", tmp_path / "run.pftrace")
    assert "narrow" in info
    assert "pytest" in info
