"""Programs that end badly, or run out of something, while a session records.

Each test runs `fault_victim` as a child process and looks at what it leaves behind. The number in
a test's name is that of the fault in the list of what layertrace must survive.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import BUILD_DIR, ENVIRONMENT, TIMEOUT_S, layertrace, layertrace_output, run
from trace_decoder import Decoded, decode, split_packets

VICTIM = BUILD_DIR / "bin" / "fault_victim"
STEPS = 3  # of mode "end"


def says(output: str) -> dict[str, str]:
    """The victim's "key value" lines."""
    return dict(line.split(" ", 1) for line in output.splitlines())


def victim(*arguments: str | Path | int, code: int = 0) -> dict[str, str]:
    """Runs the victim, which must end with this code (−n: by signal n)."""
    result = run(VICTIM, *(str(each) for each in arguments))
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    return says(result.stdout)


@contextmanager
def running_victim(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [VICTIM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


@cache
def decoded(trace: Path) -> Decoded:
    """A finished trace, by Perfetto's protos. Each test has its own folder, so paths tell."""
    return decode(trace)


def profile_of(trace: Path) -> dict[str, Any]:
    return json.loads(layertrace_output("layers", trace, "--format", "json"))


def assert_whole(trace: Path, steps: int) -> dict[str, Any]:
    """A trace that has all there was: read by layertrace and (unless that would take long, in
    Python) by Perfetto's protos."""
    if trace.stat().st_size < 2_000_000:
        assert decoded(trace).footer is not None
    profile = profile_of(trace)
    assert profile["health"]["cut"] is False
    assert len(profile["steps"]) == steps
    assert not trace.with_name(trace.name + ".part").exists()
    return profile


def assert_cut(trace: Path, at_least_steps: int) -> dict[str, Any]:
    """What a killed program leaves: no final name, a part that opens and says what it is."""
    assert not trace.exists()
    part = trace.with_name(trace.name + ".part")
    assert decode(part, may_be_cut=True).footer is None
    assert "cut off" in layertrace_output("info", part)
    assert "fc1" in layertrace_output("tree", part)
    profile = profile_of(part)
    assert profile["health"]["cut"] is True
    assert len(profile["steps"]) >= at_least_steps
    return profile


def step_ends(trace: Decoded) -> int:
    return sum("step" in each.end_args for each in trace.on(trace.track_named("steps")))


def gaps(trace: Decoded) -> int:
    marks = [each.args["dropped"] for each in trace.instants if each.name == "records dropped"]
    return sum(marks)  # type: ignore[arg-type]


# ---- 1: buffer full -------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 4])
def test_1_buffer_full(tmp_path: Path, threads: int) -> None:
    """The disk hangs while far more is recorded than fits; that the victim ends at all shows that
    no hook waited for it."""
    trace = tmp_path / "run.pftrace"
    said = victim("flood", trace, 200_000, threads)
    emitted, recorded, dropped = (int(said[key]) for key in ("emitted", "recorded", "dropped"))
    assert emitted == int(said["expected"])
    assert recorded + dropped == emitted
    assert 0 < dropped < emitted

    health = assert_whole(trace, steps=2)["health"]
    assert [health[key] for key in ("emitted", "recorded", "dropped")] == [
        emitted,
        recorded,
        dropped,
    ]
    # The place: the gaps that are marked in the trace add up to what is missing.
    seen = decoded(trace)
    assert seen.footer is not None
    assert seen.footer["dropped"] == dropped
    assert gaps(seen) == dropped
    assert f"{dropped:,} dropped of {emitted:,} records" in layertrace_output("tree", trace)
    # Nothing of what was kept is torn: each begin has its end.
    slices = sum(len(seen.on(thread.uuid)) for thread in seen.threads)
    assert 2 * slices == recorded - 3  # recording starts, two steps


# ---- 2: memory cap --------------------------------------------------------------------------

MEBIBYTE = 1 << 20


CAP = 16 * MEBIBYTE
MEMORY_STEPS = 600


@pytest.fixture(scope="module")
def grown_without_session_kib() -> int:
    return int(victim("memory", "-", MEMORY_STEPS, CAP)["grown_kib"])


@pytest.mark.parametrize("disk", [(), ("hold",)], ids=["disk works", "disk hangs"])
def test_2_memory_cap(
    tmp_path: Path, grown_without_session_kib: int, disk: tuple[str, ...]
) -> None:
    """A million operators under a cap of 16 MiB.

    What counts is the program's own (anonymous) memory, at its highest, against the same run
    without a session. Not counted: pages of files, since layertrace's code is no recording. The
    bound is the promised cap + 10 %, and 1 MiB for what malloc keeps of the pages it was given.
    """
    said = victim("memory", tmp_path / "run.pftrace", MEMORY_STEPS, CAP, *disk)
    assert said["stop"] == "ok"
    assert int(said["emitted"]) > 2_000_000
    assert (int(said["dropped"]) > 0) == bool(disk)
    grown = (int(said["grown_kib"]) - grown_without_session_kib) * 1024
    assert grown <= CAP * 1.1 + MEBIBYTE, f"{grown / MEBIBYTE:.1f} MiB"


# ---- 3 and 6: killed while recording --------------------------------------------------------


def wait_for_steps(part: Path, steps: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        written = part.exists() and part.stat().st_size > 0
        if written and step_ends(decode(part, may_be_cut=True)) >= steps:
            return
        time.sleep(0.05)
    raise AssertionError("the steps were never written")


@pytest.mark.parametrize("seed", range(3))
def test_3_kill_while_recording(tmp_path: Path, seed: int) -> None:
    trace = tmp_path / "run.pftrace"
    part = tmp_path / "run.pftrace.part"
    with running_victim("record", trace) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "paused 10\n"
        wait_for_steps(part, 10)  # sealed: from here on, whatever comes may not touch them
        process.stdin.write("go on\n")
        process.stdin.flush()
        time.sleep(random.Random(seed).uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    profile = assert_cut(trace, at_least_steps=10)
    assert [step["index"] for step in profile["steps"]] == list(range(len(profile["steps"])))
    forward = next(layer for layer in profile["layers"] if layer["path"] == "fc1")["forward"]
    assert forward["min"]["calls"] == forward["max"]["calls"] == 1


@pytest.mark.parametrize("kind", ["segv", "abort"])
def test_6_fatal_signals_keep_their_action(tmp_path: Path, kind: str) -> None:
    number = {"segv": signal.SIGSEGV, "abort": signal.SIGABRT}[kind]
    victim("end", kind, "-", code=-number)
    trace = tmp_path / "run.pftrace"
    victim("end", kind, trace, code=-number)
    assert_cut(trace, at_least_steps=STEPS)


# ---- 4: killed while exporting --------------------------------------------------------------


@pytest.mark.parametrize("where", ["write", "rename"])
def test_4_kill_inside_save(tmp_path: Path, where: str) -> None:
    target = tmp_path / "saved.pftrace"
    target.write_text("old")
    victim("save", where, tmp_path / "run.pftrace", target, code=-signal.SIGKILL)
    assert target.read_text() == "old"


def test_4_kill_while_saving(tmp_path: Path) -> None:
    """At any time: what bears the name is the old file or the new one, whole."""
    trace, target = tmp_path / "run.pftrace", tmp_path / "saved.pftrace"
    found = set()
    for seed in range(4):
        target.write_text("old")
        with running_victim("save", "-", trace, target) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "stop ok\n"
            time.sleep(random.Random(seed).uniform(0, 0.01))
            process.send_signal(signal.SIGKILL)
            process.wait(TIMEOUT_S)
        if target.read_bytes() == b"old":
            found.add("old")
        else:
            assert target.read_bytes() == trace.read_bytes()
            found.add("new")
    assert found


# ---- 5: ends without stop -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("local", 5),
        ("static", 5),
        ("leak", 5),
        ("exit", 3),
        ("exit_in_forward", 3),
        ("exit_on_thread", 3),
        ("quick_exit", 3),
        ("throw", -signal.SIGABRT),
        ("throw_on_thread", -signal.SIGABRT),
        ("throw_in_noexcept", -signal.SIGABRT),
    ],
)
def test_5_end_without_stop(tmp_path: Path, kind: str, code: int) -> None:
    trace = tmp_path / "run.pftrace"
    ended = run(VICTIM, "end", kind, trace)
    assert ended.returncode == code
    if code < 0:
        without = run(VICTIM, "end", kind, "-")
        assert (ended.returncode, ended.stderr) == (without.returncode, without.stderr)
    else:
        assert ended.stderr == ""
    profile = assert_whole(trace, steps=STEPS)
    assert profile["health"]["dropped"] == 0


def test_5_underscore_exit_leaves_the_part(tmp_path: Path) -> None:
    """_exit() runs nothing of anybody's: what was written is there, as after a kill."""
    trace = tmp_path / "run.pftrace"
    victim("end", "_exit", trace, code=4)
    assert not trace.exists()
    assert layertrace("tree", f"{trace}.part").returncode in (0, 1)  # there may be nothing in it


# ---- 7: disk --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "RLIMIT_FSIZE", "rename"])
def test_7_disk_fails_while_recording(tmp_path: Path, kind: str) -> None:
    trace, other = tmp_path / "run.pftrace", tmp_path / "other.pftrace"
    said = victim("disk", kind, trace, other, 20)
    cause = {
        "ENOSPC": os.strerror(errno.ENOSPC),
        "EIO": os.strerror(errno.EIO),
        "RLIMIT_FSIZE": os.strerror(errno.EFBIG),
        "rename": os.strerror(errno.EIO),
    }[kind]
    assert said["start"] == "ok"
    assert said["stop"].startswith(f"cannot write {trace}: {cause}. ")
    assert "profile()" in said["stop"]
    assert "save()" in said["stop"]
    assert said["profile"] == "ok"
    assert said["steps"] == "20"
    assert said["save"] == said["save_again"] == said["next_start"] == "ok"
    assert_whole(other, steps=20)
    assert not trace.exists()
    # What had gone to disk before is still a readable trace, and says that it is cut.
    part = trace.with_name(trace.name + ".part")
    assert split_packets(part.read_bytes())[1], "the file ends inside a packet"
    assert profile_of(part)["health"]["cut"] is (kind != "rename")


def test_7_disk_recovers(tmp_path: Path) -> None:
    """Full for a while, and free again before the end: nothing is lost, and nobody is told."""
    trace = tmp_path / "run.pftrace"
    said = victim("disk", "recovers", trace, tmp_path / "other.pftrace", 20)
    assert said["stop"] == said["save"] == "ok"
    assert_whole(trace, steps=20)


def test_7_no_permission(tmp_path: Path) -> None:
    """The victim is not root there, whoever runs the test."""
    tmp_path.chmod(0o555)
    output = tmp_path / "run.pftrace"
    said = victim("disk", "permission", output, tmp_path / "other.pftrace", 1)
    assert said["start"] == (
        f"cannot write {output}: {os.strerror(errno.EACCES)}. Choose a path that you may write to"
    )


def test_7_disk_full_for_long(tmp_path: Path) -> None:
    """More than may be kept in memory: the end of the trace is lost, which is said; the result is
    complete all the same, and what is left of the trace is whole up to there."""
    trace, other = tmp_path / "run.pftrace", tmp_path / "other.pftrace"
    said = victim("disk", "ENOSPC", trace, other, 3000)
    assert said["stop"].startswith(f"cannot write {trace}: {os.strerror(errno.ENOSPC)}")
    assert "the end of the trace is lost" in said["stop"]
    assert said["steps"] == "3000"
    assert said["save"] == "ok"
    decode(other, may_be_cut=True)
    profile = profile_of(other)
    assert profile["health"]["cut"] is True
    assert 20 < len(profile["steps"]) < 3000


def can_mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "layertrace", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_7_really_full_disk(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if not can_mount(small):
        pytest.skip("mounting a small file system is not permitted here")
    try:
        said = victim("disk", "-", small / "run.pftrace", tmp_path / "other.pftrace", 50)
        assert os.strerror(errno.ENOSPC) in said["stop"]
        assert said["save"] == "ok"
        assert_whole(tmp_path / "other.pftrace", steps=50)
        assert profile_of(small / "run.pftrace.part")["health"]["cut"] is True
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.parametrize("kind", ["missing folder", "folder", "file as folder", "device", "proc"])
def test_7_bad_place(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    output, cause = {
        "missing folder": (tmp_path / "none" / "run.pftrace", errno.ENOENT),
        "folder": (tmp_path, errno.EISDIR),
        "file as folder": (tmp_path / "file" / "run.pftrace", errno.ENOTDIR),
        "device": (Path("/dev/full"), None),
        "proc": (Path("/proc/self/run.pftrace"), errno.ENOENT),
    }[kind]
    said = victim("disk", "-", output, tmp_path / "other.pftrace", 1)
    tried, _, why = said["start"].partition(": ")
    assert tried == f"cannot write {output}"
    why, _, remedy = why.partition(". ")
    assert why == (os.strerror(cause) if cause else "it is not a regular file")
    assert remedy


# ---- 8: fork --------------------------------------------------------------------------------


def test_8_forks(tmp_path: Path) -> None:
    """Fifty children of a program one of whose threads records heavily all the while. They go on
    with the model and the session they inherited, and exit, exec, destroy the session, or start
    one of their own."""
    trace = tmp_path / "run.pftrace"
    said = victim("forks", trace, 50)
    codes = [int(code) for code in said["children"].rstrip(",").split(",")]
    assert codes == [7] * 50
    assert said["stop"] == "ok"
    assert said["steps"] == said["steps_made"]
    profile = assert_whole(trace, steps=int(said["steps"]))
    assert [step["index"] for step in profile["steps"]] == list(range(int(said["steps"])))

    children = sorted(tmp_path.glob("*.child*"))
    assert len(children) == 5
    pids = {profile["run"]["pid"]}
    for child in children:
        own = assert_whole(child, steps=2)
        pids.add(own["run"]["pid"])
        root = own["layers"][0]
        assert root["forward"]["min"]["calls"] == root["forward"]["max"]["calls"] == 1
        # The same two steps without a fork, below, have as many operators: none counts twice.
        assert own["health"]["activities"] == 2 * activities_per_step(tmp_path)
    assert len(pids) == 1 + len(children)
    left = {path.name for path in tmp_path.iterdir()} - {path.name for path in children}
    assert left == {"run.pftrace", "plain.pftrace"}


def test_8_fork_inside_hooks(tmp_path: Path) -> None:
    said = victim("fork_in_hooks", tmp_path / "run.pftrace", 30)
    assert said["children"] == "7," * 30
    assert said["stop"] == "ok"


def activities_per_step(folder: Path) -> int:
    trace = folder / "plain.pftrace"
    if not trace.exists():
        victim("end", "local", trace, code=5)
    activities = profile_of(trace)["health"]["activities"]
    assert activities % STEPS == 0
    return activities // STEPS


def test_8_data_loader_workers(tmp_path: Path) -> None:
    trace = tmp_path / "run.pftrace"
    said = victim("loader", trace)
    assert said["stop"] == "ok"
    assert_whole(trace, steps=24)
    seen = decoded(trace)
    per_thread = [
        sum(each.name == "data" for each in seen.on(thread.uuid)) for thread in seen.threads
    ]
    assert sum(per_thread) == 3 * 64  # each example, whichever worker made it


# ---- 9: threads -----------------------------------------------------------------------------


def test_9_threads_come_and_go(tmp_path: Path) -> None:
    trace = tmp_path / "run.pftrace"
    said = victim("threads", trace, 200)
    assert said["stop"] == "ok"
    assert said["emitted"] == said["expected"]
    assert int(said["recorded"]) + int(said["dropped"]) == int(said["emitted"])
    assert said["dropped"] == "0"
    assert_whole(trace, steps=5)
    seen = decoded(trace)
    slices = sum(len(seen.on(thread.uuid)) for thread in seen.threads)
    assert 2 * slices + 1 + 5 == int(said["recorded"])


def test_9_short_sessions(tmp_path: Path) -> None:
    said = victim("sessions", tmp_path / "run.pftrace", 150)
    assert said == {"wrong": "0"}


def test_9_stop_while_others_run(tmp_path: Path) -> None:
    trace = tmp_path / "run.pftrace"
    said = victim("busy_stop", trace)
    assert said["stop"] == said["next_stop"] == "ok"
    assert_whole(trace, steps=1)
    assert_whole(tmp_path / "run.pftrace.next", steps=1)


def test_9_signals_are_for_the_programs_threads(tmp_path: Path) -> None:
    said = victim("signals", tmp_path / "run.pftrace")
    assert said == {"received": "SIGUSR1", "stop": "ok"}


def test_9_no_thread_for_the_writer(tmp_path: Path) -> None:
    said = victim("no_thread", tmp_path / "run.pftrace")
    assert said["start"].startswith("cannot start a session: no thread")
    assert said["next_start"] == "ok"


# ---- 10: out of turn ------------------------------------------------------------------------


def test_10_out_of_turn(tmp_path: Path) -> None:
    trace, other = tmp_path / "run.pftrace", tmp_path / "other.pftrace"
    said = victim("nested", trace, other)
    second = f"cannot start a session: one is already active (it writes {trace}). Stop it first"
    assert said["second_start"].startswith(second.rpartition(". ")[0])
    assert said["thread_start"] == said["second_start"]
    assert said["early_profile"].startswith("cannot give a profile: the session is still recording")
    assert said["early_save"].startswith(f"cannot save the trace to {other}: ")
    assert said["stop"] == "ok"
    assert said["steps"] == "2"
    assert said["second_stop"].startswith("cannot stop the session: it was stopped before")
    assert said["recording"] == "0"
    assert said["late_profile"] == "ok"
    assert said["moved_from_stop"].startswith("cannot use the session: it was moved from")
    assert said["moved_to_profile"] == "ok"
    assert said["next_start"] == said["next_stop"] == "ok"
    assert "is null" in said["no_models"]
    assert "memory_cap_bytes" in said["small_cap"]
    assert_whole(trace, steps=2)
    assert_whole(other, steps=1)


# ---- 11: modules ----------------------------------------------------------------------------


def test_11_modules(tmp_path: Path) -> None:
    trace = tmp_path / "run.pftrace"
    said = victim("modules", trace)
    assert said["stop"] == "ok"
    profile = assert_whole(trace, steps=3)
    layers = {layer["path"]: layer for layer in profile["layers"]}
    seen = decoded(trace)

    # Forward raises: the scopes it left are closed and marked, root and leaf, and no others.
    thrown = [each for each in seen.slices if each.end_args.get("ended_by") == "exception"]
    assert sorted((each.path, each.category) for each in thrown) == sorted(
        [("", "forward"), ("throwing", "forward"), ("recursive.fc", "forward")] * 3
    )
    assert profile["health"]["thrown_scopes"] == 9
    assert profile["health"]["cut_scopes"] == 0

    # Recursion: five calls a forward, and the time of the outermost.
    recursive = layers["recursive"]["forward"]
    assert recursive["calls"] == 2 * 5
    outermost = [
        each
        for each in seen.on(seen.threads[0].uuid)
        if each.name in ("recursive", "recursive.fc")
        and each.category == "forward"
        and (each.parent is None or each.parent.path == "")
    ]
    assert [each.name for each in outermost] == ["recursive", "recursive.fc", "recursive"] * 3
    assert recursive["host_ns"] == pytest.approx(sum(each.duration_ns for each in outermost) / 3)

    # Shared: one module under two names; all its calls are found, and it says so.
    assert layers["second"]["shared_with"] == "first"
    assert layers["first"]["calls"] + layers["second"]["calls"] == 4

    # Recomputed in the backward.
    assert layers["recomputed"]["recompute"]["calls"] == 1
    assert layers["recomputed"]["forward"]["calls"] == 2

    # Removed, and others at its address: each call belongs to a layer of the right class.
    calls = {
        path: layers[path]["forward"]["calls"] * 3
        for path in ("removed", "other_class", "same_class")
        if path in layers
    }
    assert calls.pop("other_class") == 1
    assert sum(calls.values()) == 2
    assert calls["removed"] >= 1
    assert layers["(Linear)"]["registered"] is False
    assert layers["(Linear)"]["calls"] == 1


def test_11_hostile_names(tmp_path: Path) -> None:
    trace = tmp_path / "run.pftrace"
    assert victim("names", trace)["stop"] == "ok"
    names = {layer["name"] for layer in profile_of(trace)["layers"]}
    assert {"\x1b[31mred\x1b]0;title\a", "two\nlines\ttab", 'quote"back\\slash', "層→🙂"} <= names
    for command in ("tree", "info"):
        output = layertrace_output(command, trace)
        assert all(each.isprintable() for each in output.splitlines())
    # A name is one line: as many as layers, a head of four and a ledger.
    lines = layertrace_output("tree", trace, "--no-fold").splitlines()
    assert sum(line.startswith(("├", "└")) for line in lines) == 8
    raw, whole = split_packets(trace.read_bytes())
    assert whole
    assert any(b"not utf-8: \xff\xfe\xc3" in each for each in raw)  # byte for byte
