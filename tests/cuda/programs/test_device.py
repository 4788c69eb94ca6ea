"""What a program sees of the simulated device, what the command refuses, and what must be there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from simulated import COMMAND, LIBRARIES, SOURCE, python, simulate


def test_the_device_says_what_it_is() -> None:
    said = python(
        "import torch\n"
        "for i in range(torch.cuda.device_count()):\n"
        "    p = torch.cuda.get_device_properties(i)\n"
        "    print(p.name, p.major, p.minor, p.total_memory >> 20, torch.backends.cudnn.enabled)",
        options=("--profile", "laptop", "--devices", "2", "--memory", "100M"),
    )
    assert said.splitlines() == ["simulated laptop GPU 8 9 100 False"] * 2


def test_memory_that_runs_out_is_pytorchs_own_error() -> None:
    said = python(
        "import torch\n"
        "kept = torch.zeros(8 << 20, device='cuda')\n"
        "try:\n"
        "    torch.zeros(16 << 20, device='cuda')\n"
        "except torch.cuda.OutOfMemoryError as error:\n"
        "    print(error)\n"
        "del kept\n"
        "print(torch.zeros(8 << 20, device='cuda').sum().item())",
        options=("--memory", "64M"),
    )
    assert "CUDA out of memory. Tried to allocate 64.00 MiB" in said
    assert said.splitlines()[-1] == "0.0", "and the program goes on"


def test_segments_that_expand() -> None:
    said = python(
        "import os\n"
        "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'\n"
        "import torch\n"
        "blocks = [torch.full((1 << 20,), float(i)).cuda() for i in range(8)]\n"
        "print([b[5].item() for b in blocks], torch.cuda.memory_reserved() >> 20)"
    )
    assert said.startswith("[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]")


def test_a_device_that_is_lost_is_pytorchs_own_error() -> None:
    done = simulate(
        sys.executable,
        "-c",
        "import torch\n"
        "x = torch.zeros(4, device='cuda')\n"
        "for _ in range(100): x = x + 1\n"
        "torch.cuda.synchronize()",
        options=("--faults", "device_lost=20"),
        check=False,
    )
    assert done.returncode == 1
    assert "CUDA error: unspecified launch failure" in done.stderr


def test_a_virtual_clock_is_exactly_repeatable() -> None:
    source = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import torch, programs\n"
        "step = programs.gpt()\n"
        "step()\n"
        "first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
        "first.record(); step(); last.record(); last.synchronize()\n"
        "print(first.elapsed_time(last))"
    )
    runs = {python(source, options=("--clock", "virtual")) for _ in range(2)}
    assert len(runs) == 1
    assert float(runs.pop()) > 0


def test_the_programs_exit_code_and_output_are_its_own() -> None:
    done = simulate("sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--profile", "b200"), "there is no device 'b200'; there are h100, laptop"),
        (
            ("--faults", "drop_recods"),
            "there is no fault 'drop_recods'; there are no_privileges, second_subscriber",
        ),
        (("--faults", "no_cupti=3"), "no_cupti takes no number"),
        (("--devices", "many"), "'many' is no number from 0 to 16"),
        (("--memory", "8T"), "'8T' is no size"),
        (("--clock", "slow"), "there are real, virtual"),
    ],
)
def test_a_word_that_is_not_known_is_refused_at_the_start(
    options: tuple[str, ...], says: str
) -> None:
    done = simulate("echo", "started", options=options, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert "started" not in done.stdout


def test_a_program_that_is_not_there() -> None:
    done = simulate("no-such-program", check=False)
    assert done.returncode == 127
    assert "cannot run no-such-program" in done.stderr
    done = subprocess.run([COMMAND, "simgpu"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no program was given" in done.stderr


def test_a_missing_library_names_its_wheel(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "layertrace"
    command.parent.mkdir()
    shutil.copy(COMMAND, command)
    libraries = tmp_path / "lib" / "simgpu"
    shutil.copytree(LIBRARIES, libraries)
    run = [command, "simgpu", "--", "true"]
    assert subprocess.run(run, check=False).returncode == 0
    (libraries / "libcupti.so.13").unlink()
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"libcupti.so.13 is not in {libraries}" in done.stderr
    assert "pip install nvidia-cuda-cupti" in done.stderr


# ---- Every function that PyTorch's libraries take from the ones that are stood in for ----


def symbols(library: Path, kind: str) -> list[str]:
    done = subprocess.run(["nm", "-D", kind, library], capture_output=True, text=True, check=True)
    return [line.split()[-1] for line in done.stdout.splitlines() if line]


def torch_libraries() -> list[Path]:
    """PyTorch's own, and those of NVIDIA's that come with it and are not stood in for."""
    site_packages = Path(torch.__file__).parent.parent
    libraries = [*(site_packages / "torch" / "lib").glob("*.so*")]
    libraries += (site_packages / "nvidia").glob("*/lib/lib*.so*")
    stood_in_for = {path.name for path in LIBRARIES.iterdir()} | {
        "libnvblas.so.13"
    }  # and that's a BLAS
    return sorted(library for library in libraries if library.name not in stood_in_for)


@pytest.mark.parametrize(
    "face", ["libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13"]
)
def test_no_function_is_missing(face: str) -> None:
    provided = {symbol.split("@")[0] for symbol in symbols(LIBRARIES / face, "--defined-only")}
    needed = {
        symbol.split("@")[0]
        for library in torch_libraries()
        for symbol in symbols(library, "--undefined-only")
        if symbol.split("@")[-1] == face
    }
    assert len(needed) > 15, "PyTorch's libraries do not name their needs as they used to"
    assert needed - provided == set()


def test_no_function_of_the_driver_is_missing() -> None:
    provided = set(
        symbol.split("@")[0] for symbol in symbols(LIBRARIES / "libcuda.so.1", "--defined-only")
    )
    needed = {
        symbol
        for library in torch_libraries()
        for symbol in symbols(library, "--undefined-only")
        if re.fullmatch(r"cu[A-Z](?!ile)\w+", symbol)
    }
    assert len(needed) > 15
    assert needed - provided == set()


def test_what_pytorch_asks_for_by_name_is_there() -> None:
    """Its allocator looks functions of the driver and of NVML up while the program runs."""
    library = Path(torch.__file__).parent / "lib" / "libc10_cuda.so"
    text = subprocess.run(
        ["strings", "-n", "6", library], capture_output=True, text=True, check=True
    )
    asked = set(
        re.findall(r"^(?:cu|nvml)[A-Z](?:[a-z0-9]+[A-Z0-9]*)+(?:_v\d)?$", text.stdout, re.M)
    )
    assert len(asked) > 25
    provided = {
        re.sub(r"_v\d$", "", symbol.split("@")[0])
        for face in ("libcuda.so.1", "libnvidia-ml.so.1")
        for symbol in symbols(LIBRARIES / face, "--defined-only")
    }
    assert {re.sub(r"_v\d$", "", name) for name in asked} - provided == set()


def test_cupti_can_be_kept_from_loading() -> None:
    source = "import ctypes; ctypes.CDLL('libcupti.so.13').cuptiGetVersion; print('loaded')"
    assert python(source) == "loaded\n"
    done = simulate(sys.executable, "-c", source, options=("--faults", "no_cupti"), check=False)
    assert done.returncode == 1
    assert "libcupti.so.13: cannot open shared object file" in done.stderr


def test_a_forked_child_is_told_that_it_has_no_device() -> None:
    said = python(
        "import os, ctypes\n"
        "cuda = ctypes.CDLL('libcudart.so.13')\n"
        "assert cuda.cudaFree(None) == 0\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(cuda.cudaDeviceSynchronize())\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), cuda.cudaDeviceSynchronize())"
    )
    assert said == "3 0\n"  # cudaErrorInitializationError


def test_the_docs_list_the_faults_that_there_are() -> None:
    listed = subprocess.run(
        [COMMAND, "simgpu", "--list"], capture_output=True, text=True, check=True
    )
    faults = re.findall(
        r"^  ([a-z_]+(?:=N)?) +(.*?)(?: \(N is \d+ unless given\))?$", listed.stdout, re.M
    )
    faults = [(name, meaning) for name, meaning in faults if "compute capability" not in meaning]
    assert len(faults) == 19
    text = (SOURCE / "docs" / "simgpu.md").read_text()
    assert [name for name, _ in faults if f"| `{name}` |" not in text] == []
