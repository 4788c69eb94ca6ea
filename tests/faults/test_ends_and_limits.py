"""Programs that run out of something, or end badly, while a session records.

Each test runs `fault_victim` as a child process and looks at what it leaves behind. The number in
a test's name is that of the fault in the list of what layertrace must survive: 1 to 7 here.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support import TIMEOUT_S, layertrace, layertrace_output, run
from trace_decoder import Decoded, decode, split_packets
from victims import (
    STEPS,
    VICTIM,
    assert_cut,
    assert_whole,
    decoded,
    profile_of,
    running_victim,
    victim,
)


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
MEMORY_STEPS = 700


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


def test_7_bad_places(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    places = {
        tmp_path / "none" / "run.pftrace": os.strerror(errno.ENOENT),
        tmp_path: os.strerror(errno.EISDIR),
        tmp_path / "file" / "run.pftrace": os.strerror(errno.ENOTDIR),
        Path("/dev/full"): "it is not a regular file",
        Path("/proc/self/run.pftrace"): os.strerror(errno.ENOENT),
        tmp_path / ("n" * 300): os.strerror(errno.ENAMETOOLONG),
    }
    said = victim("places", *places)
    for number, (place, cause) in enumerate(places.items()):
        tried, _, rest = said[f"start{number}"].partition(": ")
        assert tried == f"cannot write {place}"
        why, _, remedy = rest.partition(". ")
        assert why == cause
        assert remedy
    assert said["good_start"] == "ok"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
