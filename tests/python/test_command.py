"""The `layertrace` command on the trace of a real run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import SOURCE_DIR, TRACES, Demo, layertrace, layertrace_output

COMMANDS = ("tree", "layers", "kernels", "compare", "info", "report", "graph", "view")


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


def test_a_list_of_columns_is_one_argument(demo: Demo) -> None:
    """What comes after it is the file."""
    tree = layertrace_output("tree", "--columns", "type,forward", demo.trace, "--depth", "0")
    assert tree == layertrace_output(
        "tree", demo.trace, "--columns", "type,forward", "--depth", "0"
    )
    assert tree.split("\n\n")[1].splitlines()[0].split() == ["layer", "type", "forward"]


def test_layers_are_sorted_by_what_they_compute() -> None:
    trace = TRACES / "residual_cnn_counted_gpu.pftrace"
    tree = layertrace_output(
        "tree", trace, "--sort", "flops", "--depth", "1", "--columns", "type,flops"
    )
    rows = [line.split()[1] for line in tree.splitlines() if "── " in line and "…" not in line]
    assert rows[0] == "blocks"
    unknown = layertrace("tree", trace, "--sort", "colour")
    assert unknown.returncode == 2
    assert "flops" in unknown.stderr and "memory" in unknown.stderr


def test_columns_that_need_counting_say_why_they_are_empty() -> None:
    tree = layertrace_output("tree", TRACES / "residual_cnn.pftrace", "--columns", "flops,macs")
    assert "Operators were not counted, so there is nothing to show for flops, macs: " in tree
    assert "(loss)" not in tree


COUNTED = TRACES / "residual_cnn_counted_gpu.pftrace"


def test_the_tree_in_brackets_with_exact_counts() -> None:
    tree = layertrace_output(
        "tree", COUNTED, "--style", "brackets", "--columns", "type,params,macs"
    )
    layers = json.loads(layertrace_output("layers", COUNTED))["layers"]
    (head,) = (layer for layer in layers if layer["path"] == "head")
    flops = sum(
        phase["flops"] for phase in head.values() if isinstance(phase, dict) and "flops" in phase
    )
    macs = int(flops / 2)
    assert f"── head [Type=Linear, Parameters={head['params']}, MACs={macs}]" in tree


def test_filters_of_the_tree() -> None:
    tree = layertrace_output("tree", COUNTED, "--type", "Linear", "--view", "cost")
    assert "── head" in tree and "── blocks" not in tree
    assert "Shown: 1 of " in tree
    assert "No layer is there with a path like" in layertrace_output(
        "tree", COUNTED, "--match", "x*"
    )
    wrong = layertrace("tree", COUNTED, "--min-share", "many")
    assert wrong.returncode == 2
    assert "it is no percentage" in wrong.stderr
    most = layertrace_output("tree", COUNTED, "--min-share", "10%", "--no-fold")
    assert "── head" not in most and "── blocks" in most


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("--view", "time, cost, memory, roofline, all"),
        ("--style", "columns, brackets"),
        ("--format", "text, repr, json"),
        ("--columns", "type, forward, "),
    ],
)
def test_unknown_names_list_those_that_exist(option: str, known: str) -> None:
    unknown = layertrace("tree", COUNTED, option, "colour")
    assert unknown.returncode == 2
    assert f"no such name. Use one of: {known}" in unknown.stderr
    assert unknown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("tree", COUNTED, "--depth", "many"), 2),
        (("tree", COUNTED, "--colour"), 2),
        (("tree",), 2),
        (("tree", COUNTED, "--start", "blocks.99"), 1),
        (("tree", "missing.pftrace"), 1),
        (("layers", COUNTED, "--convention", "thop"), 2),
        (("layers", COUNTED, "--format", "csv", "--columns", "speed"), 2),
        (("layers", COUNTED, "--format", "csv", "--module", "blocks.99"), 1),
        (("layers", "missing.pftrace", "--format", "csv", "--columns", "path"), 1),
        (("calls", COUNTED, "--columns", "speed"), 2),
        (("kernels", COUNTED, "--sort", "size"), 2),
        (("kernels", COUNTED, "--sort", "count", "--format", "csv"), 2),
        (("kernels", COUNTED, "--module", "blocks.99"), 1),
        (("graph", COUNTED, "-o", "tree.txt"), 2),
        (("graph", COUNTED, "--start", "blocks.99"), 1),
        (("compare", COUNTED), 2),
        (("compare", COUNTED, COUNTED, "--fail-if", "speed"), 2),
        (("compare", COUNTED, "missing.pftrace"), 1),
        (("compare", COUNTED, COUNTED, "--fail-if", "params > 1"), 3),
        (("report", "missing.pftrace"), 1),
        (("info", "missing.pftrace"), 1),
        (("import", "missing.json"), 1),
        (("run",), 2),
        (("run", "--steps", "many", "--", "true"), 2),
        (("simgpu",), 2),
        (("simgpu", "--profile", "abacus", "--", "true"), 2),
        (("simgpu", "--faults", "gremlins", "--", "true"), 2),
        (("speed",), 2),
        ((), 2),
    ],
)
def test_exit_codes(arguments: tuple[str | Path, ...], code: int) -> None:
    """1 where it could not be done, 2 where the command line makes no sense, whatever files hold,
    3 where a condition holds; and one line that says why."""
    result = layertrace(*arguments)
    assert result.returncode == code
    assert result.stderr.startswith("layertrace: ")
    assert result.stderr.count("\n") == 1
    assert "Exit codes: 0 done; 1 it could not be done" in layertrace_output("--help")


def test_the_tree_as_repr_and_as_json() -> None:
    text = layertrace_output("tree", COUNTED, "--format", "repr")
    assert re.search(r"^  \(head\): Linear\(Forward Time: \S+ms\|", text, flags=re.MULTILINE)
    nested = json.loads(layertrace_output("tree", COUNTED, "--format", "json"))
    layers = json.loads(layertrace_output("layers", COUNTED))["layers"]
    (head,) = (layer for layer in layers if layer["path"] == "head")
    assert nested["children"]["head"]["forward_ns"] == head["forward"]["host_ns"]
    assert nested["children"]["head"].keys() == documented_keys("Nested layers") - {
        "Sequential",
        "ModuleList",
        "ModuleDict",
        "simulated",  # of the outermost alone
        "error",  # in place of all
    }
    assert nested["simulated"].startswith("simulated ")
    part = layertrace_output(
        "tree", COUNTED, "--format", "json", "--start", "blocks", "--depth", "0"
    )
    assert json.loads(part)["children"] == {}


def test_info_tells_of_the_gpu_and_of_counts() -> None:
    counted = layertrace_output("info", TRACES / "residual_cnn_counted_gpu.pftrace")
    lines = dict(line.split(maxsplit=1) for line in counted.splitlines())
    assert re.search(r": \d+ kernels, \d+ copies and sets, asked for by \d+ calls$", lines["GPU"])
    assert "TFLOP/s" in lines["peaks"] and "simulated" in lines["peaks"]
    assert re.match(r"\d+ of \d+ steps: \d+ operators", lines["counted"])
    plain = layertrace_output("info", TRACES / "residual_cnn.pftrace")
    lines = dict(line.split(maxsplit=1) for line in plain.splitlines())
    assert lines["GPU"] == "none was recorded"
    assert lines["counted"].startswith("no step")


def test_conventions_have_only_keys_of_their_own() -> None:
    trace = TRACES / "residual_cnn_counted_gpu.pftrace"

    def keys(convention: str) -> set[str]:
        return set(json.loads(layertrace_output("layers", trace, "--convention", convention)))

    sizes = {"model_size_mb", "footprint_mb"}
    assert not sizes & keys("fvcore")
    assert sizes <= keys("deeplite")
    assert "activations_by_module" not in keys("torchinfo")


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
        over_steps = layer["forward"]["stdev"].keys()
        times = {"host_ns", "self_host_ns", "activity_ns", "self_activity_ns", "busy_ns"}
        assert over_steps == times | {
            "calls",
            "activities",
            "copies",
            "launches",
            "event_ns",
            "idle_ns",
        }
        assert over_steps < figures
    for step in profile["steps"]:
        assert step.keys() == documented_keys("A step") - set(step["phases"])
    assert profile["health"].keys() == documented_keys("`health`") - {"count", "ns", "names"}
    of_imports = {"imported_from", "rank", "world_size"}
    assert profile["run"].keys() == documented_keys("`run`") - {"tsc", "boottime"} - of_imports
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
