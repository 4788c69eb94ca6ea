"""`layertrace summary module:function`: what a model is and computes, in every form of it."""

from __future__ import annotations

import argparse
import functools

import torch

from layertrace import _commands
from layertrace._core import Profile, Table
from layertrace._errors import UsageError
from layertrace._pictures import _DRAWN_BY_DOT
from layertrace._summary import summary
from layertrace._tables import format_of

_EXAMPLES = """examples:
  layertrace summary models:build                         a function that returns a model, or a
                                                          model and its inputs
  layertrace summary torchvision.models:resnet18          parameters alone, since it gives no inputs
  layertrace summary models:build --device meta --depth 2 counted without memory for it
  layertrace summary models:build --columns type,output_size,parameters,macs --style brackets
  layertrace summary models:build --start encoder --trainable --ascii
  layertrace summary models:build --repr --graph tree.svg
  layertrace summary models:build --root __root__ -o layers.csv
  layertrace summary models:build --table parameters --by-layer --format md
  layertrace summary models:build --convention fvcore     the forward's counts, as fvcore has them
  layertrace summary models:build --backward --format json
"""

_TEXTS = ("text", "repr")
_TABLES = ("layers", "operators", "parameters", "sizes")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="layertrace summary",
        description="What a model is and computes: parameters, shapes and FLOPs by layer.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="module:function", help="returns a model and its inputs")
    add("--backward", action="store_true", help="count a backward, too")
    add("--device", help='where it runs; "meta" takes neither memory nor time')
    _commands.add_tree_options(parser)
    _commands.add_table_options(parser, "text (the tree)", "repr (as the model prints itself)")
    add("--repr", action="store_true", help="the same as --format repr")
    add("--graph", metavar="FILE", help="also draw the layers: .dot, .gv, .svg, .pdf or .png")
    add("--table", choices=_TABLES, help="which, where the format is a table's; layers")
    add("--by-layer", action="store_true", help="of operators and parameters, a row for each layer")
    _commands.add_path_options(parser)
    add("--limit", type=_commands.count, metavar="N", help="so many rows at most; 0 for all")
    add("--convention", help="the forward's counts instead, as another tool has them")
    return parser


def _format(given: argparse.Namespace) -> str:
    """JSON is the whole profile unless a table is asked for, as of `layertrace layers`."""
    if given.repr:
        return "repr"
    own: tuple[str, ...] = ("text", "repr")
    if given.table:
        own = ("md",)
    elif given.convention:
        own = ("json",)
    return format_of("text" if given.format == "tree" else given.format, given.output, own)


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if not _commands.is_function_name(given.model):
        parser.error(f"{given.model} is not of the form module:function: write models:build, say")
    if given.table and given.convention:
        parser.error("--convention is a table of its own: leave --table out")


def _check_choices(given: argparse.Namespace) -> None:
    """What makes no sense is told before a model is built."""
    given.format = _format(given)
    _commands.refuse_terminal(given.format, given.output)
    if given.graph:
        _commands.check_ending(given.graph, ("dot", "gv", *_DRAWN_BY_DOT))
    is_tree = given.format in _TEXTS
    for option, value in (
        ("--match", given.match),
        ("--type", given.type),
        ("--trainable", given.trainable),
        ("--sort", given.sort != "definition"),
        ("--view", given.view),
    ):
        if value and not is_tree:
            raise UsageError(f"cannot use {option}", "it is the tree's", "Leave --format out")
    is_whole = given.format == "json" and not given.table
    if is_whole and (given.columns or given.root or given.leading_dot or given.limit):
        raise UsageError(
            "cannot choose layers or columns",
            "JSON is the whole of it",
            "Ask for a table: --table layers, or --format csv, md, html, latex or parquet",
        )


def _table(result: Profile, given: argparse.Namespace) -> Table:
    options = {
        "module": given.start,
        "depth": given.depth,
        "root": given.root,
        "leading_dot": given.leading_dot,
        "columns": _commands.columns_of(given),
        "limit": given.limit,
    }
    if given.convention:
        return result.counts_table(given.convention, **options)
    return result.table(given.table or "layers", by_layer=given.by_layer, **options)


def _put(result: Profile, given: argparse.Namespace, model: torch.nn.Module) -> None:
    if given.format in _TEXTS:
        _commands.put(_commands.tree_text(result, given, model), given.output)
    elif given.format == "json" and not given.table:
        _commands.require_layer(result, given.start, "show")
        convention = given.convention
        text = result.counts_json(convention) if convention else result.to_json()
        _commands.put(text, given.output)
    else:
        _commands.put_table(_table(result, given), given.format, given.output)


def _run(given: argparse.Namespace) -> None:
    _check_choices(given)
    model, inputs = _commands.built(given.model)
    result = summary(model, inputs, backward=given.backward, device=given.device)
    _put(result, given, model)
    if given.graph:
        graph = result.graph(depth=given.depth, start=given.start, fold=not given.no_fold)
        with _commands.writing(given.graph):
            graph.save(given.graph)


def main(arguments: list[str]) -> int:
    """`layertrace summary module:function`."""
    parser = _parser()
    given = parser.parse_args(arguments)
    _check(parser, given)
    return _commands.ended(
        functools.partial(_run, given), f"cannot call the model of {given.model}"
    )
