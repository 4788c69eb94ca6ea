"""What recording costs a training step in Python, beside what other tools cost.

    python_overhead.py [--quick] [--seconds N] [--json FILE]

Two models train on one thread: a transformer of 24 tiny layers, where a step is nothing but
overhead, and torchvision's ResNet18. Each way to run a step is visited over and over: under
layertrace, under torch.profiler, with hooks and so on, and bare (the sham: how far two equal things
differ on this machine). A visit starts the tool, runs steps that are not counted for a tenth of a
second (caches are filled, and layertrace's writer, which works in bursts, has found its pace),
steps that are for three tenths, and stops the tool; what start and stop take is told apart from the
steps. Before and after each visit is one without a tool, and a figure is the median of the ratios
to the mean of these two, with the interval in which that median lies by 95 %: machines change their
speed within a second. In a round each way has its turn, in an order in which it follows another one
each time.

A bar for a step is for how long the step takes: wall time, the median of the steps. It is told
beside it whether it also holds for the processor time of all threads, in which layertrace's writer
is included, which works on another core: the mean over the counted steps, so that a burst between
others is in it. The table has the processor time of the thread that trains, too.

Then a chain of modules that do nothing is called: what one call of a module costs. The bar is for
the processor time of the thread that calls.

Timings are no tests: a missed bar is printed, and the exit code is 0 unless something could not
run. torch.profiler's stop only collects its events, layertrace's leaves trace and profile.
"""

import argparse
import contextlib
import gc
import json
import math
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from report import PINNED_MALLOC, BenchError, machine
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

# ---- What runs ----


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*qkv.unbind(0))
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads=4)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, layers: int = 24, width: int = 64, words: int = 100) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Chain(nn.Module):
    """Calls modules that do nothing: all that is left is the call."""

    def __init__(self, length: int = 200) -> None:
        super().__init__()
        self.links = nn.ModuleList([nn.Identity() for _ in range(length)])
        self.in_record_function = False

    def forward(self, x: Tensor) -> Tensor:
        if self.in_record_function:
            for link in self.links:
                with torch.profiler.record_function("link"):
                    x = link(x)
        else:
            for link in self.links:
                x = link(x)
        return x


@dataclass
class Workload:
    title: str
    model: nn.Module
    step: Callable[[], None]
    module_calls: int = 0

    def __post_init__(self) -> None:
        """Runs a step, so that all memory is there, and counts its module calls."""

        def count(*_: object) -> None:
            self.module_calls += 1

        handle = nn.modules.module.register_module_forward_pre_hook(count)
        self.step()
        handle.remove()


def training(title: str, model: nn.Module, inputs: Tensor, targets: Tensor) -> Workload:
    # So slow that the values stay what they are, however many steps are run.
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)

    def step() -> None:
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    return Workload(title, model, step)


def transformer(device: str = "cpu") -> Workload:
    words = torch.randint(100, (2, 16)).to(device)
    model = Transformer().to(device)
    return training("a transformer of 24 tiny layers", model, words, words.flatten())


def resnet18() -> Workload:
    from torchvision.models import resnet18

    model = resnet18(num_classes=10)
    return training(
        "ResNet18, 64×64, batch 4", model, torch.randn(4, 3, 64, 64), torch.randint(10, (4,))
    )


def chain() -> Workload:
    model, x = Chain(), torch.zeros(1)

    def burst() -> None:
        for _ in range(20):
            model(x)

    return Workload("one call of a module", model, burst)


# ---- Ways to run it ----

# What a way does to a workload while it is entered. It may give a function that ends each step.
Way = Callable[[Workload], AbstractContextManager[Callable[[], None] | None]]


def bare(_: Workload) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


def layertrace_way(**options: object) -> Way:
    @contextmanager
    def way(load: Workload) -> Iterator[Callable[[], None]]:
        import layertrace  # not before the first visit: see measure()

        with layertrace.profile(load.model, **options) as session:
            yield session.step
        dropped = session.profile.health.dropped
        if dropped != 0:
            raise BenchError(f"{dropped} records were dropped: the figures would flatter")

    return way


@contextmanager
def idle(load: Workload) -> Iterator[Callable[[], None]]:
    import layertrace

    never = layertrace.schedule(skip=1 << 40, record=1)
    with layertrace.profile(load.model, schedule=never) as session:
        yield session.step


@contextmanager
def after_stop(load: Workload) -> Iterator[None]:
    with layertrace_way()(load) as end_step:
        load.step()
        end_step()
    yield


CPU = torch.profiler.ProfilerActivity.CPU


def torch_profiler(*, cuda: bool = False, **options: bool) -> Way:
    activities = [CPU, torch.profiler.ProfilerActivity.CUDA] if cuda else [CPU]

    @contextmanager
    def way(_: Workload) -> Iterator[None]:
        with torch.profiler.profile(activities=activities, **options):
            yield

    return way


@contextmanager
def flop_counter(_: Workload) -> Iterator[None]:
    with FlopCounterMode(display=False):
        yield


def hooks(method: str) -> Way:
    def do_nothing(*_: object) -> None:
        pass

    @contextmanager
    def way(load: Workload) -> Iterator[None]:
        handles = [getattr(module, method)(do_nothing) for module in load.model.modules()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    return way


@contextmanager
def in_record_function(load: Workload) -> Iterator[None]:
    load.model.in_record_function = True
    yield
    load.model.in_record_function = False


SHAM = "bare, once more"
LAYERS = "layertrace, ops=False"
OPS = "layertrace, every operator"
AFTER_STOP = "after layertrace's stop"
RECORDING = "layertrace, recording"

STEP_WAYS: dict[str, Way] = {
    SHAM: bare,
    AFTER_STOP: after_stop,
    LAYERS: layertrace_way(ops=False),
    OPS: layertrace_way(),
    "torch.profiler": torch_profiler(),
    "torch.profiler, shapes and stacks": torch_profiler(record_shapes=True, with_stack=True),
    "torch.profiler, all options": torch_profiler(
        record_shapes=True, with_stack=True, profile_memory=True, with_flops=True, with_modules=True
    ),
    "forward hooks that do nothing": hooks("register_forward_hook"),
    "full backward hooks that do nothing": hooks("register_full_backward_hook"),
    "FlopCounterMode": flop_counter,
}

CALL_WAYS: dict[str, Way] = {
    SHAM: bare,
    AFTER_STOP: after_stop,
    "layertrace, idle by its schedule": idle,
    RECORDING: layertrace_way(ops=False),
    "a forward hook that does nothing": hooks("register_forward_hook"),
    "record_function": in_record_function,
}

# Those with a bar have two turns in a round.
WITH_BAR = (SHAM, AFTER_STOP, LAYERS, OPS, RECORDING)


# ---- Measuring ----

ALL_THREADS = "processor"
CLOCKS = {
    "wall": time.perf_counter_ns,
    ALL_THREADS: time.process_time_ns,
    "thread": time.thread_time_ns,  # the one that trains
}


@dataclass
class Visit:
    """One visit to a way: its step by each clock, and what came before and after."""

    step_ns: dict[str, float]
    steps: int  # with those that are not counted
    start_ns: int
    stop_ns: int


def visit(way: Way, load: Workload, timed_ns: int) -> Visit:
    """Times as many steps as fit, after a third of that time without, and at least one of each."""
    context = way(load)
    entering = time.perf_counter_ns()
    end_step = context.__enter__()
    entered = time.perf_counter_ns()
    steps = 0

    def run(for_ns: float) -> list[list[int]]:
        nonlocal steps
        taken: list[list[int]] = []
        while not taken or sum(wall for wall, *_ in taken) < for_ns:
            before = [read() for read in CLOCKS.values()]
            load.step()
            if end_step is not None:
                end_step()
            after = [read() for read in CLOCKS.values()]
            taken.append([last - first for first, last in zip(before, after, strict=True)])
            steps += 1
        return taken

    try:
        run(timed_ns / 3)
        taken = dict(zip(CLOCKS, zip(*run(timed_ns), strict=True), strict=True))
    finally:
        leaving = time.perf_counter_ns()
        context.__exit__(*sys.exc_info())
    stop_ns = time.perf_counter_ns() - leaving
    step_ns = {
        clock: (statistics.fmean if clock == ALL_THREADS else statistics.median)(values)
        for clock, values in taken.items()
    }
    return Visit(step_ns, steps, entered - entering, stop_ns)


def between(first: Visit, second: Visit) -> Visit:
    step_ns = {clock: (first.step_ns[clock] + second.step_ns[clock]) / 2 for clock in CLOCKS}
    return Visit(step_ns, first.steps + second.steps, 0, 0)


def orders(count: int) -> Iterator[list[int]]:
    """Orders of `count` things, without end, in which each follows each other one equally often.

    A Williams design: the first order goes back and forth, the others add one to it, and every
    second set is reversed.
    """
    zigzag = [(i + 1) // 2 if i % 2 else -(i // 2) for i in range(count)]
    while True:
        for direction in (1, -1):
            for shift in range(count):
                yield [(shift + i) % count for i in zigzag][::direction]


class Progress:
    """One line on a terminal; nothing elsewhere."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown = sys.stderr.isatty()

    def __call__(self, what: str) -> None:
        if self._shown:
            print(f"\r\033[K{self._title}: {what}", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@dataclass
class Measured:
    load: Workload
    before_any_session: Visit | None
    pairs: dict[str, list[tuple[Visit, Visit]]]  # of each way: around it, and with it
    failed: dict[str, str]  # ways that cannot run it, and why

    def ratios(self, way: str, clock: str) -> list[float]:
        return [tool.step_ns[clock] / none.step_ns[clock] for none, tool in self.pairs[way]]

    def extra_ns_a_call(self, way: str, clock: str) -> list[float]:
        calls = self.load.module_calls
        return [
            (tool.step_ns[clock] - none.step_ns[clock]) / calls for none, tool in self.pairs[way]
        ]

    def median(self, way: str, read: Callable[[Visit], float]) -> float:
        return statistics.median(read(tool) for _, tool in self.pairs[way])

    def step_ns(self, way: str) -> dict[str, float]:
        return {clock: self.median(way, lambda v, c=clock: v.step_ns[c]) for clock in CLOCKS}

    def bare_step_ns(self) -> dict[str, float]:
        return {
            clock: statistics.median(
                none.step_ns[clock] for pairs in self.pairs.values() for none, _ in pairs
            )
            for clock in CLOCKS
        }


def try_out(load: Workload, ways: dict[str, Way], progress: Progress) -> dict[str, str]:
    """Visits each way once, so that what happens once has happened. Those that fail, and why."""
    failed = {}
    for name, way in ways.items():
        progress(f"trying {name}")
        try:
            visit(way, load, timed_ns=0)
        except BenchError:
            raise
        except RuntimeError as error:
            failed[name] = str(error).split(". ")[0]
    return failed


def measure(
    load: Workload,
    ways: dict[str, Way],
    seconds: float,
    timed_ns: int,
    twice: Collection[str] = WITH_BAR,
) -> Measured:
    """In as many rounds as take that long, and at least two. Some ways have two turns in each."""
    progress = Progress(load.title)
    progress("bare")
    # Only in the first workload can one see what was there before layertrace came at all.
    fresh = "layertrace" not in sys.modules
    before = visit(bare, load, int(seconds * 1e9 / 20)) if fresh else None
    failed = try_out(load, ways, progress)
    names = [name for name in ways if name not in failed]
    turns = names + [name for name in names if name in twice]
    measured = Measured(load, before, {name: [] for name in names}, failed)
    gc.collect()
    gc.freeze()  # what is here now stays: collections look at what the ways make
    start = time.monotonic()
    before_it = visit(bare, load, timed_ns)
    for number, order in enumerate(orders(len(turns))):
        if number >= 2 and time.monotonic() - start > seconds:
            break
        for i in order:
            name = turns[i]
            progress(f"{time.monotonic() - start:.0f} of {seconds:.0f} s, {name}")
            tool = visit(ways[name], load, timed_ns)
            after_it = visit(bare, load, timed_ns)
            measured.pairs[name].append((between(before_it, after_it), tool))
            before_it = after_it
    progress.done()
    gc.unfreeze()
    return measured


# ---- The figures ----


@dataclass
class Estimate:
    """A median, and the interval in which it lies by 95 %; of fewer than six samples, by less."""

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, samples: list[float]) -> "Estimate":
        ordered = sorted(samples)
        # How many lie below the true median is binomial, whatever the samples' distribution.
        tail = max(0, int(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5))
        return cls(statistics.median(ordered), ordered[tail], ordered[-1 - tail], len(ordered))

    def within(self, low: float, high: float) -> bool:
        """It lies between these, and no doubt about it."""
        return self.samples >= 6 and self.low >= low and self.high <= high

    def text(self, form: str) -> list[str]:
        """The cells of a table."""
        return [format(self.median, form), f"{self.low:{form}} … {self.high:{form}}"]


@dataclass
class Verdict:
    what: str
    value: str
    bar: str
    holds: bool
    clear: bool  # the whole interval lies on one side of the bar

    def __str__(self) -> str:
        word = ("holds" if self.holds else "missed") + ("" if self.clear else "?")
        return f"{word:8}{self.what}: {self.value} ({self.bar})"


def at_most(limit: float, what: str, estimate: Estimate, form: str, unit: str) -> Verdict:
    holds = estimate.median <= limit
    clear = estimate.within(-math.inf, limit) or estimate.within(limit, math.inf)
    value, interval = estimate.text(form)
    return Verdict(what, f"{value} {unit}, {interval}", f"at most {limit:{form}}", holds, clear)


def step_verdicts(measured: Measured) -> list[Verdict]:
    def ratio(way: str, clock: str = "wall") -> Estimate:
        return Estimate.of(measured.ratios(way, clock))

    title = measured.load.title
    sham, after = ratio(SHAM), ratio(AFTER_STOP)
    value, interval = after.text(".3f")
    as_sham = f"1.00 as far as can be seen; the sham has {sham.low:.3f} … {sham.high:.3f}"
    same = after.low <= max(sham.high, 1) and after.high >= min(sham.low, 1)
    enough = after.samples >= 6
    return [
        at_most(1.05, f"{title}: {LAYERS}", ratio(LAYERS), ".3f", "×"),
        at_most(1.20, f"{title}: {OPS}", ratio(OPS), ".3f", "×"),
        *(
            at_most(limit, f"{title}: {way}, all threads", ratio(way, ALL_THREADS), ".3f", "×")
            for way, limit in ((LAYERS, 1.05), (OPS, 1.20))
        ),
        Verdict(f"{title}: {AFTER_STOP}", f"{value} ×, {interval}", as_sham, same, enough),
    ]


def call_verdict(measured: Measured) -> Verdict:
    extra = Estimate.of(measured.extra_ns_a_call(RECORDING, "thread"))
    return at_most(300, "a module call, recorded: extra", extra, ".0f", "ns")


def step_figures(measured: Measured) -> dict[str, dict]:
    return {
        way: {
            "step_ns": measured.step_ns(way),
            "ratio": {clock: asdict(Estimate.of(measured.ratios(way, clock))) for clock in CLOCKS},
            "start_ns": measured.median(way, lambda v: v.start_ns),
            "stop_ns_a_step": measured.median(way, lambda v: v.stop_ns / v.steps),
        }
        for way in measured.pairs
    }


def call_figures(measured: Measured) -> dict[str, dict]:
    return {
        way: {clock: asdict(Estimate.of(measured.extra_ns_a_call(way, clock))) for clock in CLOCKS}
        for way in measured.pairs
    }


# ---- Printing ----


def table(headings: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in [headings, *rows]
    )


def step_table(measured: Measured) -> str:
    bare_ms = measured.bare_step_ns()["wall"] * 1e-6
    rows = [["bare", f"{bare_ms:.2f} ms", *[""] * 6]]
    for way, figures in step_figures(measured).items():
        around = ["", ""]
        if way not in (SHAM, AFTER_STOP):
            around = [f"{figures[name] * 1e-6:.2f} ms" for name in ("start_ns", "stop_ns_a_step")]
        rows.append(
            [
                way,
                f"{figures['step_ns']['wall'] * 1e-6:.2f} ms",
                *Estimate.of(measured.ratios(way, "wall")).text(".3f"),
                f"{figures['ratio']['thread']['median']:.3f}",
                f"{figures['ratio']['processor']['median']:.3f}",
                *around,
            ]
        )
    headings = ["", "step", "wall ×", "by 95 %", "own thread ×", "all threads ×"]
    load = measured.load
    lines = [
        f"A training step of {load.title}: {load.module_calls} module calls",
        table([*headings, "start", "stop, a step"], rows),
    ]
    if measured.before_any_session is not None:
        step_ns = measured.before_any_session.step_ns["wall"]
        lines.append(f"before layertrace was imported, a bare step took {step_ns * 1e-6:.2f} ms")
    lines += [f"{way}: cannot run it ({why})" for way, why in measured.failed.items()]
    return "\n".join(lines)


def call_table(measured: Measured) -> str:
    bare_ns = measured.bare_step_ns()["thread"] / measured.load.module_calls
    rows = [
        [
            way,
            *Estimate.of(measured.extra_ns_a_call(way, "thread")).text("+.0f"),
            f"{figures['processor']['median']:+.0f}",
            f"{figures['wall']['median']:+.0f}",
        ]
        for way, figures in call_figures(measured).items()
    ]
    headings = ["", "own thread, ns", "by 95 %", "processor, ns", "wall, ns"]
    title = f"{measured.load.title.capitalize()}: bare {bare_ns:.0f} ns, and what it costs more"
    return f"{title}\n{table(headings, rows)}"


def as_json(steps: list[Measured], calls: Measured, verdicts: list[Verdict]) -> dict:
    return {
        "steps": [
            {
                "workload": measured.load.title,
                "module_calls": measured.load.module_calls,
                "bare_step_ns": measured.bare_step_ns(),
                "before_any_session_ns": measured.before_any_session
                and measured.before_any_session.step_ns,
                "ways": step_figures(measured),
                "failed": measured.failed,
            }
            for measured in steps
        ],
        "module_call": {
            "bare_ns": {
                clock: ns / calls.load.module_calls for clock, ns in calls.bare_step_ns().items()
            },
            "extra_ns": call_figures(calls),
        },
        "bars": [asdict(verdict) for verdict in verdicts],
    }


# ---- The program ----


def pin_malloc() -> None:
    """Starts the program again with glibc's heap pinned: report.py says why."""
    # The profiler's library tells of each start and stop unless it is made to be quiet.
    wanted = PINNED_MALLOC | {"OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99"}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, sys.orig_argv, os.environ | wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds: to see that all runs")
    parser.add_argument(
        "--seconds", type=float, default=150, metavar="N", help="for each model; 150 unless given"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    seconds, timed_ns = (0, 0) if options.quick else (options.seconds, 300_000_000)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # torch's, of hooks and options that are meant here

    load_before = os.getloadavg()[0]
    try:
        steps = [measure(make(), STEP_WAYS, seconds, timed_ns) for make in (transformer, resnet18)]
        calls = measure(chain(), CALL_WAYS, seconds / 4, timed_ns)
    except BenchError as error:
        print(f"python_overhead: {error}", file=sys.stderr)
        return 1
    run = {
        "machine": machine(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "seconds": seconds,
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
    }
    verdicts = [verdict for measured in steps for verdict in step_verdicts(measured)]
    verdicts.append(call_verdict(calls))
    print(
        f"{run['machine']}; Python {run['python']}, torch {run['torch']}; "
        f"load {load_before:.1f} before, {run['load_after']:.1f} after"
    )
    for measured in steps:
        print(f"\n{step_table(measured)}")
    print(f"\n{call_table(calls)}\n")
    for verdict in verdicts:
        print(verdict)
    if not all(verdict.clear for verdict in verdicts):
        print("?: the noise hides it; a quiet machine or more --seconds would tell")
    if options.json is not None:
        figures = {"run": run} | as_json(steps, calls, verdicts)
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    pin_malloc()
    sys.exit(main())
