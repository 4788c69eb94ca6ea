"""What PyTorch reports of itself by `record_function`: optimizers' steps, loaders' batches, and
what programs report in this way."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch.autograd.profiler import record_function

from layertrace import _core

_Method = Callable[..., Any]


class _Reports:
    """Stands in for `record_function`'s two methods while a session without operators is active.

    PyTorch would tell a callback of the same; but as soon as it has one, autograd's engine takes
    notice of it twice for each node of a backward, which costs more than all else that layertrace
    does there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._places: dict[tuple[int, int], list[int]] = {}  # by object and thread
        self._enter: _Method = record_function.__enter__
        self._exit: _Method = record_function.__exit__
        self._ours: tuple[_Method, _Method] = (self._enter, self._exit)

    def install(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._enter, self._exit = record_function.__enter__, record_function.__exit__
                self._ours = self._methods()
                record_function.__enter__, record_function.__exit__ = self._ours  # type: ignore[method-assign]

    def remove(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users != 0:
                return
            # Where somebody else has put something in their place since, they stay below it: with
            # nothing recorded they only pass calls on.
            if record_function.__enter__ is self._ours[0]:
                record_function.__enter__ = self._enter  # type: ignore[method-assign]
            if record_function.__exit__ is self._ours[1]:
                record_function.__exit__ = self._exit  # type: ignore[method-assign]
            self._places.clear()

    def _methods(self) -> tuple[_Method, _Method]:
        enter, leave, places = self._enter, self._exit, self._places

        def end(reported: record_function) -> None:
            key = (id(reported), threading.get_ident())
            if places and (mine := places.get(key)):
                place = mine.pop()
                if not mine:
                    del places[key]
                # As PyTorch's own callbacks are told: not whether it was left by an exception.
                _core.leave_region(place, False)

        @functools.wraps(enter)
        def enter_reported(self: record_function) -> Any:
            # 0 where nothing is recorded: kept, too, so that ends find their own beginnings.
            place = _core.enter_reported(self.name)
            places.setdefault((id(self), threading.get_ident()), []).append(place)
            try:
                return enter(self)
            except BaseException:
                end(self)
                raise

        @functools.wraps(leave)
        def leave_reported(
            self: record_function,
            kind: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
        ) -> None:
            try:
                leave(self, kind, error, traceback)
            finally:
                end(self)

        return enter_reported, leave_reported


reports = _Reports()
