"""`layertrace run` on programs that train on a GPU and were not changed, in Python and in C++."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import support
from by_layer import but_elsewhere, kernels_by_layer
from on_simgpu import HERE, REAL_GPU, needs_simgpu, result_of, simulate
from support import BIN, BUILD_DIR

pytestmark = needs_simgpu
TWIN = (sys.executable, HERE / "twin.py")
TRAINER = BUILD_DIR / "bin" / "unchanged_cuda"
STEPS, FIRST, LAST = 6, 2, 5
LAYERS = {"conv", "bn", "relu", "pool", "norm", "head"}


def run(folder: Path, name: str, *program: str | Path) -> subprocess.CompletedProcess[str]:
    """Under `layertrace run`, on the simulated GPU."""
    words = (BIN, "run", "--steps", f"{FIRST}:{LAST}", "-o", f"{name}.pftrace", "--")
    return simulate(folder, *words, *program, str(STEPS))


def profile_of(trace: Path) -> Any:
    return json.loads(support.layertrace_output("layers", trace))


def kernels_of(profile: Any) -> Counter[tuple[str, str, str]]:
    """How often each ran for whom, in the recorded steps."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for kernel in profile["kernels"]:
        for use in kernel["uses"]:
            if use["path"] is not None:
                counts[use["path"], use["phase"], kernel["name"]] += use["count"]
    return counts


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same network by a session of its own, and by `run` in both languages."""
    folder = tmp_path_factory.mktemp("run")
    own = simulate(folder, *TWIN, str(STEPS), "session.pftrace", str(FIRST), str(LAST))
    results = [own, run(folder, "python", *TWIN), run(folder, "cpp", TRAINER)]
    for result in results:
        assert (result.returncode, result.stdout) == (0, f"trained {STEPS}\n"), result.stderr
    assert "GPU backward" in results[1].stderr, "the tree"
    assert "GPU backward" in results[2].stderr
    names = ("session", "python", "cpp")
    return {name: profile_of(folder / f"{name}.pftrace") for name in names}


def test_the_steps_are_those_asked_for(profiles: Any) -> None:
    for name, profile in profiles.items():
        assert [step["index"] for step in profile["steps"]] == [2, 3, 4], name
        assert ("simulated" in profile["run"]["device"]) != REAL_GPU, name
        assert profile["health"]["timing"] == "both", name


def test_every_layer_has_its_kernels(profiles: Any) -> None:
    """The same in each step."""
    counts = kernels_of(profiles["session"])
    assert {(path, phase) for path, phase, _ in counts} == {
        (path, phase) for path in LAYERS | {""} for phase in ("forward", "backward")
    }
    assert {count % (LAST - FIRST) for count in counts.values()} == {0}


def test_they_are_those_that_torch_profiler_sees(profiles: Any, tmp_path: Path) -> None:
    """Of the session; the tests below hold `run` against it, in both languages."""
    told = result_of(tmp_path, "trained.py", "witness", "unchanged")["unchanged"]
    found = but_elsewhere(kernels_by_layer(profiles["session"]))
    assert found == but_elsewhere(told["kernels"], LAST - FIRST)


def test_a_script_that_was_not_changed(profiles: Any) -> None:
    assert kernels_of(profiles["python"]) == kernels_of(profiles["session"])


def test_a_cpp_program_that_was_not_rebuilt(profiles: Any) -> None:
    """What a layer does is the same in both languages. C++ enters only LibTorch's own layers: what
    the model does between them is its own by inference, and said to be."""
    assert kernels_of(profiles["cpp"]) == kernels_of(profiles["session"])
    counts = kernels_of(profiles["cpp"])
    own = [n for (path, phase, _), n in counts.items() if (path, phase) == ("", "forward")]
    assert sum(own) == 4 * (LAST - FIRST)  # sigmoid, mul, tanh, add
    assert profiles["cpp"]["health"]["inferred"] >= sum(own)
    assert profiles["session"]["health"]["inferred"] == 0
    assert set(profiles["cpp"]["health"]["unattributed"]) <= set(
        profiles["session"]["health"]["unattributed"]
    ) | {"after the last layer of a module without a scope: its own, or the loss"}
    types = {
        name: {layer["path"]: layer["type"] for layer in profile["layers"] if layer["path"]}
        for name, profile in profiles.items()
    }
    assert types["cpp"] == types["python"] == types["session"]


def test_events_are_there_for_every_layer(profiles: Any) -> None:
    for name, profile in profiles.items():
        for layer in profile["layers"]:
            if layer["path"] in LAYERS:
                assert layer["forward"]["event_ns"] > 0, (name, layer["path"])
                assert layer["backward"]["event_ns"] > 0, (name, layer["path"])


def test_what_was_asked_for_before_the_window_is_told_apart(profiles: Any) -> None:
    """The session warms up for two steps, and the device is recorded a while longer than the host:
    those kernels are counted, and belong to no step."""
    profile = profiles["session"]
    of_a_step, rest = divmod(profile["health"]["activities"], LAST - FIRST)
    assert rest == 0
    outside = profile["health"]["gpu"]["outside_steps"]
    assert FIRST * of_a_step <= outside <= (STEPS - (LAST - FIRST)) * of_a_step


def test_a_graph_that_is_captured_before_the_recorded_steps(tmp_path: Path) -> None:
    """Steps before those that are recorded warm up: so what is captured there has its layers."""
    words = (BIN, "run", "-o", "captured.pftrace", "--")
    result = simulate(tmp_path, *words, sys.executable, HERE / "captured_program.py")
    assert (result.returncode, result.stdout) == (0, "trained\n"), result.stderr
    profile = profile_of(tmp_path / "captured.pftrace")
    assert [step["index"] for step in profile["steps"]] == [7, 8, 9, 10, 11]
    assert profile["health"]["gpu"]["earlier_graphs"] == 0
    for layer in profile["layers"]:
        if layer["path"]:
            assert layer["forward"]["activities"] >= 1, layer["path"]
            assert layer["backward"]["activities"] >= 1, layer["path"]
            assert layer["forward"]["host_ns"] == 0, "replays call no module"
