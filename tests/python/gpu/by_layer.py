"""Kernels by phase, path and name, in words that layertrace's and torch.profiler's fit."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

Kernels = dict[str, Counter[str]]
ELSEWHERE = "elsewhere"  # neither in a module nor in the backward: the loss, the optimizer
LOSS = "backward of operators outside any module"


def key_of(phase: str, path: str | None) -> str:
    return phase if path is None else f"{phase} {path}"


def short_name(kernel: str) -> str:
    """Both have the compiler's name of a kernel, and words of their own for copies and sets."""
    if kernel.startswith(("Memcpy", "copy ")):
        return "copy"
    return "set" if kernel.startswith("Memset") else kernel


def kernels_by_layer(profile: Any) -> Kernels:
    """Of all recorded steps of a profile's JSON; outside any module there is no path."""
    kernels: Kernels = defaultdict(Counter)
    for kernel in profile["kernels"]:
        for use in kernel["uses"]:
            inside = use["path"] is not None or use["phase"] == "backward"
            key = key_of(use["phase"] if inside else ELSEWHERE, use["path"])
            kernels[key][short_name(kernel["name"])] += use["count"]
    return kernels


def but_elsewhere(kernels: Any, steps: int = 1) -> Kernels:
    """Those of so many steps that both languages share: each has an optimizer of its own."""
    return {
        key: Counter({name: steps * count for name, count in names.items()})
        for key, names in kernels.items()
        if key != ELSEWHERE
    }
