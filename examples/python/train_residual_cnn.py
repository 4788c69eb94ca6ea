"""The twin of examples/cpp/train_residual_cnn.cc: the same network, weights and data, in Python.

python train_residual_cnn.py [OUTPUT.pftrace]
"""

import sys

import torch
from torch import nn

import layertrace

STEPS = 6
CLASSES = 10


class ResidualBlock(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        if stride != 1 or inputs != outputs:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))
        else:
            self.shortcut = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResidualNet(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(conv, nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.blocks = nn.ModuleList()
        channels = 16
        for width in (16, 16, 16, 32, 64):
            self.blocks.append(ResidualBlock(channels, width, 1 if width == channels else 2))
            channels = width
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.pool(x).flatten(1))


def main() -> None:
    output = sys.argv[1] if len(sys.argv) > 1 else "demo.pftrace"
    torch.set_num_threads(1)  # threads that wait for each other tell of the machine's other work
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ResidualNet(CLASSES).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)

    # Skip the first two steps: PyTorch sets itself up in them.
    schedule = layertrace.schedule(skip=1, warmup=1)
    with layertrace.profile(model, output=output, schedule=schedule) as session:
        for step in range(STEPS):
            with layertrace.scope("data"):
                pictures = torch.randn(16, 3, 32, 32).to(device)
                labels = torch.randint(CLASSES, (16,)).to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
            print(f"step {step + 1}/{STEPS}  loss {loss.item():g}", file=sys.stderr)
            session.step()
    print(session.tree())


if __name__ == "__main__":
    main()
