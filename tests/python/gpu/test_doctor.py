"""`layertrace doctor` where torch and the package are there: it asks a Python for both."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import support
from on_simgpu import needs_simgpu
from support import BIN, BUILD_DIR

PACKAGE = str(BUILD_DIR / "python")


def doctor(
    *options: str, simulate: tuple[str, ...] | None = None, **variables: str
) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code, and the checks by name."""
    words: list[str | Path] = [] if simulate is None else [BIN, "simgpu", *simulate, "--"]
    words += [BIN, "doctor", "--format", "json", *(options or ("--python", sys.executable))]
    result = support.run(*words, cwd=None, input="", **{"PYTHONPATH": PACKAGE, **variables})
    assert result.stderr == ""
    checks = json.loads(result.stdout)
    assert all(list(check) == ["check", "status", "detail", "remedy"] for check in checks)
    return result.returncode, {check["check"]: check for check in checks}


def problems(checks: dict[str, dict[str, str]]) -> set[str]:
    return {name for name, check in checks.items() if check["status"] == "problem"}


@needs_simgpu
def test_all_is_well_on_the_simulated_gpu() -> None:
    code, checks = doctor(simulate=("--devices", "2"))
    assert (code, problems(checks)) == (0, set())
    assert "simulated" in checks["simgpu"]["detail"]
    for name in ("device", "driver", "runtime", "cupti", "permissions", "subscriber", "package"):
        assert checks[name]["status"] == "ok", checks[name]
    assert checks["pytorch"]["detail"].startswith("torch 2.15")
    assert sys.executable in checks["pytorch"]["detail"]
    assert str(BUILD_DIR / "python" / "layertrace") in checks["package"]["detail"]


@needs_simgpu
@pytest.mark.parametrize(
    ("fault", "check", "remedy"),
    [
        ("no_privileges", "permissions", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("second_subscriber", "subscriber", "end it first"),
        ("no_cupti", "cupti", "pip install nvidia-cuda-cupti"),
    ],
)
def test_a_fault_is_told_with_its_remedy(fault: str, check: str, remedy: str) -> None:
    code, checks = doctor(simulate=("--faults", fault))
    assert (code, problems(checks)) == (1, {check})
    assert remedy in checks[check]["remedy"]


@needs_simgpu
def test_an_old_cupti_is_no_problem() -> None:
    code, checks = doctor(simulate=("--faults", "old_cupti"))
    assert (code, checks["cupti"]["status"]) == (0, "note")
    assert "of CUDA 12.8" in checks["cupti"]["detail"]


@needs_simgpu
def test_a_tool_that_the_driver_is_to_load_is_told() -> None:
    code, checks = doctor(simulate=(), CUDA_INJECTION64_PATH="/opt/nsys/libToolsInjection64.so")
    assert (code, problems(checks)) == (1, {"profiler"})
    assert "Nsight Systems" in checks["profiler"]["detail"]


@needs_simgpu
def test_a_listener_to_ranges_is_no_profiler(tmp_path: Path) -> None:
    listener = tmp_path / "listener.so"
    listener.touch()
    code, checks = doctor("--python", "/none", simulate=(), NVTX_INJECTION64_PATH=str(listener))
    assert (code, checks["nvtx"]["status"], checks["profiler"]["status"]) == (0, "note", "ok")
    assert str(listener) in checks["nvtx"]["detail"]


def test_without_a_gpu_the_host_can_be_recorded() -> None:
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("there is a GPU")
    code, checks = doctor()
    assert (code, problems(checks)) == (3, set())
    assert checks["device"]["status"] == "note"
    assert checks["pytorch"]["status"] == "ok"
    # Found beside torch, and not called: without a driver, CUPTI 13.2 would fill the stack.
    assert "libcupti.so" in checks["cupti"]["detail"]


def test_a_package_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    (tmp_path / "layertrace").mkdir()
    (tmp_path / "layertrace" / "__init__.py").write_text("raise ImportError('made for another')")
    code, checks = doctor(PYTHONPATH=str(tmp_path))
    assert code == 1
    assert problems(checks) == {"package"}
    assert "made for another" in checks["package"]["detail"]


def test_a_torch_that_crashes_is_told(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import os; os.abort()")
    code, checks = doctor(PYTHONPATH=str(tmp_path))
    assert code == 1
    assert "pytorch" in problems(checks)
    assert "Aborted" in checks["pytorch"]["detail"]


def test_its_text_has_one_line_for_each_check() -> None:
    _, checks = doctor("--python", "/none")
    result = support.run(BIN, "doctor", "--python", "/none")
    *lines, empty, _verdict = result.stdout.splitlines()
    assert empty == ""
    assert [line.split()[1] for line in lines] == list(checks)
    assert [line.split()[0] for line in lines] == [check["status"] for check in checks.values()]
