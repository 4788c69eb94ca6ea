"""Trains on the (simulated) GPU, whatever goes wrong there, and prints what a user would see.

    faulty.py alone|recorded|required|unthreaded|after_profiler

One line for each step, then an error if there is one; alone, or under layertrace, which writes
faulty.pftrace; unthreaded where no thread can be had when the session stops (no_threads.cc);
after_profiler where torch.profiler was CUPTI's client before, and gave it its clock. The exit code
is the program's own. What the simulation did wrong, by its own count, is in injected.json.
"""

import contextlib
import ctypes
import hashlib
import json
import sys
from pathlib import Path

import torch
from torch import nn

STEPS = 6


def digest(tensors):
    text = b"".join(t.detach().cpu().contiguous().numpy().tobytes() for t in tensors)
    return hashlib.sha256(text).hexdigest()[:16]


def session_of(model, how):
    if how == "alone":
        return contextlib.nullcontext()
    import layertrace

    return layertrace.profile(model, output="faulty.pftrace", require_gpu=how == "required")


def injected():
    """Of each fault so far, as the simulation counts them."""
    count = ctypes.CDLL(None).simgpu_faults
    count.restype = ctypes.c_uint64
    names = (
        "drop_records zero_timestamps reversed_timestamps early late_buffer null_buffer"
        " duplicate_correlation overlap device_lost allocation_fails clock_set"
    )
    return {name: count(name.encode()) for name in names.split()}


def main(how):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randn(4, 3, 8, 8).cuda()
    torch.cuda.synchronize()
    if how == "after_profiler":
        with torch.profiler.profile():
            torch.ones(1, device="cuda")
            torch.cuda.synchronize()
    with session_of(model, how) as session:
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = model(images).square().mean()
            loss.backward()
            optimizer.step()
            print(step, loss.item(), flush=True)
            if session is not None:
                session.step()
        if how == "unthreaded":
            ctypes.CDLL(None).refuse_threads(1)
            session.stop()
            ctypes.CDLL(None).refuse_threads(0)
            print("refused", ctypes.CDLL(None).refused_threads() > 0, torch.cuda.current_device())
    print(digest(model.parameters()), digest(p.grad for p in model.parameters()))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except RuntimeError as error:  # PyTorch's own
        if sys.argv[1] == "required":
            raise
        print(type(error).__name__, str(error).splitlines()[0], flush=True)
        sys.exit(7)
    finally:
        Path("injected.json").write_text(json.dumps(injected()))
