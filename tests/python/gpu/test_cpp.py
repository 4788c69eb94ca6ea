"""A C++ program's kernels belong to the same layers as those of its Python twin."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import HERE, needs_simgpu, simulate
from support import BUILD_DIR, SOURCE_DIR
from trace_decoder import decode

pytestmark = needs_simgpu
PROGRAM = BUILD_DIR / "bin" / "several_cuda"
EXAMPLE = "train_residual_cnn"
STEPS = 3
PHASES = ("forward", "backward")

Uses = Counter[tuple[str | None, str, str]]


def profile_of(folder: Path, name: str, *program: str | Path) -> Any:
    result = simulate(folder, *program)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(support.layertrace_output("layers", folder / f"{name}.pftrace"))


def kernels_of(profile: Any) -> Uses:
    """How often each ran, by path, phase and name."""
    uses: Uses = Counter()
    for kernel in profile["kernels"]:
        for use in kernel["uses"]:
            uses[use["path"], use["phase"], kernel["name"]] += use["count"]
    return uses


def of_layers(uses: Uses) -> Uses:
    return Counter({key: count for key, count in uses.items() if key[1] in PHASES and key[0]})


def test_the_example_and_its_twin_run_the_same_kernels(tmp_path: Path) -> None:
    """By path, phase and name. Python calls its Sequentials, C++ what is in them (docs/cpp.md):
    they have no kernels of their own. Of AdamW each language has another code."""
    script = SOURCE_DIR / "examples" / "python" / f"{EXAMPLE}.py"
    cpp = profile_of(tmp_path, "cpp", BUILD_DIR / "bin" / EXAMPLE, "cpp.pftrace")
    python = profile_of(tmp_path, "python", sys.executable, script, "python.pftrace")
    for profile in (cpp, python):
        assert profile["run"]["device"] == "simulated H100-class GPU"
    in_cpp, in_python = kernels_of(cpp), kernels_of(python)
    for phase in (*PHASES, "loss", "data"):
        of_phase = [
            Counter({key: count for key, count in uses.items() if key[1] == phase})
            for uses in (in_cpp, in_python)
        ]
        assert of_phase[0] == of_phase[1], phase
        assert of_phase[0], phase
    leaves = {path for path, phase, _ in in_cpp if phase == "forward" and path}
    assert {"stem.0", "blocks.4.conv2", "blocks.3.shortcut.0", "pool", "head"} <= leaves
    assert set(cpp["health"]["unattributed"]) == set(python["health"]["unattributed"])


def test_two_threads_on_two_streams(tmp_path: Path) -> None:
    """Each with a model of its own; Python's are as torch.profiler sees them (test_kernels.py)."""
    cpp = profile_of(tmp_path, "cpp", PROGRAM, "threads", "cpp.pftrace")
    twin = (sys.executable, HERE / "trained.py", "layertrace", "two_threads")
    python = profile_of(tmp_path, "two_threads", *twin)
    in_cpp, in_python = of_layers(kernels_of(cpp)), of_layers(kernels_of(python))
    assert in_cpp == in_python
    leaves = {f"{branch}.{number}" for branch in ("left", "right") for number in range(4)}
    assert {(path, phase) for path, phase, _ in in_cpp} == {
        (path, phase) for path in leaves for phase in PHASES
    }
    forward = [
        each
        for each in decode(tmp_path / "cpp.pftrace").slices
        if "context" in each.args and each.category == "forward"
    ]
    assert len({each.args["launch_tid"] for each in forward}) == 2
    assert len({each.track for each in forward}) == 2


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Uses:
    folder = tmp_path_factory.mktemp("eager")
    return kernels_of(profile_of(folder, "eager", PROGRAM, "eager", "eager.pftrace"))


def test_each_replay_of_a_captured_step_belongs_to_its_layers(eager: Uses, tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "graph", PROGRAM, "graph", "graph.pftrace")
    replayed = kernels_of(profile)
    assert of_layers(replayed) == of_layers(eager)
    assert {path for path, _, _ in of_layers(replayed)} == {"0", "1", "2", "3"}
    for phase in ("loss", "optimizer"):
        captured = {key: count for key, count in replayed.items() if key[1] == phase}
        assert captured == {key: count for key, count in eager.items() if key[1] == phase}, phase
        assert captured, phase
    assert profile["health"]["gpu"]["earlier_graphs"] == 0
    assert profile["health"]["gpu"]["events_missed"] == 0


def test_a_kernel_of_nccl_is_communication(eager: Uses, tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "nccl", PROGRAM, "nccl", "nccl.pftrace")
    uses = kernels_of(profile)
    (collective,) = (key for key in uses if key[1] == "communication")
    assert collective[0] is None
    assert collective[2].startswith("ncclDevKernel_AllReduce")
    assert uses[collective] == STEPS
    assert of_layers(uses) == of_layers(eager)
