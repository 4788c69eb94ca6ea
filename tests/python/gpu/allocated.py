"""Trains on the (simulated) GPU, and prints as JSON what layertrace and what PyTorch's own
statistics say of the memory that a step took.
"""

import json

import torch
from torch import nn

import layertrace


def statistics():
    stats = torch.cuda.memory_stats()
    return {
        name: stats[f"allocated_bytes.all.{name}"]
        for name in ("allocated", "freed", "current", "peak")
    }


def phases_of(profile):
    roots = [layer.phases for layer in profile.layers if layer.parent is None]
    return [stats.memory for phases in [*roots, profile.outside] for stats in phases.values()]


def train(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def measure(model, x, warm):
    """One recorded step, the first or after others."""
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(warm):
        train(model, optimizer, x)
    with layertrace.profile(model) as session:
        torch.cuda.reset_peak_memory_stats()
        before = statistics()
        train(model, optimizer, x)
        after = statistics()
        session.step()
        train(model, optimizer, x)
        session.step()
    profile = session.profile
    (device,) = [each for each in profile.device_memory if each.device is not None]
    phases = phases_of(profile)
    return {
        "torch": {
            "allocated": after["allocated"] - before["allocated"],
            "freed": after["freed"] - before["freed"],
            "peak": after["peak"] - before["current"],
        },
        "device": {
            "allocated": device.allocated,
            "freed": device.freed,
            "peak": device.peak,
        },
        "phases": {
            "allocated": sum(each.allocated for each in phases),
            "freed": sum(each.freed for each in phases),
            "peak": max(each.peak for each in phases),
        },
        "optimizer": profile.optimizer_bytes,
        "gradients": profile.gradient_bytes,
        "parameters": sum((p.numel() * 4 + 511) // 512 * 512 for p in model.parameters()),
        "relu_kept": profile.layers[2].forward.memory.kept,
    }


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()


inputs = torch.ones(128, 64, device="cuda")
print("RESULT", json.dumps([measure(mlp(), inputs, warm) for warm in (0, 2)]))
