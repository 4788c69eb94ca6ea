"""Runs the victim, and tells a whole trace from one that was cut."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support import BUILD_DIR, ENVIRONMENT, TIMEOUT_S, layertrace_output, run
from trace_decoder import Decoded, decode

VICTIM = BUILD_DIR / "bin" / "fault_victim"
STEPS = 3  # of mode "end"


def says(output: str) -> dict[str, str]:
    """The victim's "key value" lines."""
    return dict(line.split(" ", 1) for line in output.splitlines())


def victim(*arguments: str | Path | int, code: int = 0) -> dict[str, str]:
    """Runs the victim, which must end with this code (−n: by signal n)."""
    result = run(VICTIM, *(str(each) for each in arguments))
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    return says(result.stdout)


@contextmanager
def running_victim(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [VICTIM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


@cache
def decoded(trace: Path) -> Decoded:
    """A finished trace, by Perfetto's protos. Each test has its own folder, so paths tell."""
    return decode(trace)


def profile_of(trace: Path) -> dict[str, Any]:
    return json.loads(layertrace_output("layers", trace, "--format", "json"))


def assert_whole(trace: Path, steps: int) -> dict[str, Any]:
    """A trace that has all there was: read by layertrace and (unless that would take long, in
    Python) by Perfetto's protos."""
    if trace.stat().st_size < 2_000_000:
        assert decoded(trace).footer is not None
    profile = profile_of(trace)
    assert profile["health"]["cut"] is False
    assert len(profile["steps"]) == steps
    assert not trace.with_name(trace.name + ".part").exists()
    return profile


def assert_cut(trace: Path, at_least_steps: int) -> dict[str, Any]:
    """What a killed program leaves: no final name, a part that opens and says what it is."""
    assert not trace.exists()
    part = trace.with_name(trace.name + ".part")
    assert decode(part, may_be_cut=True).footer is None
    assert "cut off" in layertrace_output("info", part)
    assert "fc1" in layertrace_output("tree", part)
    profile = profile_of(part)
    assert profile["health"]["cut"] is True
    assert len(profile["steps"]) >= at_least_steps
    return profile
