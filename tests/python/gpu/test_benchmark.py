"""Inference timing on a GPU: modules by the GPU's clock; a simulated one is always called that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from on_simgpu import REAL_GPU, needs_simgpu, result_of, simulate
from support import BIN

pytestmark = needs_simgpu


@pytest.fixture(scope="module", params=["events", "cupti"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return result_of(tmp_path_factory.mktemp("timed"), "benchmarked.py", request.param)


def test_modules_are_timed_by_the_gpu(told: Any) -> None:
    total, *modules = told["rows"]
    assert (total["scopes"], total["clock"], total["iterations"]) == (False, "host", 5)
    assert [row["module"] for row in modules][:4] == ["__root__", "0", "1", "2"]
    clocks = {row["module"]: row["clock"] for row in modules}
    assert {clocks[path] for path in ("__root__", "0", "1", "2")} == {"gpu"}
    assert all(row["mean_ms"] > 0 for row in modules)
    assert all(row["iterations"] == 5 for row in modules)
    assert told["single"] == 5 * len(modules)
    assert told["notes"] == []


def test_the_larger_layer_takes_longest(told: Any) -> None:
    if told["way"] == "events":
        pytest.skip("the time on a stream has the host's, where the machine is busy")
    times = {row["module"]: row["median_ms"] for row in told["rows"][2:] if row["clock"] == "gpu"}
    assert max(times, key=lambda path: times[path]) == "2"


@pytest.mark.skipif(REAL_GPU, reason="a real GPU")
def test_a_simulated_gpu_is_called_that(told: Any) -> None:
    assert all(row["simulated"] is True for row in told["rows"])
    assert all("simulated" in row["gpu"].lower() for row in told["rows"])
    assert {row["device"] for row in told["rows"]} == {"cuda:0"}
    assert told["text"].startswith("Simulated: timed on a ")
    assert "say nothing about how fast a real GPU is" in told["text"]
    assert "{Simulated: timed on a " in told["table"]


@pytest.mark.skipif(REAL_GPU, reason="a real GPU")
def test_a_sweep_ends_where_memory_does(tmp_path: Path) -> None:
    told = result_of(tmp_path, "benchmarked.py", "sweep")
    assert [row["batch_size"] for row in told["rows"]] == [1, 8]
    assert told["failed_at"] == 1 << 22
    assert all(row["simulated"] is True for row in told["rows"])
    assert told["text"].startswith("Simulated: timed on a ")
    assert "Memory does not suffice for batches of 4,194,304" in told["text"]
    assert "<caption>Simulated: timed on a " in told["table"]
    assert told["title"].endswith("simulated: not a GPU's times")


@pytest.mark.skipif(REAL_GPU, reason="a real GPU")
def test_the_command_moves_the_model_there(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        "import torch\ndef build():\n    return torch.nn.Linear(4, 8), torch.randn(2, 4)\n"
    )
    words = ("models:build", "--device", "cuda", "--iterations", "6", "--drop-first", "2")
    result = simulate(tmp_path, BIN, "benchmark", *words)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Simulated: timed on a ")
