"""The `layertrace` command on the trace of a real run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import SOURCE_DIR, TRACES, Demo, layertrace, layertrace_output

COMMANDS = ("tree", "layers", "kernels", "info", "view")


def documented_keys(section: str) -> set[str]:
    """The keys in the first column of a section's table in docs/json.md."""
    text = (SOURCE_DIR / "docs" / "json.md").read_text()
    body = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = (part for part in body if part.startswith(section))
    rows = re.findall(r"^\| (`.*?) \|", found, flags=re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def test_the_tree_is_the_one_that_the_program_printed(demo: Demo) -> None:
    tree = layertrace_output("tree", demo.trace)
    assert demo.output.startswith(tree + "\nThe trace is in ")
    assert "ResidualNet" in tree
    assert "conv1" in tree


def test_the_tree_takes_its_options(demo: Demo) -> None:
    shallow = layertrace_output("tree", demo.trace, "--depth", "1")
    assert "head" in shallow
    assert "conv1" not in shallow
    part = layertrace_output("tree", demo.trace, "--start", "blocks.3", "--columns", "self,busy")
    assert "shortcut" in part
    assert "head" not in part
    assert "forward" not in part.splitlines()[0]
    ascii_only = layertrace_output("tree", demo.trace, "--ascii")
    assert "├" not in ascii_only
    unfolded = layertrace_output("tree", demo.trace, "--no-fold")
    assert unfolded.count("ResidualBlock") == 5
    assert "\x1b[" in layertrace_output("tree", demo.trace, "--color", "always")


def test_info_says_what_is_there(demo: Demo) -> None:
    info = layertrace_output("info", demo.trace)
    lines = dict(line.split(maxsplit=1) for line in info.splitlines())
    assert lines["steps"] == "4"
    assert lines["layers"] == "44"
    assert lines["program"].startswith("train_residual_cnn (pid ")
    assert lines["scopes"] == "180 module calls, 180 backward spans, 356 autograd nodes"
    assert "cut off" not in info


def test_layers_has_the_documented_keys(demo: Demo) -> None:
    profile = json.loads(layertrace_output("layers", demo.trace, "--format", "json"))
    assert profile.keys() == documented_keys("# The JSON form of a profile")
    phases = documented_keys("A layer") & {"loss", "recompute", "optimizer", "data", "other"}
    assert phases
    figures = documented_keys("The figures of a phase")
    for layer in profile["layers"]:
        assert layer.keys() <= documented_keys("A layer")
        assert layer.keys() >= documented_keys("A layer") - phases - {"communication"}
        assert layer["forward"].keys() == figures
        assert layer["forward"]["stdev"].keys() == figures - {"min", "max", "median", "stdev"}
    for step in profile["steps"]:
        assert step.keys() == documented_keys("A step") - set(step["phases"])
    assert profile["health"].keys() == documented_keys("`health`") - {"count", "ns", "names"}
    assert profile["run"].keys() == documented_keys("`run`") - {"tsc", "boottime"}
    assert profile["health"]["attributed_share"] > 0.9


def test_kernels_of_a_run_without_a_gpu(demo: Demo) -> None:
    assert "No GPU was recorded" in layertrace_output("kernels", demo.trace)
    kernels = json.loads(layertrace_output("kernels", demo.trace, "--format", "json"))
    assert kernels == {"kernels": []}
    unknown = layertrace("kernels", demo.trace, "--module", "blocks.99")
    assert unknown.returncode == 1
    assert "shows those that exist" in unknown.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str) -> None:
    text = layertrace_output(command, "--help")
    assert f"layertrace {command} " in text
    assert "Example" in text
    assert layertrace_output(command, "-h") == text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_help_lists_the_commands() -> None:
    text = layertrace_output("--help")
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", text, flags=re.MULTILINE)


@pytest.mark.parametrize("arguments", [(), *((command,) for command in COMMANDS)])
def test_version(arguments: tuple[str, ...]) -> None:
    text = layertrace_output(*arguments, "--version")
    assert re.fullmatch(
        r"layertrace \d+\.\d+\.\d+ \(trace format \d+; tested with torch \d.*\)\n", text
    )


# ---- Recorded runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("trace", sorted(TRACES.glob("*.pftrace")), ids=lambda path: path.name)
def test_recorded_runs_stay_readable(trace: Path) -> None:
    """Files that earlier versions wrote give the same tree for ever."""
    expected = trace.with_name(trace.stem + ".tree.txt").read_text()
    assert layertrace_output("tree", trace) == expected
    assert f"`{trace.name}`" in (TRACES / "README.md").read_text()
    assert layertrace("layers", trace).returncode == 0


def test_there_are_recorded_runs() -> None:
    assert list(TRACES.glob("*.pftrace"))
