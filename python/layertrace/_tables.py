"""Tables beyond what the core writes: pandas, files by their suffix, single calls of a trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layertrace import _core
from layertrace._core import Table
from layertrace._errors import Error

_WRITERS = {
    ".json": Table.to_json,
    ".csv": Table.to_csv,
    ".md": Table.to_markdown,
    ".html": Table.to_html,
    ".tex": Table.to_latex,
}


def to_pandas(table: Table) -> Any:
    """The table as a pandas.DataFrame; what is nothing is NaN, NA or None, as pandas has it."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError as error:
        raise Error(
            "cannot make a DataFrame", "there is no pandas here", "Install pandas, or use rows()"
        ) from error
    kinds = {"text": "object", "integer": "Int64", "real": "float64", "boolean": "boolean"}
    return pandas.DataFrame(
        {
            column.name: pandas.Series(column.values, dtype=kinds[column.kind])
            for column in table.columns
        }
    )


def save(table: Table, path: str | os.PathLike[str]) -> None:
    """Writes the table to a file, in the format that its suffix names."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == ".parquet":
        content = table.to_parquet()
    elif suffix in _WRITERS:
        content = _WRITERS[suffix](table).encode()
    else:
        raise Error(
            f"cannot tell the format of {file}",
            f"it ends in {suffix!r}" if suffix else "its name has no suffix",
            f"Use one of: {', '.join([*_WRITERS, '.parquet'])}",
        )
    file.write_bytes(content)


_FORMATS = {
    "json": ".json",
    "csv": ".csv",
    "md": ".md",
    "html": ".html",
    "latex": ".tex",
    "parquet": ".parquet",
}


def format_of(name: str | None, output: str | None, own: tuple[str, ...]) -> str:
    """Of a command: by its name, or by the suffix of the output; else the first of its own.

    A suffix that nobody knows is an error: a .xlsx that holds text would help no one.
    """
    if name is None:
        suffix = "" if output is None else Path(output).suffix.lower()
        if suffix in ("", ".", ".txt"):
            return own[0]
        name = suffix[1:]
    name = {"markdown": "md", "tex": "latex"}.get(name, name)
    if name not in (*own, *_FORMATS):
        raise Error(
            f'cannot use "{name}" as a format of a table',
            "no such name",
            f"Use one of: {', '.join(dict.fromkeys([*own, *_FORMATS]))}",
        )
    return name


def written(table: Table, format: str) -> bytes:
    """The table in a format by its name."""
    if format == "parquet":
        return table.to_parquet()
    return _WRITERS[_FORMATS[format]](table).encode()


def calls(
    path: str | os.PathLike[str],
    *,
    module: str = "",
    depth: int | None = None,
    root: str = "",
    leading_dot: bool = False,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> Table:
    """Every single call of a layer that a saved run holds, as a table.

    A profile has the sums of calls only; the trace has each: step, path, phase, start and host
    time, and of a GPU the kernels that it launched itself. In the order in which they began.

    >>> table = layertrace.calls("run.pftrace", module="blocks.0", depth=0)
    """
    return _core.calls(
        os.fspath(path),
        module=module,
        depth=depth,
        root=root,
        leading_dot=leading_dot,
        columns=list(columns) if columns is not None else None,
        limit=limit,
    )
