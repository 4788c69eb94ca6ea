"""How long it takes to be told what a model is and computes, beside other tools.

    python bench/summary_speed.py [--rounds N] [--quick]

One call each of layertrace.summary(), torchinfo, fvcore, moduleprofiler and FlopCounterMode on the
same model and input, in turns; the first round is not counted. "The call alone" is the model's own
forward without any of them. Told is the fastest of the rounds, which other work on the machine
touches least, and the median.
"""

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import moduleprofiler
import torch
import torchinfo
import torchvision
from fvcore.nn import FlopCountAnalysis
from report import machine
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import layertrace


def flop_counter(model: nn.Module, x: torch.Tensor) -> None:
    with FlopCounterMode(display=False), torch.no_grad():
        model(x)


def fvcore(model: nn.Module, x: torch.Tensor) -> None:
    analysis = FlopCountAnalysis(model, x)
    analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).by_module()


def alone(model: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        model(x)


TOOLS: dict[str, Callable[[nn.Module, torch.Tensor], object]] = {
    "the call alone": alone,
    "layertrace.summary": lambda model, x: layertrace.summary(model, x).tree(),
    "layertrace.summary, meta": lambda model, x: layertrace.summary(model, x, device="meta").tree(),
    "torchinfo": lambda model, x: str(torchinfo.summary(model, input_data=x, verbose=0)),
    "fvcore": fvcore,
    "moduleprofiler": lambda model, x: moduleprofiler.ModuleProfiler(verbose=False).estimate_ops(
        model, x
    ),
    "FlopCounterMode": flop_counter,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="15 unless given")
    parser.add_argument("--quick", action="store_true", help="one round: to see that all runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    before = os.getloadavg()[0]
    x = torch.randn(1, 3, 224, 224)
    for name in ("resnet50", "vit_b_16"):
        model = getattr(torchvision.models, name)().eval()
        times: dict[str, list[float]] = {tool: [] for tool in TOOLS}
        for _ in range(2 if options.quick else 1 + options.rounds):
            for tool, call in TOOLS.items():
                start = time.perf_counter()
                call(model, x)
                times[tool].append(1e3 * (time.perf_counter() - start))
        print(f"{name}, one image of 224 × 224")
        for tool, each in times.items():
            print(f"  {tool:26}{min(each[1:]):6.0f} ms  (median {statistics.median(each[1:]):.0f})")
    print(f"{machine()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
