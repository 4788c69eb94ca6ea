"""The Python twin of the C++ example: the same network gives the same tree."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import support
from support import BUILD_DIR, SOURCE_DIR
from trace_decoder import decode

EXAMPLES = SOURCE_DIR / "examples" / "python"


def run(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    result = support.run(*words, cwd=cwd, PYTHONPATH=str(BUILD_DIR / "python"))
    assert result.returncode == 0, result.stderr
    return result


def what_ran(trace: Path) -> Counter[tuple[str, ...]]:
    """Module calls and autograd nodes: by path, phase and name."""
    counts: Counter[tuple[str, ...]] = Counter()
    decoded = decode(trace)
    threads = {thread.uuid for thread in decoded.threads}  # operators are on tracks of their own
    for each in decoded.slices:
        if each.path is None or each.track not in threads:
            continue
        is_node = "seq" in each.args or "accumulates" in each.args
        if is_node:
            counts["node", each.path, each.category, each.name] += 1
        elif "region" not in each.args and each.category in ("forward", "recompute"):
            counts["call", each.path, each.category] += 1
    return counts


def test_the_twin_gives_the_same_tree(tmp_path: Path) -> None:
    """Paths, types, calls, and nodes per layer and phase; the losses show that the weights are the
    same, too."""
    cpp = run(BUILD_DIR / "bin" / "train_residual_cnn", tmp_path / "cpp.pftrace")
    python = run(sys.executable, EXAMPLES / "train_residual_cnn.py", tmp_path / "python.pftrace")
    losses = [re.findall(r"loss (\S+)", each.stderr) for each in (cpp, python)]
    assert len(losses[0]) == len(losses[1]) == 6
    assert [float(x) for x in losses[0]] == pytest.approx([float(x) for x in losses[1]], rel=1e-3)

    in_cpp, in_python = what_ran(tmp_path / "cpp.pftrace"), what_ran(tmp_path / "python.pftrace")
    containers = {key for key in in_python if key[0] == "call"} - in_cpp.keys()
    # Python calls its Sequentials; C++ calls only what is in them (docs/cpp.md).
    assert {key[1] for key in containers} == {"stem", "blocks.3.shortcut", "blocks.4.shortcut"}
    assert in_python - Counter({key: in_python[key] for key in containers}) == in_cpp
    assert sum(count for key, count in in_cpp.items() if key[0] == "node") > 300


def test_the_quick_start_runs(tmp_path: Path) -> None:
    result = run(sys.executable, EXAMPLES / "quick_start.py", cwd=tmp_path)
    assert "10 recorded steps" in result.stdout
    assert "(data)" in result.stdout
    assert (tmp_path / "quick_start.pftrace").exists()
