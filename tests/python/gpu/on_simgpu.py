"""How the tests run scripts on the simulated GPU.

With LAYERTRACE_REAL_GPU in the environment (`make test-gpu`), what needs no set-up of the
simulation runs on the machine's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import support
from support import BIN, GPU_PYTHONPATH, HAS_SIMGPU

HERE = Path(__file__).parent
REAL_GPU = bool(os.environ.get("LAYERTRACE_REAL_GPU"))
needs_simgpu = pytest.mark.skipif(not HAS_SIMGPU, reason="without simgpu")
same_times_in_every_run = pytest.mark.skipif(
    REAL_GPU, reason="a real GPU takes another time for a kernel in every run"
)


def simulate(
    folder: Path, *program: str | Path, options: tuple[str, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program in the folder to its end, whatever that is."""
    simulated = () if REAL_GPU and not options else (BIN, "simgpu", *options, "--")
    return support.run(
        *(*simulated, *program),
        cwd=folder,
        **{"PYTHONPATH": GPU_PYTHONPATH, "KINETO_LOG_LEVEL": "99", **variables},
    )


def result_of(
    folder: Path, script: str, *words: str, options: tuple[str, ...] = (), **variables: str
) -> Any:
    """What a script of this folder prints as its result; it must end well."""
    result = simulate(folder, sys.executable, HERE / script, *words, options=options, **variables)
    assert result.returncode == 0, result.stderr[-3000:]
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))
