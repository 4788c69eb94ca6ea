"""The Python twin of tests/cuda/programs/unchanged_cuda.cc.

twin.py STEPS [OUTPUT FIRST LAST]    with a session of its own for steps FIRST to LAST - 1
"""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.relu, self.pool = nn.ReLU(), nn.AdaptiveAvgPool2d((4, 4))
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 10)

    def forward(self, x):
        features = self.relu(self.bn(self.conv(x)))
        # Between layers the model works itself, too.
        pooled = self.pool(features * torch.sigmoid(features)).flatten(1)
        return self.head(self.norm(torch.tanh(pooled) + pooled))


def train(steps, record):
    torch.manual_seed(0)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    images = torch.randn(4, 3, 16, 16).cuda()
    labels = torch.zeros(4, dtype=torch.long).cuda()
    with record(model, optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    torch.cuda.synchronize()
    print(f"trained {steps}")


def session(output, first, last):
    import layertrace

    window = layertrace.schedule(warmup=first, record=last - first)

    def record(model, optimizer):
        return layertrace.profile(model, output, window, optimizer=optimizer, require_gpu=True)

    return record


if __name__ == "__main__":
    if len(sys.argv) > 2:
        output, first, last = sys.argv[2:]
        train(int(sys.argv[1]), session(output, int(first), int(last)))
    else:
        train(int(sys.argv[1]), lambda *_: torch.enable_grad())
