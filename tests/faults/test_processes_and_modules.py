"""Programs with more than one process, thread or session, and modules that misbehave.

As in test_ends_and_limits.py; faults 8 to 11.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support import layertrace_output
from trace_decoder import split_packets
from victims import STEPS, assert_whole, decoded, profile_of, victim

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
    assert said["early_profile"] == "ok", "the steps so far"
    assert said["early_steps"] == "1"
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
