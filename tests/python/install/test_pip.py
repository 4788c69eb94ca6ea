"""`pip install .`, as a user does it: against the torch of an environment, which fetches none.

Without the command in C++, as on a machine that has neither CLI11 nor cpp-httplib: what the package
then does in its place is tested, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SOURCE_DIR = Path(os.environ["LAYERTRACE_SOURCE_DIR"])
TIMEOUT_S = 1200
# pip's own environment, not that of the tests; no ccache is assumed.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    "OMP_NUM_THREADS": "1",
    "CMAKE_BUILD_PARALLEL_LEVEL": "1",
    "NO_COLOR": "1",
    "LAYERTRACE_PERFETTO_SDK": os.environ.get("LAYERTRACE_PERFETTO_SDK")
    or str(SOURCE_DIR / ".deps" / "perfetto-sdk"),
}

TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
print("done")
"""


def run(*words: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        env=ENVIRONMENT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def install(environment: Path, *what: str) -> None:
    result = run(
        *(environment / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"),
        "--config-settings=cmake.define.LAYERTRACE_COMMAND=OFF",
        # Not optimised: half the time to compile.
        "--config-settings=cmake.build-type=Debug",
        "--config-settings=cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0",
        *what,
        cwd=SOURCE_DIR,
    )
    assert "Successfully installed layertrace" in result.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh one, with torch in it and layertrace installed."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run(sys.executable, "-m", "venv", folder, cwd=SOURCE_DIR)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    # Links, not a path: what else the tests' environment has is not to be found.
    for name in sorted(Path(sysconfig.get_paths()["purelib"]).iterdir()):
        if not name.name.lower().startswith(
            ("layertrace", "nanobind", "nlohmann", "scikit", "pip")
        ):
            target = packages / name.name
            if not target.exists():
                target.symlink_to(name)
    before = {path.name for path in packages.iterdir()}
    install(folder, ".")
    fetched = {path.name for path in packages.iterdir()} - before
    assert all(name.startswith("layertrace") for name in fetched), "nothing else was installed"
    return folder


def check_that_it_records(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    words = (environment / "bin" / "layertrace", "run", "--steps", "1:3", "--")
    result = run(*words, environment / "bin" / "python", "train.py", cwd=tmp_path)
    assert result.stdout == "done\n"
    assert "the trace is train.pftrace" in result.stderr
    tree = run(environment / "bin" / "layertrace", "tree", "train.pftrace", cwd=tmp_path).stdout
    assert "Linear" in tree
    assert "2 recorded steps" in tree


def test_it_records(environment: Path, tmp_path: Path) -> None:
    check_that_it_records(environment, tmp_path)


def test_the_command_without_the_command(environment: Path, tmp_path: Path) -> None:
    command = environment / "bin" / "layertrace"
    assert run(command, "--version", cwd=tmp_path).stdout.startswith("layertrace 0.")
    missing = run(command, "tree", "none.pftrace", cwd=tmp_path, check=False)
    assert missing.returncode == 1
    assert missing.stderr.startswith("layertrace: cannot read none.pftrace")
    refused = run(command, "run", "--steps", "9:3", "--", "true", cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert "as in 5:10" in refused.stderr
    absent = run(command, "run", "--", "no-such-program", cwd=tmp_path, check=False)
    assert absent.returncode == 127
    assert "cannot run no-such-program" in absent.stderr
    assert "libcli11-dev" in run(command, "--help", cwd=tmp_path).stdout


def test_another_torch_is_refused(environment: Path, tmp_path: Path) -> None:
    (built,) = environment.glob("lib/*/site-packages/layertrace/torch_version.txt")
    version = built.read_text()
    built.write_text("2.14.1\n")
    try:
        result = run(
            environment / "bin" / "python", "-c", "import layertrace", cwd=tmp_path, check=False
        )
    finally:
        built.write_text(version)
    assert result.returncode == 1
    assert "ImportError: layertrace was built against torch 2.14.1, and this" in result.stderr
    assert "pip install --force-reinstall" in result.stderr


def test_an_editable_install_uses_the_sources(environment: Path, tmp_path: Path) -> None:
    """The last one here: it takes the other's place."""
    install(environment, "--editable", ".")
    words = (environment / "bin" / "python", "-c")
    program = (
        "import layertrace, layertrace._core as core; print(layertrace.__file__, core.__file__)"
    )
    package, core = run(*words, program, cwd=tmp_path).stdout.split()
    assert Path(package) == SOURCE_DIR / "python" / "layertrace" / "__init__.py"
    assert Path(core).is_relative_to(environment)
    check_that_it_records(environment, tmp_path)
    test_another_torch_is_refused(environment, tmp_path)
