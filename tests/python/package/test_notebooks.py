"""The notebooks of examples/notebooks: each stored output is one that the code gives today, but for
its numbers (`notebooks.py` writes them anew)."""

from __future__ import annotations

import os
from pathlib import Path

import notebooks
import pytest
import torch
from notebooks import code_cells, masked, skeleton

import layertrace

FOLDER = Path(os.environ["LAYERTRACE_SOURCE_DIR"]) / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("name", NOTEBOOKS)

# What form 6 asks for, at each of its levels.
FIGURES = (
    "parameters",
    "model size",
    "peak activations",
    "MACs",
    "FLOPs",
    "FLOP/s",
    "latency",
    "throughput",
)


def test_there_are_some() -> None:
    assert {"quick_start", "resnet50", "vit"} <= set(NOTEBOOKS)


@each_notebook
def test_it_was_executed_in_order_and_whole(name: str) -> None:
    cells = code_cells(notebooks.read(FOLDER / f"{name}.ipynb"))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"stream", "execute_result"}


@each_notebook
def test_stored_outputs_are_what_it_gives(name: str) -> None:
    """Text by text and row by row, with numbers masked: a heading, a sentence or a column that has
    changed since is seen."""
    notebook = notebooks.read(FOLDER / f"{name}.ipynb")
    stored_cpu = notebook["metadata"]["layertrace"]["cpu"]
    cpu = layertrace.summary(torch.nn.Linear(1, 1)).run.cpu
    threads = torch.get_num_threads()
    try:
        fresh = notebooks.run(notebook)
    finally:
        torch.set_num_threads(threads)
    for cell, given in zip(code_cells(notebook), fresh, strict=True):
        source = "".join(cell["source"])
        assert [output["output_type"] for output in cell["outputs"]] == [
            output["output_type"] for output in given
        ], source
        for stored, output in zip(cell["outputs"], given, strict=True):
            assert skeleton(stored, stored_cpu) == skeleton(output, cpu), source


@pytest.mark.parametrize("name", ["resnet50", "vit"])
def test_it_has_three_levels(name: str) -> None:
    """Each figure at each level: of the model, its layers and its operators."""
    cells = notebooks.read(FOLDER / f"{name}.ipynb")["cells"]
    parts: dict[str, str] = {}
    heading = ""
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and text.startswith("## "):
            heading = text.splitlines()[0]
        for output in cell.get("outputs", []):
            text += "".join(output.get("text") or output["data"]["text/plain"])
        parts[heading] = parts.get(heading, "") + text
    for level in ("## The model", "## The layers", "## The operators"):
        missing = [figure for figure in FIGURES if figure not in parts[level]]
        assert not missing, level


def test_what_is_masked() -> None:
    assert masked("├── layer3.0  1.71 ms  42.5 %\n", "") == ["layer3.0 # #"]
    assert masked("5 × Block  each 11.5–12.0 ms", "") == masked("5 × Block  each 950–970 µs", "")
    assert masked("a (ms) b\nCPU one", "one") == ["CPU CPU", "a (unit) b"]
    assert masked("cost less than 0.1 % of", "") == masked("cost about 2.3 % of", "")
    assert masked("each 1.0 ms", "") != masked("per step 1.0 ms", "")
    assert masked("forward 1 ms", "") != masked("forward – ms", "")
