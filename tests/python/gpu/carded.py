"""Cards of a model on the GPU and of the same on the host, from a loader of host tensors."""

import json

import torch
from torch import nn

import layertrace

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
batches = [(torch.randn(8, 256), torch.zeros(8)), (torch.randn(4, 256), torch.zeros(4))]
host = layertrace.card(model, batches, name="host", iterations=2, warmup=1)
copied = layertrace.card(model, batches, name="copy", device="cuda", iterations=2, warmup=1)
stayed = {parameter.device.type for parameter in model.parameters()}
moved = layertrace.card(model.cuda(), batches, name="moved", iterations=2, warmup=1)
comparison = host.compare(moved)
print(
    "RESULT",
    json.dumps(
        {
            "cards": [card.to_dict() for card in (host, copied, moved)],
            "stayed": sorted(stayed),
            "comparison": comparison.to_dict(),
            "text": str(moved),
            "tables": [each.table().to_markdown() for each in (host, moved, comparison)],
        }
    ),
)
