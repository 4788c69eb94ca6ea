"""The same training, recorded by torch.profiler or by layertrace.

profiled.py DEVICE CHECKPOINTING RECORDER OUTPUT
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.Linear(size, size)
        self.act = nn.ReLU()
        self.second = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.second(self.act(self.first(x))))


class Net(nn.Module):
    """A block is called twice, one is recomputed, and the root has work of its own."""

    def __init__(self, checkpointing: str) -> None:
        super().__init__()
        self.stem = nn.Linear(16, 32)
        self.blocks = nn.ModuleList(Block(32) for _ in range(3))
        self.head = nn.Sequential(nn.Linear(32, 8), nn.Tanh())
        self.scale = nn.Parameter(torch.ones(8))
        self.checkpointing = checkpointing

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for i, block in enumerate(self.blocks):
            if i == 1 and self.checkpointing != "none":
                x = checkpoint(block, x, use_reentrant=self.checkpointing == "reentrant")
            else:
                x = block(x)
        x = self.blocks[0](x)
        return self.head(x) * self.scale


def main(device: str, checkpointing: str, recorder: str, output: str) -> None:
    model = Net(checkpointing).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.MSELoss()
    x = torch.randn(4, 16, device=device)
    y = torch.randn(4, 8, device=device)

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    if recorder == "layertrace":
        import layertrace

        step()
        with layertrace.profile(model, output=output, count="off") as session:
            for _ in range(2):
                step()
                session.step()
        return
    from torch.profiler import ProfilerActivity, profile, schedule

    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    with profile(
        activities=kinds,
        with_stack=recorder == "torch",  # else "torch_without_modules"
        schedule=schedule(wait=0, warmup=1, active=2),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(output),
    ) as profiler:
        for _ in range(3):
            step()
            profiler.step()


main(*sys.argv[1:])
