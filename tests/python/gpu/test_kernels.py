"""Every kernel knows its layer, on the simulated GPU: as torch.profiler's own records have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import REAL_GPU, needs_simgpu, result_of, same_times_in_every_run

pytestmark = needs_simgpu
MODELS = ["resnet18", "vit", "gpt2", "bert", "lstm", "two_streams", "two_threads"]


def simulate(folder: Path, *words: str, options: tuple[str, ...] = ()) -> Any:
    """What the script tells of one model."""
    return result_of(folder, "trained.py", *words, options=options)[words[-1]]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return result_of(tmp_path_factory.mktemp("witness"), "trained.py", "witness", *MODELS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return result_of(tmp_path_factory.mktemp("layertrace"), "trained.py", "layertrace", *MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_kernels_belong_to_their_layers(expected: Any, recorded: Any, model: str) -> None:
    found = recorded[model]
    assert found["counts"] == expected[model]["counts"]
    assert found["same_when_loaded"]
    outside = {"backward of operators outside any module"}
    if model == "two_threads":  # where the model as a whole is never called, no loss can follow it
        outside.add("ran outside any module and any known phase")
    assert set(found["unattributed"]) <= outside


@pytest.mark.parametrize("model", MODELS)
def test_no_kernel_is_missing(expected: Any, recorded: Any, model: str) -> None:
    assert recorded[model]["all"]["count"] == expected[model]["all"]["count"]
    assert recorded[model]["all"]["ns"] > 0


@same_times_in_every_run
@pytest.mark.parametrize("model", MODELS)
def test_their_times_are_right(expected: Any, recorded: Any, model: str) -> None:
    """The simulated device takes the same time for a kernel in every run, whatever the clock; both
    profilers round it, layertrace to ticks of its clock: that's 2 ns for each kernel."""
    counts, times = expected[model]["counts"], expected[model]["ns"]
    for key, took in times.items():
        assert recorded[model]["ns"][key] == pytest.approx(took, abs=2 * counts[key]), key
    everything = expected[model]["all"]
    assert recorded[model]["all"]["ns"] == pytest.approx(
        everything["ns"], abs=2 * everything["count"]
    )


def test_a_tree_of_the_trace_shows_the_gpu(tmp_path: Path) -> None:
    simulate(tmp_path, "layertrace", "two_streams")
    tree = support.layertrace_output("tree", tmp_path / "two_streams.pftrace")
    assert "GPU forward" in tree
    assert "GPU backward" in tree
    assert tree.startswith("Simulated: ") != REAL_GPU
    layers = json.loads(support.layertrace_output("layers", tmp_path / "two_streams.pftrace"))
    assert ("simulated" in layers["run"]["device"]) != REAL_GPU
    assert layers["health"]["gpu"]["source"].startswith("CUPTI 13")
    left = next(layer for layer in layers["layers"] if layer["path"] == "left")
    # A product of matrices alone, which a real GPU's library may divide.
    assert left["forward"]["activities"] == 1 or (REAL_GPU and left["forward"]["activities"] > 1)
    assert left["forward"]["busy_ns"] > 0
