"""On the simulated GPU's virtual clock every run is the same, to the byte."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import needs_simgpu, result_of

pytestmark = needs_simgpu
MODELS = ["resnet18", "lstm", "two_streams"]
VIRTUAL = ("--clock", "virtual")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return result_of(tmp_path_factory.mktemp("witness"), "trained.py", "witness", *MODELS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Any]]:
    """Two of them: where the traces are, and what they tell."""
    folders = [tmp_path_factory.mktemp("virtual") for _ in range(2)]
    words = ("trained.py", "layertrace", *MODELS)
    return [(folder, result_of(folder, *words, options=VIRTUAL)) for folder in folders]


@pytest.mark.parametrize("model", MODELS)
def test_kernels_are_those_of_the_real_clock(
    expected: Any, runs: list[tuple[Path, Any]], model: str
) -> None:
    for _, found in runs:
        assert found[model]["counts"] == expected[model]["counts"]
        assert found[model]["all"]["count"] == expected[model]["all"]["count"]


@pytest.mark.parametrize("model", MODELS)
def test_their_times_are_those_of_the_witness(
    expected: Any, runs: list[tuple[Path, Any]], model: str
) -> None:
    """torch.profiler has the real clock, and rounds start and end of each: 1 ns."""
    for _, found in runs:
        for key, took in expected[model]["ns"].items():
            allowed = expected[model]["counts"][key]
            assert found[model]["ns"][key] == pytest.approx(took, abs=allowed), key


@pytest.mark.parametrize("model", MODELS)
def test_two_runs_are_the_same(runs: list[tuple[Path, Any]], model: str) -> None:
    """But for the process and the date. A tick is a nanosecond, and nothing is measured."""
    texts = [support.layertrace_output("layers", folder / f"{model}.pftrace") for folder, _ in runs]
    run = json.loads(texts[0])["run"]
    assert (run["clock"], run["simulated"]) == ("virtual", "simulated H100-class GPU")
    first, second = (re.sub(r'"pid":\d+|"created":"[^"]*"', "", text) for text in texts)
    assert len(first) > 1000
    assert first == second
    trees = [support.layertrace_output("tree", folder / f"{model}.pftrace") for folder, _ in runs]
    assert trees[0] == trees[1]
