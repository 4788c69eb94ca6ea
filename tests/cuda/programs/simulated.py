"""How the tests start programs on the simulated device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = os.environ["LAYERTRACE_BIN"]
LIBRARIES = Path(os.environ["LAYERTRACE_BUILD_DIR"]) / "lib" / "simgpu"
SOURCE = Path(os.environ["LAYERTRACE_SOURCE_DIR"])
PROGRAMS = Path(__file__).with_name("programs.py")


def simulate(
    *program: str | Path, options: tuple[str, ...] = (), check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [COMMAND, "simgpu", *options, "--", *map(str, program)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def python(source: str, *, options: tuple[str, ...] = (), check: bool = True) -> str:
    return simulate(sys.executable, "-c", source, options=options, check=check).stdout
