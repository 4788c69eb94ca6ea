"""Every kernel knows its layer, on the simulated GPU: as torch.profiler's own records have it.

Among the models are the twins of C++ programs, so that these are held against torch.profiler, too:
test_cpp.py and test_run_gpu.py compare them with its records of the twin.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import support
from by_layer import ELSEWHERE, LOSS
from on_simgpu import REAL_GPU, needs_simgpu, result_of, same_times_in_every_run

pytestmark = needs_simgpu
MODELS = [
    *("resnet18", "vit", "gpt2", "bert", "lstm", "two_streams", "two_threads"),
    *("gathered", "gathered_from_zero"),
    # Twins of C++ programs, as two_threads is.
    *("residual_cnn", "unchanged", "sequential", "lstm_model", "encoder", "decoder", "transformer"),
]


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
    """In the tree, and by name in the table of kernels; those outside any module, too."""
    found = recorded[model]
    assert found["counts"] == expected[model]["counts"]
    assert found["kernels"] == expected[model]["kernels"]
    assert found["same_when_loaded"]


@pytest.mark.parametrize("model", MODELS)
def test_every_kernel_inside_the_model_has_a_layer(
    expected: Any, recorded: Any, model: str
) -> None:
    """100 %: what has none is the loss, which is outside."""
    inside = sum(expected[model]["counts"].values())
    assert 100 * sum(recorded[model]["counts"].values()) / inside == 100
    outside = expected[model]["kernels"]
    without_layer = dict(recorded[model]["unattributed"])
    assert without_layer.pop(LOSS) == sum(outside["backward"].values())
    if model == "two_threads":  # where the model as a whole is never called, no loss can follow it
        forward = without_layer.pop("ran outside any module and any known phase")
        assert forward <= sum(outside[ELSEWHERE].values())
    assert without_layer == {}


def test_accumulations_have_kernels_where_gradients_are_kept(expected: Any) -> None:
    """Else the comparison would say nothing of them. Of four parameters one has a gradient that is
    copied when there is none yet."""
    assert expected["gathered"]["accumulated"] == 4 + 1
    assert expected["gathered_from_zero"]["accumulated"] == 2 * 4
    for model in ("lstm_model", "decoder", "transformer"):
        assert expected[model]["accumulated"] > 0, model
    for model in ("gathered", "gathered_from_zero"):  # the weight is the head's, which was first
        assert any("Functor_add" in name for name in expected[model]["kernels"]["backward head"])


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
