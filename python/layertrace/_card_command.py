"""`layertrace card module:function`: a model in a few figures, or several side by side."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from layertrace._card import card, compare_cards
from layertrace._core import CardComparison, ModelCard
from layertrace._errors import Error, exit_code
from layertrace._summary import _built, _function

_EXAMPLES = """examples:
  layertrace card models:build                            a function that returns a model, or a
                                                          model and its inputs or its data loader
  layertrace card models:small models:large               side by side, each against the first
  layertrace card models:build --evaluate models:accuracy with the metric that a function gives of
                                                          the model and its data
  layertrace card models:build --format md --metrics parameters,macs
"""

_WRITERS: dict[str, Callable[[Any], str]] = {
    "text": lambda result: _text(result),
    "json": lambda result: result.to_json(),
    "md": lambda result: result.table().to_markdown(),
    "csv": lambda result: result.table().to_csv(),
    "html": lambda result: result.table().to_html(),
    "latex": lambda result: result.table().to_latex(),
}


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
    parser.add_argument("--format", choices=tuple(_WRITERS), default="text")
    given = parser.parse_args(arguments)
    for name in [*given.models, *([given.evaluate] if given.evaluate else [])]:
        if not all(name.partition(":")):
            parser.error(f"{name} is not of the form module:function: write models:build, say")
    names = given.names.split(",") if given.names else []
    if not names and len(given.models) > 1:
        names = [function.partition(":")[2] for function in given.models]
    if names and len(names) != len(given.models):
        parser.error(f"there are {len(given.models)} models and {len(names)} names")
    for count, option in ((given.iterations, "--iterations"), (given.warmup, "--warmup")):
        if count < 0:
            parser.error(f"{option} is {count}: it must be 0 or more")
    try:
        result = _result(given, names)
    except Error as error:
        print(f"layertrace: {error}", file=sys.stderr)
        return exit_code(error)
    except Exception as error:  # the model's, or PyTorch's about the device
        what = str(error) or type(error).__name__
        print(f"layertrace: cannot call the model: {what}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("layertrace: interrupted", file=sys.stderr)
        return 130
    sys.stdout.write(_WRITERS[given.format](result))
    return 0


def _text(result: ModelCard | CardComparison) -> str:
    """As suits the stream: colours on a terminal, and boxes where it takes them."""
    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    is_unicode = "utf" in (sys.stdout.encoding or "").lower()
    return result.text(color=is_coloured and os.environ.get("TERM") != "dumb", ascii=not is_unicode)


def _result(given: argparse.Namespace, names: list[str]) -> ModelCard | CardComparison:
    evaluate = _function(given.evaluate) if given.evaluate else None
    cards = []
    for place, function in enumerate(given.models):
        model, inputs = _built(function)
        cards.append(
            card(
                model,
                inputs,
                name=names[place] if names else None,
                metrics=given.metrics.split(",") if given.metrics else None,
                evaluate=evaluate,
                device=given.device,
                iterations=given.iterations,
                warmup=given.warmup,
                convention=given.convention,
            )
        )
    return cards[0] if len(cards) == 1 else compare_cards(*cards)
