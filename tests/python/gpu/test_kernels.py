"""Every kernel knows its layer, on the simulated GPU: as torch.profiler's own records have it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import needs_simgpu, result_of
from support import BIN, BUILD_DIR

pytestmark = needs_simgpu
MODELS = ["resnet18", "vit", "gpt2", "bert", "lstm", "two_streams", "two_threads"]


def simulate(folder: Path, *words: str, options: tuple[str, ...] = ()) -> Any:
    """What the script tells of one model."""
    return result_of(folder, "trained.py", *words, options=options)[words[-1]]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return result_of(tmp_path_factory.mktemp("witness"), "trained.py", "witness", *MODELS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return result_of(tmp_path_factory.mktemp("layertrace"), "trained.py", "layertrace", *MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_kernels_belong_to_their_layers(expected: Any, recorded: Any, model: str) -> None:
    found = recorded[model]
    assert found["counts"] == expected[model]["counts"]
    assert found["same_when_loaded"]
    outside = {"backward of operators outside any module"}
    if model == "two_threads":  # where the model as a whole is never called, no loss can follow it
        outside.add("ran outside any module and any known phase")
    assert set(found["unattributed"]) <= outside


@pytest.mark.parametrize("model", MODELS)
def test_no_kernel_is_missing_and_their_times_are_right(
    expected: Any, recorded: Any, model: str
) -> None:
    """The simulated device takes the same time for a kernel in every run, whatever the clock; both
    profilers round it, layertrace to ticks of its clock: that's 2 ns for each kernel."""
    counts, times = expected[model]["counts"], expected[model]["ns"]
    assert recorded[model]["all"]["count"] == expected[model]["all"]["count"]
    for key, took in times.items():
        assert recorded[model]["ns"][key] == pytest.approx(took, abs=2 * counts[key]), key
    everything = expected[model]["all"]
    assert recorded[model]["all"]["ns"] == pytest.approx(
        everything["ns"], abs=2 * everything["count"]
    )


def test_a_tree_of_the_trace_shows_the_gpu(tmp_path: Path) -> None:
    simulate(tmp_path, "layertrace", "two_streams")
    tree = support.layertrace_output("tree", tmp_path / "two_streams.pftrace")
    assert "GPU forward" in tree
    assert "GPU backward" in tree
    assert tree.startswith("Simulated: ")
    layers = json.loads(support.layertrace_output("layers", tmp_path / "two_streams.pftrace"))
    assert "simulated" in layers["run"]["device"]
    assert layers["health"]["gpu"]["source"].startswith("CUPTI 13")
    left = next(layer for layer in layers["layers"] if layer["path"] == "left")
    assert left["forward"]["activities"] == 1
    assert left["forward"]["busy_ns"] > 0


# ---- What goes wrong ------------------------------------------------------------------------


def health_of(found: dict[str, Any]) -> str:
    return str(found["gpu"])


@pytest.mark.parametrize("fault", ["drop_records=9", "zero_timestamps=4", "reversed_timestamps=4"])
def test_what_is_missing_is_counted(tmp_path: Path, fault: str) -> None:
    whole = simulate(tmp_path, "layertrace", "two_streams")["activities"]
    found = simulate(tmp_path, "layertrace", "two_streams", options=("--faults", fault))
    health = json.loads(support.layertrace_output("layers", tmp_path / "two_streams.pftrace"))
    gpu = health["health"]["gpu"]
    kind = {"drop": "dropped", "zero": "untimed", "reve": "reversed"}[fault[:4]]
    assert gpu[kind] > 0
    assert {name for name in ("dropped", "untimed", "reversed") if gpu[name] != 0} == {kind}
    if kind != "dropped":
        assert found["activities"] == whole - gpu[kind]


def test_an_older_cupti_is_read_by_its_own_layouts(tmp_path: Path) -> None:
    today = simulate(tmp_path, "layertrace", "vit")
    old = simulate(tmp_path, "layertrace", "vit", options=("--faults", "old_cupti"))
    assert old["counts"] == today["counts"]
    assert "CUPTI 26" in health_of(old)


REFUSED = """
import sys, torch, layertrace
model = torch.nn.Linear(4, 4).cuda()
with layertrace.profile(model, require_gpu=len(sys.argv) > 1) as session:
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    session.step()
print(session.tree())
"""


@pytest.mark.parametrize(
    ("fault", "cause", "remedy"),
    [
        ("no_privileges", "CUPTI refuses", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("second_subscriber", "CUPTI refuses", "Another profiler"),
    ],
)
def test_where_cupti_refuses_the_host_is_recorded(
    tmp_path: Path, fault: str, cause: str, remedy: str
) -> None:
    (tmp_path / "refused.py").write_text(REFUSED)
    words = (BIN, "simgpu", "--faults", fault, "--", sys.executable, "refused.py")
    package = str(BUILD_DIR / "python")
    told = support.run(*words, cwd=tmp_path, PYTHONPATH=package)
    assert told.returncode == 0, told.stderr
    assert cause in told.stdout
    assert remedy in told.stdout
    assert "GPU forward" not in told.stdout
    required = support.run(*words, "require", cwd=tmp_path, PYTHONPATH=package)
    assert required.returncode == 1
    assert "layertrace._errors.Error: cannot record what the GPU does" in required.stderr
