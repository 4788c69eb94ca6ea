"""Recording a model: profile(), scope(), schedule(), register_shapes(), load()."""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

from layertrace import _core, _custom_ops
from layertrace._core import Profile, Schedule
from layertrace._errors import Error, LayertraceWarning
from layertrace._formulas import Formulas, SessionFormulas
from layertrace._optimizer_state import OptimizerStates
from layertrace._reported import reports
from layertrace._steps import StepFinder

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Models = torch.nn.Module | Mapping[str, torch.nn.Module]
Optimizers = torch.optim.Optimizer | Iterable[torch.optim.Optimizer]

DevicePeaks = Mapping[str, str | float] | str | os.PathLike[str]

DEFAULT_MEMORY_CAP = 64 << 20
COUNTING = ("first", "always", "off")


class _ModuleCalls:
    """Puts the descriptor that sees module calls onto nn.Module, and takes it off again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    @property
    def installed(self) -> bool:
        return self._users > 0

    def install(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                # By type's own way: nn.Module must not take it for a value of its own.
                type.__setattr__(torch.nn.Module, "_compiled_call_impl", _core.module_calls())

    def remove(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                type.__setattr__(torch.nn.Module, "_compiled_call_impl", None)


module_calls = _ModuleCalls()


def _registered(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
    """A module has got another parameter: its gradient belongs there."""
    if parameter is not None:
        _core.add_parameter(module, name, parameter)


def _named(models: Models | None) -> list[tuple[str, torch.nn.Module]]:
    if models is None:
        return []
    if isinstance(models, torch.nn.Module):
        return [("", models)]
    if isinstance(models, Mapping):
        named = list(models.items())
        if named and all(
            isinstance(name, str) and isinstance(model, torch.nn.Module) for name, model in named
        ):
            return named
    what = f"this is a {type(models).__name__}"
    if isinstance(models, Mapping):
        kinds = {f"{type(name).__name__}: {type(model).__name__}" for name, model in models.items()}
        what += " without any" if not kinds else " of " + ", ".join(sorted(kinds))
    raise TypeError(
        "profile() takes an nn.Module, or a dict of names and nn.Modules such as "
        f'{{"generator": g, "discriminator": d}}; {what}'
    )


def _optimizers(optimizer: Optimizers | None) -> list[torch.optim.Optimizer]:
    if optimizer is None:
        return []
    several = list(optimizer) if isinstance(optimizer, Iterable) else [optimizer]
    for one in several:
        if not isinstance(one, torch.optim.Optimizer):
            raise TypeError(
                "optimizer takes a torch.optim.Optimizer or several; this is a "
                f"{type(one).__name__}. Without one, call session.step() at the end of each step"
            )
    return several


def schedule(*, skip: int = 0, warmup: int = 0, record: int = 0, repeat: int = 1) -> Schedule:
    """Which steps are recorded.

    `skip` steps idle, then `warmup` steps with everything running but nothing kept, then `record`
    steps; the whole `repeat` times (0: until the end). With `record=0` every step is recorded from
    there on. While idle a module call costs a few nanoseconds.

    >>> layertrace.schedule(skip=5, warmup=2, record=5).record
    5
    """
    for name, value in (("skip", skip), ("warmup", warmup), ("record", record), ("repeat", repeat)):
        if not isinstance(value, int) or value < 0:
            raise ValueError(f"schedule(): {name} is {value}; it is a number of steps, 0 or more")
    return Schedule(skip, warmup, record, repeat)


def _peaks_text(peaks: DevicePeaks | None) -> str:
    """As the core reads them: JSON, or the path of a file; "" for none."""
    if peaks is None:
        return ""
    if isinstance(peaks, Mapping):
        return json.dumps(dict(peaks))
    return os.fspath(peaks)


def _program() -> str:
    """What runs, for the head of a report; "" where that has no name."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    return "notebook" if name in ("ipykernel_launcher.py", "colab_kernel_launcher.py") else name


def _weakly(session: Session) -> Callable[[], None]:
    """`session.step`, for hooks that must not keep the session alive."""
    reference = weakref.ref(session)

    def step() -> None:
        if (alive := reference()) is not None:
            alive.step()

    return step


def _refuse_coroutines(what: str, function: Callable[..., object]) -> None:
    """A call of such a function only makes an object; its code runs later, piece by piece."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(
            f"{what} cannot decorate {function.__name__}(), which is a coroutine or a generator: "
            "use `with` inside it"
        )


# Called with each session that is about to start: one that was started for the program, not by it,
# ends.
give_way: Callable[[Session], None] | None = None


class Session:
    """One recording of a model: what `profile()` gives.

    It records from the beginning of its `with` block to the end, or from `start()` to `stop()`.
    There is at most one in a process at a time.
    """

    def __init__(
        self,
        models: Models | None,
        output: str | os.PathLike[str] | None,
        schedule: Schedule | None,
        optimizer: Optimizers | None,
        ops: bool,
        fold_wrappers: bool,
        memory_cap_bytes: int,
        name_model: Callable[[torch.nn.Module], str | None] | None = None,
        require_gpu: bool = False,
        timing: str = "both",
        nvtx: bool = True,
        count: str = "first",
        device_peaks: DevicePeaks | None = None,
        formulas: Formulas | None = None,
        is_summary: bool = False,
        name: str = "",
        is_meta: bool = False,
    ) -> None:
        if schedule is not None and not isinstance(schedule, Schedule):
            raise TypeError(
                "schedule takes what layertrace.schedule(skip=, warmup=, record=, repeat=) gives; "
                f"this is a {type(schedule).__name__}"
            )
        if not isinstance(memory_cap_bytes, int) or memory_cap_bytes < 1 << 20:
            raise ValueError(f"memory_cap_bytes is {memory_cap_bytes}; it is at least 1 MiB")
        if count not in COUNTING:
            raise ValueError(f"count is {count!r}; it is one of: {', '.join(COUNTING)}")
        self._models = _named(models)
        self._model_refs: list[tuple[str, weakref.ref[torch.nn.Module]]] = []
        self._output = "" if output is None else os.fspath(output)
        self._schedule = schedule if schedule is not None else Schedule()
        self._optimizers = _optimizers(optimizer)
        self._ops = ops
        self._fold_wrappers = fold_wrappers
        self._memory_cap_bytes = memory_cap_bytes
        self._name_model = name_model
        self._require_gpu = require_gpu
        self._timing = timing
        self._nvtx = nvtx
        self._count = count
        self._formulas = formulas
        self._is_summary = is_summary
        self._is_meta = is_meta
        self._name = name
        self._session_formulas = SessionFormulas(formulas)
        self._device_peaks = _peaks_text(device_peaks)
        self._core: _core.Session | None = None
        self._steps = StepFinder(_weakly(self))
        self._states = OptimizerStates()
        self._active = False

    def start(self) -> Session:
        """Begins to record; `with` does it for you."""
        if self._core is not None:
            raise Error(
                "cannot start the session",
                "it was started before",
                "Call profile() again for another recording",
            )
        if give_way is not None:
            give_way(self)
        self._session_formulas.add()
        try:
            self._core = _core.start(
                self._models,
                self._output,
                self._schedule,
                self._ops,
                self._memory_cap_bytes,
                self._name_model,
                self._fold_wrappers,
                _program(),
                self._require_gpu,
                self._timing,
                self._nvtx,
                self._count,
                self._device_peaks,
                self._is_summary,
                self._name,
                self._is_meta,
            )
        except BaseException:
            self._session_formulas.remove()
            raise
        self._active = True
        module_calls.install()
        _custom_ops.install()
        if not self._ops:
            reports.install()
        self._parameter_hook = register_module_parameter_registration_hook(_registered)
        self._states.watch(self._optimizers)
        self._steps.watch(self._optimizers)
        self._model_refs = [(name, weakref.ref(model)) for name, model in self._models]
        self._models, self._optimizers = [], []  # the result must not keep them alive
        return self

    def step(self) -> None:
        """Marks the end of a training step."""
        if self._core is not None:
            self._core.step()

    def stop(self) -> Profile:
        """Ends the recording and gives the result. The trace gets its name here.

        Raises `layertrace.Error` if the trace cannot be written; the result is still in `profile`,
        and `save()` can be tried elsewhere.
        """
        core = self._started("stop the session")
        unknown = self._session_formulas.unknown()
        self._leave()
        result = core.stop()
        for op in unknown:
            warnings.warn(
                f"layertrace: no operator is called {op!r}, so its formula was not used. Names are "
                "as in 'aten::addmm', or with the overload as in 'aten::add.Tensor'",
                LayertraceWarning,
                stacklevel=2,
            )
        return result

    @property
    def profile(self) -> Profile:
        """The result. While the session records: of the steps that have ended so far."""
        return self._started("give a profile").profile()

    @property
    def output(self) -> str | None:
        """Where the trace goes."""
        return self._output or None

    @property
    def recording(self) -> bool:
        """Whether the step that runs is recorded."""
        return self._core is not None and self._core.recording

    def tree(
        self,
        *,
        depth: int | None = None,
        start: str = "",
        sort: str = "definition",
        fold: bool = True,
        columns: str | Iterable[str] | None = None,
        view: str | None = None,
        style: str = "columns",
        match: str = "",
        type: str = "",
        min_share: float = 0,
        trainable: bool = False,
        width: int | None = None,
        color: bool = False,
        ascii: bool = False,
    ) -> str:
        """The layer tree as text. `Profile.tree` says what the options are."""
        return self.profile.tree(
            depth=depth,
            start=start,
            sort=sort,
            fold=fold,
            columns=columns,
            view=view,
            style=style,
            match=match,
            type=type,
            min_share=min_share,
            trainable=trainable,
            width=width,
            color=color,
            ascii=ascii,
        )

    def repr_tree(self, *, depth: int | None = None, start: str = "", ascii: bool = False) -> str:
        """The model as it prints itself, with times; while recording, too.

        What each module says of itself is there as long as the model is. `Profile.repr_tree` takes
        more options.
        """
        models = {name: model for name, ref in self._model_refs if (model := ref()) is not None}
        return self.profile.repr_tree(models, depth=depth, start=start, ascii=ascii)

    def nested(self, *, depth: int | None = None, start: str = "") -> dict[str, Any]:
        """The same as dicts inside each other; while recording, too: `Profile.nested`."""
        return self.profile.nested(depth=depth, start=start)

    def kernels(
        self,
        *,
        module: str = "",
        sort: str = "time",
        limit: int | None = None,
        width: int | None = None,
        color: bool = False,
        ascii: bool = False,
    ) -> str:
        """What ran on the GPU as text. `Profile.kernels_table` says what the options are."""
        return self.profile.kernels_table(
            module=module, sort=sort, limit=limit, width=width, color=color, ascii=ascii
        )

    def add_metric(
        self,
        key: str,
        value: float,
        *,
        name: str = "",
        description: str = "",
        unit: str = "",
        shown_in: str = "",
        scales: Mapping[str, float] | None = None,
        comparison: str | None = None,
        better: str = "",
    ) -> None:
        """Keeps a figure of yours with the run: `session.add_metric("accuracy", 0.93)`.

        It is in the profile and in the trace, in tables, reports and comparisons. The last value
        of a key counts. Also after the session: the trace that was written is added to, and so is
        what `save()` wrote, as long as that is as it was left.

        The options are those of `layertrace.add_metric`. Without any, a key that was added there
        is what it says there.
        """
        options = (name, description, unit, shown_in, scales, comparison, better)
        info = None if any(options) else _known_metric(key)
        if info is None:
            info = _core.MetricInfo(
                key,
                name=name,
                description=description,
                unit=unit,
                shown_in=shown_in,
                scales=dict(scales or {}),
                comparison=comparison or "none",
                better=better,
            )
        self._started(f"keep the metric {key!r}").add_metric(info, float(value))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace of a stopped session to another place."""
        self._started(f"save the trace to {os.fspath(path)}").save(os.fspath(path))

    def __enter__(self) -> Session:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._active:
            return  # stopped in its block
        # The training is done, or has raised an error of its own: neither must be lost for a trace.
        try:
            self.stop()
        except Error as failed:
            warnings.warn(str(failed), LayertraceWarning, stacklevel=2)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """As a decorator: each call of the function is a session of its own.

        The last one is the function's attribute `session`.
        """
        _refuse_coroutines("profile()", function)

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            session = self._fresh()
            recorded.session = session  # type: ignore[attr-defined]
            with session:
                return function(*args, **kwargs)

        recorded.session = None  # type: ignore[attr-defined]
        return recorded

    def __repr__(self) -> str:
        if self._core is None:
            return "<layertrace.Session: not started>"
        if self._active:
            return "<layertrace.Session: active>"
        try:
            return f"<layertrace.Session: stopped, {self.profile!r}>"
        except Error:
            return "<layertrace.Session: stopped, without a result>"

    def _repr_html_(self) -> str | None:
        return None if self._core is None else self.profile._repr_html_()

    def _fresh(self) -> Session:
        fresh = Session(
            None,
            self._output or None,
            self._schedule,
            self._optimizers,
            self._ops,
            self._fold_wrappers,
            self._memory_cap_bytes,
            self._name_model,
            self._require_gpu,
            self._timing,
            self._nvtx,
            self._count,
            self._device_peaks or None,
            self._formulas,
            name=self._name,
        )
        fresh._models = self._models
        return fresh

    def _leave(self) -> None:
        if self._active:
            self._active = False
            self._parameter_hook.remove()
            self._steps.stop()
            self._states.stop()
            if not self._ops:
                reports.remove()
            _custom_ops.remove()
            module_calls.remove()
            self._session_formulas.remove()

    def _started(self, tried: str) -> _core.Session:
        if self._core is None:
            raise Error(
                f"cannot {tried}",
                "it has not been started",
                "Use it in a with block, or call start()",
            )
        return self._core

    def __del__(self) -> None:
        if hasattr(self, "_active"):  # else its making failed
            self._leave()


def _known_metric(key: str) -> _core.MetricInfo | None:
    return next((info for info in _core.metrics() if info.key == key), None)


def profile(
    model: Models | None = None,
    output: str | os.PathLike[str] | None = None,
    schedule: Schedule | None = None,
    optimizer: Optimizers | None = None,
    ops: bool = True,
    *,
    count: str = "first",
    device_peaks: DevicePeaks | None = None,
    fold_wrappers: bool = False,
    timing: str = "both",
    nvtx: bool = True,
    require_gpu: bool = False,
    memory_cap_bytes: int = DEFAULT_MEMORY_CAP,
    formulas: Formulas | None = None,
    name: str = "",
) -> Session:
    """Records a model: as a context manager, or as a decorator of a function that trains.

    model: the nn.Module, or several by name: `{"generator": g, "discriminator": d}`. Each one's
        paths begin with its name.
    output: where the trace goes; it grows as `<output>.part` and gets its name at the end. Without
        it, `session.save()` gives the trace a name.
    schedule: which steps are recorded, from `schedule()`; all of them by default.
    optimizer: ends a training step each time it steps; of several, the last one. Without it, call
        `session.step()`.
    ops: record PyTorch's operators, too. Without them: layers and autograd nodes only, which is the
        cheapest mode.
    count: when operators are counted, for FLOPs, shapes and memory: "first", in the first recorded
        step and in each whose model is called with other shapes; "always", in every recorded step;
        or "off".
    device_peaks: what the device can do at most, for one that no table knows: a dict as in
        docs/roofline.md, the same as JSON, or the path of a file with it.
    fold_wrappers: leave the `module.` of DataParallel and DistributedDataParallel, the
        `_fsdp_wrapped_module.` of FSDP and the `_orig_mod.` of torch.compile out of the paths.
    timing: how a GPU's time is taken: "cupti" for each kernel, copy and set; "events" for each
        layer's time on its stream by CUDA events, also where CUPTI is forbidden; or "both".
    nvtx: show layers as NVTX ranges to a tool that listens (Nsight Systems); without one it costs
        nothing.
    require_gpu: raise an error where what the GPU does cannot be recorded in that way, rather than
        record less and say so.
    formulas: what operators or classes of modules compute, for this session alone, as in
        `add_formula()`: `{"mylib::attend": f, MyLayer: g}`.
    memory_cap_bytes: the most memory that recording may take. When the writer falls behind, records
        are dropped and counted; the program never waits.
    name: what the run is called in reports and comparisons.

    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    >>> with layertrace.profile(model) as session:
    ...     for _ in range(3):
    ...         model(torch.randn(2, 4)).sum().backward()
    ...         session.step()
    >>> session.profile.find("0").calls
    1.0
    >>> [layer.path for layer in session.profile.layers]
    ['', '0', '1']
    """
    return Session(
        model,
        output,
        schedule,
        optimizer,
        ops,
        fold_wrappers,
        memory_cap_bytes,
        require_gpu=require_gpu,
        timing=timing,
        nvtx=nvtx,
        count=count,
        formulas=formulas,
        device_peaks=device_peaks,
        name=name,
    )


class scope:
    """A region of one's own: `with layertrace.scope("augment"): …`, or as a decorator.

    Outside any module the names of phases ("data", "loss", "optimizer", "communication") put what
    runs inside into that phase.

    >>> with layertrace.scope("loss"):
    ...     _ = torch.ones(3).sum()
    """

    __slots__ = ("_name", "_places")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"scope() takes a name; this is a {type(name).__name__}")
        self._name = name
        self._places: dict[int, list[int]] = {}  # of each thread that is inside

    def __enter__(self) -> scope:
        places = self._places.setdefault(threading.get_ident(), [])
        places.append(_core.enter_region(self._name))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        thread = threading.get_ident()
        place = self._places[thread].pop()
        if not self._places[thread]:
            del self._places[thread]
        _core.leave_region(place, kind is not None)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        _refuse_coroutines("scope()", function)
        name = self._name

        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with scope(name):
                return function(*args, **kwargs)

        return inside


def register_shapes(kind: type[T], tensors: Callable[[T], Iterable[object]]) -> None:
    """Says which tensors are in an object of a class of one's own.

    Of what modules take and give, layertrace sees the tensors in tuples, lists, dicts and
    dataclasses. It looks into other objects by such a function alone. A class that derives from
    `kind` is seen likewise.

    >>> class Batch:
    ...     def __init__(self, images: torch.Tensor) -> None:
    ...         self.images = images
    >>> layertrace.register_shapes(Batch, lambda batch: [batch.images])
    """
    if not isinstance(kind, type):
        raise TypeError(f"register_shapes() takes a class; this is a {type(kind).__name__}")
    if not callable(tensors):
        raise TypeError(
            "register_shapes() takes a function that gives the tensors of an object; this is a "
            f"{type(tensors).__name__}"
        )
    _core.register_shapes(kind, tensors)


def _path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if "\0" in text:  # the system would cut it there
        raise ValueError(f"a path cannot hold a null character: {text!r}")
    return text


def import_trace(
    path: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> Profile:
    """The profile of a trace that torch.profiler wrote: JSON, plain or packed by gzip or zstd.

    Kernels belong to modules, forward and backward, where the trace has modules' calls
    (`with_stack=True`). `output` names a `.pftrace` to write, which `load()` reads.

        profile = layertrace.import_trace("trace.json.gz", "run.pftrace")
        print(profile.tree())
    """
    return _core.import_trace(_path(path), "" if output is None else _path(output))


def load(path: str | os.PathLike[str]) -> Profile:
    """Reads a saved run back: the same profile that the session gave.

    A file that was cut off (the program was killed) gives what it holds, with `health.cut` set.
    """
    return _core.load(_path(path))
