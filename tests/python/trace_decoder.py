"""Reads a `.pftrace` with Perfetto's own protos, and with nothing of layertrace.

The second opinion on the format: it resolves interned strings, incremental clocks and default
tracks by Perfetto's rules, keeps one stack per track, and raises where a trace breaks them. Events
with times of the trace's own clock may come in any order, and are sorted as Perfetto does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BuiltinClock,
    ClockSnapshot,
    DebugAnnotation,
    Trace,
    TracePacket,
    TrackEvent,
)

BOOTTIME = BuiltinClock.BUILTIN_CLOCK_BOOTTIME
FIRST_SEQUENCE_CLOCK = 64  # clocks 64 to 127 belong to the packet sequence that defines them


class BrokenTrace(Exception):
    """The trace does what no Perfetto trace may do."""


@dataclass
class Slice:
    track: int
    name: str
    category: str
    start_ns: int
    end_ns: int | None
    args: dict[str, object]
    end_args: dict[str, object] = field(default_factory=dict)
    flows: list[int] = field(default_factory=list)
    parent: Slice | None = None
    order: int = 0  # of its begin in the file

    @property
    def duration_ns(self) -> int:
        assert self.end_ns is not None
        return self.end_ns - self.start_ns

    @property
    def path(self) -> str | None:
        path = self.args.get("path")
        assert path is None or isinstance(path, str)
        return path

    def ancestors(self) -> Iterator[Slice]:
        outer = self.parent
        while outer is not None:
            yield outer
            outer = outer.parent


@dataclass
class Instant:
    track: int
    name: str
    category: str
    ns: int
    args: dict[str, object]


@dataclass
class Sample:
    track: int
    ns: int
    value: float


@dataclass
class Track:
    uuid: int
    parent: int
    name: str
    tid: int | None = None
    pid: int | None = None


@dataclass
class Decoded:
    tracks: dict[int, Track] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)  # in the order of their begins
    instants: list[Instant] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)  # of counters
    clocks: list[dict[int, int]] = field(default_factory=list)  # snapshots: times by clock
    packets: int = 0
    whole: bool = True  # the file ends where a packet does

    def on(self, track: int) -> list[Slice]:
        return [each for each in self.slices if each.track == track]

    def track_named(self, name: str) -> int:
        (uuid,) = (track.uuid for track in self.tracks.values() if track.name == name)
        return uuid

    def instants_on(self, track: int) -> list[Instant]:
        return [each for each in self.instants if each.track == track]

    @property
    def threads(self) -> list[Track]:
        return [track for track in self.tracks.values() if track.tid is not None]

    def ops_track(self, thread: Track) -> int:
        (uuid,) = (
            track.uuid
            for track in self.tracks.values()
            if track.parent == thread.uuid and track.name == "ops"
        )
        return uuid

    @property
    def header(self) -> dict[str, object]:
        return self._run_instant("layertrace").args

    @property
    def footer(self) -> dict[str, object] | None:
        found = [each for each in self.instants if each.name == "layertrace end"]
        return found[0].args if found else None

    def _run_instant(self, name: str) -> Instant:
        run = self.track_named("layertrace")
        (instant,) = (each for each in self.instants_on(run) if each.name == name)
        return instant


@dataclass
class _Sequence:
    clocks: dict[int, int] = field(default_factory=dict)  # incremental ones: where they stand
    default_clock: int = BOOTTIME
    default_track: int = 0
    event_names: dict[int, str] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    annotation_names: dict[int, str] = field(default_factory=dict)
    string_values: dict[int, str] = field(default_factory=dict)


def split_packets(data: bytes) -> tuple[list[bytes], bool]:
    """The packets of a trace file, and whether it ends where a packet does."""
    packets = []
    position = 0
    while position < len(data):
        if data[position] != 0x0A:  # field 1, length-delimited
            raise BrokenTrace(f"byte {position}: {data[position]:#x} is not the start of a packet")
        size = shift = 0
        position += 1
        while True:
            if position >= len(data):
                return packets, False
            byte = data[position]
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if position + size > len(data):
            return packets, False
        packets.append(data[position : position + size])
        position += size
    return packets, True


def decode(path: Path, *, may_be_cut: bool = False) -> Decoded:
    """Decodes a file. With `may_be_cut` it may end anywhere, and slices may be left open."""
    data = path.read_bytes()
    raw, whole = split_packets(data)
    if not may_be_cut:
        if not whole:
            raise BrokenTrace("the file ends inside a packet")
        Trace.FromString(data)  # as a whole, too
    decoder = _Decoder(may_be_cut)
    for each in raw:
        try:
            packet = TracePacket.FromString(each)
        except DecodeError as error:
            raise BrokenTrace(f"packet {decoder.result.packets}: {error}") from error
        decoder.packet(packet)
    decoder.finish()
    decoder.result.whole = whole
    return decoder.result


class _Decoder:
    def __init__(self, may_be_cut: bool) -> None:
        self.result = Decoded()
        self._may_be_cut = may_be_cut
        self._sequences: dict[int, _Sequence] = {}
        self._open: dict[int, list[Slice]] = {}
        self._last_ns: dict[int, int] = {}
        self._in_no_order: list[tuple[int, _Sequence, TrackEvent]] = []

    def packet(self, packet: TracePacket) -> None:
        self.result.packets += 1
        sequence_id = packet.trusted_packet_sequence_id
        if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            self._sequences[sequence_id] = _Sequence()
        if sequence_id not in self._sequences:
            raise BrokenTrace(f"sequence {sequence_id} has no first packet")
        sequence = self._sequences[sequence_id]
        if packet.HasField("clock_snapshot"):
            self._snapshot(sequence, packet.clock_snapshot)
        if packet.HasField("trace_packet_defaults"):
            defaults = packet.trace_packet_defaults
            sequence.default_clock = defaults.timestamp_clock_id or BOOTTIME
            sequence.default_track = defaults.track_event_defaults.track_uuid
        if packet.HasField("interned_data"):
            self._intern(sequence, packet)
        if packet.HasField("track_descriptor"):
            self._describe(packet)
        if packet.HasField("track_event"):
            ns = self._timestamp(sequence, packet)
            if sequence.default_clock == BOOTTIME:
                self._in_no_order.append((ns, sequence, packet.track_event))
            else:
                self._event(sequence, ns, packet.track_event)

    def finish(self) -> None:
        # Stable: of one time, in the order of the file.
        for ns, sequence, event in sorted(self._in_no_order, key=lambda each: each[0]):
            self._event(sequence, ns, event)
        open_slices = [each for stack in self._open.values() for each in stack]
        if open_slices and not self._may_be_cut:
            raise BrokenTrace(f"{len(open_slices)} slices never end: {open_slices[0].name}")

    def _snapshot(self, sequence: _Sequence, snapshot: ClockSnapshot) -> None:
        (boottime,) = (clock for clock in snapshot.clocks if clock.clock_id == BOOTTIME)
        for clock in snapshot.clocks:
            if clock.is_incremental:
                # Its zero is the other clock's time; here both must agree, and count nanoseconds.
                assert clock.clock_id >= FIRST_SEQUENCE_CLOCK
                assert clock.timestamp == boottime.timestamp
                assert clock.unit_multiplier_ns in (0, 1)
                sequence.clocks[clock.clock_id] = clock.timestamp
        if all(clock.clock_id < FIRST_SEQUENCE_CLOCK for clock in snapshot.clocks):
            self.result.clocks.append(
                {clock.clock_id: clock.timestamp for clock in snapshot.clocks}
            )

    @staticmethod
    def _timestamp(sequence: _Sequence, packet: TracePacket) -> int:
        clock = packet.timestamp_clock_id or sequence.default_clock
        if clock == BOOTTIME:
            return packet.timestamp
        if clock not in sequence.clocks:
            raise BrokenTrace(f"clock {clock} was never set")
        sequence.clocks[clock] += packet.timestamp
        return sequence.clocks[clock]

    @staticmethod
    def _intern(sequence: _Sequence, packet: TracePacket) -> None:
        data = packet.interned_data
        for entries, table, text in (
            (data.event_names, sequence.event_names, lambda entry: entry.name),
            (data.event_categories, sequence.categories, lambda entry: entry.name),
            (data.debug_annotation_names, sequence.annotation_names, lambda entry: entry.name),
            (
                data.debug_annotation_string_values,
                sequence.string_values,
                lambda entry: entry.str.decode("utf-8", "surrogateescape"),
            ),
        ):
            for entry in entries:
                if entry.iid == 0:
                    raise BrokenTrace("an interned id of 0")
                if table.setdefault(entry.iid, text(entry)) != text(entry):
                    raise BrokenTrace(f"interned id {entry.iid} is defined twice")

    def _describe(self, packet: TracePacket) -> None:
        descriptor = packet.track_descriptor
        if descriptor.parent_uuid and descriptor.parent_uuid not in self.result.tracks:
            raise BrokenTrace(f"track {descriptor.uuid} comes before its parent")
        track = Track(descriptor.uuid, descriptor.parent_uuid, descriptor.name)
        if descriptor.HasField("thread"):
            track.tid, track.pid = descriptor.thread.tid, descriptor.thread.pid
            track.name = descriptor.thread.thread_name
        if descriptor.HasField("process"):
            track.pid = descriptor.process.pid
            track.name = descriptor.process.process_name
        self.result.tracks[track.uuid] = track

    def _event(self, sequence: _Sequence, ns: int, event: TrackEvent) -> None:
        track = event.track_uuid or sequence.default_track
        if track not in self.result.tracks:
            raise BrokenTrace(f"an event on track {track}, which was never described")
        args = dict(self._argument(sequence, each) for each in event.debug_annotations)
        category = ",".join(
            [sequence.categories[iid] for iid in event.category_iids] + list(event.categories)
        )
        name = sequence.event_names[event.name_iid] if event.name_iid else event.name
        if event.type == TrackEvent.TYPE_COUNTER:
            value = getattr(event, event.WhichOneof("counter_value_field"))
            self.result.samples.append(Sample(track, ns, value))
            return
        if event.type == TrackEvent.TYPE_INSTANT:
            self.result.instants.append(Instant(track, name, category, ns, args))
            return
        if ns < self._last_ns.get(track, 0):
            raise BrokenTrace(f"time runs backwards on track {track}")
        self._last_ns[track] = ns
        stack = self._open.setdefault(track, [])
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            parent = stack[-1] if stack else None
            fresh = Slice(track, name, category, ns, None, args, parent=parent)
            fresh.flows = list(event.flow_ids)
            fresh.order = len(self.result.slices)
            self.result.slices.append(fresh)
            stack.append(fresh)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            if not stack:
                raise BrokenTrace(f"an end without a begin on track {track}")
            stack[-1].end_ns = ns
            stack.pop().end_args = args
        else:
            raise BrokenTrace(f"an event of type {event.type}")

    @staticmethod
    def _argument(sequence: _Sequence, annotation: DebugAnnotation) -> tuple[str, object]:
        name = (
            sequence.annotation_names[annotation.name_iid]
            if annotation.name_iid
            else annotation.name
        )
        kind = annotation.WhichOneof("value")
        value = getattr(annotation, kind)
        if kind == "string_value_iid":
            value = sequence.string_values[value]
        return name, value
