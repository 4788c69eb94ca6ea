"""What the command says to files it cannot read and to arguments it does not know.

One clear line on stderr, a code that is not 0, nothing on stdout; and never a crash.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from support import BIN, ENVIRONMENT, TIMEOUT_S, TRACES, layertrace, layertrace_output

SAMPLE = TRACES / "residual_cnn.pftrace"
COMMANDS = ("tree", "layers", "info")
FILE_ERROR = 1
USAGE_ERROR = 2


def assert_refused(result: subprocess.CompletedProcess[str], code: int = FILE_ERROR) -> str:
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(("layertrace: ", "layertrace view: "))
    return line


# ---- Files ----------------------------------------------------------------------------------


def foreign_perfetto_trace(path: Path) -> None:
    trace = Trace()
    for i in range(100):
        packet = trace.packet.add()
        packet.timestamp = i
        packet.trusted_packet_sequence_id = 1
        packet.track_event.type = TrackEvent.TYPE_INSTANT
        packet.track_event.name = "somebody else's"
    path.write_bytes(trace.SerializeToString())


def symlink_loop(path: Path) -> None:
    path.symlink_to(path)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, os.strerror(2)),
    "folder": (Path.mkdir, "it is a folder"),
    "pipe": (os.mkfifo, "it is not a regular file"),
    "symlink loop": (symlink_loop, os.strerror(40)),
    "empty": (Path.touch, "the file is empty"),
    "json": (lambda path: path.write_text('{"traceEvents": []}'), "it looks like JSON"),
    "json list": (lambda path: path.write_text("\n [1]"), "it looks like JSON"),
    "gzip": (lambda path: path.write_bytes(gzip.compress(b"{}")), "it looks like gzip"),
    "zip": (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "it looks like a zip"),
    "program": (lambda path: path.write_bytes(BIN.read_bytes()[:5000]), "it looks like a program"),
    "text": (lambda path: path.write_text("loss 0.5\n" * 50), "it looks like plain text"),
    "zeros": (lambda path: path.write_bytes(bytes(1000)), "it is no Perfetto trace"),
    "noise": (lambda path: path.write_bytes(random.Random(3).randbytes(5000)), "it is no Perfetto"),
    "foreign perfetto trace": (foreign_perfetto_trace, "a Perfetto trace, but not one that layert"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", FILES)
def test_file_is_refused(tmp_path: Path, kind: str, command: str) -> None:
    make, cause = FILES[kind]
    path = tmp_path / "some.pftrace"
    make(path)
    line = assert_refused(layertrace(command, path))
    assert line.startswith(f"layertrace: cannot read {path}: ")
    assert cause in line


def test_name_too_long() -> None:
    assert os.strerror(36) in assert_refused(layertrace("tree", "n" * 300))


# ---- 16: versions ---------------------------------------------------------------------------


def with_version(path: Path, version: int) -> Path:
    trace = Trace.FromString(SAMPLE.read_bytes())
    for packet in trace.packet:
        for annotation in packet.track_event.debug_annotations:
            if annotation.name == "format_version":
                annotation.uint_value = version
    path.write_bytes(trace.SerializeToString())
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("version", [2, 99, 2**31, 2**32 + 1, 2**64 - 1])
def test_16_newer_file_is_refused(tmp_path: Path, version: int, command: str) -> None:
    line = assert_refused(layertrace(command, with_version(tmp_path / "new.pftrace", version)))
    assert f"format version {version}, and this layertrace reads up to version 1" in line
    assert "Update layertrace" in line


def test_16_older_file_is_read(tmp_path: Path) -> None:
    old = with_version(tmp_path / "old.pftrace", 0)
    assert layertrace_output("tree", old) == layertrace_output("tree", SAMPLE)


def test_16_unknown_additions_are_passed_over(tmp_path: Path) -> None:
    """What a later layertrace may add without a new version: annotations, events, packets."""
    trace = Trace.FromString(SAMPLE.read_bytes())
    for packet in trace.packet:
        if packet.HasField("track_event"):
            packet.track_event.debug_annotations.add(name="colour", string_value="red")
    trace.packet.add(trusted_packet_sequence_id=1).track_event.name = "later"
    trace.packet.add(timestamp=1, trusted_packet_sequence_id=9999).track_event.name = "later"
    path = tmp_path / "added.pftrace"
    path.write_bytes(trace.SerializeToString())
    assert layertrace_output("tree", path) == layertrace_output("tree", SAMPLE)


# ---- Damage ---------------------------------------------------------------------------------


def is_read(path: Path, command: str = "layers") -> bool:
    """Whether a damaged file is read; if not, it must be refused as any other."""
    result = layertrace(command, path)
    if result.returncode != 0:
        assert_refused(result)
        return False
    assert result.stderr == ""
    assert result.stdout.endswith("\n")
    if command == "layers":
        json.loads(result.stdout)
    return True


def test_truncated_anywhere(tmp_path: Path) -> None:
    whole = SAMPLE.read_bytes()
    path = tmp_path / "cut.pftrace"
    random_number = random.Random(1)
    offsets = {1, 2, 3, 10, 100, 1000, len(whole) - 2, len(whole) - 1}
    offsets |= {random_number.randrange(2000) for _ in range(12)}
    offsets |= {random_number.randrange(len(whole)) for _ in range(12)}
    read_from = []
    for offset in sorted(offsets):
        path.write_bytes(whole[:offset])
        if is_read(path):
            read_from.append(offset)
            assert "cut off" in layertrace_output("info", path)
    # From its head on, whatever there is of a trace is read.
    assert read_from == [offset for offset in sorted(offsets) if offset >= read_from[0]]
    assert read_from[0] < 2000


def test_damaged_anywhere(tmp_path: Path) -> None:
    whole = SAMPLE.read_bytes()
    path = tmp_path / "damaged.pftrace"
    for seed in range(60):
        number = random.Random(seed)
        data = bytearray(whole)
        kind = seed % 3
        reach = 3000 if seed % 2 else len(data)  # definitions, or anywhere
        if kind == 0:  # single bytes
            for _ in range(1 + seed):
                data[number.randrange(reach)] = number.randrange(256)
        elif kind == 1:  # a stretch is missing
            start = number.randrange(reach)
            del data[start : start + number.randrange(1, 2000)]
        else:  # a stretch comes twice
            start = number.randrange(reach)
            data[start:start] = data[start : start + number.randrange(1, 2000)]
        path.write_bytes(data)
        is_read(path, COMMANDS[seed // 2 % 3])


def test_packets_in_disorder(tmp_path: Path) -> None:
    """Well-formed packets whose order makes no sense: ends first, no definitions, all twice."""
    trace = Trace.FromString(SAMPLE.read_bytes())
    packets = list(trace.packet)
    path = tmp_path / "disorder.pftrace"
    shuffled = packets[16:]
    random.Random(0).shuffle(shuffled)
    for order in (packets[::-1], packets + packets, packets[:16] + shuffled, packets[::2]):
        path.write_bytes(Trace(packet=order).SerializeToString())
        for command in COMMANDS:
            is_read(path, command)


# ---- Arguments ------------------------------------------------------------------------------

ARGUMENTS = {
    "none": ([], USAGE_ERROR, "command"),
    "unknown command": (["frobnicate"], USAGE_ERROR, "frobnicate"),
    "unknown option": (["tree", SAMPLE, "--frobnicate"], USAGE_ERROR, "--frobnicate"),
    "unknown option before a program": (
        ["simgpu", "--frobnicate", "3", "--", "true"],
        USAGE_ERROR,
        "takes no '--frobnicate'",
    ),
    "unknown global option": (["--frobnicate"], USAGE_ERROR, "--frobnicate"),
    "no file": (["tree"], USAGE_ERROR, "file"),
    "two files": (["tree", SAMPLE, "other"], USAGE_ERROR, "other"),
    "no value": (["tree", SAMPLE, "--depth"], USAGE_ERROR, "--depth"),
    "depth": (["tree", SAMPLE, "--depth", "deep"], USAGE_ERROR, "--depth"),
    "negative depth": (["tree", SAMPLE, "--depth=-2"], USAGE_ERROR, "--depth"),
    "width": (["tree", SAMPLE, "--width", "0"], USAGE_ERROR, "--width"),
    "huge depth": (["tree", SAMPLE, "--depth", "9" * 30], USAGE_ERROR, "--depth"),
    "color": (["tree", SAMPLE, "--color", "blue"], USAGE_ERROR, "always"),
    "column": (["tree", SAMPLE, "--columns", "forward,frobs"], USAGE_ERROR, "activity_time"),
    "sort": (["tree", SAMPLE, "--sort", "frobs"], USAGE_ERROR, "definition"),
    "start": (["tree", SAMPLE, "--start", "blocks.77"], FILE_ERROR, "blocks.77"),
    "format": (["layers", SAMPLE, "--format", "xml"], USAGE_ERROR, "json"),
    "import to a pipe": (["import", SAMPLE, "-o", "-"], USAGE_ERROR, "-o run.pftrace"),
    "port": (["view", SAMPLE, "--port", "99999"], USAGE_ERROR, "--port"),
    "view of nothing": (["view", "none.pftrace", "--no-browser"], FILE_ERROR, "none.pftrace"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_arguments_are_refused(kind: str) -> None:
    arguments, code, named = ARGUMENTS[kind]
    line = assert_refused(layertrace(*arguments), code)
    assert named in line
    assert len(line) < (620 if "as a column" in line else 300)  # there are many columns


# ---- Output ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [*((command, SAMPLE) for command in COMMANDS), ("--help",), ("tree", "--help")]
)
def test_full_device(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [BIN, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert result.returncode != 0
    assert os.strerror(28) in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_closed_pipe(command: str) -> None:
    """`| head -1` is no error, and nothing to complain of."""
    script = 'set -o pipefail; "$0" "$@" | head -c 1 >/dev/null; exit "${PIPESTATUS[0]}"'
    result = subprocess.run(
        ["bash", "-c", script, str(BIN), command, str(SAMPLE)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
