"""How long a model takes, as a whole and by module: benchmark() and throughput()."""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import torch
from torch.utils import _pytree

from layertrace import _core, _session
from layertrace._core import Benchmark, Schedule, Throughput, TimeStats, TimingEnvironment
from layertrace._errors import Error
from layertrace._session import DEFAULT_MEMORY_CAP, Session
from layertrace._summary import Inputs, _arguments, _tensors

Forward = Callable[[torch.nn.Module, Any], object]
Call = Callable[[], object]


def benchmark(
    model: torch.nn.Module,
    inputs: Inputs | None = None,
    iterations: int = 1000,
    drop_first: int = 100,
    aggregate: bool = True,
    *,
    modules: bool = True,
    forward: Forward | None = None,
    eval: bool = True,
    inference_mode: bool = True,
    intra_op_threads: int | None = None,
    inter_op_threads: int | None = None,
    timing: str = "events",
    progress: bool | None = None,
    name: str = "",
) -> Benchmark:
    """Times a model in inference: the whole without any scope inside it, and each module with.

    The model is called `iterations` times, with the clock around each call and nothing else; the
    first `drop_first` are left out. Then as often again with a scope in each module, and the
    result tells how much slower that was. On a GPU a call ends when the device has done its work.

    inputs: what the model is called with: a tensor, several as a tuple, keywords as a dict.
    aggregate: whether tables have mean, standard deviation, least, most, median and percentiles; or
        a row for each iteration. `result.table(aggregate=…)` gives either.
    modules: without, the whole alone is measured.
    forward: `forward(model, inputs)` makes the call, for a model that is not called by itself.
    eval: put the model into eval mode meanwhile. Each submodule's mode is restored, as are the
        program's random numbers.
    inference_mode: call it in torch.inference_mode(); else in the mode in which the program is. A
        tensor that the model makes in its first call and keeps is then of no use in a backward:
        call such a model once before, or leave this out.
    intra_op_threads, inter_op_threads: PyTorch's threads meanwhile. Between operators their number
        can be set once in a process, so that it stays.
    timing: how modules' times on a GPU are taken, as in `profile()`.
    progress: show a bar on stderr; where that is a terminal, unless told.
    name: what the run is called, in tables.

    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU())
    >>> timed = layertrace.benchmark(model, torch.randn(1, 8), iterations=20, drop_first=5)
    >>> timed.stats.count
    15
    >>> timed.table("modules", root="__root__")["module"]
    ['__root__', '0', '1']
    >>> len(timed.table("total", aggregate=False))
    15
    """
    _check("benchmark()", model, iterations, drop_first)
    call = _call("benchmark()", model, inputs, forward)
    devices = _devices(model, inputs)
    session = _session_of(model, drop_first, iterations - drop_first, timing)
    _refuse_sessions("benchmark()", session)
    kept = _kept(model, devices, eval, inference_mode, intra_op_threads, inter_op_threads)
    with kept, Progress(iterations * (2 if modules else 1), progress) as bar:
        environment = _environment(model, devices, name)
        make = functools.partial(
            _core.make_benchmark, type(model).__name__, iterations, drop_first, aggregate
        )
        bar.say("whole model")
        total = call_times(call, iterations, drop_first, devices=devices, progress=bar)
        if not modules:
            return make(total, [], "", None, environment)
        bar.say("modules")
        with tempfile.TemporaryDirectory(prefix="layertrace.") as folder:
            trace = str(Path(folder) / "modules.pftrace")
            session._output = trace
            with session:
                scoped = call_times(
                    call, iterations, drop_first, devices, between=session.step, progress=bar
                )
                profile = session.stop()
            return make(total, scoped, trace, profile, environment)


def throughput(
    model: torch.nn.Module,
    inputs: Inputs | Callable[[int], Inputs],
    batch_sizes: Iterable[int] = (1, 2, 4, 8, 16, 32),
    iterations: int = 100,
    drop_first: int = 10,
    *,
    forward: Forward | None = None,
    eval: bool = True,
    inference_mode: bool = True,
    intra_op_threads: int | None = None,
    inter_op_threads: int | None = None,
    progress: bool | None = None,
    name: str = "",
) -> Throughput:
    """Times a model with batches of several sizes: latency, and samples per second.

    `inputs` is as in `benchmark()`: of each tensor with as many rows as the first one, rows are
    taken from the first on, again and again, until there are enough. Or it is a function that gives
    the inputs for a size. Where memory does not suffice for a size, the result has those before it,
    and says so. Nothing is recorded inside the model. The other options are as in `benchmark()`.

    >>> model = torch.nn.Linear(8, 32)
    >>> sweep = layertrace.throughput(model, torch.randn(1, 8), [1, 4], iterations=9, drop_first=2)
    >>> sweep.table()["batch_size"]
    [1, 4]
    """
    _check("throughput()", model, iterations, drop_first)
    sizes = list(batch_sizes)
    if not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"batch_sizes is {sizes}; it is a list of whole numbers, 1 or more")
    of_size = inputs if callable(inputs) else functools.partial(_resized, inputs)
    _refuse_sessions("throughput()", _session_of(model, 0, 1, "events"))
    devices = _devices(model, None if callable(inputs) else inputs)
    times: list[tuple[int, list[int]]] = []
    failed_at = 0
    kept = _kept(model, devices, eval, inference_mode, intra_op_threads, inter_op_threads)
    with kept, Progress(iterations * len(sizes), progress) as bar:
        environment = _environment(model, devices, name)
        for size in sizes:
            bar.say(f"batches of {size}")
            try:
                batch = of_size(size)
                if size == sizes[0] and devices != (used := _devices(model, batch)):
                    devices, environment = used, _environment(model, used, name)
                call = _call("throughput()", model, batch, forward)
                ns = call_times(call, iterations, drop_first, devices=devices, progress=bar)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if not times:
                    raise Error(
                        f"cannot time batches of {size}",
                        "memory does not suffice for it, which is the first size",
                        "Begin with a smaller one",
                    ) from error
                failed_at = size
                break
            times.append((size, ns))
    return _core.make_throughput(
        type(model).__name__, iterations, drop_first, times, environment, failed_at
    )


def latency(
    call: Call,
    *,
    iterations: int = 100,
    drop_first: int = 10,
    devices: Sequence[torch.device] = (),
) -> TimeStats:
    """What calls of a function take, without the first ones; `devices` are waited for."""
    return _core.time_stats(call_times(call, iterations, drop_first, devices))


def call_times(
    call: Call,
    iterations: int,
    drop_first: int,
    devices: Sequence[torch.device] = (),
    between: Call | None = None,
    progress: Progress | None = None,
) -> list[int]:
    """The time of each call in ns, without the first ones."""
    waits = [functools.partial(torch.cuda.synchronize, device) for device in devices]
    for wait in waits:
        wait()
    ns: list[int] = []
    while len(ns) < iterations:
        count = iterations - len(ns)
        if progress is not None:
            count = min(count, progress.chunk())
        (_time_waiting if waits else _time)(ns, count, call, waits, between)
        if progress is not None:
            progress.add(count)
    return ns[drop_first:]


def _time(
    ns: list[int], count: int, call: Call, _waits: Sequence[Call], between: Call | None
) -> None:
    clock, add = time.perf_counter_ns, ns.append
    for _ in repeat(None, count):
        start = clock()
        call()
        end = clock()
        add(end - start)
        if between is not None:
            between()


def _time_waiting(
    ns: list[int], count: int, call: Call, waits: Sequence[Call], between: Call | None
) -> None:
    clock, add = time.perf_counter_ns, ns.append
    for _ in repeat(None, count):
        start = clock()
        call()
        for wait in waits:
            wait()
        end = clock()
        add(end - start)
        if between is not None:
            between()


class Progress:
    """A bar on a terminal. It is drawn between calls, some times in a second."""

    _EVERY_S = 0.2
    _WIDTH = 30

    def __init__(self, all: int, show: bool | None, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream is not None and self._stream.isatty()
        # A program without a terminal may have no such stream at all.
        self._shows = (self._is_terminal if show is None else show) and self._stream is not None
        self._all = all
        self._done = 0
        self._what = ""
        self._chunk = 1
        self._drawn_at = 0.0

    def say(self, what: str) -> None:
        """What is timed from now on."""
        self._what = what
        self._chunk = 1
        self._drawn_at = time.monotonic()

    def chunk(self) -> int:
        """How many calls there may be until it is drawn again."""
        return self._chunk if self._shows else self._all

    def add(self, count: int) -> None:
        self._done += count
        if not self._shows:
            return
        now = time.monotonic()
        took = max(now - self._drawn_at, 1e-6)
        self._chunk = max(1, min(self._chunk * 2, int(count * self._EVERY_S / took)))
        self._drawn_at = now
        self._draw()

    def _draw(self) -> None:
        filled = self._WIDTH * self._done // max(1, self._all)
        bar = "#" * filled + "." * (self._WIDTH - filled)
        text = f"\r{self._what:<16} [{bar}] {self._done:,} of {self._all:,} calls"
        self._stream.write(text)
        self._stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shows:
            self._stream.write("\r\x1b[K" if self._is_terminal else "\n")
            self._stream.flush()


# ---- what is asked for ----


def _check(function: str, model: torch.nn.Module, iterations: int, drop_first: int) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{function} takes an nn.Module; this is a {type(model).__name__}")
    for name, value, least in (("iterations", iterations, 1), ("drop_first", drop_first, 0)):
        if type(value) is not int or value < least:
            raise ValueError(f"{name} is {value!r}; it is a whole number, {least} or more")
    if drop_first >= iterations:
        raise ValueError(
            f"of {iterations} iterations the first {drop_first} would be dropped; let iterations "
            "be more than drop_first"
        )


def _call(
    function: str, model: torch.nn.Module, inputs: Inputs | None, forward: Forward | None
) -> Call:
    if forward is not None:
        return functools.partial(forward, model, inputs)
    if inputs is None:
        raise ValueError(
            f"{function} needs inputs to call the model with: a tensor, a tuple of several, a dict "
            "of keywords; () for a model that takes none"
        )
    args, kwargs = _arguments(inputs)
    return functools.partial(model, *args, **kwargs)


def _session_of(model: torch.nn.Module, skip: int, record: int, timing: str) -> Session:
    return Session(
        model,
        None,
        Schedule(0, skip, record, 1),
        None,
        ops=False,
        fold_wrappers=False,
        memory_cap_bytes=DEFAULT_MEMORY_CAP,
        timing=timing,
        nvtx=False,
        count="off",
    )


def _refuse_sessions(function: str, session: Session) -> None:
    """Scopes of another session would be timed, too."""
    if _session.give_way is not None:
        _session.give_way(session)
    if _session.module_calls.installed:
        raise Error(
            f"cannot time a model by {function}",
            "a session is active, whose scopes would be timed, too",
            "Stop the session first",
        )


def _devices(model: torch.nn.Module, inputs: object) -> list[torch.device]:
    """The GPUs to wait for."""
    tensors = [*model.parameters(), *model.buffers(), *_tensors(inputs)]
    return sorted({each.device for each in tensors if each.is_cuda}, key=lambda each: each.index)


def _environment(
    model: torch.nn.Module, devices: list[torch.device], run_name: str
) -> TimingEnvironment:
    if devices:
        gpu = torch.cuda.get_device_name(devices[0])
        return _core.timing_environment(str(devices[0]), gpu, run_name)
    first = next(iter(model.parameters()), None)
    return _core.timing_environment("cpu" if first is None else str(first.device), "", run_name)


def _resized(inputs: Inputs, size: int) -> Inputs:
    """The inputs with so many rows."""
    tensors = [each for each in _tensors(inputs) if each.dim() > 0 and each.size(0) > 0]
    if not tensors:
        raise ValueError(
            "no tensor among the inputs has rows to make batches of; give a function that gives "
            "the inputs for a size"
        )
    rows = tensors[0].size(0)

    def resize(value: object) -> object:
        if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.size(0) != rows:
            return value
        times = -(-size // rows)
        return (value if times == 1 else torch.cat([value] * times))[:size]

    plain = dict(inputs) if isinstance(inputs, Mapping) else inputs
    return _pytree.tree_map(resize, plain)  # type: ignore[no-any-return]


def is_out_of_memory(error: BaseException) -> bool:
    """Of a GPU or of the host, as PyTorch says it."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        "can't allocate memory" in str(error)
    )


# ---- what is as it was afterwards ----


@contextmanager
def _kept(
    model: torch.nn.Module,
    devices: Iterable[torch.device],
    eval: bool,
    inference_mode: bool,
    intra_op_threads: int | None,
    inter_op_threads: int | None,
) -> Iterator[None]:
    for name, threads in (
        ("intra_op_threads", intra_op_threads),
        ("inter_op_threads", inter_op_threads),
    ):
        if threads is not None and (type(threads) is not int or threads < 1):
            raise ValueError(f"{name} is {threads!r}; it is a whole number, 1 or more")
    _set_inter_op_threads(inter_op_threads)
    threads_before = torch.get_num_threads()
    mode = torch.inference_mode() if inference_mode else nullcontext()
    try:
        if intra_op_threads is not None:
            torch.set_num_threads(intra_op_threads)
        random_numbers = torch.random.fork_rng([device.index for device in devices])
        with modes_kept(model, eval=eval), random_numbers, mode:
            yield
    finally:
        if intra_op_threads is not None:
            torch.set_num_threads(threads_before)


@contextmanager
def modes_kept(model: torch.nn.Module, *, eval: bool) -> Iterator[None]:
    """In eval mode where that is asked for; then each module has the mode that it had."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        if eval and any(training for _, training in modes):
            model.eval()
        yield
    finally:
        # By their own train(), which may do more than set a flag: LoRA's takes its part out of the
        # weights again. It sets the flags of those below, too, so parents come first.
        try:
            for module, training in modes:
                if module.training != training:
                    module.train(training)
        finally:
            for module, training in modes:
                if module.training != training:
                    module.training = training


def _set_inter_op_threads(threads: int | None) -> None:
    if threads is None or threads == torch.get_num_interop_threads():
        return
    try:
        torch.set_num_interop_threads(threads)
    except RuntimeError as error:
        raise Error(
            f"cannot set {threads} threads between operators",
            f"PyTorch has begun with {torch.get_num_interop_threads()}",
            "Set them once, where the program begins",
        ) from error
