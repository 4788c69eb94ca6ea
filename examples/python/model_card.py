import torch
from torch import nn

import layertrace


class Net(nn.Sequential):
    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))


def accuracy(model: nn.Module, data: torch.Tensor) -> float:
    return 0.981 if model[0].out_features > 256 else 0.972  # measured elsewhere


images = torch.randn(64, 784)
figures = ["evaluation", "model_size", "macs", "parameters"]
cards = [
    layertrace.card(Net(width), images, name=name, evaluate=accuracy, metrics=figures)
    for name, width in [("wide", 1024), ("narrow", 128)]
]
print(layertrace.compare_cards(*cards), end="")
