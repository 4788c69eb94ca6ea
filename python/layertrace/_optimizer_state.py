"""What optimizers keep between steps: for a forecast of memory."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.optim.optimizer import (
    _global_optimizer_pre_hooks,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from layertrace import _core


class OptimizerStates:
    """Asks the optimizers that step while a session lasts how much their state takes.

    Allocators tell only of what is made while they are listened to, and most state is made in the
    first step of all. An optimizer is asked before the first step that is seen, and at the end if
    it is still there; nothing keeps it alive. One that is gone while others go on stepping has been
    replaced, and its state is no longer counted.
    """

    def __init__(self) -> None:
        # By their addresses: an optimizer need not be hashable.
        self._given: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._stepped: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._threads: set[int] = set()  # on which optimizers stepped
        self._handle: RemovableHandle | None = None

    def watch(self, known: Iterable[torch.optim.Optimizer]) -> None:
        """From now on."""
        for optimizer in known:
            _remember(self._given, optimizer)
        # Not a hook for the end of a step: a session may end there, and take its hooks away.
        self._handle = register_optimizer_step_pre_hook(self._steps)

    def stop(self) -> None:
        """Before the session ends."""
        if self._handle is None:
            return
        # An optimizer that steps on another thread may be going through the hooks: they must not
        # become fewer under it. One that does nothing takes our place there.
        if self._threads <= {threading.get_ident()}:
            self._handle.remove()
        else:
            _global_optimizer_pre_hooks[self._handle.id] = _nothing
        self._handle = None
        for key, reference in (self._given | self._stepped).items():
            if (optimizer := reference()) is not None:
                _tell(optimizer, is_whole=key in self._stepped)
        self._given.clear()
        self._stepped.clear()

    def _steps(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        # A step that is being compiled stays as it would be without us.
        if torch.compiler.is_compiling():
            return
        self._threads.add(threading.get_ident())
        self._forget_those_that_are_gone()
        known = self._stepped.get(id(optimizer))
        if known is None or known() is not optimizer:
            _remember(self._stepped, optimizer)
            _tell(optimizer, is_whole=False)

    def _forget_those_that_are_gone(self) -> None:
        for key, reference in list(self._stepped.items()):
            if reference() is None and self._stepped.pop(key, None) is reference:
                _core.forget_optimizer(key)


def _nothing(*_: Any) -> None:
    """A hook that does nothing."""


def _remember(
    references: dict[int, weakref.ref[torch.optim.Optimizer]], optimizer: torch.optim.Optimizer
) -> None:
    with contextlib.suppress(TypeError):  # of a class without weak references: it is not asked
        references[id(optimizer)] = weakref.ref(optimizer)


def _tell(optimizer: torch.optim.Optimizer, *, is_whole: bool) -> None:
    """What goes wrong is nobody's business: then it is not known.

    Before its first step an optimizer has no state, and that tells nothing.
    """
    try:
        if is_whole or optimizer.state:
            _core.tell_optimizer(optimizer, state_bytes(optimizer))
    except Exception:  # an optimizer, or a tensor, of whatever class
        return


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Of its tensors, each once. Where there are some on a GPU, of these, as allocators tell."""
    on_host = on_gpus = 0
    seen: set[int] = set()
    for tensor in _tensors(optimizer.state):
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        own = getattr(tensor, "_local_tensor", tensor)  # of a tensor that is spread over processes
        size = own.numel() * own.element_size()
        if own.is_cuda:
            on_gpus += size
        else:
            on_host += size
    return on_gpus or on_host


def _tensors(value: object, depth: int = 0) -> Iterator[torch.Tensor]:
    """Those in it: in dicts and lists, not those that are keys, which are parameters."""
    deepest = 8
    if isinstance(value, torch.Tensor):
        yield value
    elif depth == deepest:
        return
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each, depth + 1)
