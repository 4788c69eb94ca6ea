"""Trains a small network under layertrace, on the CPU or on the (simulated) GPU.

    ranges.py cpu|cuda [silent]

Where NVTX_LOG names a file, plain hooks of PyTorch write into it what they see, between the lines
of the injection library (tests/cuda/nvtx):

    THREAD  call      PATH    a module's forward begins
    THREAD  return    PATH    and ends
    THREAD  gradient  PATH    the gradient of its output is there: its backward begins
    THREAD  parameter PATH    a gradient is added to a parameter of its own
    THREAD  now       WHAT    where the program is
"""

import os
import sys
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import layertrace

LOG = os.open(os.environ.get("NVTX_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)


def note(what, of):
    os.write(LOG, f"{threading.get_native_id()}\t{what}\t{of}\n".encode())


class Breaks(torch.autograd.Function):
    """Whose backward raises."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        note("now", "raises")
        raise ValueError("as asked")


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.breaks = False
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)  # used twice

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        if self.breaks:
            y = Breaks.apply(y)
        return self.relu(self.bn2(self.conv2(y)) + x)


def mlp(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.blocks = nn.ModuleList([Residual(width), Residual(width)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.shared = nn.Linear(width, width)
        self.again, self.lazily = mlp(width), mlp(width)
        self.head = nn.Linear(width, 4)
        self.fails = False

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = self.pool(x).flatten(1)
        with layertrace.scope("mix"):
            x = self.shared(torch.tanh(self.shared(x)))
        x = checkpoint(self.again, x, use_reentrant=True)
        x = checkpoint(self.lazily, x, use_reentrant=False)
        if self.fails:
            raise ValueError("as asked")
        return self.head(x)


def watch(model):
    """Hooks that tell where they are called: PyTorch's own, not layertrace's."""

    def leave(output, path):
        note("return", path)
        if output.requires_grad:
            output.register_hook(lambda _: note("gradient", path))

    for path, module in model.named_modules():
        module.register_forward_pre_hook(lambda _, __, path=path: note("call", path))
        module.register_forward_hook(lambda _, __, output, path=path: leave(output, path))
        for parameter in module.parameters(recurse=False):
            parameter.register_post_accumulate_grad_hook(
                lambda _, path=path: note("parameter", path)
            )


def train(device, nvtx):
    torch.manual_seed(0)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch(model)
    images, labels = torch.randn(2, 3, 12, 12).to(device), torch.tensor([1, 3]).to(device)

    def step():
        with layertrace.scope("data"):
            batch = images + 0
        loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    with layertrace.profile(model, optimizer=optimizer, nvtx=nvtx):
        note("now", "recorded")
        step()
        model.fails = True
        try:
            step()
        except ValueError:
            note("now", "caught")
        model.fails = False
        step()
        note("now", "over")
        model.blocks[1].breaks = True
        try:
            step()
        except ValueError:
            note("now", "caught in backward")
        model.blocks[1].breaks = False
        step()
        note("now", "stopped")
    step()


if __name__ == "__main__":
    train(sys.argv[1], nvtx="silent" not in sys.argv)
    print("trained")
