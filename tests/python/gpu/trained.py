"""Trains models on the (simulated) GPU, and prints as JSON which layer's kernels ran how often, and
how long.

    trained.py witness|layertrace MODEL…

The witness is torch.profiler, which knows nothing of layertrace: hooks put each module's path
around its call; a kernel belongs to the innermost path around the operator that launched it. In the
backward, it belongs to the path around the forward operator that has the sequence number of the
autograd node. The accumulation of a gradient has no such number: a hook of the parameter leaves the
path of the module that registered it first.
"""

import json
import sys
import threading
import types
from collections import Counter, defaultdict
from pathlib import Path

import torch
import twin
import twins
from by_layer import ELSEWHERE, kernels_by_layer, key_of, short_name
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


class Gathered(nn.Module):
    """Its accumulations have kernels of their own: gradients that are added to, and one that lies
    otherwise in memory than its parameter and is copied. One weight is two modules'."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(32, 64, bias=False)
        self.embedding = nn.Embedding(64, 32)
        self.embedding.weight = self.head.weight
        self.body = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
        self.gate = nn.Parameter(torch.ones(32, 8))

    def forward(self, words):
        return self.head(self.body(self.embedding(words)) * self.gate.t())


def transformers_model(name):
    import transformers

    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    if name == "gpt2":
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.BertConfig(**small, intermediate_size=64, vocab_size=64)
    return transformers.BertModel(config)


def torchvision_model(name):
    from torchvision.models import VisionTransformer, resnet18

    if name == "resnet18":
        return resnet18(num_classes=10), torch.randn(2, 3, 64, 64)
    return VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), torch.randn(2, 3, 32, 32)


def residual_cnn():
    """The example's network."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))
    from train_residual_cnn import CLASSES, ResidualNet

    return ResidualNet(CLASSES), torch.randn(16, 3, 32, 32)


def sequential():
    """The twin of what several_cuda.cc trains eagerly and by a graph."""
    layers = (nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
    return nn.Sequential(*layers), torch.randn(4, 32)


MAKERS = {
    "resnet18": lambda: torchvision_model("resnet18"),
    "vit": lambda: torchvision_model("vit"),
    "gpt2": lambda: (transformers_model("gpt2"), twins.sentences()),
    "bert": lambda: (transformers_model("bert"), twins.sentences()),
    "lstm": lambda: (nn.Sequential(nn.LSTM(16, 16, 2)), torch.randn(4, 2, 16)),
    "two_streams": lambda: (TwoStreams(), torch.randn(4, 32)),
    "two_threads": lambda: (TwoThreads(), torch.randn(4, 32)),
    "residual_cnn": residual_cnn,
    "unchanged": lambda: (twin.Net(), torch.randn(4, 3, 16, 16)),
    "sequential": sequential,
    "lstm_model": lambda: (twins.LstmModel(), twins.sentences()),
    "encoder": lambda: (twins.Encoder(), torch.randn(2, 3, 32, 32)),
    "decoder": lambda: (twins.Decoder(), twins.sentences()),
    "transformer": lambda: (twins.Transformer(), twins.sentences()),
    "gathered": lambda: (Gathered(), twins.sentences()),
    "gathered_from_zero": lambda: (Gathered(), twins.sentences()),
}
CLASSIFIERS = ("residual_cnn", "unchanged")  # with a loss like their programs'
TWO_BACKWARDS = ("lstm_model", "decoder", "gathered", "gathered_from_zero")
SET_TO_ZERO = ("decoder", "transformer", "gathered_from_zero")  # gradients that each backward finds


def trainer(name):
    torch.manual_seed(0)
    model, inputs = MAKERS[name]()
    model, inputs = model.cuda().train(), inputs.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    labels = torch.zeros(len(inputs), dtype=torch.long).cuda()

    def pass_through():
        output = model(inputs)
        output = output[0] if isinstance(output, (tuple, dict)) else output
        output = output[0] if isinstance(output, tuple) else output
        if name in CLASSIFIERS:
            nn.functional.cross_entropy(output, labels).backward()
        else:
            (output.float() ** 2).mean().backward()

    def step():
        optimizer.zero_grad(set_to_none=name not in SET_TO_ZERO)
        if isinstance(model, TwoThreads):
            model.train_both(inputs)
        else:
            for _ in range(2 if name in TWO_BACKWARDS else 1):
                pass_through()
        optimizer.step()

    step()
    step()
    torch.cuda.synchronize()
    return model, step


# ---- The witness ----------------------------------------------------------------------------

MARK = "layer:"
OWNER = "owner:"


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
    mark_parameters(model)


def mark_parameters(model):
    def mark(path):
        with torch.autograd.profiler.record_function(OWNER + path):
            pass

    for name, parameter in model.named_parameters():  # one that two modules share: at the first
        path = name.rpartition(".")[0]
        parameter.register_post_accumulate_grad_hook(lambda _, path=path: mark(path))


def up(event):
    while event is not None:
        yield event
        event = event.cpu_parent


def down(event):
    for child in event.cpu_children:
        yield child
        yield from down(child)


def path_around(event):
    return next((e.name[len(MARK) :] for e in up(event) if e.name.startswith(MARK)), None)


class Sums:
    """How many kernels, and how long they took: in all, and by phase and path. By name, too: those
    outside any module have a phase alone."""

    def __init__(self):
        self.all, self.counts, self.ns = Counter(), Counter(), Counter()
        self.kernels = defaultdict(Counter)

    def add(self, phase, path, kernels):
        took = sum(round(1000 * kernel.duration) for kernel in kernels)
        self.all.update(count=len(kernels), ns=took)
        self.kernels[key_of(phase, path)].update(short_name(each.name) for each in kernels)
        if path is not None:
            self.counts[key_of(phase, path)] += len(kernels)
            self.ns[key_of(phase, path)] += took


def makers(events):
    """The path around the forward operator that made an autograd node, by thread and number."""
    made_by = {}
    for event in events:
        in_backward = any("evaluate_function" in e.name for e in up(event))
        if event.sequence_nr >= 0 and not in_backward:
            # An operator that makes no node leaves its number to the next: the last one has it.
            made_by[event.thread, event.sequence_nr] = path_around(event)
    return made_by


def layer_of(event, made_by):
    """The phase and the path of an operator's kernels; no path outside any module."""
    node = next((e for e in up(event) if "evaluate_function" in e.name), None)
    if node is None:
        path = path_around(event)
        return (ELSEWHERE if path is None else "forward"), path
    if node.name.endswith("AccumulateGrad"):
        owners = (e.name[len(OWNER) :] for e in down(node) if e.name.startswith(OWNER))
        return "backward", next(owners, None)
    inside = [e for e in up(event) if e.sequence_nr >= 0]
    below = [e for e in node.cpu_children if e.sequence_nr >= 0]
    numbered = (inside or below or [None])[-1]
    path = made_by.get((numbered.fwd_thread, numbered.sequence_nr)) if numbered else None
    return "backward", path


def profiled(step):
    """What torch.profiler tells of the step's operators, on whichever thread."""
    everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(experimental_config=everywhere) as profiler:
        step()
        torch.cuda.synchronize()
    return [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CPU]


def accumulated(events):
    """How many kernels are accumulations of gradients."""
    return sum(
        len(event.kernels) for event in events if any("AccumulateGrad" in e.name for e in up(event))
    )


def witness(name):
    model, step = trainer(name)
    mark_modules(model)
    step()
    events = profiled(step)
    made_by = makers(events)
    sums = Sums()
    for event in events:
        if event.kernels and not event.name.startswith("ProfilerStep"):
            sums.add(*layer_of(event, made_by), event.kernels)
    return {
        "all": sums.all,
        "counts": sums.counts,
        "ns": sums.ns,
        "kernels": sums.kernels,
        "accumulated": accumulated(events),
    }


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
        "kernels": kernels_by_layer(profile.to_dict()),
        "all": {"count": health.activities, "ns": health.activity_ns},
        "same_when_loaded": loaded.to_dict() == profile.to_dict(),
        "unattributed": {each.cause: each.count for each in health.unattributed},
        "gpu": repr(health.gpu),
        "activities": health.activities,
    }


if __name__ == "__main__":
    what, *names = sys.argv[1:]
    sums_of = witness if what == "witness" else recorded
    if what == "witness":  # not even loaded, though the example's file imports it
        sys.modules["layertrace"] = types.ModuleType("layertrace")
    print("RESULT " + json.dumps({name: sums_of(name) for name in names}))
