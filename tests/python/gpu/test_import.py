"""Traces that torch.profiler writes, imported: the same attribution as layertrace's own recording
of the same training, and the same totals as Python's json finds in the file."""

from __future__ import annotations

import collections
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import HERE, REAL_GPU, needs_simgpu, simulate
from support import BIN, BUILD_DIR

PHASES = ("forward", "backward", "recompute", "loss")


def record(folder: Path, device: str, checkpointing: str, recorder: str, output: str) -> Path:
    words = (sys.executable, HERE / "profiled.py", device, checkpointing, recorder, output)
    if device == "cuda":
        done = simulate(folder, *words)
    else:
        done = support.run(
            *words, cwd=folder, PYTHONPATH=str(BUILD_DIR / "python"), KINETO_LOG_LEVEL="99"
        )
    assert done.returncode == 0, done.stderr
    return folder / output


def layers_of(trace: Path) -> dict[str, Any]:
    done = support.run(BIN, "layers", trace, cwd=trace.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def imported(source: Path) -> dict[str, Any]:
    output = source.with_suffix(".imported.pftrace")
    done = support.run(BIN, "import", source, "-o", output, cwd=source.parent)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar: this is no terminal
    return layers_of(output)


def figures(layer: dict[str, Any]) -> dict[str, tuple[float, float]]:
    found = {p: (layer[p]["activities"], layer[p]["launches"]) for p in PHASES if p in layer}
    return {phase: counts for phase, counts in found.items() if counts != (0, 0)}


@needs_simgpu
@pytest.mark.parametrize(
    ("device", "checkpointing"),
    [("cpu", "none"), ("cuda", "none"), ("cuda", "reentrant"), ("cuda", "other")],
)
def test_layers_are_as_in_a_recording_of_the_same_training(
    tmp_path: Path, device: str, checkpointing: str
) -> None:
    own = layers_of(record(tmp_path, device, checkpointing, "layertrace", "own.pftrace"))
    other = imported(record(tmp_path, device, checkpointing, "torch", "trace.json"))

    if not REAL_GPU:
        assert other["run"]["simulated"] == own["run"]["simulated"], "never told as a GPU's"

    # Modules in the order of their first calls; a ModuleList is never called.
    called = [layer for layer in own["layers"] if layer["calls"]]
    assert len(other["layers"]) == len(called)
    for mine, theirs in zip(called, other["layers"], strict=True):
        assert theirs["type"] == mine["type"]
        assert theirs["calls"] == mine["calls"], theirs["path"]
        assert figures(theirs) == figures(mine), theirs["path"]
    for phase in ("loss", "optimizer"):
        assert other["phases"][phase]["activities"] == own["phases"][phase]["activities"]
    assert other["health"]["activities"] == own["health"]["activities"]
    assert other["health"]["attributed_share"] == 1
    assert other["health"]["nodes"] == own["health"]["nodes"]
    if checkpointing != "none":
        assert any("recompute" in layer for layer in other["layers"])


@needs_simgpu
def test_without_modules_steps_phases_and_operators_have_the_times(tmp_path: Path) -> None:
    source = record(tmp_path, "cuda", "none", "torch_without_modules", "trace.json")
    result = imported(source)

    layers = {layer["path"]: layer for layer in result["layers"]}
    root = result["layers"][0]
    assert (root["name"], root["type"], root["parent"]) == ("step", "step", None)
    assert {layer["type"] for layer in result["layers"][1:]} == {"phase", "operator"}
    assert "with_stack=True" in " ".join(result["health"]["notes"])
    assert result["health"]["attributed_share"] == 1
    events = json.loads(source.read_text(), parse_float=Decimal)["traceEvents"]
    steps = [e for e in events if e.get("name", "").startswith("ProfilerStep#")]
    steps = [e for e in steps if e["cat"] == "user_annotation"]
    assert len(steps) == 2
    # What Python's json finds of the outermost aten::linear, and of its kernels.
    linear = [e for e in events if e.get("name") == "aten::linear" and e["ph"] == "X"]
    ns = sum(int(e["dur"] * 1000) for e in linear)
    told = layers["forward.aten::linear"]
    assert told["calls"] == len(linear) / 2
    assert told["forward"]["host_ns"] == pytest.approx(ns / 2)
    correlations = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") == "cuda_runtime"
        and any(o["tid"] == e["tid"] and o["ts"] <= e["ts"] < o["ts"] + o["dur"] for o in linear)
    }
    kernels = [
        e
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        and e["args"]["correlation"] in correlations
    ]
    assert kernels
    assert told["forward"]["activities"] == len(kernels) / 2
    spent = sum(int(e["dur"] * 1000) for e in kernels)
    assert told["forward"]["activity_ns"] == pytest.approx(spent / 2)
    # All of a phase is in its operators, and all phases are in the step.
    for phase in ("forward", "backward", "optimizer"):
        below = [layer for layer in result["layers"] if layer["parent"] == phase]
        assert below
        spent = sum(layer[phase]["activity_ns"] for layer in below)
        assert layers[phase][phase]["activity_ns"] == pytest.approx(spent)
        assert root[phase]["activity_ns"] == pytest.approx(spent)
        assert root[phase]["host_ns"] > 0


@needs_simgpu
def test_totals_are_those_of_the_file(tmp_path: Path) -> None:
    source = record(tmp_path, "cuda", "none", "torch", "trace.json")
    result = imported(source)

    events = json.loads(source.read_text(), parse_float=Decimal)["traceEvents"]
    devices = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert devices
    counts = collections.Counter(e["name"] for e in devices)
    nanoseconds: collections.Counter[str] = collections.Counter()
    for event in devices:
        nanoseconds[event["name"]] += int(Decimal(event["dur"]) * 1000)
    assert {k["name"]: k["count"] for k in result["kernels"]} == counts
    assert {k["name"]: k["ns"] for k in result["kernels"]} == nanoseconds
    health = result["health"]
    assert health["activities"] == len(devices)
    assert health["rejected"] == {}
    told = health["source"]
    assert told["events"] == len(events)
    assert told["kept"] + told["merged"] + sum(told["left_out"].values()) == len(events)


@needs_simgpu
def test_python_imports_what_the_command_does(tmp_path: Path) -> None:
    record(tmp_path, "cuda", "none", "torch", "trace.json")
    script = (
        "import gzip, layertrace\n"
        "with gzip.open('trace.json.gz', 'wb') as packed:\n"
        "    packed.write(open('trace.json', 'rb').read())\n"
        "plain = layertrace.import_trace('trace.json')\n"
        "packed = layertrace.import_trace('trace.json.gz', 'run.pftrace')\n"
        "loaded = layertrace.load('run.pftrace')\n"
        "assert plain.to_dict()['layers'] == packed.to_dict()['layers']\n"
        "assert loaded.to_dict()['layers'] == packed.to_dict()['layers']\n"
        "assert loaded.to_dict()['health'] == packed.to_dict()['health']\n"
        "assert plain.run.imported_from == 'Kineto'\n"
        "assert plain.health.source.events > 0\n"
        "try:\n"
        "    layertrace.import_trace('no_such.json')\n"
        "except layertrace.Error as error:\n"
        "    assert 'Check the path' in str(error)\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    done = support.run(
        sys.executable, "-c", script, cwd=tmp_path, PYTHONPATH=str(BUILD_DIR / "python")
    )
    assert done.returncode == 0, done.stderr
