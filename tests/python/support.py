"""Where things are, and how the tests run programs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE_DIR = Path(
    os.environ.get("LAYERTRACE_SOURCE_DIR", Path(__file__).resolve().parent.parent.parent)
)
BUILD_DIR = Path(os.environ.get("LAYERTRACE_BUILD_DIR", SOURCE_DIR / "build"))
BIN = Path(os.environ.get("LAYERTRACE_BIN", BUILD_DIR / "bin" / "layertrace"))
TRACES = SOURCE_DIR / "traces"
# A build without CUDA's headers has no simulated GPU, and says so. Of any other build that has none
# tests fail: they must not be skipped for what was not built, and count as passed.
HAS_SIMGPU = not os.environ.get("LAYERTRACE_WITHOUT_SIMGPU")
# For programs that import the package, and train on a GPU (see tests/python/settled).
GPU_PYTHONPATH = f"{BUILD_DIR / 'python'}:{SOURCE_DIR / 'tests' / 'python' / 'settled'}"

# Only against hangs: nothing here takes a tenth of it, even on a machine with much else to do.
TIMEOUT_S = 120

# One OpenMP thread: two that wait for each other on a busy machine make a step take seconds. A
# fixed locale and no colours: what is printed here is what is printed elsewhere.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "TERM")},
    "OMP_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
    "NO_COLOR": "1",
}


def run(
    *arguments: str | Path, cwd: Path | None = None, input: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever that is, with further environment variables."""
    return subprocess.run(
        [str(each) for each in arguments],
        cwd=cwd,
        input=input,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={**ENVIRONMENT, **variables},
        timeout=TIMEOUT_S,
        check=False,
    )


def layertrace(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run(BIN, *arguments)


def layertrace_output(*arguments: str | Path) -> str:
    """What a command prints that must succeed and have nothing to complain of."""
    result = layertrace(*arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@dataclass
class Demo:
    """One run of the example program."""

    trace: Path
    output: str
