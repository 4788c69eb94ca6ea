"""A thousand sessions leave nothing behind: in the process, on the device, in CUPTI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from on_simgpu import needs_simgpu, result_of

pytestmark = needs_simgpu
SESSIONS = 1000


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("sessions")
    return result_of(folder, "many_sessions.py", str(SESSIONS))


def held(told: Any, what: str) -> list[int]:
    """At every 99th session, once the process had warmed up, and at the end."""
    samples = [sample[what] for sample in told["samples"]]
    assert len(samples) == 10
    return samples


def test_each_session_records_the_same(told: Any) -> None:
    assert told["activities"] == [told["kernels"][0]]
    assert told["once_more"] == told["kernels"][0]


def test_memory_does_not_grow(told: Any) -> None:
    """Over 800 sessions. Eight runs grew by 4 to 20 KiB, some of them beside each other; one held
    512 KiB more for a moment, which the least of the last three samples passes over. The bound is
    what 400 bytes a session would come to."""
    first, *_, third_last, second_last, last = held(told, "resident")
    assert min(third_last, second_last, last) - first < 256 << 10


@pytest.mark.parametrize("what", ["threads", "files", "device"])
def test_nothing_else_grows(told: Any, what: str) -> None:
    """The last is the device's memory."""
    assert len(set(held(told, what))) == 1


def test_torch_profiler_works_as_before(told: Any) -> None:
    """CUPTI takes one client at a time: nothing of layertrace is subscribed or enabled any more."""
    before, *after = told["kernels"]
    assert before > 0
    assert after == [before, before]


def test_cupti_knows_no_thread_by_an_id_of_ours(told: Any) -> None:
    """Else the next client would be told of it at every call."""
    assert told["ids"] == {"main": 0, "autograd": 0}


def test_modules_are_as_they_were(told: Any) -> None:
    assert told["after"] == told["before"]
    assert told["after"]["hooks"] == []
