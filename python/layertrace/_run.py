"""A session that finds models and steps by itself: what `layertrace run` puts into a program."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch

from layertrace import _core
from layertrace._core import Schedule
from layertrace._errors import Error
from layertrace._session import DEFAULT_MEMORY_CAP, Session, module_calls
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
    notes: str = ""  # a folder in which each recording process leaves a note

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """From the variables that the command has set."""
        skip, warmup, record = (
            int(n) for n in environment.get("LAYERTRACE_RUN_SCHEDULE", "5:2:5").split(":")
        )
        return cls(
            schedule=Schedule(skip, warmup, record, 1),
            output=environment.get("LAYERTRACE_RUN_OUTPUT", ""),
            ops=environment.get("LAYERTRACE_RUN_OPS", "1") != "0",
            fold_wrappers=environment.get("LAYERTRACE_RUN_FOLD_WRAPPERS", "0") != "0",
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
            if not frame.f_globals.get("__name__", "").startswith(("torch.", "layertrace")):
                attributes: dict[str, object] = getattr(frame.f_locals.get("self"), "__dict__", {})
                scopes = [frame.f_locals, attributes]
                for scope in [*scopes, frame.f_globals]:
                    for name, value in list(scope.items()):
                        if value is module and name.isidentifier() and name != "self":
                            return name
            frame = frame.f_back
        return None


class AutoSession:
    """Starts at the first call of a module; ends when its steps are recorded, or at the exit."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._session: Session | None = None
        self._steps = StepFinder(self._step)
        self._optimizer_stepped = False
        self._count = 0
        self._over = False
        self._error: Error | None = None

    def arm(self) -> None:
        """Waits for the first call."""
        if self._settings.notes:
            with contextlib.suppress(OSError):
                (Path(self._settings.notes) / "torch").touch()
        self._steps.watch_all()
        module_calls.install()
        _core.watch_calls(self._called)
        atexit.register(self._at_exit)

    def _disarm(self) -> None:
        self._over = True
        self._steps.stop()
        _core.watch_calls(None)
        module_calls.remove()

    # An outermost module call begins or ends on some thread.
    def _called(self, module: torch.nn.Module, entering: bool) -> None:
        if self._over or os.getpid() != self._pid:
            return
        if entering:
            if self._session is None:
                self._start()
        elif not self._optimizer_stepped and not torch.is_grad_enabled() and is_model(module):
            # Without gradients there is no optimizer to tell: each call of a model is a step.
            self._mark()

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
        )
        try:
            self._session = session.start()
        except Error as error:  # the program has a session of its own, or cannot write there
            self._error = error
            self._disarm()
            return
        self._note(output)

    def _claim(self, number: int | None) -> bool:
        if not self._settings.notes:
            return True
        name = Path(self._settings.notes) / f"claim.{number}"
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
                note.write_text(str(Path(output).absolute()))

    def _step(self) -> None:
        self._optimizer_stepped = True
        self._mark()

    def _mark(self) -> None:
        if self._over or self._session is None or os.getpid() != self._pid:
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
        self._finish()
        with contextlib.suppress(Exception):  # stderr may be closed
            sys.stdout.flush()
            print(self._report(), file=sys.stderr, end="")

    def _report(self) -> str:
        text = ""
        if self._session is None and self._error is None:
            if self._settings.notes:  # the command knows whether another process has recorded
                return ""
            return "layertrace: nothing is recorded: no nn.Module was called\n"
        if self._session is not None:
            profile = self._session.profile
            if profile.step_count == 0:
                schedule = self._settings.schedule
                return (
                    f"layertrace: the program ended after {self._count} steps, and the first "
                    f"{schedule.skip + schedule.warmup} are not recorded: choose others with "
                    "--steps, as in --steps 0:5\n"
                )
            if rank() in (None, 0):
                text += "\n" + _core.terminal_tree(profile, 2)
            text += f"layertrace: the trace is {self._session.output}\n"
        if self._error is not None:
            text += f"layertrace: {self._error}\n"
        return text


_auto: AutoSession | None = None


def arm() -> None:
    """Called once torch is there."""
    global _auto
    if _auto is None:
        _auto = AutoSession(Settings.read())
        _auto.arm()
