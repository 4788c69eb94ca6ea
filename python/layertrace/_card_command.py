"""`layertrace card module:function`: a model in a few figures, or several side by side."""

from __future__ import annotations

import argparse
import functools

from layertrace import _commands
from layertrace._card import card, compare_cards
from layertrace._core import CardComparison, ModelCard
from layertrace._errors import UsageError
from layertrace._tables import format_of

_EXAMPLES = """examples:
  layertrace card models:build                            a function that returns a model, or a
                                                          model and its inputs or its data loader
  layertrace card models:small models:large               side by side, each against the first
  layertrace card models:build --evaluate models:accuracy with the metric that a function gives of
                                                          the model and its data
  layertrace card models:build --format md --metrics parameters,macs
  layertrace card models:build --forward models:call      where the batches are of another shape
  layertrace card models:build --layers                   and the layers that the figures are of
  layertrace card models:build -o card.parquet            by its suffix: also .json .csv .md …
"""


def main(arguments: list[str]) -> int:
    """`layertrace card module:function [module:function …]`."""
    parser = argparse.ArgumentParser(
        prog="layertrace card",
        description="A model in a few figures: size, MACs, parameters, memory, time, throughput.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "models", metavar="module:function", nargs="+", help="returns a model and its inputs"
    )
    parser.add_argument("--names", help="of the models, separated by commas")
    parser.add_argument("--evaluate", metavar="module:function", help="(model, data) -> a number")
    parser.add_argument("--metrics", help="these alone, by key, separated by commas")
    parser.add_argument("--convention", default="layertrace", help="whose way of counting")
    parser.add_argument("--device", help='where it runs; "meta" takes neither memory nor time')
    parser.add_argument("--iterations", type=int, default=30, help="calls that are timed")
    parser.add_argument("--warmup", type=int, default=5, help="calls before them")
    parser.add_argument(
        "--forward", metavar="module:function", help="(model, batch): makes the call"
    )
    parser.add_argument(
        "--layers", action="store_true", help="also by layer; as a table, that alone"
    )
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters")
    parser.add_argument(
        "--format", help="text, json, csv, md, html, latex or parquet; by the suffix of -o"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="a file to write")
    given = parser.parse_args(arguments)
    for name in filter(None, [*given.models, given.evaluate, given.forward]):
        if not _commands.is_function_name(name):
            parser.error(f"{name} is not of the form module:function: write models:build, say")
    names = given.names.split(",") if given.names else []
    if not names and len(given.models) > 1:
        names = [function.partition(":")[2] for function in given.models]
    if names and len(names) != len(given.models):
        parser.error(f"there are {len(given.models)} models and {len(names)} names")
    for count, option in ((given.iterations, "--iterations"), (given.warmup, "--warmup")):
        if count < 0:
            parser.error(f"{option} is {count}: it must be 0 or more")
    return _commands.ended(functools.partial(_run, given, names), "cannot call the model")


def _run(given: argparse.Namespace, names: list[str]) -> None:
    format = format_of(given.format, given.output, ("text",))
    _commands.refuse_terminal(format, given.output)
    if given.layers and len(given.models) > 1 and format not in ("text", "json"):
        raise UsageError(
            "cannot make one table of the layers of several models",
            "their paths would be mixed up",
            "Name one model, or use --format json",
        )
    result = _result(given, names)
    if format == "text":
        _commands.put(_text(given, result), given.output)
    elif format == "json":
        _commands.put(result.to_json(), given.output)
    else:
        table = result.table()
        if given.layers and isinstance(result, ModelCard):
            table = result.summary.table("layers")
        _commands.put_table(table, format, given.output)


def _text(given: argparse.Namespace, result: ModelCard | CardComparison) -> str:
    """As suits the stream: colours on a terminal, and boxes where it takes them."""
    fit = _commands.fitting(given)
    text = result.text(color=fit["color"], ascii=fit["ascii"])
    if given.layers:
        cards = [result] if isinstance(result, ModelCard) else result.cards
        text += "".join(f"\n{each.name}\n{each.summary.tree(**fit)}" for each in cards)
    return text


def _result(given: argparse.Namespace, names: list[str]) -> ModelCard | CardComparison:
    evaluate = _commands.function_of(given.evaluate) if given.evaluate else None
    forward = _commands.function_of(given.forward) if given.forward else None
    cards = []
    for place, function in enumerate(given.models):
        model, inputs = _commands.built(function)
        cards.append(
            card(
                model,
                inputs,
                name=names[place] if names else None,
                metrics=given.metrics.split(",") if given.metrics else None,
                evaluate=evaluate,
                forward=forward,
                device=given.device,
                iterations=given.iterations,
                warmup=given.warmup,
                convention=given.convention,
            )
        )
    return cards[0] if len(cards) == 1 else compare_cards(*cards)
