"""Trains models on the (simulated) GPU, and prints as JSON which layer's kernels ran how often, and
how long.

    trained.py witness|layertrace MODEL…

The witness is torch.profiler, which knows nothing of layertrace: hooks put each module's path
around its call; a kernel belongs to the innermost path around the operator that launched it. In the
backward, it belongs to the path around the forward operator that has the sequence number of the
autograd node.
"""

import json
import sys
import threading
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


class TwoThreads(nn.ModuleDict):
    """Two models that two threads train at once, each on a stream of its own."""

    def __init__(self):
        super().__init__({"left": self.branch(nn.ReLU()), "right": self.branch(nn.Tanh())})
        self.streams = {name: torch.cuda.Stream() for name in self}

    @staticmethod
    def branch(activation):
        return nn.Sequential(nn.Linear(32, 32), activation, nn.LayerNorm(32), nn.Linear(32, 32))

    def train_branch(self, name, x):
        self.streams[name].wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(self.streams[name]):
            for _ in range(5):
                self[name].zero_grad()
                (self[name](x) ** 2).mean().backward()

    def train_both(self, x):
        threads = [threading.Thread(target=self.train_branch, args=(name, x)) for name in self]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


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
    if name == "two_threads":
        return TwoThreads(), torch.randn(4, 32)
    return transformers_model(name), torch.randint(0, 64, (2, 8))


def trainer(name):
    torch.manual_seed(0)
    model, inputs = make(name)
    model, inputs = model.cuda().train(), inputs.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def pass_through():
        output = model(inputs)
        output = output[0] if isinstance(output, (tuple, dict)) else output
        output = output[0] if isinstance(output, tuple) else output
        (output.float() ** 2).mean().backward()

    def step():
        optimizer.zero_grad()
        if isinstance(model, TwoThreads):
            model.train_both(inputs)
        else:
            pass_through()
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


class Sums:
    """How many kernels, and how long they took: in all, and by phase and path."""

    def __init__(self):
        self.all, self.counts, self.ns = Counter(), Counter(), Counter()

    def add(self, key, kernels):
        took = sum(round(1000 * kernel.duration) for kernel in kernels)
        self.all.update(count=len(kernels), ns=took)
        if key is not None:
            self.counts[key] += len(kernels)
            self.ns[key] += took


def makers(events):
    """The path around the forward operator that made an autograd node, by thread and number."""
    made_by = {}
    for event in events:
        in_backward = any("evaluate_function" in e.name for e in up(event))
        if event.sequence_nr >= 0 and not in_backward:
            # An operator that makes no node leaves its number to the next: the last one has it.
            made_by[event.thread, event.sequence_nr] = path_around(event)
    return made_by


def key_of(event, events, made_by):
    """The phase and the path of an operator's kernels; None outside any module."""
    node = next((e for e in up(event) if "evaluate_function" in e.name), None)
    if node is None:
        path, phase = path_around(event), "forward"
    else:
        inside = [e for e in up(event) if e.sequence_nr >= 0]
        below = [e for e in events if e.cpu_parent is node and e.sequence_nr >= 0]
        numbered = (inside or below or [None])[-1]
        path = made_by.get((numbered.fwd_thread, numbered.sequence_nr)) if numbered else None
        phase = "backward"
    return f"{phase} {path}" if path is not None else None


def profiled(step):
    """What torch.profiler tells of the step's operators, on whichever thread."""
    everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(experimental_config=everywhere) as profiler:
        step()
        torch.cuda.synchronize()
    return [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CPU]


def witness(name):
    model, step = trainer(name)
    mark_modules(model)
    step()
    events = profiled(step)
    made_by = makers(events)
    sums = Sums()
    for event in events:
        if event.kernels and not event.name.startswith("ProfilerStep"):
            sums.add(key_of(event, events, made_by), event.kernels)
    return {"all": sums.all, "counts": sums.counts, "ns": sums.ns}


# ---- layertrace -----------------------------------------------------------------------------


def own_sums(profile):
    """Kernels by phase and path, in all recorded steps, without those of the layers inside."""
    counts, ns = Counter(), Counter()
    for layer in profile.layers:
        for phase in ("forward", "backward"):
            figures = layer.phases[phase]
            total = round(figures.activities.mean * profile.step_count)
            counts[f"{phase} {layer.path}"] += total
            ns[f"{phase} {layer.path}"] = figures.self_activity_ns.mean * profile.step_count
            if layer.parent is not None:
                counts[f"{phase} {profile.layers[layer.parent].path}"] -= total
    return {
        "counts": {key: count for key, count in counts.items() if count != 0},
        "ns": {key: took for key, took in ns.items() if took != 0},
    }


def recorded(name):
    import layertrace

    model, step = trainer(name)
    step()
    with layertrace.profile(model, output=f"{name}.pftrace", require_gpu=True) as session:
        step()
        session.step()
    profile = session.profile
    loaded = layertrace.load(f"{name}.pftrace")
    health = profile.health
    return {
        **own_sums(profile),
        "all": {"count": health.activities, "ns": health.activity_ns},
        "same_when_loaded": loaded.to_dict() == profile.to_dict(),
        "unattributed": {each.cause: each.count for each in health.unattributed},
        "gpu": repr(health.gpu),
        "activities": health.activities,
    }


if __name__ == "__main__":
    what, *names = sys.argv[1:]
    sums_of = witness if what == "witness" else recorded
    print("RESULT " + json.dumps({name: sums_of(name) for name in names}))
