"""`make demo`, once all is built: what it prints, on which device, and the trace that it leaves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import support
from on_simgpu import needs_simgpu
from support import BIN, SOURCE_DIR
from trace_decoder import decode

pytestmark = needs_simgpu
DEMO = SOURCE_DIR / "scripts" / "demo"
NO_GPU = "There is no GPU here: the demo trains on a simulated one."
UNUSABLE = "No GPU can be recorded here: the demo trains on a simulated one."
SIMULATED = "Simulated: recorded on a simulated H100-class GPU (simgpu)."
here = pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="there is a GPU")


def run(folder: Path, *before: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    result = support.run(*before, DEMO, "out.pftrace", cwd=folder, **variables)
    assert result.returncode == 0, result.stderr[-3000:]
    assert [each.name for each in folder.iterdir() if each.is_file()] == ["out.pftrace"]
    return result


def expect_gpu(output: str) -> None:
    """The tree and the table of kernels, both of them marked."""
    tree, kernels = output.split("The kernels that its layers run:\n")
    for part in (tree, kernels):
        assert part.count(SIMULATED) == 1
    heading, root = re.findall(r"^(?:layer  |ResidualNet  ).*$", tree, re.M)
    assert re.search(r"GPU forward +GPU backward", heading)
    assert len(re.findall(r"[\d.]+ [µm]s +[\d.]+ %", root)) == 4, "forward and backward, on both"
    assert re.search(r"\bkernels\b", heading)
    for path in ("stem", "blocks", "head"):
        assert re.search(rf"^[├└]── {path} ", tree, re.M)
    *_, rows = kernels.split("\nkernel ")
    listed = re.findall(r"^\S.* [\d,]+ +[\d.]+ [µm]s +[\d.]+ %", rows, re.M)
    assert len(listed) == 8, rows


@here
def test_without_a_gpu_it_trains_on_a_simulated_one_and_says_so(tmp_path: Path) -> None:
    ours = SOURCE_DIR / "demo.pftrace"
    before = ours.stat().st_mtime_ns if ours.exists() else None
    output = run(tmp_path).stdout
    assert output.startswith(NO_GPU)
    expect_gpu(output)
    assert (ours.stat().st_mtime_ns if ours.exists() else None) == before, "not in the sources"
    trace = decode(tmp_path / "out.pftrace")
    steps = [each.name for each in trace.on(trace.track_named("steps"))]
    assert steps == ["step 2", "step 3", "step 4", "step 5"]
    assert len([each for each in trace.slices if "grid" in each.args]) > 1000
    words = ("kernels", tmp_path / "out.pftrace", "--module", "blocks.4.conv2")
    assert "ran in blocks.4.conv2 392 times in 4 recorded steps" in support.layertrace_output(
        *words
    )


@here
def test_a_gpu_that_pytorch_cannot_use_is_told(tmp_path: Path) -> None:
    """Not that it went on with the CPU."""
    broken = tmp_path / "site" / "torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('made for another driver')")
    output = run(tmp_path, PYTHONPATH=str(broken.parent)).stdout
    finding, _ = output.split(UNUSABLE)
    assert finding.startswith("What 'layertrace doctor' finds:\nproblem  pytorch ")
    assert "made for another driver" in finding
    expect_gpu(output)


def test_a_gpu_that_can_be_recorded_is_used(tmp_path: Path) -> None:
    """It is simulated, too, but the script does not know that."""
    output = run(tmp_path, BIN, "simgpu", "--").stdout
    assert "the demo trains on a simulated one" not in output
    expect_gpu(output)
