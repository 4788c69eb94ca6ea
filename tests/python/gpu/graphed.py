"""Trains with CUDA graphs on the (simulated) GPU, and prints as JSON whose kernels ran.

graphed.py WAY…

eager       the witness: the same pass by torch.profiler, without a graph
captured    a whole pass, captured inside the session and replayed three times
callables   torch.cuda.make_graphed_callables, inside the session, and three passes
earlier     a pass that was captured before the session, and replayed twice in a module, once
            outside any
"""

import json
import sys
from collections import Counter

import torch
from torch import nn
from trained import Sums, layer_of, makers, mark_modules, own_sums, profiled

REPLAYS = 3


def make():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32), nn.LayerNorm(32))
    model = nn.Sequential(body, nn.Dropout(0.1), nn.Linear(32, 8)).cuda().train()
    inputs = torch.randn(4, 32, device="cuda")

    def once():
        model.zero_grad(set_to_none=True)
        (model(inputs) ** 2).mean().backward()

    aside = torch.cuda.Stream()  # as PyTorch's documentation has it: libraries set themselves up
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.synchronize()
    return model, inputs, once


def capture(once):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        once()
    return graph


def told(session):
    profile = session.profile
    health = profile.to_dict()["health"]
    return {
        **own_sums(profile),
        "all": health["activities"],
        "outside": {
            phase: round(figures.activities.mean * profile.step_count)
            for phase, figures in profile.outside.items()
            if figures.activities.mean != 0
        },
        "unattributed": {cause: each["count"] for cause, each in health["unattributed"].items()},
        "gpu": health["gpu"],
    }


def eager():
    model, _, once = make()
    mark_modules(model)
    once()
    events = profiled(once)
    made_by = makers(events)
    sums, outside = Sums(), Counter()
    for event in events:
        if event.kernels:
            phase, path = layer_of(event, made_by)
            sums.add(phase, path, event.kernels)
            outside.update({True: len(event.kernels)} if path is None else {})
    return {
        "counts": sums.counts,
        "ns": sums.ns,
        "all": sums.all["count"],
        "outside": outside[True],
    }


def captured():
    import layertrace

    model, _, once = make()
    with layertrace.profile(model, output="captured.pftrace", require_gpu=True) as session:
        graph = capture(once)
        session.step()
        for _ in range(REPLAYS):
            graph.replay()
            session.step()
    forward = session.profile.layers[0].forward.activities
    return {**told(session), "least": forward.min, "most": forward.max}


def callables():
    import layertrace

    model, inputs, _ = make()
    with layertrace.profile(model, require_gpu=True) as session:
        graphed = torch.cuda.make_graphed_callables(model, (inputs,))
        torch.cuda.synchronize()
        session.step()
        before = told(session)["counts"]
        for _ in range(REPLAYS):
            model.zero_grad(set_to_none=True)
            (graphed(inputs) ** 2).mean().backward()
            session.step()
    result = told(session)
    after = Counter(result["counts"])
    after.subtract(before)
    return {**result, "counts": {key: count for key, count in after.items() if count != 0}}


class Replayer(nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def forward(self):
        self.graph.replay()


def earlier():
    import layertrace

    _, _, once = make()
    outer = nn.Module()
    outer.replayer = Replayer(capture(once))
    with layertrace.profile(outer, require_gpu=True) as session:
        outer.replayer()
        outer.replayer()
        with layertrace.scope("elsewhere"):
            outer.replayer.graph.replay()
        session.step()
    return {**told(session), "tree": session.tree()}


if __name__ == "__main__":
    ways = {"eager": eager, "captured": captured, "callables": callables, "earlier": earlier}
    print("RESULT " + json.dumps({way: ways[way]() for way in sys.argv[1:]}))
