"""What layertrace measures on the (simulated) GPU, and what it leaves alone; prints it as JSON.

timed.py ways          a model, recorded in each of the three ways
timed.py fallback      the same where CUPTI may be refused; also when a GPU is required
timed.py windows       the same in three windows, with a pause between them
timed.py cpu           a model on the CPU, though there is a GPU
timed.py devices       a model on two GPUs
timed.py errors        a program with an error of CUDA that it has not asked for yet
"""

import ctypes
import json
import sys
import time

import torch
from torch import nn

import layertrace

FIGURES = ("activities", "activity_ns", "event_ns", "launches", "idle_ns", "host_ns")


class Branches(nn.Module):
    """A light layer on the current stream, a heavy one on a stream of its own, beside it."""

    def __init__(self, width=4096):
        super().__init__()
        self.light = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64))
        self.heavy = nn.Linear(width, width, bias=False)
        self.side = torch.cuda.Stream()

    def forward(self, small, large):
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            heavy = self.heavy(large)
        light = self.light(small)
        torch.cuda.current_stream().wait_stream(self.side)
        return light.sum() + heavy.sum()


def told(session):
    profile = session.profile.to_dict()
    return {
        "layers": {
            layer["path"]: {
                phase: {name: layer[phase][name] for name in FIGURES}
                for phase in ("forward", "backward")
            }
            for layer in profile["layers"]
        },
        "health": profile["health"],
        "kernels": profile["kernels"],
        "steps": profile["steps"],
        "tree": session.tree(),
    }


def branches():
    model = Branches().cuda()
    inputs = torch.randn(8, 64, device="cuda"), torch.randn(4096, 4096, device="cuda")

    def step():
        model.zero_grad()
        model(*inputs).backward()
        torch.cuda.synchronize()

    step()
    return model, step


def ways():
    model, step = branches()
    results = {}
    for timing in ("both", "cupti", "events"):
        with layertrace.profile(model, timing=timing, require_gpu=True) as session:
            for _ in range(3):
                step()
                session.step()
        results[timing] = told(session)
    return results


def fallback():
    model, step = branches()
    with layertrace.profile(model, output="fallback.pftrace") as session:
        step()
        session.step()
    result = told(session)
    try:
        with layertrace.profile(model, require_gpu=True):
            pass
        result["required"] = ""
    except layertrace.Error as error:
        result["required"] = str(error)
    with layertrace.profile(model, timing="events", require_gpu=True) as session:
        step()
        session.step()
    result["events"] = told(session)
    return result


def windows():
    model, step = branches()
    window = layertrace.schedule(skip=1, record=1, repeat=3)
    with layertrace.profile(model, output="windows.pftrace", schedule=window) as session:
        for _ in range(6):
            step()
            session.step()
            time.sleep(0.5)  # so long that the device is left alone
    return told(session)


def has_context():
    """Whether the process has one on the first device; asking makes none."""
    driver = ctypes.CDLL("libcuda.so.1")
    flags, active = ctypes.c_uint(), ctypes.c_int()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
    return active.value != 0


def cpu():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with layertrace.profile(model) as session:
        for _ in range(3):
            model(torch.randn(2, 8)).sum().backward()
            session.step()
    before = (torch.cuda.is_initialized(), has_context())
    free, total = torch.cuda.mem_get_info()  # this makes one
    return {
        **told(session),
        "before": before,
        "after": (torch.cuda.is_initialized(), has_context()),
        "used": total - free,
    }


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16).to("cuda:0")
        self.second = nn.Linear(16, 4).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x).to("cuda:1"))


def devices():
    model = Halves()
    x = torch.randn(4, 16, device="cuda:0")

    def step():
        model.zero_grad()
        model(x).square().sum().backward()

    step()
    current = []
    for device in (0, 1):
        torch.cuda.set_device(device)
        with layertrace.profile(model, output="devices.pftrace", require_gpu=True) as session:
            step()
            session.step()
        current.append(torch.cuda.current_device())
    return {**told(session), "current": current}


def errors():
    model, step = branches()
    idle = nn.Identity()
    runtime = ctypes.CDLL("libcudart.so.13")
    seen = {}
    with layertrace.profile(nn.ModuleDict({"model": model, "idle": idle})) as session:
        step()
        session.step()
        seen["made by us"] = runtime.cudaPeekAtLastError()
        seen["wrong"] = runtime.cudaSetDevice(99)
        for _ in range(100):
            idle(None)
        session.step()
        seen["inside"] = runtime.cudaPeekAtLastError()
    seen["after"] = runtime.cudaGetLastError()
    seen["again"] = runtime.cudaGetLastError()
    return seen


if __name__ == "__main__":
    programs = {f.__name__: f for f in (ways, fallback, windows, cpu, devices, errors)}
    print("RESULT " + json.dumps(programs[sys.argv[1]]()))
