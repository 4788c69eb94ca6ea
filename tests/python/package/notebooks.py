"""Runs the notebooks of examples/notebooks as Jupyter would, with nothing but Python.

    PYTHONPATH=build/python python tests/python/package/notebooks.py examples/notebooks/*.ipynb

writes what their cells give today into them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
Output = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


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


def outputs(printed: str, value: object, number: int) -> list[Output]:
    """What Jupyter would keep of it."""
    kept: list[Output] = []
    if printed:
        kept.append({"name": "stdout", "output_type": "stream", "text": lines(printed)})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": lines(value._repr_html_()), **data}
        kept.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return kept


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run(notebook: dict[str, Any]) -> list[list[Output]]:
    """The outputs of each cell with code, of a fresh run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    argv = sys.argv
    sys.argv = ["ipykernel_launcher.py"]  # reports call the program by its name
    try:
        return [
            outputs(*execute("".join(cell["source"]), names), number)
            for number, cell in enumerate(code_cells(notebook), 1)
        ]
    finally:
        sys.argv = argv


# ---- What must not change from one run to the next ---------------------------------------------

_UNITS = r"(?:[numµ]?s|min|[kKMGTP]i?B|B|bytes|[kKMGTP]?(?:FLOP|MAC)s?(?:/s)?|[KMGTP])"
_NUMBER = r"[<>]?[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"


def masked(text: str, cpu: str) -> list[str]:
    """Its lines without what a machine and its load decide: numbers with the prefixes of their
    units, the processor's name, the order of rows, and the widths of columns."""
    if cpu:
        text = text.replace(cpu, "CPU")
    text = re.sub(r"about(?= \d)|less than(?= \d)", "some", text)
    # Of what a name is made of, digits stay: layer3.0.conv1.
    text = re.sub(rf"(?<![\w.]){_NUMBER}(?: ?{_UNITS}\b)?(?: ?%)?", "#", text)
    text = re.sub(rf"\({_UNITS}\)", "(unit)", text)
    text = re.sub(r"[├└│─┌┐┘┬┴┼┤]+", " ", text)
    text = re.sub(r"#(?:[–,] ?#)+", "#", text)
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


class Texts(HTMLParser):
    """What a page says: a line for each paragraph and each row of a table."""

    _BREAKS = ("p", "tr", "div", "table", "thead", "tbody", "caption", "pre")

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._BREAKS:
            self.text += f"\n<{tag}> "
        elif tag in ("td", "th"):
            self.text += f" <{tag}> "

    def handle_data(self, data: str) -> None:
        self.text += data


def skeleton(output: Output, cpu: str) -> dict[str, list[str]]:
    """An output's parts by their kind, each without what may differ."""
    if output["output_type"] == "stream":
        return {"stream": masked("".join(output["text"]), cpu)}
    parts = {kind: "".join(text) for kind, text in output["data"].items()}
    if "text/html" in parts:
        page = Texts()
        page.feed(parts["text/html"])
        parts["text/html"] = page.text
    return {kind: masked(text, cpu) for kind, text in parts.items()}


def main(paths: list[str]) -> None:
    import torch

    import layertrace

    for path in map(Path, paths):
        notebook = read(path)
        for number, (cell, kept) in enumerate(
            zip(code_cells(notebook), run(notebook), strict=True), 1
        ):
            cell["execution_count"], cell["outputs"] = number, kept
        # The test takes it out of the texts before it compares them.
        cpu = layertrace.summary(torch.nn.Linear(1, 1)).run.cpu
        notebook["metadata"]["layertrace"] = {"cpu": cpu}
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
