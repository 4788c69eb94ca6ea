"""What the commands that Python runs have in common: options as the command in C++ names them, how
a terminal is suited, what is written where, and how they end."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layertrace._errors import Error, UsageError, exit_code

if TYPE_CHECKING:
    import torch

    from layertrace import Profile, Table

TREES = ("text", "repr", "json")


def ended(command: Callable[[], int | None], tried: str) -> int:
    """The exit code of a command; one line on stderr says why it failed. `tried` is what is said
    of an error that is not layertrace's: the model's, or PyTorch's about the device."""
    sys.argv = sys.argv[:1]  # the rest is the command's, not the model's
    try:
        return command() or 0
    except Error as error:
        print(f"layertrace: {error}", file=sys.stderr)
        return exit_code(error)
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        print(f"layertrace: {tried}: {_said(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("layertrace: interrupted", file=sys.stderr)
        return 130


def _said(error: Exception) -> str:
    """What an error says, with its class where that alone tells what is wrong (KeyError: 'x'), and
    where in the user's own files it came from."""
    name, text = type(error).__name__, str(error)
    if text == "" or not isinstance(error, (RuntimeError, TypeError, ValueError, ImportError)):
        text = f"{name}: {text}" if text else name
    return text + _where(error)


def _where(error: Exception) -> str:
    """The innermost line that is neither layertrace's nor an installed package's."""
    import torch

    others = [Path(__file__).parent, Path(torch.__file__).parent, Path(os.__file__).parent]

    def is_own(file: str) -> bool:
        path = Path(file)
        if not path.is_absolute() or not path.exists():  # of a compiled extension, or of none
            return False
        return not any(
            folder in others or folder.name in ("site-packages", "dist-packages")
            for folder in path.parents
        )

    own = [frame for frame in traceback.extract_tb(error.__traceback__) if is_own(frame.filename)]
    if not own:
        return ""
    file = own[-1].filename
    with contextlib.suppress(OSError):  # the working folder may be gone
        file = os.path.relpath(file)
    return f" ({file}:{own[-1].lineno}, in {own[-1].name})"


# ---- models by name ----


def is_function_name(name: str) -> bool:
    return all(name.partition(":"))


def function_of(name: str, tried: str = "") -> Any:
    """What `module:function` names."""
    module_name, _, function_name = name.partition(":")
    tried = tried or f"cannot use {name}"
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module_name), function_name)
    except ModuleNotFoundError as error:
        raise Error(tried, str(error), "Run it where that module can be imported") from error
    except AttributeError as error:
        raise Error(tried, str(error), "Name a function of that module") from error


def built(name: str) -> tuple[torch.nn.Module, Any]:
    """The model that `module:function` gives, and its inputs; None where it gives none."""
    from torch.nn import Module

    tried = f"cannot build a model by {name}"
    function = function_of(name, tried)
    try:
        made = function if isinstance(function, Module) else function()
    except (Error, BrokenPipeError):
        raise
    except Exception as error:
        raise Error(tried, _said(error)) from error
    if isinstance(made, Module):
        return made, None
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Module):
        return made
    raise Error(
        tried,
        f"it gives a {type(made).__name__}",
        "Return an nn.Module, or an nn.Module and its inputs",
    )


# ---- options ----


def count(text: str) -> int:
    """A type for options: a whole number, 0 or more."""
    number = int(text) if text.isdecimal() else -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"it is {text}: give a whole number, 0 or more")
    return number


def share(text: str) -> float:
    """Likewise: a percentage, with or without its sign; as a part of 1."""
    try:
        percent = float(text.strip("% "))
    except ValueError:
        percent = -1
    if not 0 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"{text} is no percentage: give 0 to 100, as in 2.5%")
    return percent / 100


def add_tree_options(parser: argparse.ArgumentParser) -> None:
    """Those of `layertrace tree`, but for its columns."""
    add = parser.add_argument
    add("--depth", type=count, help="levels below the start node")
    add("--start", "--module", default="", metavar="PATH", help="path of the start node")
    add("--match", default="", metavar="PATTERN", help="only layers with a path like this pattern")
    add("--type", default="", metavar="PATTERN", help="only layers of a type like this pattern")
    add("--trainable", action="store_true", help="only layers with trainable parameters")
    add("--sort", default="definition", metavar="KEY", help="order of siblings, by a sort key")
    add("--view", help="columns that belong together: time, cost, memory, roofline or all")
    add("--style", default="columns", help="columns or brackets")
    add("--no-fold", action="store_true", help="each block in a row of its own")
    add("--width", type=count, metavar="N", help="fit into this many columns")
    add("--color", choices=("auto", "always", "never"), default="auto")
    add("--ascii", action="store_true", help="draw with ASCII characters")


def add_table_options(parser: argparse.ArgumentParser, *own: str) -> None:
    """Those by which every table is written."""
    formats = ", ".join([*own, "json, csv, md, html, latex or parquet"])
    parser.add_argument("--format", help=f"{formats}; by the suffix of -o")
    parser.add_argument("-o", "--output", metavar="FILE", help="a file to write")
    parser.add_argument("--columns", help="columns by name, separated by commas")


def add_path_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", default="", help="what the root's path reads, __root__ say")
    parser.add_argument("--leading-dot", action="store_true", help="paths below it as .encoder.0")


def check_ending(path: str, known: tuple[str, ...]) -> None:
    """Of a picture: a name that does not say what it is to be is the command line's fault."""
    from layertrace._pictures import _ending

    try:
        _ending(path, known)
    except Error as error:
        raise UsageError(error.tried, error.cause, error.remedy) from error


def columns_of(given: argparse.Namespace) -> list[str] | None:
    return given.columns.split(",") if given.columns else None


# ---- what is written ----


def fitting(given: argparse.Namespace) -> dict[str, Any]:
    """As suits the standard output, or a file: width, colours and boxes."""
    stream, to_file = sys.stdout, given.output is not None
    is_terminal = not to_file and stream.isatty()
    is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    width, color = getattr(given, "width", None), getattr(given, "color", "auto")
    return {
        "width": width or (shutil.get_terminal_size().columns if is_terminal else None),
        "color": color == "always" or (color == "auto" and is_terminal and not is_plain),
        "ascii": getattr(given, "ascii", False)
        or (not to_file and "utf" not in (stream.encoding or "").lower()),
    }


def tree_text(profile: Profile, given: argparse.Namespace, model: Any = None) -> str:
    """The tree in one of its forms, of the part that is asked for."""
    require_layer(profile, given.start, "show")
    part: dict[str, Any] = {
        "depth": given.depth,
        "start": given.start,
        "sort": given.sort,
        "match": given.match,
        "type": given.type,
        "min_share": getattr(given, "min_share", 0),
        "trainable": given.trainable,
    }
    fit = fitting(given)
    if given.format == "repr":
        return profile.repr_tree(model, ascii=fit["ascii"], **part)
    if given.format == "json":
        return json.dumps(profile.nested(**part), indent=1) + "\n"
    return profile.tree(
        columns=given.columns,
        view=given.view,
        style=given.style,
        fold=not given.no_fold,
        **part,
        **fit,
    )


def require_layer(profile: Profile, path: str, what: str) -> None:
    if path and profile.find(path) is None:
        raise Error(
            f"cannot {what} {path}", "no layer has this path", "The tree shows those that exist"
        )


def refuse_terminal(format: str, output: str | None) -> None:
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise Error(
            "cannot write Parquet to a terminal",
            "it is no text",
            "Name a file with -o, or send the output to one",
        )


def put_table(table: Table, format: str, output: str | None) -> None:
    from layertrace._tables import written

    refuse_terminal(format, output)
    put(written(table, format), output)


def put(content: str | bytes, output: str | None) -> None:
    """To the file, or to the standard output without one."""
    data = content.encode() if isinstance(content, str) else content
    if output is not None:
        with writing(output):
            Path(output).write_bytes(data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Error(f"cannot write {path}", error.strerror or str(error)) from error
