"""A C++ program's kernels belong to the same layers as those of its Python twin.

The twin's are by torch.profiler's records, against which test_kernels.py holds layertrace in
Python, too.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import support
from by_layer import LOSS, Kernels, but_elsewhere, kernels_by_layer
from on_simgpu import REAL_GPU, needs_simgpu, result_of, simulate
from support import BUILD_DIR, SOURCE_DIR
from trace_decoder import decode

pytestmark = needs_simgpu
PROGRAM = BUILD_DIR / "bin" / "several_cuda"
EXAMPLE = "train_residual_cnn"
EXAMPLE_STEPS = 4  # that it records
STEPS = 3
PHASES = ("forward", "backward")
MODELS = ("lstm_model", "encoder", "decoder", "transformer")

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


def of_phase(uses: Uses, phase: str) -> Uses:
    return Counter({key: count for key, count in uses.items() if key[1] == phase})


def without_layer(profile: Any) -> dict[str, int]:
    return {cause: each["count"] for cause, each in profile["health"]["unattributed"].items()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kernels]:
    """What torch.profiler tells of a step of each twin."""
    names = ("residual_cnn", "two_threads", "sequential", *MODELS)
    told = result_of(tmp_path_factory.mktemp("witness"), "trained.py", "witness", *names)
    return {name: told[name]["kernels"] for name in names}


def assert_same(profile: Any, twin: Kernels, steps: int = 1) -> None:
    """Kernel for kernel, and none of those inside the model has no layer."""
    kernels = but_elsewhere(twin, steps)
    assert but_elsewhere(kernels_by_layer(profile)) == kernels
    assert without_layer(profile)[LOSS] == sum(kernels["backward"].values())


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_the_kernels_of_its_twin(expected: Any, tmp_path: Path, model: str) -> None:
    """An LSTM and a decoder that gather their gradients over two backwards, an encoder of pictures,
    and LibTorch's own encoder, whose gradients are set to zero."""
    profile = profile_of(tmp_path, "cpp", PROGRAM, model, "cpp.pftrace")
    assert_same(profile, expected[model])
    assert set(without_layer(profile)) == {LOSS}


def test_the_example_and_its_twin_run_the_same_kernels(expected: Any, tmp_path: Path) -> None:
    """By path, phase and name. Python calls its Sequentials, C++ what is in them (docs/cpp.md):
    they have no kernels of their own. Of AdamW each language has another code."""
    script = SOURCE_DIR / "examples" / "python" / f"{EXAMPLE}.py"
    cpp = profile_of(tmp_path, "cpp", BUILD_DIR / "bin" / EXAMPLE, "cpp.pftrace")
    python = profile_of(tmp_path, "python", sys.executable, script, "python.pftrace")
    for profile in (cpp, python):
        assert ("simulated" in profile["run"]["device"]) != REAL_GPU
        assert_same(profile, expected["residual_cnn"], EXAMPLE_STEPS)
    in_cpp, in_python = kernels_of(cpp), kernels_of(python)
    for phase in ("loss", "data"):
        assert of_phase(in_cpp, phase) == of_phase(in_python, phase), phase
        assert of_phase(in_cpp, phase), phase
    leaves = {path for path, phase, _ in in_cpp if phase == "forward" and path}
    assert {"stem.0", "blocks.4.conv2", "blocks.3.shortcut.0", "pool", "head"} <= leaves
    assert set(without_layer(cpp)) == set(without_layer(python))


def test_two_threads_on_two_streams(expected: Any, tmp_path: Path) -> None:
    """Each with a model of its own."""
    profile = profile_of(tmp_path, "cpp", PROGRAM, "threads", "cpp.pftrace")
    assert_same(profile, expected["two_threads"])
    leaves = {f"{branch}.{number}" for branch in ("left", "right") for number in range(4)}
    assert set(but_elsewhere(kernels_by_layer(profile))) == {
        "backward",
        *(f"{phase} {path}" for path in leaves for phase in PHASES),
    }
    forward = [
        each
        for each in decode(tmp_path / "cpp.pftrace").slices
        if "context" in each.args and each.category == "forward"
    ]
    assert len({each.args["launch_tid"] for each in forward}) == 2
    assert len({each.track for each in forward}) == 2


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return profile_of(tmp_path_factory.mktemp("eager"), "eager", PROGRAM, "eager", "eager.pftrace")


def test_each_replay_of_a_captured_step_belongs_to_its_layers(
    expected: Any, eager: Any, tmp_path: Path
) -> None:
    profile = profile_of(tmp_path, "graph", PROGRAM, "graph", "graph.pftrace")
    for each in (eager, profile):
        assert_same(each, expected["sequential"], STEPS)
    for phase in ("loss", "optimizer"):
        captured = of_phase(kernels_of(profile), phase)
        assert captured == of_phase(kernels_of(eager), phase), phase
        assert captured, phase
    assert profile["health"]["gpu"]["earlier_graphs"] == 0
    assert profile["health"]["gpu"]["events_missed"] == 0


@pytest.mark.skipif(REAL_GPU, reason="a kernel without code, which only the simulation launches")
def test_a_kernel_of_nccl_is_communication(eager: Any, tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "nccl", PROGRAM, "nccl", "nccl.pftrace")
    uses = kernels_of(profile)
    (collective,) = of_phase(uses, "communication")
    assert collective[0] is None
    assert collective[2].startswith("ncclDevKernel_AllReduce")
    assert uses[collective] == STEPS
    for phase in PHASES:
        assert of_phase(uses, phase) == of_phase(kernels_of(eager), phase)
