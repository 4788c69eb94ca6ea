"""Trains a model on the (simulated) GPU, and prints as JSON which layer's kernels ran how often.

    trained.py witness|layertrace MODEL

The witness is torch.profiler, which knows nothing of layertrace: hooks put each module's path
around its call; a kernel belongs to the innermost path around the operator that launched it. In the
backward, it belongs to the path around the forward operator that has the sequence number of the
autograd node.
"""

import json
import sys
from collections import Counter

import torch
from torch import nn


class TwoStreams(nn.Module):
    """Two branches, each on a stream of its own."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(32, 32), nn.Linear(32, 32)
        self.side = torch.cuda.Stream()

    def forward(self, x):
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            right = self.right(x).relu()
        left = self.left(x).tanh()
        torch.cuda.current_stream().wait_stream(self.side)
        return left + right


def transformers_model(name):
    import transformers

    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    if name == "gpt2":
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.BertConfig(**small, intermediate_size=64, vocab_size=64)
    return transformers.BertModel(config)


def make(name):
    from torchvision.models import VisionTransformer, resnet18

    if name == "resnet18":
        return resnet18(num_classes=10), torch.randn(2, 3, 64, 64)
    if name == "vit":
        return VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), torch.randn(2, 3, 32, 32)
    if name == "lstm":
        return nn.Sequential(nn.LSTM(16, 16, 2)), torch.randn(4, 2, 16)
    if name == "two_streams":
        return TwoStreams(), torch.randn(4, 32)
    return transformers_model(name), torch.randint(0, 64, (2, 8))


def trainer(name):
    torch.manual_seed(0)
    model, inputs = make(name)
    model, inputs = model.cuda().train(), inputs.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        output = model(inputs)
        output = output[0] if isinstance(output, (tuple, dict)) else output
        output = output[0] if isinstance(output, tuple) else output
        (output.float() ** 2).mean().backward()
        optimizer.step()

    step()
    step()
    torch.cuda.synchronize()
    return model, step


# ---- The witness ----------------------------------------------------------------------------

MARK = "layer:"


def mark_modules(model):
    def enter(module, args, path):
        module.__dict__.setdefault("_marks", []).append(
            torch.autograd.profiler.record_function(MARK + path).__enter__()
        )

    def leave(module, args, output):
        module.__dict__["_marks"].pop().__exit__(None, None, None)

    for path, module in model.named_modules():
        module.register_forward_pre_hook(lambda m, a, path=path: enter(m, a, path))
        module.register_forward_hook(leave)


def up(event):
    while event is not None:
        yield event
        event = event.cpu_parent


def path_around(event):
    return next((e.name[len(MARK) :] for e in up(event) if e.name.startswith(MARK)), None)


def witness(name):
    model, step = trainer(name)
    mark_modules(model)
    step()
    with torch.profiler.profile() as profiler:
        step()
        torch.cuda.synchronize()
    events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CPU]
    made_by = {}
    for event in events:
        in_backward = any("evaluate_function" in e.name for e in up(event))
        if event.sequence_nr >= 0 and not in_backward:
            # An operator that makes no node leaves its number to the next: the last one has it.
            made_by[event.sequence_nr] = path_around(event)
    counts = Counter()
    for event in events:
        if not event.kernels or event.name.startswith("ProfilerStep"):
            continue
        node = next((e for e in up(event) if "evaluate_function" in e.name), None)
        if node is None:
            path, phase = path_around(event), "forward"
        else:
            inside = [e for e in up(event) if e.sequence_nr >= 0]
            below = [e for e in events if e.cpu_parent is node and e.sequence_nr >= 0]
            number = (inside or below or [None])[-1]
            path = made_by.get(number.sequence_nr) if number is not None else None
            phase = "backward"
        if path is not None:
            counts[f"{phase} {path}"] += len(event.kernels)
    return counts


def recorded(name):
    import layertrace

    model, step = trainer(name)
    step()
    with layertrace.profile(model, output=f"{name}.pftrace", require_gpu=True) as session:
        step()
        session.step()
    profile = session.profile
    counts = Counter()
    children = Counter()
    for layer in profile.layers:
        for phase in ("forward", "backward"):
            total = layer.phases[phase].activities.mean
            counts[f"{phase} {layer.path}"] += int(total)
            if layer.parent is not None:
                children[f"{phase} {profile.layers[layer.parent].path}"] += int(total)
    own = {key: counts[key] - children[key] for key in counts if counts[key] != children[key]}
    loaded = layertrace.load(f"{name}.pftrace")
    return {
        "counts": own,
        "same_when_loaded": loaded.to_dict() == profile.to_dict(),
        "unattributed": {each.cause: each.count for each in profile.health.unattributed},
        "gpu": repr(profile.health.gpu),
        "activities": profile.health.activities,
    }


if __name__ == "__main__":
    what, name = sys.argv[1:]
    result = {"counts": witness(name)} if what == "witness" else recorded(name)
    print("RESULT " + json.dumps(result))
