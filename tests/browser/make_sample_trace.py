"""Writes a small trace of the shape that layertrace writes, with Perfetto's own Python protos.

The browser test can so be tried without a run of layertrace, and the shape is written down once by
something other than layertrace's encoder. A tiny transformer is trained for a few steps on a GPU:
each operator launches a kernel, which runs when those before it are done. All times are made up.

    python make_sample_trace.py sample.pftrace [--steps 3]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

PID = 4242
MAIN_TID, AUTOGRAD_TID = 4242, 4243
PROCESS, MAIN, AUTOGRAD, MAIN_OPS, AUTOGRAD_OPS, STEPS, LAYERS = range(1, 8)
MAIN_CALLS, AUTOGRAD_CALLS, GPU, STREAM, MEMORY, BUSY, QUEUE = range(8, 15)
CALLS_OF = {MAIN_OPS: MAIN_CALLS, AUTOGRAD_OPS: AUTOGRAD_CALLS}
BIN_US = 1000
SEQUENCE = 1


@dataclass
class Layer:
    """A module: its own operators run first, then its children."""

    path: str
    type: str
    ops: list[tuple[str, int]] = field(default_factory=list)  # name, microseconds
    children: list[Layer] = field(default_factory=list)

    def walk(self) -> Iterator[Layer]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def label(self) -> str:
        return self.path or self.type  # the root has no path: its class names it


def linear(path: str, us: int) -> Layer:
    return Layer(path, "Linear", [("aten::linear", us)])


def block(path: str) -> Layer:
    attention = Layer(
        f"{path}.attn",
        "MultiheadAttention",
        children=[
            linear(f"{path}.attn.qkv", 60),
            Layer(
                f"{path}.attn.sdpa",
                "ScaledDotProduct",
                [("aten::scaled_dot_product_attention", 90)],
            ),
            linear(f"{path}.attn.out", 25),
        ],
    )
    mlp = Layer(
        f"{path}.mlp",
        "Sequential",
        children=[
            linear(f"{path}.mlp.fc1", 80),
            Layer(f"{path}.mlp.act", "GELU", [("aten::gelu", 20)]),
            linear(f"{path}.mlp.fc2", 80),
        ],
    )
    norms = [Layer(f"{path}.norm{i}", "LayerNorm", [("aten::layer_norm", 15)]) for i in (1, 2)]
    return Layer(path, "Block", [("aten::add", 8)], [norms[0], attention, norms[1], mlp])


def model() -> Layer:
    embed = Layer("embed", "Embedding", [("aten::embedding", 30)])
    blocks = Layer("blocks", "ModuleList", children=[block(f"blocks.{i}") for i in range(3)])
    return Layer("", "TinyTransformer", children=[embed, blocks, linear("head", 120)])


class Writer:
    """Packets of one sequence, with each string interned at its first use."""

    def __init__(self) -> None:
        self.trace = Trace()
        self._iids: dict[tuple[str, str], int] = {}
        self._flows = 0
        first = self._packet(0)
        first.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        first.first_packet_on_sequence = True

    def _packet(self, time_us: int) -> TracePacket:
        packet = self.trace.packet.add()
        packet.timestamp = 1_000_000_000 + time_us * 1000
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.sequence_flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def _iid(self, packet: TracePacket, table: str, text: str) -> int:
        iid = self._iids.get((table, text))
        if iid is None:
            iid = self._iids[table, text] = len(self._iids) + 1
            entry = getattr(packet.interned_data, table).add(iid=iid)
            if table == "debug_annotation_string_values":
                entry.str = text.encode()
            else:
                entry.name = text
        return iid

    def new_flow(self) -> int:
        self._flows += 1
        return self._flows

    def track(
        self, uuid: int, name: str = "", parent: int = 0, thread: int = 0, unit: str = ""
    ) -> None:
        descriptor = self._packet(0).track_descriptor
        descriptor.uuid = uuid
        if parent:
            descriptor.parent_uuid = parent
        if thread:
            descriptor.thread.pid = PID
            descriptor.thread.tid = thread
            descriptor.thread.thread_name = name
        elif not parent:
            descriptor.process.pid = PID
            descriptor.process.process_name = name
        else:
            descriptor.name = name
        if unit:
            descriptor.counter.unit_name = unit

    def event(
        self,
        kind: TrackEvent.Type,
        track: int,
        time_us: int,
        name: str = "",
        phase: str = "",
        args: dict[str, str] | None = None,
        flow: int = 0,
        last_flow: int = 0,
        asked_by: int = 0,
    ) -> None:
        packet = self._packet(time_us)
        event = packet.track_event
        event.type = kind
        event.track_uuid = track
        if name:
            event.name_iid = self._iid(packet, "event_names", name)
        if phase:
            event.category_iids.append(self._iid(packet, "event_categories", phase))
        for key, value in (args or {}).items():
            annotation = event.debug_annotations.add()
            annotation.name_iid = self._iid(packet, "debug_annotation_names", key)
            annotation.string_value_iid = self._iid(packet, "debug_annotation_string_values", value)
        if flow:
            event.flow_ids.append(flow)
        if asked_by:
            event.flow_ids.append(asked_by)
        if last_flow:
            event.terminating_flow_ids.append(last_flow)

    def count(self, track: int, time_us: int, value: float) -> None:
        event = self._packet(time_us).track_event
        event.type = TrackEvent.TYPE_COUNTER
        event.track_uuid = track
        event.double_counter_value = value

    def begin(self, track: int, time_us: int, name: str, phase: str = "", **more: object) -> None:
        self.event(TrackEvent.TYPE_SLICE_BEGIN, track, time_us, name, phase, **more)

    def end(self, track: int, time_us: int) -> None:
        self.event(TrackEvent.TYPE_SLICE_END, track, time_us)


class Run:
    """Plays training steps of a model into a Writer, on a clock of its own."""

    def __init__(self, root: Layer, writer: Writer) -> None:
        self.root = root
        self.writer = writer
        self.now_us = 200
        self._flow_of: dict[str, int] = {}
        self._gpu_free_us = 0
        self._kernels: list[tuple[int, int, int]] = []  # launched, begun, ended

    def _op(self, track: int, name: str, us: int, phase: str, args: dict[str, str]) -> None:
        self.writer.begin(track, self.now_us, name, phase, args=args)
        self._launch(CALLS_OF[track], us, phase, args)
        self.now_us += us
        self.writer.end(track, self.now_us)
        self.now_us += 1

    def _launch(self, calls: int, us: int, phase: str, args: dict[str, str]) -> None:
        """Within the operator, a call; after it, on the stream, the kernel."""
        flow = self.writer.new_flow()
        start_us = self.now_us + 1
        self.writer.begin(calls, start_us, "cudaLaunchKernel", phase, args=args, flow=flow)
        self.writer.end(calls, start_us + 5)
        begun_us = max(start_us + 7, self._gpu_free_us + 1)
        self._gpu_free_us = begun_us + us
        kernel = {**args, "grid": "128x1x1", "block": "256x1x1"}
        self.writer.begin(STREAM, begun_us, "a_kernel", phase, args=kernel, asked_by=flow)
        self.writer.end(STREAM, self._gpu_free_us)
        self._kernels.append((start_us, begun_us, self._gpu_free_us))

    def count(self) -> None:
        """The counters that are made from the kernels, for each millisecond."""
        for bin_us in range(0, self._gpu_free_us + BIN_US, BIN_US):

            def inside(start_us: int, end_us: int, bin_us: int = bin_us) -> int:
                return max(0, min(end_us, bin_us + BIN_US) - max(start_us, bin_us))

            busy = sum(inside(begun, ended) for _, begun, ended in self._kernels)
            waited = sum(inside(launched, ended) for launched, _, ended in self._kernels)
            self.writer.count(BUSY, bin_us, 100 * busy / BIN_US)
            self.writer.count(QUEUE, bin_us, waited / BIN_US)

    def forward(self, layer: Layer) -> None:
        flow = self._flow_of[layer.path] = self.writer.new_flow()
        args = {"path": layer.path}
        self.writer.begin(MAIN, self.now_us, layer.label, "forward", args=args, flow=flow)
        self.now_us += 2
        for name, us in layer.ops:
            self._op(MAIN_OPS, name, us, "forward", args)
        for child in layer.children:
            self.forward(child)
        self.now_us += 2
        self.writer.end(MAIN, self.now_us)
        self.now_us += 1

    def backward(self, layer: Layer) -> None:
        args = {"path": layer.path}
        self.writer.begin(
            AUTOGRAD,
            self.now_us,
            layer.label,
            "backward",
            args=args,
            last_flow=self._flow_of[layer.path],
        )
        self.now_us += 2
        for child in reversed(layer.children):
            self.backward(child)
        for name, us in reversed(layer.ops):
            self._op(AUTOGRAD_OPS, f"{name}_backward", us * 2, "backward", args)
        self.now_us += 2
        self.writer.end(AUTOGRAD, self.now_us)
        self.now_us += 1

    def region(self, name: str, phase: str, op: str, us: int) -> None:
        """A part of the step that belongs to no layer."""
        self.writer.begin(MAIN, self.now_us, name, phase)
        self._op(MAIN_OPS, op, us, phase, {})
        self.writer.end(MAIN, self.now_us)

    def step(self, number: int) -> None:
        self.writer.begin(STEPS, self.now_us, f"step {number}", "step")
        self.now_us += 10
        self.writer.count(MEMORY, self.now_us, 1 << 20)
        self.forward(self.root)
        self.writer.count(MEMORY, self.now_us, 5 << 20)
        self.region("loss", "loss", "aten::cross_entropy_loss", 40)
        reason = {"unattributed": "backward of operators outside any module"}
        self._op(AUTOGRAD_OPS, "aten::nll_loss_backward", 20, "backward", reason)
        self.backward(self.root)
        self.region("AdamW.step", "optimizer", "aten::_fused_adamw_", 300)
        self.now_us += 30
        self.writer.end(STEPS, self.now_us)
        self.now_us += 20


def sample_trace(steps: int) -> Trace:
    root = model()
    writer = Writer()
    writer.track(PROCESS, "python train.py")
    writer.track(STEPS, "steps", parent=PROCESS)
    writer.track(LAYERS, "layers", parent=PROCESS)
    writer.track(MAIN, "python", parent=PROCESS, thread=MAIN_TID)
    writer.track(AUTOGRAD, "autograd", parent=PROCESS, thread=AUTOGRAD_TID)
    writer.track(MAIN_OPS, "ops", parent=MAIN)
    writer.track(AUTOGRAD_OPS, "ops", parent=AUTOGRAD)
    writer.track(MAIN_CALLS, "CUDA calls", parent=MAIN)
    writer.track(AUTOGRAD_CALLS, "CUDA calls", parent=AUTOGRAD)
    writer.track(GPU, "GPU 0", parent=PROCESS)
    writer.track(STREAM, "stream 7", parent=GPU)
    writer.track(MEMORY, "memory allocated", parent=GPU, unit="bytes")
    writer.track(BUSY, "busy", parent=GPU, unit="%")
    writer.track(QUEUE, "launch queue", parent=GPU, unit="activities")
    for index, layer in enumerate(root.walk()):
        # Each at its own time: at one and the same the UI draws them as a stack.
        args = {"path": layer.path, "type": layer.type}
        writer.event(TrackEvent.TYPE_INSTANT, LAYERS, 50 + index, layer.label, args=args)
    run = Run(root, writer)
    for number in range(steps):
        run.step(number)
    run.count()
    return writer.trace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    options.output.write_bytes(sample_trace(options.steps).SerializeToString())


if __name__ == "__main__":
    main()
