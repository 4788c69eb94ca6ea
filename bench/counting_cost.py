"""What counting operators costs (FLOPs, bytes, memory, shapes), beside recording them.

    python bench/counting_cost.py [--quick] [--seconds N]

The transformer of python_overhead.py, in which a step is nothing but overhead, with its ways of
measuring: recording every operator without counting, with counts that were made once (the
default), and counting in every step. "An operator" is what counting adds to a step over recording
it, divided by the operators that are counted in a step.

Bars: at most 400 ns an operator; a step with counts that were made before takes as long as one
without. Timings are no tests: a missed bar is printed, and the exit code is 0.
"""

import argparse
import os
import statistics
import sys
import warnings

import torch
from python_overhead import (
    SHAM,
    Estimate,
    Way,
    Workload,
    at_most,
    bare,
    layertrace_way,
    measure,
    pin_malloc,
    step_table,
    transformer,
)
from report import BenchError, machine

OFF = "every operator, count=off"
FIRST = "every operator, counted before"
ALWAYS = "every operator, count=always"

WAYS: dict[str, Way] = {
    SHAM: bare,
    OFF: layertrace_way(count="off"),
    FIRST: layertrace_way(),
    ALWAYS: layertrace_way(count="always"),
}


def operators_of(load: Workload) -> int:
    """That run in a step, of those that the formulas are asked about."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        load.step()
    return sum(event.name.startswith("aten::") for event in profiler.events())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds: to see that all runs")
    parser.add_argument("--seconds", type=float, default=60, metavar="N", help="60 unless given")
    options = parser.parse_args()
    seconds, timed_ns = (0, 0) if options.quick else (options.seconds, 300_000_000)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    load = transformer("cpu")
    operators = operators_of(load)
    before = os.getloadavg()[0]
    try:
        measured = measure(load, WAYS, seconds, timed_ns)
    except BenchError as error:
        print(f"counting_cost: {error}", file=sys.stderr)
        return 1
    print(f"{machine()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    print(step_table(measured), "\n")
    bare_ns = measured.bare_step_ns()["wall"]
    ratios = {way: measured.ratios(way, "wall") for way in WAYS}
    without = statistics.median(ratios[OFF])
    added = [(ratio - without) * bare_ns / operators for ratio in ratios[ALWAYS]]
    print(f"{operators} operators in a step")
    print(at_most(400, "counting, an operator", Estimate.of(added), ".0f", "ns"))
    reused = [ratio / without for ratio in ratios[FIRST]]
    print(at_most(1.02, "counts made before, against none", Estimate.of(reused), ".3f", "×"))
    return 0


if __name__ == "__main__":
    pin_malloc()
    sys.exit(main())
