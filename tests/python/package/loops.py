"""The loops that tests of sessions train in."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import layertrace


def train(model: nn.Module, steps: int = 1) -> None:
    for _ in range(steps):
        model(torch.randn(2, 3)).sum().backward()


def calls(profile: layertrace.Profile) -> dict[str, float]:
    return {layer.path: layer.calls for layer in profile.layers}


def trained(model: nn.Module, **options: Any) -> layertrace.Profile:
    with layertrace.profile(model, **options) as session:
        for _ in range(2):
            train(model)
            session.step()
    return session.profile
