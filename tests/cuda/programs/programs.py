"""Training programs as people write them: nothing here knows that the device may be simulated.

programs.py NAME…            runs them, one JSON line each
programs.py --profile NAME…  under torch.profiler, with what it saw of the device
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable

import torch
import torchvision
from torch import nn
from torch.nn import functional

Step = Callable[[], torch.Tensor]


def image_step(model: nn.Module, size: int) -> Step:
    model = model.cuda().train()
    images = torch.randn(2, 3, size, size, device="cuda")
    labels = torch.tensor([1, 2], device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def resnet() -> Step:
    return image_step(torchvision.models.resnet18(num_classes=10), 64)


def vit() -> Step:
    return image_step(
        torchvision.models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), 32
    )


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, words: int = 100, width: int = 64, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))


def gpt(depth: int = 2) -> Step:
    model = Gpt(depth=depth).cuda()
    tokens = torch.randint(0, 100, (2, 33)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def gpt24() -> Step:
    """The tiny transformer with some thousand launches a step."""
    return gpt(depth=24)


def lstm() -> Step:
    embed, layers, head = (
        nn.Embedding(50, 32).cuda(),
        nn.LSTM(32, 64, 2).cuda(),
        nn.Linear(64, 50).cuda(),
    )
    parameters = [p for m in (embed, layers, head) for p in m.parameters()]
    optimizer = torch.optim.Adam(parameters)
    tokens = torch.randint(0, 50, (12, 4), device="cuda")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        hidden, _ = layers(embed(tokens))
        loss = functional.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def embedding() -> Step:
    table, head = nn.EmbeddingBag(100, 16, mode="mean").cuda(), nn.Linear(16, 5).cuda()
    optimizer = torch.optim.Adagrad([*table.parameters(), *head.parameters()])
    words = torch.randint(0, 100, (8, 6), device="cuda")
    labels = torch.randint(0, 5, (8,), device="cuda")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(head(table(words)), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def streams() -> Step:
    """Two streams that wait for each other by events."""
    first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    left, right = nn.Linear(256, 256).cuda(), nn.Linear(256, 256).cuda()
    data = torch.randn(64, 256, device="cuda")

    def step() -> torch.Tensor:
        start, done = torch.cuda.Event(), torch.cuda.Event()
        start.record()
        with torch.cuda.stream(first):
            first.wait_event(start)
            a = left(data)
        with torch.cuda.stream(second):
            second.wait_event(start)
            b = right(data)
            done.record()
        first.wait_event(done)
        with torch.cuda.stream(first):
            loss = (a * b).sum()
            loss.backward()
        torch.cuda.current_stream().wait_stream(first)
        return loss

    return step


def graph() -> Step:
    """A whole step, captured once and replayed."""
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    data, target = torch.randn(16, 32, device="cuda"), torch.randn(16, 8, device="cuda")

    def work() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = work()

    def step() -> torch.Tensor:
        data.copy_(torch.randn(16, 32))
        captured.replay()
        return loss

    return step


def scaler() -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)
    ).cuda()
    data = torch.randn(2, 3, 8, 8, device="cuda")
    model(data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scale = torch.amp.GradScaler("cuda")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(data).square().mean()
        scale.scale(loss).backward()
        scale.step(optimizer)
        scale.update()
        return loss

    return step


def pinned() -> Step:
    """Copies that do not wait, from pinned memory, on a stream of their own."""
    host = torch.arange(1 << 16, dtype=torch.float32).pin_memory()
    back = torch.empty_like(host).pin_memory()
    copies = torch.cuda.Stream()

    def step() -> torch.Tensor:
        with torch.cuda.stream(copies):
            device = host.to("cuda", non_blocking=True)
            back.copy_(device, non_blocking=True)
        copies.synchronize()
        assert torch.equal(back, host), "a copy there and back changes nothing"
        return back.sum()

    return step


def loader() -> Step:
    """A DataLoader with worker processes and pinned memory."""
    data = torch.utils.data.TensorDataset(torch.randn(16, 8), torch.arange(16) % 3)
    batches = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, pin_memory=True)
    model = nn.Linear(8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> torch.Tensor:
        loss = torch.zeros(())
        for rows, labels in batches:
            assert rows.is_pinned()
            optimizer.zero_grad()
            output = model(rows.to("cuda", non_blocking=True))
            loss = functional.cross_entropy(output, labels.to("cuda", non_blocking=True))
            loss.backward()
            optimizer.step()
        return loss

    return step


def memory() -> Step:
    def step() -> torch.Tensor:
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        block = torch.zeros(1 << 20, device="cuda")
        stats = torch.cuda.memory_stats()
        assert torch.cuda.memory_allocated() - before == 4 << 20
        assert stats["allocated_bytes.all.current"] >= 4 << 20
        free, total = torch.cuda.mem_get_info()
        assert 0 < free < total
        return block.sum()

    return step


def events() -> Step:
    matrix = torch.randn(2048, 2048, device="cuda")

    def step() -> torch.Tensor:
        start, middle, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        start.record()
        product = matrix @ matrix
        middle.record()
        for _ in range(10):
            product = matrix @ product
        end.record()
        end.synchronize()
        one, ten = start.elapsed_time(middle), middle.elapsed_time(end)
        assert 0 < one < ten, (one, ten)
        assert start.query()
        assert end.query()
        return product

    return step


def devices() -> Step:
    """Two devices, a model on each, and copies between them."""
    first, second = nn.Linear(64, 32).to("cuda:0"), nn.Linear(32, 8).to("cuda:1")
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    data = torch.randn(16, 64, device="cuda:0")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = second(first(data).to("cuda:1")).square().mean()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)
        return loss

    return step


PROGRAMS: dict[str, Callable[[], Step]] = {
    each.__name__: each
    for each in (
        *(resnet, vit, gpt, gpt24, lstm, embedding, streams),
        *(graph, scaler, pinned, loader, memory, events, devices),
    )
}


def seen_by_profiler(step: Step) -> list[dict[str, object]]:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        step()
        torch.cuda.synchronize()
    on_device = torch.autograd.DeviceType.CUDA
    return [
        {
            "name": event.name(),
            "device": event.device_index() if event.device_type() == on_device else None,
            "resource": event.device_resource_id(),
            "start": event.start_ns(),
            "duration": event.duration_ns(),
            "correlation": event.correlation_id(),
            "op": event.linked_correlation_id(),
            "activity": event.activity_type(),
        }
        for event in profiler.profiler.kineto_results.events()
    ]


def main(arguments: list[str]) -> None:
    profiles = "--profile" in arguments
    for name in arguments:
        if name.startswith("--"):
            continue
        torch.manual_seed(0)
        step = PROGRAMS[name]()
        step()
        loss = float(step().detach().sum())
        torch.cuda.synchronize()
        result = {"name": name, "finite": math.isfinite(loss)}
        if profiles:
            result["events"] = seen_by_profiler(step)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
