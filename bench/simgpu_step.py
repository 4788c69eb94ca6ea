"""A training step of a transformer with 24 tiny layers on the device that there is.

Prints one line a step: its wall time in nanoseconds and how many kernels it launched.
"""

import time

import torch
from torch import nn

STEPS = 12


def main() -> None:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 24).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.randn(2, 16, 64, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()

    for _ in range(2):
        step()
    with torch.profiler.profile() as profiler:
        step()
    launches = sum("LaunchKernel" in event.name for event in profiler.events())
    for _ in range(STEPS):
        start_ns = time.perf_counter_ns()
        step()
        print(time.perf_counter_ns() - start_ns, launches, flush=True)


if __name__ == "__main__":
    main()
