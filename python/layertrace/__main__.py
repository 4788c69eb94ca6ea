"""The command `layertrace`, as pip installs it, and `python -m layertrace`.

It is the same command as a C++ build's, which is in the package. Where that could not be built (pip
cannot bring CLI11 and cpp-httplib), `run`, `tree`, `layers` and `kernels` do without it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layertrace import _files

if TYPE_CHECKING:
    from layertrace import Profile


def command() -> Path | None:
    """The command in C++: of this package, or of the build folder that it is in."""
    return _files.find("bin/layertrace") or _files.find("../../bin/layertrace")


def with_python(arguments: list[str]) -> list[str]:
    """`run train.py` and `run -m package` mean this Python."""
    if arguments[:1] != ["run"]:
        return arguments
    options, program = split_program(arguments[1:])
    if program and (program[0].endswith(".py") or program[0] == "-m"):
        program = [sys.executable, *program]
    return ["run", *options, "--", *program] if program else arguments


def split_program(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The options of `run`, and what is to be run: behind `--`, or from the first word on that is
    none of them."""
    takes_value = {"--steps", "-o", "--output", "--timing", "--count", "--name"}
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return arguments[:position], arguments[position + 1 :]
        if not word.startswith("-") or word == "-m":
            return arguments[:position], arguments[position:]
        position += 2 if word in takes_value else 1
    return arguments, []


def main() -> None:
    """Runs the command, and does not return."""
    if sys.argv[1:2] == ["summary"]:
        from layertrace import _summary

        sys.exit(_summary.main(sys.argv[2:]))
    if sys.argv[1:2] == ["card"]:
        from layertrace import _card_command

        sys.exit(_card_command.main(sys.argv[2:]))
    if sys.argv[1:2] == ["benchmark"]:
        from layertrace import _benchmark_command

        sys.exit(_benchmark_command.main(sys.argv[2:]))
    arguments = with_python(sys.argv[1:])
    if (found := command()) is not None:
        os.execv(found, [str(found), *arguments])
    sys.exit(fallback(arguments))


def fallback(arguments: list[str]) -> int:
    """What can be done without the command in C++."""
    parser = argparse.ArgumentParser(
        prog="layertrace",
        description="Which layer is a training step's time going to, forward and backward?",
        epilog="This layertrace was installed without its whole command, for want of CLI11 and "
        "cpp-httplib. Install both (Debian: libcli11-dev libcpp-httplib-dev) and then layertrace "
        "again for info, view and simgpu.",
    )
    parser.add_argument("--version", action="store_true", help="print the versions")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
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
    tree = commands.add_parser("tree", help="the layer tree with forward and backward time")
    tree.add_argument("file", help="a .pftrace that layertrace wrote")
    tree.add_argument("--depth", type=int, help="levels below the start node")
    tree.add_argument("--start", default="", help="path of the start node")
    tree.add_argument("--sort", default="definition", help="order of siblings, by a sort key")
    tree.add_argument("--columns", help="columns by name, separated by commas")
    tree.add_argument("--view", help="columns that belong together: time, cost, memory, …")
    tree.add_argument("--style", default="columns", help="columns or brackets")
    tree.add_argument("--match", default="", help="only layers with a path like this pattern")
    tree.add_argument("--type", default="", help="only layers of a type like this pattern")
    tree.add_argument("--trainable", action="store_true", help="only with trainable parameters")
    tree.add_argument("--format", choices=("text", "repr", "json"), default="text")
    layers = commands.add_parser("layers", help="the layers' figures as JSON")
    layers.add_argument("file", help="a .pftrace that layertrace wrote")
    commands.add_parser("summary", help="what a model is and computes: module:function")
    commands.add_parser("card", help="a model in a few figures, or several: module:function")
    commands.add_parser("benchmark", help="how long a model takes: module:function")
    kernels = commands.add_parser("kernels", help="what ran on the GPU, and for whom")
    kernels.add_argument("file", help="a .pftrace that layertrace wrote")
    kernels.add_argument("--module", default="", help="path of a layer")
    kernels.add_argument("--sort", default="time", help="time, count or name")
    kernels.add_argument("--limit", type=int, help="so many at most")
    given = parser.parse_args(arguments)
    if given.version:
        import layertrace

        print(f"layertrace {layertrace.__version__}")
        return 0
    if given.command == "run":
        return exec_program(given)
    if given.command in ("tree", "layers", "kernels"):
        return print_report(given)
    parser.print_help()
    return 2


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
    warmup = min(2, first)
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


def tree_text(profile: Profile, given: argparse.Namespace) -> str:
    part: dict[str, Any] = {
        "depth": given.depth,
        "start": given.start,
        "sort": given.sort,
        "match": given.match,
        "type": given.type,
        "trainable": given.trainable,
    }
    if given.format == "repr":
        return profile.repr_tree(**part)
    if given.format == "json":
        return json.dumps(profile.nested(**part), indent=1) + "\n"
    return profile.tree(columns=given.columns, view=given.view, style=given.style, **part)


def print_report(given: argparse.Namespace) -> int:
    """A tree or a table."""
    import layertrace
    from layertrace._errors import exit_code

    try:
        profile = layertrace.load(given.file)
        if given.command == "layers":
            print(profile.to_json(), end="")
        elif given.command == "kernels":
            print(
                profile.kernels_table(module=given.module, sort=given.sort, limit=given.limit),
                end="",
            )
        else:
            print(tree_text(profile, given), end="")
    except layertrace.Error as error:
        print(f"layertrace: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


if __name__ == "__main__":
    main()
