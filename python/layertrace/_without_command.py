"""The command where the one in C++ could not be built: what Python's own interface can do, with the
same names. `info`, `view`, `doctor` and `simgpu` are not among it, nor are C++ programs in `run`.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from pathlib import Path
from typing import Any

from layertrace import _commands, _files
from layertrace._errors import UsageError

_MISSING = ("info", "view", "doctor", "simgpu")
_EPILOG = (
    "This layertrace was installed without its whole command, for want of CLI11 and cpp-httplib: "
    f"it has no {', '.join(_MISSING)}, and run is for Python programs only. Install both (Debian: "
    "libcli11-dev libcpp-httplib-dev) and then layertrace again."
)

# Of each table: its name in Python, what it is, and whether layers choose its rows.
_TABLES = {
    "layers": ("layers", "the layers' figures: JSON, or a table", True),
    "kernels": ("kernels", "what ran on the GPU, and for whom", True),
    "ops": ("operators", "the operators with their FLOPs and times", True),
    "calls": ("calls", "every single call of a layer, with its times", True),
    "steps": ("steps", "the recorded steps, with their time by phase", False),
    "parameters": ("parameters", "parameters and buffers, with their sizes", True),
    "sizes": ("sizes", "what went into each layer and came out", True),
    "ledger": ("ledger", "what the figures explain, and what is missing", False),
    "metrics": ("metrics", "the figures that the program gave to the run", False),
}
_BY_LAYER = ("kernels", "ops", "parameters")
_CONDITION_HOLDS = 3


def main(arguments: list[str]) -> int:
    """What can be done without the command in C++."""
    if arguments[:1] and arguments[0] in _MISSING:
        print(f"layertrace: cannot do {arguments[0]}: {_EPILOG}", file=sys.stderr)
        return 1
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.version:
        import layertrace

        print(f"layertrace {layertrace.__version__}")
        return 0
    if given.command is None:
        parser.print_help()
        return 2
    if given.command == "run":
        return exec_program(given)
    return _commands.ended(functools.partial(given.do, given), f"cannot do {given.command}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="layertrace",
        description="Which layer is a training step's time going to, forward and backward?",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the versions")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_run(commands)
    commands.add_parser("summary", help="what a model is and computes: module:function")
    commands.add_parser("card", help="a model in a few figures, or several: module:function")
    commands.add_parser("benchmark", help="how long a model takes: module:function")
    tree = commands.add_parser("tree", help="the layer tree with forward and backward time")
    tree.add_argument("file", help="a .pftrace that layertrace wrote")
    _commands.add_tree_options(tree)
    tree.add_argument("--columns", help="columns by name, separated by commas")
    tree.add_argument("--min-share", type=_commands.share, default=0, help="of the step: 2%%")
    tree.add_argument("--format", choices=_commands.TREES, default="text")
    tree.set_defaults(do=_tree, output=None)
    for name in _TABLES:
        _add_table(commands, name)
    _add_compare(commands)
    report = commands.add_parser("report", help="a run as one page of HTML")
    report.add_argument("file", help="a .pftrace that layertrace wrote")
    report.add_argument("-o", "--output", help="the page; FILE with .html unless given")
    report.add_argument("--title", default="", help="its heading")
    report.add_argument("--embed-trace", action="store_true", help="keep the trace in the page")
    report.set_defaults(do=_report)
    graph = commands.add_parser("graph", help="the layers as a picture, coloured by their share")
    graph.add_argument("file", help="a .pftrace that layertrace wrote")
    graph.add_argument("-o", "--output", help="the picture; dot text unless given")
    graph.add_argument("--depth", type=_commands.count, help="levels below the start node")
    graph.add_argument("--start", default="", help="path of the start node")
    graph.add_argument("--no-fold", action="store_true", help="each block in a box of its own")
    graph.set_defaults(do=_graph)
    imported = commands.add_parser("import", help="makes a trace of torch.profiler one of ours")
    imported.add_argument("file", help="a trace.json, trace.json.gz or trace.json.zst")
    imported.add_argument("-o", "--output", help="the trace to write; FILE.pftrace unless given")
    imported.set_defaults(do=_import)
    return parser


# ---- files ----


def _add_table(commands: Any, name: str) -> None:
    _, about, has_layers = _TABLES[name]
    aliases = ["operators"] if name == "ops" else []
    command = commands.add_parser(name, help=about, aliases=aliases)
    command.add_argument("file", help="a .pftrace that layertrace wrote")
    _commands.add_table_options(command, *(["table"] if name == "kernels" else []))
    if has_layers:
        command.add_argument("--module", default="", help="path of a layer: it and those below")
        command.add_argument("--depth", type=_commands.count, help="levels below that")
        _commands.add_path_options(command)
    if name in _BY_LAYER:
        command.add_argument("--by-layer", action="store_true", help="a row for each layer")
    if name == "kernels":
        command.add_argument("--sort", default="time", help="time, count or name")
    if name == "layers":
        command.add_argument("--convention", help="the forward's counts, as another tool has them")
    command.add_argument("--limit", type=_commands.count, help="so many rows at most; 0 for all")
    command.set_defaults(do=functools.partial(_table, name))


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser("compare", help="what changed from one run to others")
    compare.add_argument("files", nargs="+", help="traces that layertrace wrote")
    _commands.add_table_options(compare, "text")
    compare.add_argument("--fail-if", action="append", default=[], help="exit code 3 if it holds")
    compare.add_argument("--min-change", type=float, default=0.05, help="of times: 0.05 is 5 %%")
    compare.add_argument("--all", action="store_true", help="also what did not change")
    compare.add_argument("--width", type=_commands.count, help="fit into this many columns")
    compare.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    compare.add_argument("--ascii", action="store_true", help="write with ASCII characters")
    compare.set_defaults(do=_compare)


def _tree(given: argparse.Namespace) -> None:
    import layertrace

    _commands.put(_commands.tree_text(layertrace.load(given.file), given), None)


def _table(name: str, given: argparse.Namespace) -> None:
    import layertrace
    from layertrace._tables import format_of

    kind = _TABLES[name][0]
    own = {"layers": ("json",), "kernels": ("table",)}.get(name, ("md",))
    format = format_of(given.format, given.output, own)
    options: dict[str, Any] = {"columns": _commands.columns_of(given), "limit": given.limit}
    for option in ("module", "depth", "root", "leading_dot", "by_layer"):
        if hasattr(given, option):
            options[option] = getattr(given, option)
    if name == "calls":
        _commands.put_table(layertrace.calls(given.file, **options), format, given.output)
        return
    convention = getattr(given, "convention", None)
    is_whole = name == "layers" and format == "json"
    if is_whole and any(value not in (None, False, "", []) for value in options.values()):
        raise UsageError(
            "cannot choose layers or columns",
            "JSON, which is also the default, is the whole profile",
            "Ask for a table: --format csv, md, html, latex or parquet",
        )
    profile = layertrace.load(given.file)
    if is_whole:
        text = profile.counts_json(convention) if convention else profile.to_json()
        _commands.put(text, given.output)
    elif format == "table":
        chosen = {"module": given.module, "sort": given.sort, "limit": given.limit}
        _commands.put(profile.kernels_table(**chosen, **_commands.fitting(given)), given.output)
    elif convention:
        _commands.put_table(profile.counts_table(convention, **options), format, given.output)
    else:
        _commands.put_table(profile.table(kind, **options), format, given.output)


def _compare(given: argparse.Namespace) -> int:
    import layertrace
    from layertrace._tables import format_of

    if len(given.files) < 2:
        raise UsageError(
            "cannot compare runs", "there is nothing to compare with", "Name two traces or more"
        )
    format = format_of(given.format, given.output, ("text",))
    comparison = layertrace.compare(*given.files, min_change=given.min_change)
    if format == "text":
        fit = _commands.fitting(given)
        fit["width"] = fit["width"] or 0
        _commands.put(comparison.text(all=given.all, **fit), given.output)
    else:
        _commands.put_table(comparison.table(), format, given.output)
    for condition in given.fail_if:
        if (reason := comparison.check(condition)) is not None:
            print(f"layertrace: {reason}", file=sys.stderr)
            return _CONDITION_HOLDS
    return 0


def _report(given: argparse.Namespace) -> None:
    import layertrace

    output = given.output or str(Path(given.file).with_suffix(".html"))
    profile = layertrace.load(given.file)
    with _commands.writing(output):
        print(
            profile.report(
                output, title=given.title, trace=given.file, embed_trace=given.embed_trace
            )
        )


def _graph(given: argparse.Namespace) -> None:
    import layertrace

    if given.output is not None:
        _commands.check_ending(given.output, ("dot", "gv", "svg", "pdf", "png"))
    profile = layertrace.load(given.file)
    graph = profile.graph(depth=given.depth, start=given.start, fold=not given.no_fold)
    if given.output is None:
        _commands.put(graph.dot, None)
    else:
        with _commands.writing(given.output):
            graph.save(given.output)


def _import(given: argparse.Namespace) -> None:
    import layertrace

    name = Path(given.file).name
    for suffix in (".gz", ".zst", ".json", ".pt.trace"):
        name = name.removesuffix(suffix) or name
    output = given.output or f"{name}.pftrace"
    health = layertrace.import_trace(given.file, output).health
    attributed = f", {100 * health.attributed_share:.1f} % of their time attributed"
    print(
        f"{output}: {health.source.events} events, {health.activities} activities"
        f"{attributed if health.activities else ''}"
    )
    for note in health.notes:
        print(f"note: {note}")


# ---- programs ----


def _add_run(commands: Any) -> None:
    run = commands.add_parser("run", help="records a Python program that was not changed")
    run.add_argument("--steps", default="", help="which steps: 5:10 are 5 to 9; 5: all from 5 on")
    run.add_argument("-o", "--output", default="", help="the trace; PROGRAM.pftrace unless given")
    run.add_argument("--no-ops", action="store_true", help="layers and autograd nodes only")
    run.add_argument(
        "--timing",
        choices=("both", "cupti", "events"),
        default="both",
        help="how a GPU's time is taken: kernels by CUPTI, layers by CUDA events, or both",
    )
    run.add_argument(
        "--count",
        choices=("first", "always", "off"),
        default="first",
        help="when operators are counted: in the first recorded step, in every one, or never",
    )
    run.add_argument("--name", default="", help="what the run is called in reports")
    run.add_argument("--fold-wrappers", action="store_true", help="leave wrappers' names out")
    run.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")


def schedule_of(steps: str) -> str | None:
    """`5:10` as skip, warm-up and record, as the environment hands them on; None if it is no range.

    The same as parse_steps() of tools/run.cc.
    """
    match = re.fullmatch(r"(\d*):(\d*)", steps or "7:12")
    if match is None:
        return None
    first = int(match[1] or 0)
    record = int(match[2]) - first if match[2] else 0
    if match[2] and record <= 0:
        return None
    warmup = first if first <= 20 else 2
    return f"{first - warmup}:{warmup}:{record}"


def exec_program(given: argparse.Namespace) -> int:
    """Becomes the program, in an environment in which it is recorded."""
    program = given.program[1:] if given.program[:1] == ["--"] else given.program
    if not program:
        print(
            "layertrace: no program was given: layertrace run -- python train.py", file=sys.stderr
        )
        return 2
    schedule = schedule_of(given.steps)
    if schedule is None:
        print(
            f"layertrace: cannot record the steps '{given.steps}': this is no range of steps. "
            "Write the first and the one after the last, as in 5:10; 5: is all from 5 on",
            file=sys.stderr,
        )
        return 2
    os.environ |= {
        "LAYERTRACE_RUN": "1",
        "LAYERTRACE_RUN_OUTPUT": str(Path(given.output).absolute()) if given.output else "",
        "LAYERTRACE_RUN_SCHEDULE": schedule,
        "LAYERTRACE_RUN_OPS": "0" if given.no_ops else "1",
        "LAYERTRACE_RUN_TIMING": given.timing,
        "LAYERTRACE_RUN_COUNT": given.count,
        "LAYERTRACE_RUN_NAME": given.name,
        "LAYERTRACE_RUN_FOLD_WRAPPERS": "1" if given.fold_wrappers else "0",
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(_files.find("inject")), os.environ.get("PYTHONPATH")])
        ),
    }
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"layertrace: cannot run {program[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
