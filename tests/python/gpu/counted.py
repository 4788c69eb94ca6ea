"""Counts the same training step on the CPU and on the device, layer by layer."""

import json
import sys

import torch
import torchvision
from torch import nn
from torch.utils.checkpoint import checkpoint

import layertrace


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, x, use_reentrant=False)


MODELS = {
    "resnet18": (torchvision.models.resnet18, (2, 3, 64, 64)),
    "mobilenet": (torchvision.models.mobilenet_v3_small, (2, 3, 64, 64)),
    "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), (2, 8, 32)),
    "lstm": (Recurrent, (2, 6, 8)),
    "checkpointed": (Checkpointed, (4, 32)),
}


def count(model: nn.Module, x: torch.Tensor) -> layertrace.Profile:
    with layertrace.profile(model) as session:
        model(x).sum().backward()
        session.step()
    return session.profile


def flops(profile: layertrace.Profile) -> dict[str, dict[str, float]]:
    return {
        layer.path: {
            phase: stats.amounts.flops
            for phase, stats in layer.phases.items()
            if stats.amounts.flops
        }
        for layer in profile.layers
    }


build, shape = MODELS[sys.argv[1]]
model, x = build(), torch.randn(shape)
with torch.backends.cudnn.flags(enabled=False):
    on_cpu = count(model, x)
    on_device = count(model.cuda(), x.cuda())
result = {
    "cpu": flops(on_cpu),
    "device": flops(on_device),
    "mfu": on_device.mfu,
    "hfu": on_device.hfu,
    "origin": on_device.device.origin,
}
print("RESULT " + json.dumps(result))
