"""Times a model on the (simulated) GPU; prints what it is told as JSON.

benchmarked.py events|cupti     by one of the two ways, and the whole without scopes
benchmarked.py sweep            batches of several sizes, until memory does not suffice
"""

import json
import sys

import torch
from torch import nn

import layertrace


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 51200), nn.Identity())
    return model.cuda(), torch.randn(256, 512, device="cuda")


def by(way):
    model, x = build()
    result = layertrace.benchmark(model, x, iterations=8, drop_first=3, timing=way)
    single = result.table("modules", aggregate=False)
    return {
        "way": way,
        "rows": result.table(root="__root__").rows(),
        "single": len(single),
        "table": single.to_latex(),
        "text": str(result),
        "notes": result.notes,
    }


def sweep():
    model, x = build()
    result = layertrace.throughput(model, x, [1, 8, 1 << 22, 8], iterations=4, drop_first=1)
    figure = result.plot()
    return {
        "rows": result.table().rows(),
        "table": result.table().to_html(),
        "text": str(result),
        "failed_at": result.out_of_memory_at,
        "title": figure.axes[0].get_title(loc="left"),
    }


result = sweep() if sys.argv[1] == "sweep" else by(sys.argv[1])
print("RESULT", json.dumps(result))
