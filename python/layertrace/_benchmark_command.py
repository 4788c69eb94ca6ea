"""`layertrace benchmark module:function`: how long a model takes, as a whole and by module."""

from __future__ import annotations

import argparse
import functools
from typing import Any

import torch

from layertrace import _commands, _core
from layertrace._benchmark import benchmark, throughput
from layertrace._core import Benchmark, Table, Throughput
from layertrace._errors import Error, UsageError
from layertrace._pictures import _PLOTS, _ending
from layertrace._summary import Inputs, _moved
from layertrace._tables import format_of

_EXAMPLES = """The whole is timed without any scope inside the model, the modules in another pass.

examples:
  layertrace benchmark models:build                       a function that returns a model and its
                                                          inputs
  layertrace benchmark models:build --iterations 200 --drop-first 20 --depth 1
  layertrace benchmark models:build --root __root__ -o times.csv
  layertrace benchmark models:build --total --single --format json
  layertrace benchmark models:build --batch-sizes 1,2,4,8,16 --plot sweep.svg
  layertrace simgpu -- layertrace benchmark models:build --device cuda
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="layertrace benchmark",
        description="How long a model takes in inference, as a whole and by module.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="module:function", help="returns a model and its inputs")
    add("--iterations", type=int, help="calls in each pass; 1000, of each batch size 100")
    add("--drop-first", type=int, help="of these left out at the beginning; 100, or 10")
    add("--single", action="store_true", help="a row for each iteration, not statistics")
    add("--total", action="store_true", help="the whole alone, without a pass for modules")
    add("--batch-sizes", metavar="1,2,4", help="latency and throughput of these batches instead")
    add("--plot", metavar="FILE", help="draw those, as .png, .svg or .pdf")
    add("--device", help="move the model and its inputs there")
    add("--train", action="store_true", help="leave the model in the mode in which it is")
    add("--grad", action="store_true", help="without torch.inference_mode()")
    add("--intra-op-threads", type=int, metavar="N", help="PyTorch's threads inside operators")
    add("--inter-op-threads", type=int, metavar="N", help="and between them")
    add(
        "--timing", choices=("events", "cupti", "both"), default="events", help="of a GPU's modules"
    )
    add("--depth", type=int, help="levels of modules below the root")
    add("--root", default="", help="what the root's path reads, __root__ say")
    add("--columns", help="columns of a table by name, separated by commas")
    add("--format", help="text, json, csv, md, html, latex or parquet; by the suffix of -o")
    add("-o", "--output", help="a file, rather than the standard output")
    add("--name", default="", help="what the run is called in tables")
    add("--no-progress", action="store_true", help="no bar, on a terminal neither")
    return parser


def _numbers(parser: argparse.ArgumentParser, option: str, text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        parser.error(f"{option} is {text}: it is whole numbers of 1 or more, as in 1,2,4")
    return numbers


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if not _commands.is_function_name(given.model):
        parser.error(f"{given.model} is not of the form module:function: write models:build, say")
    is_sweep = given.batch_sizes is not None
    if is_sweep:
        given.batch_sizes = _numbers(parser, "--batch-sizes", given.batch_sizes)
        for option in ("single", "total", "columns", "root", "depth"):
            if getattr(given, option):
                parser.error(f"--{option} has no meaning with --batch-sizes")
    elif given.plot:
        parser.error("--plot draws what --batch-sizes gives: name some")
    if given.iterations is None:
        given.iterations = 100 if is_sweep else 1000
    if given.drop_first is None:
        given.drop_first = given.iterations // 10
    if given.iterations < 1 or not 0 <= given.drop_first < given.iterations:
        parser.error(
            f"of {given.iterations} iterations the first {given.drop_first} cannot be dropped: let "
            "--iterations be more than --drop-first"
        )
    for option in ("intra_op_threads", "inter_op_threads"):
        if (threads := getattr(given, option)) is not None and threads < 1:
            parser.error(f"--{option.replace('_', '-')} is {threads}: it is 1 or more")


def _result(
    given: argparse.Namespace, model: torch.nn.Module, inputs: Inputs
) -> Benchmark | Throughput:
    options: dict[str, Any] = {
        "iterations": given.iterations,
        "drop_first": given.drop_first,
        "eval": not given.train,
        "inference_mode": not given.grad,
        "intra_op_threads": given.intra_op_threads,
        "inter_op_threads": given.inter_op_threads,
        "progress": False if given.no_progress else None,
        "name": given.name,
    }
    if given.batch_sizes is not None:
        return throughput(model, inputs, given.batch_sizes, **options)
    return benchmark(
        model,
        inputs,
        aggregate=not given.single,
        modules=not given.total,
        timing=given.timing,
        **options,
    )


def _table(given: argparse.Namespace, result: Benchmark | Throughput) -> Table:
    if isinstance(result, Throughput):
        return result.table()
    columns = _commands.columns_of(given)
    return result.table(root=given.root, depth=given.depth, columns=columns)


def _text(given: argparse.Namespace, result: Benchmark | Throughput) -> str:
    descriptor = 1 if given.output is None else -1
    if isinstance(result, Throughput):
        return _core.terminal_throughput(result, descriptor)
    return _core.terminal_benchmark(result, descriptor, given.root, given.depth)


def _put(given: argparse.Namespace, format: str, result: Benchmark | Throughput) -> None:
    if format == "text":
        _commands.put(_text(given, result), given.output)
    else:
        _commands.put_table(_table(given, result), format, given.output)


def _check_columns(given: argparse.Namespace) -> None:
    """By a table of nothing: a slip is not told after a thousand calls."""
    environment = _core.timing_environment("cpu", "")
    none = _core.make_benchmark("", 1, 0, not given.single, [1], [], "", None, environment)
    none.table(columns=_commands.columns_of(given))


def _run(given: argparse.Namespace) -> None:
    format = format_of(given.format, given.output, ("text",))
    _commands.refuse_terminal(format, given.output)
    if given.columns and format == "text":
        raise UsageError(
            "cannot choose columns of the text", "it has its own", "Use --format md, say"
        )
    if given.columns:
        _check_columns(given)
    if given.plot:
        _ending(given.plot, _PLOTS)
    model, inputs = _commands.built(given.model)
    if inputs is None:
        raise Error(
            f"cannot time the model of {given.model}",
            "the function gives no inputs to call it with",
            "Return the model and its inputs: a tensor, a tuple or a dict",
        )
    if given.device is not None:
        model, inputs = model.to(given.device), _moved(inputs, given.device)
    result = _result(given, model, inputs)
    _put(given, format, result)
    if given.plot:
        assert isinstance(result, Throughput)
        with _commands.writing(given.plot):
            result.plot(given.plot)


def main(arguments: list[str]) -> int:
    """`layertrace benchmark module:function`."""
    parser = _parser()
    given = parser.parse_args(arguments)
    _check(parser, given)
    return _commands.ended(
        functools.partial(_run, given), f"cannot time the model of {given.model}"
    )
