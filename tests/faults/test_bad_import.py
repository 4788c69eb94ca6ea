"""What `layertrace import` does with files that are damaged, hostile or something else.

What is whole is taken, and a note says what was lost; what cannot be read is refused with one
line and code 1, and nothing is left behind.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest
from support import layertrace, layertrace_output

EVENTS = [
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"aten::op{i % 7}",
        "pid": 1,
        "tid": 1,
        "ts": 100 + 10 * i,
        "dur": 5,
        "args": {},
    }
    for i in range(1000)
]
WHOLE = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}).encode()
PACKED = gzip.compress(WHOLE)


def zeros(megabytes: int) -> bytes:
    """So much of nothing, packed, without holding it."""
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b'{"traceEvents": [')
    for _ in range(megabytes):
        packed += packer.compress(b" " * (1 << 20))
    return packed + packer.flush()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


# What is taken: how many events at least and at most, and what the note says.
TAKEN = {
    "whole": (WHOLE, 1000, 1000, ""),
    "a byte order mark": (b"\xef\xbb\xbf" + WHOLE, 1000, 1000, ""),
    "gzip": (PACKED, 1000, 1000, ""),
    "two archives": (gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:]), 1000, 1000, ""),
    "cut": (WHOLE[: len(WHOLE) // 2], 400, 600, "the source is cut off"),
    "cut gzip": (PACKED[: len(PACKED) // 2], 100, 999, "the compressed data is cut off"),
    "a wrong sum": (PACKED[:-8] + bytes(8), 1000, 1000, "the compressed data is damaged"),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_what_is_whole_is_taken(tmp_path: Path, kind: str) -> None:
    data, least, most, note = TAKEN[kind]
    source, output = tmp_path / "trace.json", tmp_path / "run.pftrace"
    source.write_bytes(data)
    done = layertrace("import", source, "-o", output)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert note in done.stdout
    health = json.loads(layertrace_output("layers", output, "--format", "json"))["health"]
    assert least <= health["source"]["events"] <= most
    assert ("the source" in " ".join(health["notes"])) == bool(note)


REFUSED = {
    "empty": (b"", "it is empty"),
    "text": (b"loss 0.5\n" * 50, "it is not JSON"),
    "zeros": (bytes(1000), "it holds nothing"),
    "another tool's": (b'{"log": {"entries": [{"time": 3}]}}', "it has no traceEvents"),
    "no events": (b'{"traceEvents": []}', "no event"),
    "UTF-16": (WHOLE.decode().encode("utf-16"), "it is not JSON"),
    "deep": (b'{"traceEvents": [' + b"[" * 1_000_000, "no event"),
    "damaged at once": (flipped(PACKED, 12), "cannot import"),
    "a gzip bomb": (zeros(400), "more than 400 times its size"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_read_is_refused(tmp_path: Path, kind: str) -> None:
    data, cause = REFUSED[kind]
    source, output = tmp_path / "trace.json", tmp_path / "run.pftrace"
    source.write_bytes(data)
    done = layertrace("import", source, "-o", output)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("layertrace: cannot ")
    assert cause in line
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
