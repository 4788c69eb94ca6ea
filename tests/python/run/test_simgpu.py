"""Python sessions on the simulated GPU: scopes are right on autograd's own threads, too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import support
from support import BIN, GPU_PYTHONPATH, HAS_SIMGPU
from trace_decoder import decode

pytestmark = pytest.mark.skipif(not HAS_SIMGPU, reason="without simgpu")

SCRIPT = """
import json, sys
import torch
from torch import nn
from torchvision.models import resnet18

import layertrace


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


models = {
    "resnet18": (resnet18, lambda: torch.randn(2, 3, 32, 32, device="cuda")),
    "encoder": (encoder, lambda: torch.randn(2, 8, 16, device="cuda")),
    "lstm": (lambda: nn.LSTM(8, 8, 2), lambda: torch.randn(4, 2, 8, device="cuda")),
}
for name, (make, inputs) in models.items():
    calls = {}
    model = make().cuda().train()
    # The witness: plain hooks, in a step that is not recorded.
    handles = [
        module.register_forward_pre_hook(
            lambda _, __, path=path: calls.__setitem__(path, calls.get(path, 0) + 1)
        )
        for path, module in model.named_modules()
    ]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step():
        optimizer.zero_grad()
        output = model(inputs())
        output = output[0] if isinstance(output, tuple) else output
        output.float().sum().backward()
        optimizer.step()

    step()
    for handle in handles:
        handle.remove()
    with layertrace.profile(model, output=f"{name}.pftrace", optimizer=optimizer):
        step()
        step()
    print(json.dumps({"name": name, "calls": calls}))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, int]]]:
    """The traces' folder, and the calls that hooks have seen in a step of each model."""
    folder = tmp_path_factory.mktemp("simgpu")
    (folder / "train.py").write_text(SCRIPT)
    words = (BIN, "simgpu", "--", sys.executable, "train.py")
    result = support.run(*words, cwd=folder, PYTHONPATH=GPU_PYTHONPATH)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    return folder, {line["name"]: line["calls"] for line in lines}


@pytest.mark.parametrize("name", ["resnet18", "encoder", "lstm"])
def test_models(recorded: tuple[Path, dict[str, dict[str, int]]], name: str) -> None:
    folder, witness = recorded
    profile = json.loads(support.layertrace_output("layers", folder / f"{name}.pftrace"))
    assert profile["run"]["simulated"], "what ran on it says so"
    calls = {layer["path"]: layer["calls"] for layer in profile["layers"] if layer["calls"]}
    assert calls == witness[name]
    nobody = {
        node
        for cause in profile["health"]["unattributed_nodes"].values()
        for node in cause["names"]
    }
    assert nobody <= {"SumBackward0", "SelectBackward0"}, "the loss's own"

    trace = decode(folder / f"{name}.pftrace")
    threads = {thread.uuid: thread for thread in trace.threads}
    nodes = [each for each in trace.slices if "seq" in each.args and each.track in threads]
    scopes = [each for each in trace.slices if each.category == "forward" and each.track in threads]
    assert {each.track for each in nodes} != {each.track for each in scopes}
    assert len([each for each in nodes if each.path is not None]) > 5
