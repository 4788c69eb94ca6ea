"""Runs the benchmarks and prints their figures beside the bars.

    report.py BIN_DIR [--quick] [--markdown FILE]

A figure is the median over the repetitions; "spread" is how far the middle half of them lies apart,
as a share of the median. Timings are no tests: a missed bar is printed, and the exit code is 0
unless something could not run.

With --markdown the table also replaces what stands between the two marks in FILE (see MARKS).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

MARKS = ("<!-- figures: make bench -->", "<!-- end of figures -->")

# Whether a convolution's buffers come from fresh pages or used ones changes its time more than
# recording does. With these, glibc's heap keeps what it has, with and without a session.
PINNED_MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),  # the largest that glibc takes
    "MALLOC_TOP_PAD_": str(1 << 28),
}


class BenchError(Exception):
    """A benchmark could not run."""


@dataclass
class Bar:
    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:.4g}"


@dataclass
class Figure:
    what: str
    samples: list[float]
    unit: str
    bar: Bar | None = None

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        if len(self.samples) < 3 or self.value == 0:
            return 0.0
        first, _, third = statistics.quantiles(self.samples, n=4)
        return (third - first) / abs(self.value)

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "ok" if self.bar.holds(self.value) else "missed"

    def cells(self) -> list[str]:
        digits = 2 if abs(self.value) < 10 else 1 if abs(self.value) < 100 else 0
        return [
            self.what,
            f"{self.value:.{digits}f} {self.unit}".rstrip(),
            f"{self.spread:.0%}",
            str(self.bar or ""),
            self.verdict,
        ]


HEADINGS = ["figure", "measured", "spread", "bar", ""]


@dataclass
class Section:
    title: str
    figures: list[Figure]


# ---- Running ----


def run(command: list[str], **variables: str) -> str:
    print(f"  {Path(command[0]).name} {' '.join(command[1:])}", file=sys.stderr)
    environment = os.environ | PINNED_MALLOC | variables
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    except OSError as error:
        raise BenchError(f"cannot run {command[0]}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise BenchError(f"{command[0]} failed: {error.stderr.strip()}") from error
    return done.stdout


class Runs:
    """The repetitions of all benchmarks of a Google Benchmark program."""

    def __init__(self, program: Path, repetitions: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.json"
            run(
                [
                    str(program),
                    f"--benchmark_repetitions={repetitions}",
                    "--benchmark_min_time=0.2",
                    "--benchmark_enable_random_interleaving=true",
                    f"--benchmark_out={out}",
                ]
            )
            entries = json.loads(out.read_text())["benchmarks"]
        self._runs: dict[str, list[dict]] = defaultdict(list)
        for entry in entries:
            if entry["run_type"] != "iteration":
                continue
            if entry.get("error_occurred"):
                raise BenchError(f"{program.name} {entry['name']}: {entry['error_message']}")
            name = entry["run_name"].replace("/iterations:1/manual_time", "")
            self._runs[name].append(entry)

    def __call__(self, name: str, field: str, scale: float = 1.0) -> list[float]:
        if name not in self._runs:
            raise BenchError(f"there is no benchmark {name}")
        return [entry[field] * scale for entry in self._runs[name]]


@dataclass
class StepTime:
    wall_ns: float
    cpu_ns: float
    records: int


def step_times(program: Path, model: str, rounds: int) -> dict[str, list[StepTime]]:
    """For each way to run, its step in each round."""
    times: dict[str, list[StepTime]] = defaultdict(list)
    for line in run([str(program), model, str(rounds)]).splitlines():
        way, wall_ns, cpu_ns, records = line.split()
        times[way].append(StepTime(float(wall_ns), float(cpu_ns), int(records)))
    return times


# ---- The figures ----


def recording(core: Runs, torch: Runs | None) -> Section:
    alone = [ns / 2 for ns in core("append_pair/threads:1", "cpu_time")]
    together = [ns / 2 for ns in core("append_pair/threads:2", "cpu_time")]
    figures = [
        Figure("append a record", alone, "ns", Bar(20)),
        Figure("append a record, two threads at once", together, "ns", Bar(20)),
    ]
    if torch is not None:
        idle = torch("scope_without_session", "ns")
        figures += [
            Figure("a module scope, recorded", torch("scope_recorded", "ns"), "ns", Bar(80)),
            Figure("a module scope without a session", idle, "ns", Bar(2)),
            Figure("an operator, recorded: added", torch("op_recorded", "ns"), "ns"),
            Figure("an autograd node, recorded: added", torch("node_recorded", "ns"), "ns"),
        ]
    return Section("What a recorded event costs the program", figures)


def results(core: Runs, torch: Runs | None) -> Section:
    def rate(name: str) -> list[float]:
        return core(name, "items_per_second", 1e-6)

    at_least = Bar(1.5, at_least=True)
    unit = "M slices/s"
    figures = [
        Figure("write module calls (path and flow)", rate("write_module_calls"), unit, at_least),
        Figure("  bytes a slice", core("write_module_calls", "bytes"), "bytes", Bar(56)),
        Figure("write training steps", rate("write_steps"), unit, at_least),
        Figure("  bytes a slice", core("write_steps", "bytes"), "bytes", Bar(56)),
        Figure("load() of module calls", rate("load_module_calls"), unit, at_least),
        Figure("load() of training steps", rate("load_steps"), unit, at_least),
        Figure("attribution alone", rate("resolve"), "M records/s"),
        Figure("attribution and profile", rate("resolve_and_fold"), "M records/s"),
        Figure("all that the writer thread does", rate("pipeline"), unit),
    ]
    if torch is not None:
        million = "stop() after a million events at once"
        figures += [
            Figure(million, torch("stop_after_a_million", "seconds"), "s", Bar(0.5)),
            Figure("  bytes an event", torch("stop_after_a_million", "bytes"), "bytes", Bar(56)),
        ]
    return Section("From records to trace and profile", figures)


WAYS = {
    "sham": "without, once more",
    "layers": "recording layers and nodes",
    "ops": "recording operators too",
}


def steps(program: Path, model: str, title: str, rounds: int) -> Section:
    times = step_times(program, model, rounds)
    without = times["without"]
    figures = []
    for way, what in WAYS.items():
        pairs = list(zip(times[way], without, strict=True))
        wall = [step.wall_ns / reference.wall_ns for step, reference in pairs]
        cpu = [step.cpu_ns / reference.cpu_ns for step, reference in pairs]
        figures.append(Figure(f"{what}: wall time", wall, "×"))
        figures.append(Figure(f"{what}: processor time", cpu, "×"))
    figures.insert(0, Figure("without a session", [step.wall_ns * 1e-6 for step in without], "ms"))
    figures += [
        Figure(f"{what}: records a step", [step.records for step in times[way]], "")
        for way, what in WAYS.items()
        if way != "sham"
    ]
    return Section(title, figures)


def devices(bench: Runs) -> Section:
    def rate(name: str) -> list[float]:
        return bench(name, "items_per_second", 1e-6)

    at_least = Bar(3, at_least=True)
    unit = "M kernels/s"
    figures = [
        Figure("read CUPTI's records and attribute", rate("parse_and_attribute"), unit, at_least),
        Figure("  and add to the profile", rate("parse_attribute_and_fold"), unit),
    ]
    return Section("From CUPTI's buffers to attributed kernels, on one core", figures)


def simulated(bin_dir: Path, quick: bool) -> Section:
    bench = Runs(bin_dir / "simgpu_bench", 3 if quick else 11)
    step = Path(__file__).with_name("simgpu_step.py")
    command = [str(bin_dir / "layertrace"), "simgpu", "--", sys.executable, str(step)]
    lines = [line.split() for line in run(command).splitlines() if line[:1].isdigit()]
    step_ms = [float(wall_ns) * 1e-6 for wall_ns, _ in lines]
    figures = [
        Figure("a launch", bench("launch", "real_time"), "ns", Bar(1000)),
        Figure("a launch that CUPTI records", bench("launch_recorded", "real_time"), "ns"),
        Figure("an event's record", bench("record_event", "real_time"), "ns"),
        Figure("a step of a transformer with 24 tiny layers", step_ms, "ms", Bar(1000)),
        Figure("  launches in it", [float(count) for _, count in lines], ""),
    ]
    return Section("What the simulated device costs the host (its own times are made up)", figures)


def recorded_on_device(bin_dir: Path, package: Path, quick: bool) -> Section:
    """Bars are for kernels by CUPTI alone: see gpu_overhead.py."""
    script = Path(__file__).with_name("gpu_overhead.py")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = ["--quick"] if quick else ["--seconds", "90"]
        command = [str(bin_dir / "layertrace"), "simgpu", "--", sys.executable, str(script)]
        run([*command, *words, "--json", str(out)], PYTHONPATH=str(package))
        told = json.loads(out.read_text())
    with_a_bar = "layertrace, kernels, ops=False"

    def figure(way: str, what: str, ratios: list[float], most: float) -> Figure:
        return Figure(f"{way}: {what}", ratios, "×", Bar(most) if way == with_a_bar else None)

    figures = [Figure("without a session", [told["bare_step_ns"]["wall"] * 1e-6], "ms")]
    figures += [figure(way, "wall time", each, 1.10) for way, each in told["wall_ratios"].items()]
    figures += [
        figure(way, "of what torch.profiler adds", each, 1 / 3)
        for way, each in told["of_torch_profiler"].items()
    ]
    title = "A training step of the same transformer on the simulated device, recorded from Python"
    return Section(title, figures)


def measure(bin_dir: Path, quick: bool) -> list[Section]:
    has_torch = (bin_dir / "torch_bench").exists()
    core = Runs(bin_dir / "core_bench", 3 if quick else 11)
    torch = Runs(bin_dir / "torch_bench", 3 if quick else 11) if has_torch else None
    sections = [recording(core, torch), results(core, torch)]
    if (bin_dir / "device_bench").exists():
        sections.append(devices(Runs(bin_dir / "device_bench", 3 if quick else 11)))
    if has_torch:
        step_bench = bin_dir / "step_bench"
        rounds = 3 if quick else 30
        cnn = "A training step of the demo's CNN, against the same without a session"
        tiny = "A training step of a transformer with 24 tiny layers, likewise"
        sections.append(steps(step_bench, "cnn", cnn, rounds))
        sections.append(steps(step_bench, "transformer", tiny, rounds))
    if (bin_dir / "simgpu_bench").exists() and has_torch:
        sections.append(simulated(bin_dir, quick))
        package = bin_dir.parent / "python"
        if any((package / "layertrace").glob("_core*")):
            sections.append(recorded_on_device(bin_dir, package, quick))
    return sections


# ---- Printing ----


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((ln.split(":", 1)[1].strip() for ln in lines if ln.startswith("model name")), "?")
    return f"{os.cpu_count()} cores, {cpu}"


def text(sections: list[Section]) -> str:
    rows = [figure.cells() for section in sections for figure in section.figures]
    widths = [max(len(row[i]) for row in [HEADINGS, *rows]) for i in range(len(HEADINGS))]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:4], widths[1:4], strict=True)]
        return "  ".join([*padded, cells[4]]).rstrip()

    out = [line(HEADINGS)]
    for section in sections:
        out += ["", section.title]
        out += [line(figure.cells()) for figure in section.figures]
    return "\n".join(out)


def markdown(sections: list[Section], load_before: float) -> str:
    """The load says how far other programs took part: without any it is below 1 before the run."""
    load_after = os.getloadavg()[0]
    out = [
        f"{machine()}. Load average {load_before:.1f} before the run, {load_after:.1f} after.",
        "",
    ]
    for section in sections:
        out += [f"**{section.title}**", ""]
        out += [f"| {' | '.join(HEADINGS)} |", "| --- | ---: | ---: | ---: | --- |"]
        out += [f"| {' | '.join(cell.strip() for cell in f.cells())} |" for f in section.figures]
        out.append("")
    return "\n".join(out).rstrip()


def replace_in(path: Path, table: str) -> None:
    whole = path.read_text()
    first, last = MARKS
    if whole.count(first) != 1 or whole.count(last) != 1:
        raise BenchError(f"{path} has no place for the figures: put {first} and {last} into it")
    head, rest = whole.split(first)
    path.write_text(f"{head}{first}\n\n{table}\n\n{last}{rest.split(last)[1]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin_dir", type=Path, metavar="BIN_DIR")
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions: to see that all runs"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also put the table there")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"bench: {machine()}; load {load:.1f} before; some five minutes", file=sys.stderr)
    try:
        sections = measure(options.bin_dir, options.quick)
        if options.markdown is not None:
            replace_in(options.markdown, markdown(sections, load))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(text(sections))
    verdicts = [figure.verdict for section in sections for figure in section.figures]
    print(f"\n{verdicts.count('ok')} bars held, {verdicts.count('missed')} missed")
    if load > 0.5:
        print(f"The machine was busy (load {load:.1f}): figures of a quiet one are better.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
