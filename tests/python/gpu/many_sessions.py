"""Starts and stops sessions, a tiny step in each, and prints as JSON what the process held on the
way, and what torch.profiler sees afterwards.

    many_sessions.py COUNT
"""

import ctypes
import json
import os
import sys
import threading
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

import layertrace

WARM_UP = 100
PAGE = os.sysconf("SC_PAGE_SIZE")
PROCESS = Path("/proc/self")


def held():
    resident = int((PROCESS / "statm").read_text().split()[1]) * PAGE
    free, total = torch.cuda.mem_get_info()
    return {
        "resident": resident,
        "threads": len(list((PROCESS / "task").iterdir())),
        "files": len(list((PROCESS / "fd").iterdir())),
        "device": total - free,
    }


def state_of(model):
    """What a session could leave behind on modules and on their classes."""
    hooks = [
        name
        for module in model.modules()
        for name, value in vars(module).items()
        if "hooks" in name and value
    ]
    return {
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "hooks": hooks,
        "of_class": sorted(vars(nn.Module)),
        "call": repr(vars(nn.Module).get("_compiled_call_impl")),
    }


def left_ids():
    """By how many ids CUPTI still knows the calling thread, of all that a client may give it."""
    pop = ctypes.CDLL("libcupti.so.13").cuptiActivityPopExternalCorrelationId
    first_kind, kinds = 1, 8
    return sum(
        pop(kind, ctypes.byref(ctypes.c_uint64())) == 0  # CUPTI_SUCCESS: there was one
        for kind in range(first_kind, first_kind + kinds)
    )


class LookInBackward(torch.autograd.Function):
    """Asks on the thread where autograd runs what is on the device."""

    seen: ClassVar[list[tuple[int, int]]] = []

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        LookInBackward.seen.append((left_ids(), threading.get_native_id()))
        return gradient


def ids_left_behind():
    LookInBackward.apply(torch.ones(2, device="cuda", requires_grad=True)).sum().backward()
    ((on_autograds, thread),) = LookInBackward.seen
    assert thread != threading.get_native_id(), "autograd has threads of its own"
    return {"main": left_ids(), "autograd": on_autograds}


def main(count):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).cuda()
    x = torch.ones(2, 8, device="cuda")

    def step():
        model.zero_grad()
        model(x).sum().backward()

    def session(**options):
        with layertrace.profile(model, require_gpu=True, **options) as opened:
            step()
            opened.step()
        return opened.profile.health.activities

    def kernels():
        with torch.profiler.profile() as profiler:
            step()
            torch.cuda.synchronize()
        return sum(len(event.kernels) for event in profiler.events())

    step()
    unprofiled = kernels()
    before = state_of(model)
    counted = set()
    samples = []
    for number in range(count):
        # Operators now and then: they are most of what a session costs.
        way = ("both", "cupti", "events")[number % 3]
        activities = session(ops=number % 50 == 0, timing=way)
        if way != "events":
            counted.add(activities)
        # Always behind the same way of timing: what the allocator keeps differs between them.
        if number >= WARM_UP and number % 99 == 0:
            samples.append(held())
    samples.append(held())
    return {
        "samples": samples,
        "activities": sorted(counted),
        "before": before,
        "after": state_of(model),
        "ids": ids_left_behind(),
        "kernels": [unprofiled, kernels(), kernels()],
        "once_more": session(),
    }


if __name__ == "__main__":
    print("RESULT " + json.dumps(main(int(sys.argv[1]))))
