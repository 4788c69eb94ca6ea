"""The notebooks of examples/notebooks: each stored output is one that the code gives today."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

FOLDER = Path(os.environ["LAYERTRACE_SOURCE_DIR"]) / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def code_cells(name: str) -> list[dict[str, Any]]:
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def execute(source: str, names: dict[str, Any]) -> tuple[str, object]:
    """As a notebook does: what the cell prints, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return printed.getvalue(), value


def stored(cell: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [output for output in cell["outputs"] if output["output_type"] == kind]


def test_there_are_some() -> None:
    assert {"quick_start", "resnet50", "vit"} <= set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_was_executed_in_order_and_whole(name: str) -> None:
    cells = code_cells(name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(not stored(cell, "error") for cell in cells)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs(name: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    threads = torch.get_num_threads()
    try:
        for cell in code_cells(name):
            printed, value = execute("".join(cell["source"]), names)
            assert bool(printed) == bool(stored(cell, "stream"))
            shown = [output["data"] for output in stored(cell, "execute_result")]
            assert (value is not None) == bool(shown)
            for data in shown:
                if "text/html" in data:
                    html = value._repr_html_()  # type: ignore[attr-defined]
                    assert html.startswith("".join(data["text/html"])[:5])
                    assert "forward" in html
                else:
                    assert repr(value) == "".join(data["text/plain"])
    finally:
        torch.set_num_threads(threads)
