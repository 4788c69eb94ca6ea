"""Whatever goes wrong on the GPU: the program never notices layertrace, and nothing is silent."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import support
from on_simgpu import HERE, needs_simgpu, result_of, simulate
from support import BUILD_DIR
from trace_decoder import decode

pytestmark = needs_simgpu

# Every fault that there is, with a number that brings it about in this short program.
DROP, ZERO, REVERSED, DUPLICATE, OVERLAP, EARLY = 9, 4, 7, 5, 6, 8
# In the middle of the steps; with the clock that can be set.
CLOCK_SET = "clock_set=90,no_timestamp_callback"
FAULTS = [
    "no_privileges",
    "second_subscriber",
    "no_cupti",
    "old_cupti",
    "ancient_cupti",
    "late_refusal",
    "no_timestamp_callback",
    "no_single_functions",
    CLOCK_SET,
    f"drop_records={DROP}",
    f"zero_timestamps={ZERO}",
    f"reversed_timestamps={REVERSED}",
    f"early={EARLY}",
    "late_buffer",
    "null_buffer=1",
    f"duplicate_correlation={DUPLICATE}",
    f"overlap={OVERLAP}",
    "device_lost=100",
    "allocation_fails=3",
]
# Those that reach a program which has nothing to do with CUPTI.
OF_THE_DEVICE = ["device_lost=100", "allocation_fails=3"]
MISSING = ("dropped", "buffers_lost", "no_buffer", "unknown", "untimed", "reversed")


@dataclass
class Run:
    result: subprocess.CompletedProcess[str]
    folder: Path
    seconds: float

    @property
    def seen(self) -> tuple[int, str]:
        """What a user sees of the program itself."""
        return self.result.returncode, self.result.stdout

    @property
    def trace(self) -> Path:
        return self.folder / "faulty.pftrace"

    def profile(self) -> Any:
        return json.loads(support.layertrace_output("layers", self.trace))

    def injected(self, fault: str) -> int:
        """How often the simulation did it, by its own count."""
        counts: dict[str, int] = json.loads((self.folder / "injected.json").read_text())
        return counts[fault]

    def missing(self) -> dict[str, int]:
        gpu = self.profile()["health"]["gpu"]
        return {name: gpu[name] for name in MISSING if gpu[name] != 0}


def train(folder: Path, how: str, fault: str, **variables: str) -> Run:
    folder.mkdir()
    options = ("--faults", fault) if fault else ()
    begin = time.monotonic()
    words = (sys.executable, HERE / "faulty.py", how)
    result = simulate(folder, *words, options=options, **variables)
    return Run(result, folder, time.monotonic() - begin)


Runs = dict[tuple[str, str], Run]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """By how and fault; several at once."""
    folder = tmp_path_factory.mktemp("faults")
    wanted = [("alone", fault) for fault in ("", *OF_THE_DEVICE)]
    wanted += [("recorded", fault) for fault in ("", *FAULTS)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        done = pool.map(lambda each: train(folder / "-".join(each), *each), wanted)
        return dict(zip(wanted, done, strict=True))


@pytest.fixture(scope="module")
def whole(runs: Runs) -> Any:
    """The profile where nothing goes wrong."""
    return runs["recorded", ""].profile()


def test_no_fault_is_forgotten() -> None:
    listed = support.layertrace_output("simgpu", "--list").split("Faults")[1]
    names = re.findall(r"^  ([a-z_]+)(?:=N)? +\S", listed, re.M)
    assert sorted(names) == sorted(fault.split("=")[0] for fault in FAULTS)


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_the_program_is_as_without_layertrace(runs: Runs, fault: str) -> None:
    """Its results and its exit code. A fault of CUPTI's is none of a program alone."""
    recorded = runs["recorded", fault]
    alone = runs["alone", fault if fault in OF_THE_DEVICE else ""]
    assert recorded.seen == alone.seen, recorded.result.stderr[-2000:]
    assert alone.result.returncode == (7 if fault in OF_THE_DEVICE else 0)
    assert alone.result.stdout.splitlines()[0].startswith("0 " if fault != OF_THE_DEVICE[1] else "")


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_the_session_ends_with_a_trace(runs: Runs, fault: str) -> None:
    run = runs["recorded", fault]
    assert not run.trace.with_suffix(".pftrace.part").exists()
    profile = run.profile()
    assert not profile["health"]["cut"]
    steps = len([line for line in run.result.stdout.splitlines() if line[:1].isdigit()])
    assert profile["health"]["steps"] >= min(steps, 6) - 1
    for piece in decode(run.trace).slices:
        assert piece.end_ns is not None and piece.end_ns >= piece.start_ns, piece


def test_nothing_is_missing_where_nothing_goes_wrong(runs: Runs, whole: Any) -> None:
    assert runs["recorded", ""].missing() == {}
    assert whole["health"]["activities"] == sum(kernel["count"] for kernel in whole["kernels"])
    assert whole["health"]["gpu"]["event_pairs"] == 6 * 2 * 6, "calls and backwards of six modules"


def test_dropped_records_are_counted_exactly(runs: Runs, whole: Any) -> None:
    run = runs["recorded", f"drop_records={DROP}"]
    all_records = whole["health"]["gpu"]["records"]
    gpu = run.profile()["health"]["gpu"]
    assert run.injected("drop_records") == all_records // DROP
    assert run.missing() == {"dropped": all_records // DROP}
    assert gpu["records"] + gpu["dropped"] == all_records
    tree = support.layertrace_output("tree", run.trace)
    assert f"{all_records // DROP} records dropped by CUPTI" in tree


@pytest.mark.parametrize(
    ("fault", "every", "name"),
    [("zero_timestamps", ZERO, "untimed"), ("reversed_timestamps", REVERSED, "reversed")],
)
def test_activities_without_sound_times_are_counted_exactly(
    runs: Runs, whole: Any, fault: str, every: int, name: str
) -> None:
    run = runs["recorded", f"{fault}={every}"]
    activities = whole["health"]["activities"]
    assert run.injected(fault) == activities // every
    assert run.missing() == {name: activities // every}
    assert run.profile()["health"]["activities"] == activities - activities // every


def figures_by_layer(profile: Any) -> list[tuple[str, float, float]]:
    return [
        (layer["path"], layer["forward"]["activities"], layer["backward"]["activities"])
        for layer in profile["layers"]
    ]


def counts_by_cause(profile: Any) -> dict[str, int]:
    return {why: told["count"] for why, told in profile["health"]["unattributed"].items()}


def test_a_late_buffer_is_waited_for(runs: Runs, whole: Any) -> None:
    run = runs["recorded", "late_buffer"]
    profile = run.profile()
    assert run.injected("late_buffer") >= 1
    assert run.missing() == {}
    assert profile["health"]["gpu"]["records"] == whole["health"]["gpu"]["records"]
    assert figures_by_layer(profile) == figures_by_layer(whole)


def test_a_buffer_that_comes_too_late_is_counted_exactly(tmp_path: Path, whole: Any) -> None:
    """Later than stop() waits for it. The others of the session come as late, while it runs."""
    run = train(tmp_path / "late", "recorded", "late_buffer=1500")
    assert run.result.returncode == 0, run.result.stderr
    assert run.injected("late_buffer") >= 1
    assert run.missing() == {"buffers_lost": 1}
    profile = run.profile()
    assert profile["health"]["gpu"]["records"] < whole["health"]["gpu"]["records"]
    assert not profile["health"]["cut"]
    assert "1 buffer lost" in support.layertrace_output("tree", run.trace)


def test_buffers_without_memory_are_counted_exactly(runs: Runs, whole: Any) -> None:
    """One comes before each that has some. How many there are depends on how often the writer
    runs; the simulation knows."""
    run = runs["recorded", "null_buffer=1"]
    assert run.injected("null_buffer") >= 1
    assert run.missing() == {"buffers_lost": run.injected("null_buffer")}
    assert figures_by_layer(run.profile()) == figures_by_layer(whole)
    assert re.search(r"\d+ buffers? lost", support.layertrace_output("tree", run.trace))


def test_an_old_cupti_is_read_by_its_own_layouts(runs: Runs, whole: Any) -> None:
    run = runs["recorded", "old_cupti"]
    profile = run.profile()
    assert run.missing() == {}
    assert profile["health"]["cupti_version"] == 26
    assert figures_by_layer(profile) == figures_by_layer(whole)


def test_functions_are_recorded_also_where_their_kind_must_be(runs: Runs, whole: Any) -> None:
    """Which NVIDIA's documentation does not say, and some GPUs were seen to want."""
    run = runs["recorded", "no_single_functions"]
    profile = run.profile()
    assert run.missing() == {}
    assert profile["health"]["gpu"]["records"] == whole["health"]["gpu"]["records"]
    assert figures_by_layer(profile) == figures_by_layer(whole)


def test_a_wall_clock_that_is_set_back_is_borne_and_told(runs: Runs, whole: Any) -> None:
    run = runs["recorded", CLOCK_SET]
    profile = run.profile()
    assert run.injected("clock_set") == 1
    assert profile["health"]["gpu"]["clock_set"] == 1
    assert "was set once while" in support.layertrace_output("tree", run.trace)
    assert run.missing() == {}
    assert counts_by_cause(profile) == counts_by_cause(whole)
    assert figures_by_layer(profile) == figures_by_layer(whole)
    # All that ran lies in its step, by our clock: no time is off by the minute.
    ran = activities(run)
    assert len(ran) == whole["health"]["activities"]
    assert max(each.end_ns for each in ran) - min(each.start_ns for each in ran) < 30e9
    for each in ran:
        assert each.start_ns >= each.args["launch_ns"] - 1e6, "as far as two clocks agree"
    for kept in ("recorded", ""), ("recorded", "no_timestamp_callback"):
        assert runs[kept].profile()["health"]["gpu"]["clock_set"] == 0


def test_times_are_right_behind_a_profiler_whose_clock_cupti_keeps(
    tmp_path: Path, whole: Any
) -> None:
    """Of this version CUPTI gets no clock of ours, unless it has another's already."""
    run = train(tmp_path / "after", "after_profiler", "old_cupti")
    assert run.result.returncode == 0, run.result.stderr
    profile = run.profile()
    assert profile["health"]["gpu"]["clock_set"] == 0
    assert profile["health"]["gpu"]["early"] == 0
    assert figures_by_layer(profile) == figures_by_layer(whole)
    ran = activities(run)
    step_ns = [step["start_ns"] for step in profile["steps"]]
    assert min(each.start_ns for each in ran) >= step_ns[0]
    for each in ran:
        assert each.start_ns - each.args["launch_ns"] < 1e9, each


SHARED = "has the correlation id of something else that the device did"


def test_two_kernels_with_one_correlation_are_kept_and_counted_exactly(
    runs: Runs, whole: Any
) -> None:
    """Of whom one is, is not known: it has no layer, rather than another's."""
    run = runs["recorded", f"duplicate_correlation={DUPLICATE}"]
    profile = run.profile()
    activities = whole["health"]["activities"]
    assert run.missing() == {}
    assert profile["health"]["activities"] == activities
    assert run.injected("duplicate_correlation") == activities // DUPLICATE
    assert profile["health"]["unattributed"][SHARED]["count"] == activities // DUPLICATE
    assert SHARED in support.layertrace_output("tree", run.trace)
    for layer, sound in zip(profile["layers"], whole["layers"], strict=True):
        for phase in ("forward", "backward"):
            assert layer[phase]["activities"] <= sound[phase]["activities"], layer["path"]


def test_kernels_that_overlap_on_a_stream_are_all_kept(runs: Runs, whole: Any) -> None:
    run = runs["recorded", f"overlap={OVERLAP}"]
    profile = run.profile()
    count = whole["health"]["activities"]
    assert run.injected("overlap") == count // OVERLAP
    assert profile["health"]["activities"] == count
    assert profile["health"]["gpu"]["records"] == whole["health"]["gpu"]["records"]
    assert run.missing() == {}
    assert figures_by_layer(profile) == figures_by_layer(whole)
    for layer in profile["layers"]:
        for phase in ("forward", "backward"):
            assert layer[phase]["busy_ns"] <= layer[phase]["activity_ns"]
    # Each that starts early takes longer by that: at least by half of its own time.
    assert profile["health"]["activity_ns"] > whole["health"]["activity_ns"]


def test_kernels_that_overlap_stand_on_a_track_beside_the_stream(runs: Runs) -> None:
    """Each that starts too early, and no other: so none lies in another."""
    run = runs["recorded", f"overlap={OVERLAP}"]
    trace = decode(run.trace)
    ran = activities(run)
    tracks = Counter(trace.tracks[each.track].name for each in ran)
    beside = run.injected("overlap")
    assert tracks == {"stream 7": len(ran) - beside, "stream 7, overlapping": beside}
    assert len({trace.tracks[each.track].parent for each in ran}) == 1, "one group for the device"
    assert [each for each in ran if each.parent is not None] == []
    in_stream = [each for each in ran if trace.tracks[each.track].name == "stream 7"]
    for each in ran:
        others = [other for other in in_stream if other is not each]
        overlaps = any(o.start_ns < each.end_ns and each.start_ns < o.end_ns for o in others)
        assert overlaps == (trace.tracks[each.track].name != "stream 7"), each
    sound = decode(runs["recorded", ""].trace)
    assert [track for track in sound.tracks.values() if "overlapping" in track.name] == []


@pytest.mark.parametrize(
    "fault", ["no_privileges", "second_subscriber", "no_cupti", "ancient_cupti", "late_refusal"]
)
def test_without_cupti_the_host_is_recorded(runs: Runs, whole: Any, fault: str) -> None:
    profile = runs["recorded", fault].profile()
    assert (profile["health"]["activities"], profile["kernels"]) == (0, [])
    assert profile["health"]["timing"] == "events"
    calls = [(layer["path"], layer["calls"]) for layer in profile["layers"]]
    assert calls == [(layer["path"], layer["calls"]) for layer in whole["layers"]]
    assert profile["health"]["gpu"]["source"] == ""
    assert profile["health"]["gpu"]["event_pairs"] == whole["health"]["gpu"]["event_pairs"]
    reasons = [note for note in profile["health"]["notes"] if "cannot record" in note]
    assert len(reasons) == 1, "told once"


def test_a_cupti_from_before_cuda_12_is_not_used(runs: Runs) -> None:
    notes = runs["recorded", "ancient_cupti"].profile()["health"]["notes"]
    assert "libcupti.so.13 is of version 18, from before CUDA 12" in notes[0]
    assert "LAYERTRACE_CUPTI" in notes[0]


# ---- A refusal that comes when recording begins ---------------------------------------------

DISABLED = "CUPTI refuses: another profiler has disabled it (23)"
INSTEAD = "the GPU's time is taken by CUDA events instead"


def test_a_refusal_at_the_first_window_is_told(runs: Runs) -> None:
    (note,) = runs["recorded", "late_refusal"].profile()["health"]["notes"]
    assert note.startswith(f"cannot record what the GPU does: {DISABLED}. ")
    assert INSTEAD in note


def test_a_refusal_at_a_later_window_is_told_with_its_step(tmp_path: Path) -> None:
    """CUPTI is asked once when the session starts, and at each of three windows: the first is
    recorded, the others are not, and that is told once."""
    told = result_of(tmp_path, "timed.py", "windows", options=("--faults", "late_refusal=3"))
    (note,) = told["health"]["notes"]
    assert note.startswith(f"from step 3 on: cannot record what the GPU does: {DISABLED}. ")
    assert INSTEAD in note
    assert told["health"]["timing"] == "both", "in one of the windows"
    assert told["health"]["gpu"]["source"].startswith("CUPTI 13")
    assert [step["index"] for step in told["steps"]] == [1, 3, 5]
    assert [step["devices"][0]["busy_ns"] > 0 for step in told["steps"]] == [True, False, False]
    assert told["health"]["gpu"]["event_pairs"] == 3 * 2 * 6, "events go on"


def test_a_session_without_a_thread_at_its_end_loses_nothing(tmp_path: Path, whole: Any) -> None:
    library = BUILD_DIR / "lib" / "tests" / "libno_threads.so"
    assert library.exists()
    run = train(tmp_path / "unthreaded", "unthreaded", "", LD_PRELOAD=str(library))
    assert run.result.returncode == 0, run.result.stderr
    assert "refused True 0" in run.result.stdout, "the thread keeps its device"
    assert run.missing() == {}
    profile = run.profile()
    assert profile["health"]["activities"] == whole["health"]["activities"]
    assert profile["health"]["gpu"]["event_pairs"] == whole["health"]["gpu"]["event_pairs"]
    assert figures_by_layer(profile) == figures_by_layer(whole)


@pytest.mark.parametrize("fault", OF_THE_DEVICE)
def test_what_ran_before_the_device_was_lost_is_there(runs: Runs, fault: str) -> None:
    """And the program's own error comes through."""
    run = runs["recorded", fault]
    assert run.result.stdout.splitlines()[-1].startswith(("AcceleratorError ", "RuntimeError "))
    assert run.profile()["health"]["activities"] > 0


def test_a_gpu_that_is_required(tmp_path: Path) -> None:
    run = train(tmp_path / "required", "required", "no_privileges")
    assert run.result.returncode == 1
    assert run.result.stdout == "", "it ends before the first step"
    assert "layertrace._errors.Error: cannot record what the GPU does" in run.result.stderr
    assert not run.trace.exists()


# ---- Number 12 of what it must survive ------------------------------------------------------


def activities(run: Run) -> list[Any]:
    return [
        each
        for each in decode(run.trace).slices
        if "correlation" in each.args and "context" in each.args
    ]


def test_a_kernel_before_its_launch_is_kept_flagged_and_counted(runs: Runs, whole: Any) -> None:
    run = runs["recorded", f"early={EARLY}"]
    profile = run.profile()
    count = whole["health"]["activities"]
    assert run.injected("early") == count // EARLY
    assert profile["health"]["gpu"]["early"] == count // EARLY
    assert profile["health"]["activities"] == count
    assert figures_by_layer(profile) == figures_by_layer(whole)
    assert run.missing() == {}
    slices = activities(run)
    flagged = [each for each in slices if each.args.get("early")]
    assert len(slices) == count
    assert len(flagged) == count // EARLY
    for each in slices:
        assert (each.start_ns < each.args["launch_ns"]) == ("early" in each.args), each
    tree = support.layertrace_output("tree", run.trace)
    assert f"{count // EARLY} activities of the GPU begin before the host asked for them" in tree


def test_nothing_begins_early_where_nothing_goes_wrong(runs: Runs, whole: Any) -> None:
    assert whole["health"]["gpu"]["early"] == 0
    assert not any("early" in each.args for each in activities(runs["recorded", ""]))


@pytest.mark.parametrize("fault", ["", "no_timestamp_callback"])
def test_a_counter_that_is_not_invariant_is_not_used(
    tmp_path: Path, whole: Any, fault: str
) -> None:
    run = train(tmp_path / "boottime", "recorded", fault, LAYERTRACE_CLOCK="boottime")
    profile = run.profile()
    assert profile["run"]["clock"] == "boottime"
    assert whole["run"]["clock"] != "boottime"
    assert run.missing() == {}
    assert figures_by_layer(profile) == figures_by_layer(whole)
    expect_sound_times(run, whole)


def test_a_cupti_that_takes_no_clock_is_placed_by_both_clocks(runs: Runs, whole: Any) -> None:
    run = runs["recorded", "no_timestamp_callback"]
    assert run.missing() == {}
    assert figures_by_layer(run.profile()) == figures_by_layer(whole)
    expect_sound_times(run, whole)


def expect_sound_times(run: Run, whole: Any) -> None:
    """The device takes the same time for a kernel in every run, and comes to it soon after it was
    asked; two clocks that are read together differ by some microseconds at most."""
    near = 100_000
    took = whole["health"]["activity_ns"]
    assert run.profile()["health"]["activity_ns"] == pytest.approx(took, rel=0.01)
    slices = activities(run)
    assert len(slices) == whole["health"]["activities"]
    for each in slices:
        assert each.end_ns >= each.start_ns >= each.args["launch_ns"] - near, each
        assert each.start_ns < each.args["launch_ns"] + 1_000_000_000, each


# ---- Under another profiler -----------------------------------------------------------------

NSIGHT = {"NSYS_PROFILING_SESSION_ID": "4711"}


def test_under_nsight_systems_ranges_alone_are_made(tmp_path: Path, whole: Any) -> None:
    injection = BUILD_DIR / "lib" / "tests" / "libnvtx_injection.so"
    log = tmp_path / "log"
    listener = {"NVTX_INJECTION64_PATH": str(injection), "NVTX_LOG": str(log)}
    run = train(tmp_path / "nsight", "recorded", "", **NSIGHT, **listener)
    assert run.result.returncode == 0, run.result.stderr
    profile = run.profile()
    gpu = profile["health"]["gpu"]
    assert (gpu["source"], gpu["records"], gpu["event_pairs"]) == ("", 0, 0)
    assert profile["health"]["timing"] == ""
    assert [each for each in decode(run.trace).slices if "context" in each.args] == []
    calls = [(layer["path"], layer["calls"]) for layer in profile["layers"]]
    assert calls == [(layer["path"], layer["calls"]) for layer in whole["layers"]]
    (note,) = profile["health"]["notes"]
    assert "Nsight Systems is attached to this process (NSYS_PROFILING_SESSION_ID is set)" in note
    assert "NVTX ranges" in note
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    pushed = [line[-1] for line in lines if line[1:3] == ["push", "layertrace"]]
    assert pushed.count("0") == 2 * 6, "the convolution's forward and backward, in each step"


def test_under_nsight_compute_a_gpu_that_is_required_is_an_error(tmp_path: Path) -> None:
    variable = {"NV_COMPUTE_PROFILER_PERFWORKS_DIR": "/opt/ncu"}
    run = train(tmp_path / "required", "required", "", **variable)
    assert run.result.returncode == 1
    assert run.result.stdout == "", "it ends before the first step"
    assert "Nsight Compute is attached to this process" in run.result.stderr
    assert not run.trace.exists()


# ---- Number 13 ------------------------------------------------------------------------------

ON_THE_CPU = """
import sys, torch, layertrace
model = torch.nn.Linear(4, 4)
with layertrace.profile(model, require_gpu=len(sys.argv) > 1) as session:
    model(torch.ones(2, 4)).sum().backward()
    session.step()
print(session.tree())
"""


def test_no_gpu(tmp_path: Path) -> None:
    words = (sys.executable, "-c", ON_THE_CPU)
    told = simulate(tmp_path, *words, options=("--devices", "0"))
    assert told.returncode == 0, told.stderr
    assert "Linear" in told.stdout
    assert "GPU forward" not in told.stdout
    required = simulate(tmp_path, *words, "required", options=("--devices", "0"))
    assert required.returncode == 1
    assert "PyTorch sees no CUDA device" in required.stderr


def test_a_library_that_is_no_cupti(tmp_path: Path) -> None:
    """Named by who looks for one: a library that can be loaded, and has none of the functions."""
    (library,) = Path("/").glob("lib/x86_64-linux-gnu/libm.so.6")
    words = (sys.executable, HERE / "faulty.py", "recorded")
    told = simulate(
        tmp_path, *words, options=("--faults", "no_cupti"), LAYERTRACE_CUPTI=str(library)
    )
    assert told.returncode == 0, told.stderr
    profile = json.loads(support.layertrace_output("layers", tmp_path / "faulty.pftrace"))
    (reason,) = (note for note in profile["health"]["notes"] if "cannot record" in note)
    assert "is not complete" in reason
    assert "LAYERTRACE_CUPTI" in reason
