"""A session that finds models and steps by itself: what `layertrace run` puts into a program."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import multiprocessing.util
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch

from layertrace import _core, _session
from layertrace._core import Profile, Schedule
from layertrace._errors import Error
from layertrace._session import COUNTING, DEFAULT_MEMORY_CAP, Session, module_calls
from layertrace._steps import StepFinder

# Where a launcher says which of its processes this is, and how many there are.
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


def rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """This process's number among several; None where it is the only one."""
    for name, size in _RANKS:
        if name in environment and int(environment.get(size, "1")) > 1:
            return int(environment[name])
    return None


@dataclass
class Settings:
    """What `layertrace run` was asked for, as the environment hands it on."""

    schedule: Schedule
    output: str = ""
    ops: bool = True
    fold_wrappers: bool = False
    timing: str = "both"
    count: str = "first"
    name: str = ""
    notes: str = ""  # a folder in which each recording process leaves a note

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """From the variables that the command has set."""
        skip, warmup, record = (
            int(n) for n in environment.get("LAYERTRACE_RUN_SCHEDULE", "0:7:5").split(":")
        )
        count = environment.get("LAYERTRACE_RUN_COUNT", "first")
        return cls(
            schedule=Schedule(skip, warmup, record, 1),
            output=environment.get("LAYERTRACE_RUN_OUTPUT", ""),
            ops=environment.get("LAYERTRACE_RUN_OPS", "1") != "0",
            fold_wrappers=environment.get("LAYERTRACE_RUN_FOLD_WRAPPERS", "0") != "0",
            timing=environment.get("LAYERTRACE_RUN_TIMING", "both"),
            count=count if count in COUNTING else "first",
            name=environment.get("LAYERTRACE_RUN_NAME", ""),
            notes=environment.get("LAYERTRACE_RUN_NOTES", ""),
        )


def program_name() -> str:
    """`train` for train.py, `package` for `-m package`."""
    script = Path(sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python")
    return script.resolve().parent.name if script.stem == "__main__" else script.stem


def output_path(settings: Settings, number: int | None, claimed: bool) -> str:
    """Where this process's trace goes: the rank is in the name, and so is the process where it is
    not the first that records."""
    path = Path(settings.output or f"{program_name()}.pftrace")
    stem, suffix = path.stem, path.suffix or ".pftrace"
    if number is not None:
        stem += f".rank{number}"
    if not claimed:
        stem += f".pid{os.getpid()}"
    return str(path.with_name(stem + suffix))


def is_model(module: torch.nn.Module) -> bool:
    """It has parameters; a loss has none."""
    return next(iter(module.parameters()), None) is not None


class ModelNames:
    """Names for models that were met as the outermost module calls."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, module: torch.nn.Module) -> str | None:
        """The first is the model, and its paths have no prefix; others are named by the variable
        that holds them, or by their class. What has no parameters (a loss) is no model."""
        if not is_model(module):
            return None
        self._count += 1
        if self._count == 1:
            return ""
        return self._variable(module) or type(module).__name__

    @staticmethod
    def _variable(module: torch.nn.Module) -> str | None:
        frame: FrameType | None = inspect.currentframe()
        while frame is not None:
            is_ours = frame.f_globals.get("__name__", "").startswith(("torch.", "layertrace"))
            if not is_ours and (name := _name_in(frame, module)) is not None:
                return name
            frame = frame.f_back
        return None


def _name_in(frame: FrameType, module: torch.nn.Module) -> str | None:
    """What a frame calls the module: as a variable, or as an attribute of its `self`."""
    variables = frame.f_locals
    attributes: dict[str, object] = getattr(variables.get("self"), "__dict__", {})
    found = None
    for scope in (variables, attributes, frame.f_globals):
        for name, value in list(scope.items()):
            if value is module and name.isidentifier() and name != "self":
                found = found or name
    # Before 3.13 the frame of a function keeps this copy of its variables, and so all tensors in
    # it, until it ends: unless the program has asked for it, too, nobody needs it.
    mine = 3  # the frame's, `variables` and the argument
    is_copy = sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if is_copy and sys.getrefcount(variables) == mine:
        variables.clear()
    return found


def optimizer_exists() -> bool:
    """Whether any was made so far: its class then has a step() that PyTorch has wrapped."""
    classes: list[type] = [torch.optim.Optimizer]
    for cls in classes:  # grows while it is read
        if getattr(cls.__dict__.get("step"), "hooked", False):
            return True
        classes.extend(cls.__subclasses__())
    return False


class AutoSession:
    """Starts at the first call of a model; ends when its steps are recorded, or at the exit."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._session: Session | None = None
        self._steps = StepFinder(self._step)
        self._optimizer_stepped = False
        self._count = 0
        self._starting = False
        self._over = False
        self._gave_way = False
        self._error: Error | None = None

    def arm(self) -> None:
        """Waits for the first call."""
        if self._settings.notes:
            with contextlib.suppress(OSError):
                (Path(self._settings.notes) / "torch").touch()
        self._steps.watch_all()
        module_calls.install()
        _core.watch_calls(self._called)
        _session.give_way = self._give_way
        atexit.register(self._at_exit)
        os.register_at_fork(after_in_child=self._after_fork)
        multiprocessing.util.register_after_fork(self, AutoSession._end_with_process)

    def _disarm(self) -> None:
        """The optimizers' hook stays, and does nothing: an optimizer may be going through them."""
        self._over = True
        _session.give_way = None
        _core.watch_calls(None)
        module_calls.remove()

    def _after_fork(self) -> None:
        """In a forked child. What the parent records is the parent's; if it does not yet, the child
        may be the one that trains."""
        self._lock = threading.RLock()  # a thread that is not here may have it
        if self._session is not None or self._over:
            return
        self._pid = os.getpid()

    def _end_with_process(self) -> None:
        """In a child that multiprocessing has forked, where atexit does not run."""
        multiprocessing.util.Finalize(None, self._at_exit, exitpriority=-100)

    # An outermost module call begins or ends on some thread.
    def _called(self, module: torch.nn.Module, entering: bool) -> None:
        if self._over or os.getpid() != self._pid:
            return
        with self._lock:
            if entering:
                if self._session is None and not self._starting and is_model(module):
                    self._start()
            elif self._is_inference() and is_model(module):
                self._mark()  # there is no optimizer to tell: each call of a model is a step

    def _is_inference(self) -> bool:
        stepped = self._optimizer_stepped
        return not stepped and not torch.is_grad_enabled() and not optimizer_exists()

    def _give_way(self, session: Session) -> None:
        """The program starts a session of its own."""
        if self._starting or self._over or os.getpid() != self._pid:
            return
        with self._lock:
            self._gave_way = True
            if self._session is None:
                self._note("")  # somebody records
            self._finish()

    def _start(self) -> None:
        number = rank()
        output = output_path(self._settings, number, self._claim(number))
        session = Session(
            None,
            output,
            self._settings.schedule,
            None,
            self._settings.ops,
            self._settings.fold_wrappers,
            DEFAULT_MEMORY_CAP,
            ModelNames(),
            timing=self._settings.timing,
            count=self._settings.count,
            name=self._settings.name,
        )
        self._starting = True
        try:
            self._session = session.start()
        except Error as error:  # the program has a session of its own, or cannot write there
            self._error = error
            self._disarm()
            self._note("")  # why nothing is recorded is said at the end
            return
        finally:
            self._starting = False
        self._note(output)

    def _claim(self, number: int | None) -> bool:
        if not self._settings.notes:
            return True
        name = Path(self._settings.notes) / f"claim.{'' if number is None else number}"
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        except OSError:
            pass
        return True

    def _note(self, output: str) -> None:
        if self._settings.notes:
            with contextlib.suppress(OSError):
                note = Path(self._settings.notes) / f"process.{os.getpid()}"
                note.write_text(output and str(Path(output).absolute()))

    def _step(self) -> None:
        if self._over or os.getpid() != self._pid:
            return
        with self._lock:
            self._optimizer_stepped = True
            self._mark()

    def _mark(self) -> None:
        if self._over or self._session is None:
            return
        self._session.step()
        self._count += 1
        schedule = self._settings.schedule
        if schedule.record and self._count == schedule.skip + schedule.warmup + schedule.record:
            self._finish()

    def _finish(self) -> None:
        if self._over:
            return
        self._disarm()
        if self._session is not None:
            try:
                self._session.stop()
            except Error as error:
                self._error = error

    def _at_exit(self) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._finish()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # it may be closed
                stream.flush()
        with contextlib.suppress(Exception):
            print(self._report(), file=sys.stderr, end="")

    def _report(self) -> str:
        error = self._error
        profile: Profile | None = None
        if self._session is not None:
            try:
                profile = self._session.profile
            except Error as no_profile:
                error = error or no_profile
        if error is not None:
            return self._tree(profile) + f"layertrace: {error}\n"
        if profile is not None and profile.step_count != 0:
            assert self._session is not None
            end = "; it ends where the program's own session began" if self._gave_way else ""
            return self._tree(profile) + f"layertrace: the trace is {self._session.output}{end}\n"
        if self._gave_way:
            return "layertrace: nothing is recorded: the program has a session of its own\n"
        if profile is not None:
            schedule = self._settings.schedule
            notes = "".join(f"layertrace: {note}\n" for note in profile.health.notes)
            return (
                f"layertrace: the program ended after {self._count} steps, and the first "
                f"{schedule.skip + schedule.warmup} are not recorded: choose others with "
                f"--steps, as in --steps 0:5\n{notes}"
            )
        if self._settings.notes:  # the command knows whether another process has recorded
            return ""
        return "layertrace: nothing is recorded: no model was called\n"

    @staticmethod
    def _tree(profile: Profile | None) -> str:
        if profile is None or profile.step_count == 0 or rank() not in (None, 0):
            return ""
        return "\n" + _core.terminal_tree(profile, 2)


_auto: AutoSession | None = None


def arm() -> None:
    """Called once torch is there."""
    global _auto
    if _auto is None:
        _auto = AutoSession(Settings.read())
        _auto.arm()
