"""What recording a GPU costs a training step on the host, beside what torch.profiler costs.

    layertrace simgpu -- python bench/gpu_overhead.py [--quick] [--seconds N] [--json FILE]

On a GPU, or on the simulated one, where nothing is computed and a step is nothing but the host's
work: launching, and recording. The transformer of python_overhead.py trains on the device; each
step waits for it at its end. Ways to run a step take turns as there, each between two visits
without a tool, and a figure is the median of the ratios to these.

Bars, for layertrace with CUPTI alone: its step at most 1.10 times as long as without, and what it
adds at most a third of what torch.profiler adds. That is without operators, for which PyTorch takes
its slower path as soon as anybody listens. With operators it is told beside it whether the bars
hold. The simulated CUPTI's own work is in all of them. With CUDA
events too ("both", the default) it is reported without a bar. Ways that a bar is about have two
turns in a round.

No figure here is a GPU's performance. Timings are no tests: a missed bar is printed, and the exit
code is 0.
"""

import argparse
import json
import os
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import torch
from python_overhead import (
    CLOCKS,
    SHAM,
    Estimate,
    Measured,
    Verdict,
    Way,
    Workload,
    at_most,
    bare,
    layertrace_way,
    measure,
    pin_malloc,
    step_figures,
    step_table,
    torch_profiler,
    transformer,
)
from report import BenchError, machine

CUPTI = "layertrace, kernels"
CUPTI_LAYERS = "layertrace, kernels, ops=False"
BOTH_LAYERS = "layertrace, kernels and events, ops=False"
BOTH = "layertrace, kernels and events"
EVENTS = "layertrace, events alone"
PROFILER = "torch.profiler"

WAYS: dict[str, Way] = {
    SHAM: bare,
    CUPTI: layertrace_way(timing="cupti", require_gpu=True),
    CUPTI_LAYERS: layertrace_way(timing="cupti", ops=False, require_gpu=True),
    BOTH_LAYERS: layertrace_way(ops=False, require_gpu=True),
    BOTH: layertrace_way(require_gpu=True),
    EVENTS: layertrace_way(timing="events", require_gpu=True),
    PROFILER: torch_profiler(cuda=True),
}

# Those that a bar is about.
TWICE = (SHAM, CUPTI_LAYERS, PROFILER)

# Those that are held against the bars: the one that they are for, and the one beside it.
JUDGED = (CUPTI_LAYERS, CUPTI)


def waiting(load: Workload) -> Workload:
    """The same, with the device done at the end of each step."""

    def step() -> None:
        load.step()
        torch.cuda.synchronize()

    return Workload(load.title, load.model, step)


def of_torch_profiler(measured: Measured, way: str) -> list[float]:
    """What it adds to a step, as a share of what torch.profiler does."""
    theirs = Estimate.of(measured.ratios(PROFILER, "wall")).median - 1
    return [(ratio - 1) / theirs for ratio in measured.ratios(way, "wall")]


def verdicts(measured: Measured) -> list[Verdict]:
    told = []
    for way in JUDGED:
        added = Estimate.of(of_torch_profiler(measured, way))
        told.append(at_most(1.10, way, Estimate.of(measured.ratios(way, "wall")), ".3f", "×"))
        told.append(at_most(1 / 3, f"{way}: of what torch.profiler adds", added, ".3f", "×"))
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds: to see that all runs")
    parser.add_argument("--seconds", type=float, default=120, metavar="N", help="120 unless given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(
            "gpu_overhead: there is no GPU. Use the simulated one: "
            "layertrace simgpu -- python bench/gpu_overhead.py",
            file=sys.stderr,
        )
        return 1
    seconds, timed_ns = (0, 0) if options.quick else (options.seconds, 300_000_000)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    load_before = os.getloadavg()[0]
    try:
        measured = measure(waiting(transformer("cuda")), WAYS, seconds, timed_ns, twice=TWICE)
    except BenchError as error:
        print(f"gpu_overhead: {error}", file=sys.stderr)
        return 1
    device = torch.cuda.get_device_name()
    print(
        f"{machine()}; torch {torch.__version__}; {device}; "
        f"load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after\n"
    )
    print(step_table(measured), "\n")
    told = verdicts(measured)
    for verdict in told:
        print(verdict)
    if options.json is not None:
        figures = {
            "device": device,
            "bare_step_ns": measured.bare_step_ns(),
            "clocks": list(CLOCKS),
            "ways": step_figures(measured),
            "wall_ratios": {way: measured.ratios(way, "wall") for way in measured.pairs},
            "of_torch_profiler": {way: of_torch_profiler(measured, way) for way in JUDGED},
            "bars": [asdict(verdict) for verdict in told],
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    pin_malloc()
    sys.exit(main())
