"""A LibTorch program on the simulated device, under layertrace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from simulated import COMMAND, simulate

TRAINER = Path(os.environ["LAYERTRACE_BUILD_DIR"]) / "bin" / "train_cuda"


def layers(trace: Path) -> dict[str, object]:
    command = [COMMAND, "layers", trace]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_its_trace_and_its_tree_say_that_it_is_simulated(tmp_path: Path) -> None:
    trace = tmp_path / "run.pftrace"
    tree = simulate(TRAINER, trace).stdout
    assert tree.startswith("Simulated: recorded on a simulated H100-class GPU (simgpu). Its times")
    run = layers(trace)
    assert run["run"]["simulated"] == "simulated H100-class GPU"
    assert run["run"]["clock"] != "virtual"
    paths = [layer["path"] for layer in run["layers"]]
    assert paths == ["", "features", "features.0", "features.1", "features.2", "features.3", "head"]
    by_path = {layer["path"]: layer for layer in run["layers"]}
    for path in ("features.0", "features.1", "head"):
        assert by_path[path]["forward"]["activities"] > 0
        assert by_path[path]["backward"]["activities"] > 0
    again = subprocess.run([COMMAND, "tree", trace], capture_output=True, text=True, check=True)
    assert again.stdout == tree
    info = subprocess.run([COMMAND, "info", trace], capture_output=True, text=True, check=True)
    assert "ran on a simulated H100-class GPU (simgpu): no time is a real GPU's" in info.stdout


def test_without_a_device_it_says_so(tmp_path: Path) -> None:
    done = simulate(TRAINER, tmp_path / "run.pftrace", options=("--devices", "0"), check=False)
    assert done.returncode == 1
    assert "needs a CUDA device" in done.stderr


def test_on_a_virtual_clock_each_run_has_the_same_times(tmp_path: Path) -> None:
    runs = []
    for name in ("first", "second"):
        trace = tmp_path / f"{name}.pftrace"
        simulate(TRAINER, trace, options=("--clock", "virtual"))
        run = layers(trace)
        assert run["run"]["clock"] == "virtual"
        runs.append((run["layers"], run["steps"], run["health"]))
    assert runs[0] == runs[1]
    step = runs[0][1][0]
    assert step["wall_ns"] > 0
