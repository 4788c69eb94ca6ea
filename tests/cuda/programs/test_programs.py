"""Real training programs on the simulated device, as torch.profiler sees them.

The profiler (Kineto, compiled into PyTorch) is the witness: it reads CUPTI's stand-in as it reads
the real one, and knows nothing of it. The operators that it lists come from PyTorch's dispatcher,
so that a kernel's name can be held against the operator that launched it.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import defaultdict

import pytest
from simulated import PROGRAMS, simulate

Event = dict[str, object]

ONE_DEVICE = (
    *("resnet", "vit", "gpt", "gpt24", "lstm", "embedding", "streams", "graph", "scaler"),
    *("pinned", "loader", "memory", "events"),
)
TWO_DEVICES = ("devices",)

DEVICE_ACTIVITIES = {"kernel", "gpu_memcpy", "gpu_memset"}

# What a kernel of that name is launched by, where PyTorch names both alike.
OPERATOR_OF_KERNEL = {
    r"gemm": r"mm|linear|matmul|conv|lstm",
    r"vectorized_layer_norm": r"layer_norm$",
    r"layer_norm_grad": r"layer_norm_backward",
    r"nll_loss_forward": r"nll_loss_forward",
    r"nll_loss_backward": r"nll_loss_backward",
    r"softmax_warp_forward": r"softmax$",
    r"batch_norm_collect_statistics": r"batch_norm",
    r"batch_norm_backward": r"batch_norm_backward",
    r"max_pool_forward": r"max_pool2d_with_indices$",
    r"max_pool_backward": r"max_pool2d_with_indices_backward",
    r"fmha_cutlassF|flash_fwd": r"(efficient|flash)_attention_forward",
    r"fmha_cutlassB|flash_bwd": r"(efficient|flash)_attention_backward",
    r"lstm_cell_forward": r"_thnn_fused_lstm_cell$",
    r"lstm_cell_backward": r"_thnn_fused_lstm_cell_backward",
    r"EmbeddingBag_updateOutput": r"_embedding_bag$",
    r"multi_tensor_apply": r"_foreach|_fused|_amp",
}

# Kernels that a program cannot do without.
EXPECTED = {
    "resnet": ("gemm", "im2col", "batch_norm", "max_pool_forward", "multi_tensor_apply"),
    "vit": ("gemm", "layer_norm", "softmax|fmha|flash", "Gelu"),
    "gpt": ("gemm.*bf16|bf16.*gemm", "fmha|flash", "layer_norm", "multi_tensor_apply", "nll_loss"),
    "gpt24": ("gemm", "layer_norm"),
    "lstm": ("lstm_cell_forward", "lstm_cell_backward", "gemm"),
    "embedding": ("EmbeddingBag", "nll_loss"),
    "streams": ("gemm",),
    "graph": ("gemm", "multi_tensor_apply|elementwise"),
    "scaler": ("multi_tensor_apply|amp", "batch_norm"),
    "pinned": (),
    "loader": ("gemm",),
    "memory": ("FillFunctor|elementwise|Memset|reduce",),
    "events": ("gemm",),
    "devices": ("gemm",),
}


def run(names: tuple[str, ...], *options: str) -> dict[str, list[Event]]:
    done = simulate(sys.executable, PROGRAMS, "--profile", *names, options=options)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [result["name"] for result in results] == list(names)
    assert all(result["finite"] for result in results), "what is read back is defined"
    return {result["name"]: result["events"] for result in results}


@pytest.fixture(scope="module")
def seen() -> dict[str, list[Event]]:
    return run(ONE_DEVICE) | run(TWO_DEVICES, "--devices", "2")


def on_device(events: list[Event]) -> list[Event]:
    return [event for event in events if event["activity"] in DEVICE_ACTIVITIES]


def of_api(events: list[Event]) -> dict[object, Event]:
    return {e["correlation"]: e for e in events if e["activity"] in ("cuda_runtime", "cuda_driver")}


@pytest.mark.parametrize("name", ONE_DEVICE + TWO_DEVICES)
def test_kernels_have_their_names(seen: dict[str, list[Event]], name: str) -> None:
    kernels = [str(event["name"]) for event in on_device(seen[name])]
    for expected in EXPECTED[name]:
        assert any(re.search(expected, kernel) for kernel in kernels), (expected, set(kernels))


@pytest.mark.parametrize("name", ONE_DEVICE + TWO_DEVICES)
def test_each_launch_has_its_kernel(seen: dict[str, list[Event]], name: str) -> None:
    api = of_api(seen[name])
    launched: dict[str, list[object]] = defaultdict(list)
    for event in on_device(seen[name]):
        launch = api[event["correlation"]]  # none without a call
        assert int(event["start"]) >= int(launch["start"])  # nor before it
        launched[str(launch["name"])].append(event["correlation"])
    calls = [
        e for e in api.values() if re.match(r"cudaLaunchKernel|cuLaunchKernel", str(e["name"]))
    ]
    assert sorted(e["correlation"] for e in calls) == sorted(
        each for call, each in launched.items() if "LaunchKernel" in call for each in each
    )
    copies = [e for e in api.values() if str(e["name"]).startswith("cudaMemcpy")]
    assert len(copies) == sum(len(each) for call, each in launched.items() if "Memcpy" in call)


@pytest.mark.parametrize("name", ONE_DEVICE + TWO_DEVICES)
def test_a_stream_is_in_order(seen: dict[str, list[Event]], name: str) -> None:
    streams: dict[tuple[object, object], list[Event]] = defaultdict(list)
    for event in on_device(seen[name]):
        streams[event["device"], event["resource"]].append(event)
    assert streams or name == "memory"
    for events in streams.values():
        events.sort(key=lambda event: int(event["start"]))
        for before, after in itertools.pairwise(events):
            assert int(before["start"]) + int(before["duration"]) <= int(after["start"])
        launches = [int(event["correlation"]) for event in events]
        assert launches == sorted(launches), "in the order of their launch"


@pytest.mark.parametrize("name", ONE_DEVICE + TWO_DEVICES)
def test_a_kernel_belongs_to_its_operator(seen: dict[str, list[Event]], name: str) -> None:
    operators = {e["correlation"]: str(e["name"]) for e in seen[name] if e["activity"] == "cpu_op"}
    checked = 0
    for event in on_device(seen[name]):
        if name == "graph" or event["op"] == 0:
            continue  # replayed: no operator runs
        for kernel, operator in OPERATOR_OF_KERNEL.items():
            if re.search(kernel, str(event["name"])):
                assert re.search(operator, operators[event["op"]]), (
                    event["name"],
                    operators[event["op"]],
                )
                checked += 1
    assert checked or name in ("graph", "pinned", "memory")


def test_the_streams_of_a_program_are_streams_of_the_device(seen: dict[str, list[Event]]) -> None:
    assert len({event["resource"] for event in on_device(seen["streams"])}) == 2
    assert {event["device"] for event in on_device(seen["devices"])} == {0, 1}


def test_a_replayed_graph_runs_what_was_captured(seen: dict[str, list[Event]]) -> None:
    api = of_api(seen["graph"])
    launches = [e for e in api.values() if e["name"] == "cudaGraphLaunch"]
    assert len(launches) == 1
    replayed = [
        e for e in on_device(seen["graph"]) if e["correlation"] == launches[0]["correlation"]
    ]
    kernels = [str(event["name"]) for event in replayed]
    assert sum("gemm" in kernel for kernel in kernels) == 5  # two layers: 2 forward, 3 backward
    assert not any(e["name"] == "cudaLaunchKernel" for e in api.values())


def test_some_thousand_launches_are_told_one_by_one(seen: dict[str, list[Event]]) -> None:
    kernels = [e for e in seen["gpt24"] if e["activity"] == "kernel"]
    assert len(kernels) > 1000
    # Each block: 4 products forward and 8 backward; the head: 1 and 2.
    assert sum("gemm" in str(event["name"]) for event in kernels) == 24 * 12 + 3
