"""Trains a small network on the (simulated) GPU, in ways that leave it idle for different causes;
writes a trace of each way, and prints the profiles as JSON.

    idled.py WAY…

On the virtual clock nothing but calls into CUDA takes time: a program that has much to do on the
host is one that makes calls which ask the device for nothing. A wait ends when the device is done,
and no later: what it leaves idle is another device.
"""

import json
import sys

import torch
from torch import nn

import layertrace

STEPS = 3
QUERIES = 100


def work_on_the_host():
    stream = torch.cuda.current_stream()
    for _ in range(QUERIES):
        stream.query()


class Middle(nn.Linear):
    def __init__(self, way):
        super().__init__(512, 512)
        self.way = way

    def forward(self, x):
        if self.way == "launches_late":
            work_on_the_host()
        x = super().forward(x)
        if self.way == "waits":
            large = torch.ones(2048, 2048, device="cuda:1")
            (large @ large).sum().item()
        return x


def record(way):
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("first", nn.Linear(512, 512))
    model.add_module("middle", Middle(way))
    model.add_module("last", nn.Linear(512, 512))
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randn(1024, 512, pin_memory=True)
    on_device = images.cuda()

    def load():
        if way in ("loads", "loads_and_copies"):
            work_on_the_host()
        if way in ("copies", "loads_and_copies"):
            return images.to("cuda", non_blocking=True)
        return on_device + 1

    def step():
        with layertrace.scope("data"):
            batch = load()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()

    step()
    with layertrace.profile(model, output=f"{way}.pftrace", timing="cupti") as session:
        for _ in range(STEPS):
            step()
            session.step()
    return session.profile.to_dict()


if __name__ == "__main__":
    print("RESULT " + json.dumps({way: record(way) for way in sys.argv[1:]}))
