"""Does `compare` see what changed, and nothing else? Pairs of real runs, each its own process.

    python bench/compare_noise.py [--pairs N] [--steps N] [--keep DIR] [--digest FILE] [--quick]

Each pair is one model trained twice, the second time right after the first: once the same program
again, once with one layer's forward made to take 20 % longer (it waits, busily, for a fifth of what
it took). Told are in how many pairs of equal runs anything counts as changed, and in how many pairs
the slowed layer is the first row of the layers and counts as slower. --digest writes what a
comparison looks at of the first model's runs: tests/data/noise has such a file.

Bars: at most 1 of 20 equal pairs shows any change; the slowed layer is the first row. What else the
machine does is part of it. Timings are no tests: a missed bar is printed, and the exit code is 0.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from report import machine
from torch import nn

import layertrace

SLOWED = {"encoder": "layers.1.linear1", "residual": "blocks.2.conv1"}
WARM_UP = 5


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.conv2(torch.relu(self.norm(self.conv1(x)))))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.blocks = nn.ModuleList(Block(32) for _ in range(5))
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def made(name: str) -> tuple[nn.Module, torch.Tensor]:
    if name == "residual":
        return Residual(), torch.randn(8, 3, 24, 24)
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), torch.randn(8, 48, 128)


def slow_down(layer: nn.Module, by: float) -> None:
    forward = layer.forward

    def slowed(*arguments: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        result = forward(*arguments)
        end = time.perf_counter() + by * (time.perf_counter() - start)
        while time.perf_counter() < end:
            pass
        return result

    layer.forward = slowed  # type: ignore[method-assign]


def train(name: str, slowed: float, steps: int, output: str) -> None:
    """One run, in a process of its own."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = made(name)
    if slowed > 0:
        slow_down(model.get_submodule(SLOWED[name]), slowed)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    schedule = layertrace.schedule(skip=WARM_UP, warmup=2, record=steps)
    with layertrace.profile(model, output=output, optimizer=optimizer, schedule=schedule):
        for _ in range(WARM_UP + 2 + steps):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()


def run(name: str, slowed: float, steps: int, output: Path) -> Path:
    if output.exists():  # of an earlier call
        return output
    words = [sys.executable, __file__, "--child", name, str(slowed), str(steps), str(output)]
    subprocess.run(words, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return output


def changes(comparison: layertrace.Comparison) -> list[str]:
    """What counts as changed."""
    return [
        f"{row.name or row.kind} {row.metric} {row.runs[1].change:+.1%}"
        for row in comparison.rows
        if row.runs[1].verdict not in ("same", "within noise", "unknown")
    ]


def rounded(*figures: float) -> list[float]:
    """In µs, to a tenth."""
    return [round(figure / 1e3, 1) for figure in figures]


def digest(profile: layertrace.Profile) -> dict[str, object]:
    """Of each layer and phase: its own time (least, median, mean), and with those below it."""

    def phase(stats: layertrace.PhaseStats) -> list[float]:
        own, whole = stats.self_host_ns, stats.host_ns
        return rounded(own.min, own.median, own.mean, whole.min, whole.median, whole.mean)

    step = profile.step_ns
    return {
        "steps": profile.step_count,
        "step": rounded(step.min, step.median, step.mean, step.max),
        "outside": {
            name: rounded(stats.host_ns.min, stats.host_ns.median, stats.host_ns.mean)
            for name, stats in profile.outside.items()
            if stats.host_ns.max > 0
        },
        "layers": {
            layer.path: [phase(layer.forward), phase(layer.backward)] for layer in profile.layers
        },
    }


def compare_pairs(
    name: str, pairs: int, steps: int, folder: Path
) -> list[dict[str, dict[str, object]]]:
    alarms: list[list[str]] = []
    digests = []
    first = seen = 0
    for pair in range(pairs):
        roles = {"before": 0.0, "after": 0.0, "slowed": 0.2}
        before, after, slowed = (
            run(name, by, steps, folder / f"{name}-{pair}-{role}.pftrace")
            for role, by in roles.items()
        )
        files = dict(zip(roles, (before, after, slowed), strict=True))
        digests.append({role: digest(layertrace.load(file)) for role, file in files.items()})
        alarms.append(changes(layertrace.compare(before, after)))
        comparison = layertrace.compare(after, slowed)
        rows = [row for row in comparison.rows if row.kind == "layer"]
        first += rows[0].name == SLOWED[name]
        seen += any(
            row.name == SLOWED[name]
            and row.metric in ("forward_ms", "total_ms")
            and row.runs[1].verdict == "slower"
            for row in rows
        )
    false = [each for each in alarms if each]
    print(f"{name}: {len(false)} of {pairs} pairs of equal runs show a change (bar: 1 of 20)")
    for each in false:
        more = f" and {len(each) - 4} more" if len(each) > 4 else ""
        print(f"    {', '.join(each[:4])}{more}")
    print(f"{name}: {SLOWED[name]}, slowed by 20 %, is the first row in {first} of {pairs} pairs,")
    print(f"    and counts as slower in {seen}", flush=True)
    return digests


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        name, slowed, steps, output = sys.argv[2:]
        train(name, float(slowed), int(steps), output)
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20, help="20 unless given")
    parser.add_argument("--steps", type=int, default=30, help="of each run; 30 unless given")
    parser.add_argument("--keep", type=Path, help="a folder for traces; what is there stays")
    parser.add_argument("--digest", type=Path, help="a file for what a comparison looks at")
    parser.add_argument("--quick", action="store_true", help="one pair: to see that all runs")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        pairs = 1 if options.quick else options.pairs
        digests = [compare_pairs(name, pairs, options.steps, folder) for name in SLOWED]
    if options.digest:
        slowed = SLOWED["encoder"]
        lines = ",\n".join(json.dumps(pair, separators=(",", ":")) for pair in digests[0])
        options.digest.write_text(f'{{"slowed":"{slowed}","pairs":[\n{lines}]}}\n')
    print(f"{machine()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
