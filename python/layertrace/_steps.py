"""Steps, as optimizers tell them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch


class Removable(Protocol):
    """A hook's handle."""

    def remove(self) -> None: ...


class StepFinder:
    """Calls `on_step` at the end of each training step.

    One optimizer's step is a training step. Where several take turns (a generator's and a
    discriminator's), the last of each round ends the step: the first round shows which that is.
    """

    def __init__(self, on_step: Callable[[], None]) -> None:
        self._on_step = on_step
        self._round: list[weakref.ref[torch.optim.Optimizer]] = []
        self._last: weakref.ref[torch.optim.Optimizer] | None = None
        self._handles: list[Removable] = []

    def watch(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Watches these."""
        known = list(optimizers)
        self._handles = [o.register_step_post_hook(self._stepped) for o in known]
        if known:
            self._last = weakref.ref(known[-1])

    def watch_all(self) -> None:
        """Watches every optimizer of the process."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._handles = [register_optimizer_step_post_hook(self._stepped)]

    def stop(self) -> None:
        """Leaves the optimizers as they were. Not to be called where an optimizer steps: it goes
        through its hooks then."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _stepped(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._last is not None and self._last() is not None:
            if self._last() is optimizer:
                self._on_step()
            return
        # The first round ends when one that has stepped steps again.
        if any(known() is optimizer for known in self._round):
            self._last = self._round[-1]
            ends = self._last() is optimizer
        else:
            self._round.append(weakref.ref(optimizer))
            ends = len(self._round) == 1
        if ends:
            self._on_step()
