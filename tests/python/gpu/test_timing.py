"""How a GPU's time is taken: by CUPTI, by CUDA events, by both; and what is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import REAL_GPU, needs_simgpu, result_of, same_times_in_every_run

pytestmark = needs_simgpu
LEAVES = ("light.0", "light.1", "light.2", "heavy")
PHASES = ("forward", "backward")


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same model and steps by each way."""
    return result_of(tmp_path_factory.mktemp("ways"), "timed.py", "ways")


def figures(told: Any, name: str) -> dict[str, float]:
    """Of the layers that ask the GPU for something themselves, by phase and path."""
    return {
        f"{phase} {path}": told["layers"][path][phase][name] for path in LEAVES for phase in PHASES
    }


def test_cupti_alone_counts_kernels(ways: Any) -> None:
    told = ways["cupti"]
    assert all(count > 0 for count in figures(told, "activities").values())
    assert all(took == 0 for took in figures(told, "event_ns").values())
    gpu = told["health"]["gpu"]
    assert (told["health"]["timing"], gpu["event_pairs"]) == ("cupti", 0)
    assert gpu["source"].startswith("CUPTI 13")
    assert told["health"]["cupti_version"] >= 130000
    assert told["kernels"] != []


def test_events_alone_time_every_layer(ways: Any) -> None:
    """Without a record of CUPTI's."""
    told = ways["events"]
    gpu = told["health"]["gpu"]
    assert (gpu["source"], gpu["records"], told["kernels"]) == ("", 0, [])
    assert (told["health"]["timing"], told["health"]["cupti_version"]) == ("events", 0)
    assert all(count == 0 for count in figures(told, "activities").values())
    times = figures(told, "event_ns")
    assert {key for key, took in times.items() if took <= 0} == set()
    assert gpu["events_missed"] == gpu["events_capturing"] == 0
    # In each of three steps: the calls of six modules, and the backward of each.
    assert gpu["event_pairs"] == 3 * 2 * 6


def test_both_is_the_one_and_the_other(ways: Any) -> None:
    told = ways["both"]
    assert told["health"]["timing"] == "both"
    assert figures(told, "activities") == figures(ways["cupti"], "activities")
    assert figures(told, "launches") == figures(ways["cupti"], "launches")
    assert told["health"]["gpu"]["event_pairs"] == ways["events"]["health"]["gpu"]["event_pairs"]


# By events, and by the kernels that they are held against: the same ones, or those of another run.
TIMED = [
    ("both", "both"),
    pytest.param("both", "cupti", marks=same_times_in_every_run),
    pytest.param("events", "cupti", marks=same_times_in_every_run),
]


@pytest.mark.parametrize(("way", "witness"), TIMED)
def test_events_enclose_the_layers_kernels(ways: Any, way: str, witness: str) -> None:
    """On the stream where they ran: its time is theirs, and what lies between them. Events tell it
    by half a microsecond at most."""
    kernels = figures(ways[witness], "activity_ns")
    for key, took in figures(ways[way], "event_ns").items():
        assert took >= kernels[key] - 500, key
    step = ways[way]["steps"][0]["wall_ns"]
    assert all(took < step for took in figures(ways[way], "event_ns").values())


@pytest.mark.parametrize(("way", "witness"), TIMED)
def test_a_busy_stream_takes_as_long_as_its_kernels(ways: Any, way: str, witness: str) -> None:
    """The heavy layer's kernels take some milliseconds, one after the other: beside that, what the
    host needs to ask for them is little."""
    kernels = ways[witness]["layers"]["heavy"]
    for phase in PHASES:
        took = ways[way]["layers"]["heavy"][phase]["event_ns"]
        asking = ways[way]["layers"]["heavy"][phase]["host_ns"]
        assert took <= kernels[phase]["activity_ns"] + 2 * asking, phase


def test_how_far_both_differ_is_told(ways: Any) -> None:
    assert "By CUDA events the innermost layers took" in ways["both"]["tree"]
    assert "By CUDA events" not in ways["cupti"]["tree"]


@pytest.mark.parametrize("way", ["both", "cupti", "events"])
def test_there_is_nothing_to_say_of_what_was_asked_for(ways: Any, way: str) -> None:
    assert ways[way]["health"]["notes"] == []


# ---- Where CUPTI is refused -----------------------------------------------------------------

REFUSALS = [
    ("no_privileges", "this user may not profile", "NVreg_RestrictProfilingToAdminUsers=0"),
    ("second_subscriber", "it has a client already", "Another profiler is attached"),
    ("no_cupti", "CUPTI was not found", "pip install nvidia-cuda-cupti"),
]


@pytest.mark.parametrize(("fault", "cause", "remedy"), REFUSALS)
def test_events_stand_in_for_cupti(tmp_path: Path, fault: str, cause: str, remedy: str) -> None:
    told = result_of(tmp_path, "timed.py", "fallback", options=("--faults", fault))
    assert told["health"]["timing"] == "events"
    assert (told["health"]["gpu"]["source"], told["kernels"]) == ("", [])
    for path in LEAVES:
        assert told["layers"][path]["forward"]["event_ns"] > 0, path

    simulated, note, instead, *_ = told["tree"].splitlines()
    assert simulated.startswith("Simulated: ")
    assert note.startswith("Note: cannot record what the GPU does: ")
    assert cause in note
    assert remedy in note
    assert instead.startswith("Note: the GPU's time is taken by CUDA events instead")
    assert told["tree"].count(remedy) == 1, "once"
    assert "GPU forward" in told["tree"]
    assert support.layertrace_output("tree", tmp_path / "fallback.pftrace") == told["tree"]

    assert cause in told["required"], "who requires a GPU gets an error instead"
    assert remedy in told["required"]
    # Who asks for events gets what was asked for.
    assert told["events"]["health"]["notes"] == []
    assert told["events"]["health"]["timing"] == "events"


# ---- What is left alone ---------------------------------------------------------------------


def test_a_program_without_cuda_gets_no_context(tmp_path: Path) -> None:
    told = result_of(tmp_path, "timed.py", "cpu")
    assert told["before"] == [False, False], "neither PyTorch's nor a context of the driver's"
    assert told["after"] == [True, True], "a context can be seen"
    assert told["health"]["gpu"]["event_pairs"] == 0
    assert told["health"]["gpu"]["records"] == 0
    assert told["layers"]["0"]["forward"]["host_ns"] > 0
    # Of a real GPU's memory the context takes some itself, and so do other programs.
    assert told["used"] == 0 or REAL_GPU, "bytes of the device's memory"


def test_two_devices(tmp_path: Path) -> None:
    told = result_of(tmp_path, "timed.py", "devices", options=("--devices", "2"))
    assert told["current"] == [0, 1], "the thread's device is as it was"
    assert [each["device"] for each in told["steps"][0]["devices"]] == [0, 1]
    assert all(each["busy_ns"] > 0 for each in told["steps"][0]["devices"])
    for path in ("first", "second"):
        for phase in PHASES:
            assert told["layers"][path][phase]["activities"] > 0, (path, phase)
            assert told["layers"][path][phase]["event_ns"] > 0, (path, phase)
    assert set(told["health"]["unattributed"]) <= {"backward of operators outside any module"}
    assert told["health"]["device"] == "2 × simulated H100-class GPU"


def test_an_error_that_the_program_has_not_asked_for_is_kept(tmp_path: Path) -> None:
    invalid_device = 101
    assert result_of(tmp_path, "timed.py", "errors") == {
        "made by us": 0,
        "wrong": invalid_device,
        "inside": invalid_device,
        "after": invalid_device,
        "again": 0,
    }
