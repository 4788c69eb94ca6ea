"""Trains on two (simulated) GPUs and three streams, and leaves behind what two profilers saw of it:
traced.pftrace, three steps by layertrace after one to warm up, and witness.json, one more by
torch.profiler.

Prints as JSON what layertrace's profile counts, and the memory that PyTorch had in use while the
program loaded its data.
"""

import json
import time

import torch
from torch import nn

import layertrace

STEPS = 3
LOADING_S = 0.15  # several times as long as layertrace waits between two looks at the memory


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).to("cuda:0")
        self.aside = nn.Linear(6, 6).to("cuda:0")
        self.head = nn.Linear(8 * 36, 10).to("cuda:1")
        self.stream = torch.cuda.Stream("cuda:0")

    def forward(self, x):
        x = self.stem(x)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            x = self.aside(x)
        torch.cuda.current_stream().wait_stream(self.stream)
        return self.head(x.flatten(1).to("cuda:1"))


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(4, 3, 8, 8, device="cuda:0")
    in_use = []

    def step(loading_s=0.0):
        with layertrace.scope("data"):
            in_use.append([torch.cuda.memory_allocated(device) for device in (0, 1)])
            time.sleep(loading_s)
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()
        for device in (0, 1):
            torch.cuda.synchronize(device)

    step()
    schedule = layertrace.schedule(warmup=1, record=STEPS)
    with layertrace.profile(
        model, output="traced.pftrace", schedule=schedule, require_gpu=True
    ) as session:
        step()
        in_use.clear()
        session.step()
        for number in range(STEPS):
            step(LOADING_S if number == 0 else 0)
            session.step()
    with torch.profiler.profile() as profiler:
        step()
    profiler.export_chrome_trace("witness.json")
    profile = session.profile.to_dict()
    return {
        "loading": in_use[0],
        "peak": [torch.cuda.max_memory_allocated(device) for device in (0, 1)],
        "begin_ns": profile["steps"][0]["start_ns"],
        "kernels": profile["kernels"],
        "layers": profile["layers"],
        "health": profile["health"],
    }


if __name__ == "__main__":
    print("RESULT " + json.dumps(main()))
