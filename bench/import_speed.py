"""How fast `layertrace import` is, beside Python's json, orjson and HTA.

    python bench/import_speed.py [--events 1000000] [--keep FOLDER] [--alone]

Makes up a trace as torch.profiler writes it (modules' calls, operators, launches, kernels, flows),
and reads it with each: processor time and peak memory of a process of its own. Others parse only;
layertrace also attributes, and writes a Perfetto trace. What is not installed is left out (`pip
install orjson HolisticTraceAnalysis`). --events 7200000 makes a file of 2 GB; the others need many
times as much memory, so that is for --alone.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

COMMAND = os.environ.get("LAYERTRACE_BIN", "build/bin/layertrace")

HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85024112640
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1727743122000000000,
  "traceEvents": [
"""

KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)


def us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


class Maker:
    """Events of training steps, as text, in the order in which Kineto has them."""

    def __init__(self) -> None:
        self.ns = 5_000_000_000_000
        self.device_ns = self.ns + 20_000
        self.correlation = 1000
        self.sequence = 0
        self.index = 0
        self.calls: list[str] = []
        self.kernels: list[str] = []

    def event(self, cat: str, name: str, start: int, end: int, args: str, tid: int = 4242) -> str:
        return (
            f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": 4242, "tid": {tid},\n'
            f'    "ts": {us(start)}, "dur": {us(end - start)},\n'
            f'    "args": {{\n      {args}\n    }}\n  }}'
        )

    def launch(self, tid: int) -> None:
        self.correlation += 1
        start, self.ns = self.ns, self.ns + 4_000
        self.calls.append(
            self.event(
                "cuda_runtime",
                "cudaLaunchKernel",
                start,
                self.ns,
                f'"External id": {self.correlation},"cbid": 211, "correlation": {self.correlation}',
                tid,
            )
        )
        begin = max(self.device_ns, self.ns)
        self.device_ns = begin + 6_500
        self.kernels.append(
            f'  {{\n    "ph": "X", "cat": "kernel", "name": "{KERNEL}", "pid": 0, "tid": 7,\n'
            f'    "ts": {us(begin)}, "dur": 6.400,\n    "args": {{\n'
            f'      "External id": {self.correlation}, "queued": 0, "device": 0, "context": 1,\n'
            f'      "stream": 7, "correlation": {self.correlation},\n'
            f'      "registers per thread": 32, "shared memory": 0,\n'
            f'      "blocks per SM": 62.060604, "warps per SM": 248.242416, "grid": [8192, 1, 1],\n'
            f'      "block": [128, 1, 1], "est. achieved occupancy %": 100\n    }}\n  }}'
        )
        for ph, pid, track, at, more in (
            ("s", 4242, tid, start, ""),
            ("f", 0, 7, begin, ', "bp": "e"'),
        ):
            self.kernels.append(
                f'  {{\n    "ph": "{ph}", "id": {self.correlation}, "pid": {pid}, "tid": {track},\n'
                f'    "ts": {us(at)},\n'
                f'    "cat": "ac2g", "name": "ac2g"{more}\n  }}'
            )

    def operator(self, name: str, more: str = "", tid: int = 4242) -> str:
        self.index += 1
        start = self.ns
        self.ns += 2_000
        self.launch(tid)
        self.ns += 1_500
        args = (
            f'"External id": {self.index},"Record function id": 0, "Ev Idx": {self.index}, '
            f'"Input Dims": [[64, 512, 1024], [1024, 1024], []], '
            f'"Input type": ["float", "float", ""]{more}'
        )
        return self.event("cpu_op", name, start, self.ns, args, tid)

    def frame(self, name: str, start: int) -> str:
        self.index += 1
        module = ', "Python module id": 7' if name.startswith("nn.Module") else ""
        args = (
            f'"Python parent id": {self.index - 1}, "Python id": {self.index}{module}, '
            f'"Ev Idx": {self.index}'
        )
        return self.event("python_function", name, start, self.ns, args)

    def step(self, number: int) -> Iterator[str]:
        begin = self.ns
        sequences = []
        model = self.ns
        for block in range(24):
            block_start = self.ns
            for layer in range(6):
                module_start = self.ns
                self.ns += 1_000
                frame_start = self.ns
                self.sequence += 1
                sequences.append(self.sequence)
                yield self.operator(
                    "aten::addmm", f', "Sequence number": {self.sequence}, "Fwd thread id": 0'
                )
                yield self.frame("torch/nn/functional.py(1234): linear", frame_start)
                yield self.frame("torch/nn/modules/module.py(1700): _call_impl", module_start)
                yield self.frame(f"nn.Module: Linear_{6 * block + layer}", module_start)
                self.ns += 1_000
            yield self.frame(f"nn.Module: Block_{block}", block_start)
        yield self.frame("nn.Module: Net_0", model)
        for sequence in reversed(sequences):
            start = self.ns
            self.ns += 500
            more = f', "Sequence number": {sequence}, "Fwd thread id": 1'
            yield self.operator("aten::mm", tid=4300)
            yield self.event(
                "cpu_op",
                "autograd::engine::evaluate_function: AddmmBackward0",
                start,
                self.ns,
                f'"External id": {self.index}, "Ev Idx": {self.index}{more}',
                4300,
            )
        start = self.ns
        yield self.operator("aten::_foreach_add_")
        yield self.event("user_annotation", "Optimizer.step#AdamW.step", start, self.ns, '"x": 0')
        yield self.event("user_annotation", f"ProfilerStep#{number}", begin, self.ns, '"x": 0')
        yield from self.calls
        yield from self.kernels
        self.calls.clear()
        self.kernels.clear()


def make(path: Path, events: int) -> int:
    maker = Maker()
    count = step = 0
    with path.open("w") as file:
        file.write(HEAD)
        while count < events:
            texts = list(maker.step(step))
            file.write((",\n" if step else "") + ",\n".join(texts))
            count += len(texts)
            step += 1
        file.write('\n  ],\n  "traceName": "made_up.json"\n}\n')
    return count


def measure(command: list[str]) -> tuple[float, float] | None:
    """Processor time in seconds and peak memory in MB of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = (
        "import resource,subprocess,sys;c=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL)"
    )
    report += (
        ";print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss);sys.exit(c.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", report, *command], capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        return None
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(done.stdout.split()[-1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="a folder in which the traces stay")
    parser.add_argument("--alone", action="store_true", help="measure layertrace only")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="layertrace-import-"))
    folder.mkdir(exist_ok=True)
    plain = folder / "trace.json"
    packed = folder / "trace.json.gz"
    count = make(plain, given.events)
    with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    megabytes = plain.stat().st_size / 1e6
    print(
        f"{count} events, {megabytes:.0f} MB of JSON, {packed.stat().st_size / 1e6:.0f} MB as gzip"
    )

    output = str(folder / "run.pftrace")
    load = "import {0},sys;{0}.loads(open(sys.argv[1],'rb').read())"
    hta = (
        "import sys;from hta.common.trace_parser import parse_trace_dataframe as parse;"
        "from hta.configs.parser_config import ParserConfig;"
        "parse(sys.argv[1], ParserConfig.get_default_cfg())"
    )
    rows = {
        "layertrace import": [COMMAND, "import", str(plain), "-o", output],
        "layertrace import, gzip": [COMMAND, "import", str(packed), "-o", output],
    }
    if not given.alone:
        rows |= {
            "json.loads": [sys.executable, "-c", load.format("json"), str(plain)],
            "orjson.loads": [sys.executable, "-c", load.format("orjson"), str(plain)],
            "HTA": [sys.executable, "-c", hta, str(packed)],  # it takes packed traces only
        }
    for name, command in rows.items():
        result = measure(command)
        if result is None:
            print(f"{name:24}  not here")
            continue
        seconds, memory = result
        print(
            f"{name:24}  {seconds:6.2f} s of processor time  {megabytes / seconds:6.0f} MB/s  "
            f"peak memory {memory:6.0f} MB = {memory / megabytes:.2f} of the JSON"
        )
    if Path(output).exists():
        print(f"run.pftrace: {Path(output).stat().st_size / 1e6:.0f} MB")
    if given.keep is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
