"""The command `layertrace`, as pip installs it, and `python -m layertrace`.

It is the same command as a C++ build's, which is in the package. Where that could not be built (pip
cannot bring CLI11 and cpp-httplib), `_without_command` does what Python can.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from layertrace import _files


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
        from layertrace import _summary_command

        sys.exit(_summary_command.main(sys.argv[2:]))
    if sys.argv[1:2] == ["card"]:
        from layertrace import _card_command

        sys.exit(_card_command.main(sys.argv[2:]))
    if sys.argv[1:2] == ["benchmark"]:
        from layertrace import _benchmark_command

        sys.exit(_benchmark_command.main(sys.argv[2:]))
    arguments = with_python(sys.argv[1:])
    if (found := command()) is not None:
        os.execv(found, [str(found), *arguments])
    from layertrace import _without_command

    sys.exit(_without_command.main(arguments))


if __name__ == "__main__":
    main()
