"""What layers compute: against the goldens, operator by operator, and against other counters."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from models import Calls
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from trace_decoder import decode

import layertrace

GOLDENS = Path(__file__).resolve().parents[2] / "data" / "goldens"


class LSTMLM(nn.Module):
    """As the golden's: see tests/data/goldens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10000, 256)
        self.lstm = nn.LSTM(256, 512, 2, batch_first=True)
        self.head = nn.Linear(512, 10000)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.lstm(self.embed(ids))[0])  # type: ignore[no-any-return]


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)


IMAGE = (1, 3, 224, 224)
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "resnet18": (torchvision.models.resnet18, lambda: torch.randn(IMAGE)),
    "mobilenet_v3_small": (torchvision.models.mobilenet_v3_small, lambda: torch.randn(IMAGE)),
    "lstm_lm": (LSTMLM, lambda: torch.randint(10000, (4, 32))),
    "transformer_encoder": (encoder, lambda: torch.randn(2, 64, 512)),
}


def recorded(model: nn.Module, step: Callable[[], object], **options: Any) -> layertrace.Profile:
    with layertrace.profile(model, **options) as session:
        step()
        session.step()
    return session.profile


def first_sum(output: Any) -> Tensor:
    return (output if isinstance(output, Tensor) else output[0]).sum()


def flops(profile: layertrace.Profile, path: str, phase: str = "forward") -> float:
    layer = profile.find(path)
    assert layer is not None, path
    return layer.phases[phase].amounts.flops if phase in layer.phases else 0


@pytest.mark.parametrize("input_needs_gradient", [False, True], ids=["", "gradinput"])
@pytest.mark.parametrize("name", MODELS)
def test_goldens(name: str, input_needs_gradient: bool, ops: bool) -> None:
    """Each module's FLOPs, forward and backward, are exactly the golden's."""
    build, make_input = MODELS[name]
    model, x = build().eval(), make_input()
    if input_needs_gradient:
        if not x.is_floating_point():
            return  # token ids have no gradient: the goldens have the same figures
        x.requires_grad_()
    profile = recorded(model, lambda: first_sum(model(x)).backward(), ops=ops)
    suffix = "_gradinput" if input_needs_gradient else ""
    golden = json.loads((GOLDENS / f"flops_{name}.json").read_text())["modules"]
    expected = {
        path: (facts["exact_flops_fwd" + suffix], facts["exact_flops_bwd" + suffix])
        for path, facts in golden.items()
        if facts["calls"]
    }
    ours = {path: (flops(profile, path), flops(profile, path, "backward")) for path in expected}
    assert ours == expected
    assert profile.counted_share == 1


def gradients(kind: str) -> list[tuple[bool, bool]]:
    return list(itertools.product((False, True), repeat=2)) if kind else []


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_fused_recurrent_layers_equal_their_single_steps(
    kind: str, bidirectional: bool, layers: int
) -> None:
    """oneDNN's one operator counts as the products that PyTorch makes without it."""
    directions = 2 if bidirectional else 1
    model = getattr(nn, kind)(5, 7, layers, bidirectional=bidirectional)
    for x_needs, state_needs in gradients(kind):
        x = torch.randn(4, 6, 5, requires_grad=x_needs)
        h, c = (torch.randn(layers * directions, 6, 7, requires_grad=True) for _ in range(2))
        state = None if not state_needs else (h, c) if kind == "LSTM" else h

        def count(fused: bool, x: Tensor = x, state: Any = state) -> tuple[float, float]:
            with torch.backends.mkldnn.flags(enabled=fused):
                profile = recorded(model, lambda: model(x, state)[0].sum().backward())
            return flops(profile, ""), flops(profile, "", "backward")

        assert count(fused=True) == count(fused=False), (x_needs, state_needs)


def test_attention_counts_the_same_by_any_kernel() -> None:
    """Fused and as single products: the headline does not depend on it."""
    q, k, v = (torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3))

    def attend(backend: SDPBackend, causal: bool) -> layertrace.Profile:
        def forward(_: nn.Module) -> Tensor:
            with sdpa_kernel(backend):
                return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        model = Calls(forward)
        return recorded(model, lambda: model())

    expected = 2 * 2 * 4 * 16 * 16 * (8 + 8)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        assert flops(attend(backend, causal=False), "") == expected
        assert flops(attend(backend, causal=True), "") == expected
    masked = attend(SDPBackend.FLASH_ATTENTION, causal=True).find("")
    assert masked is not None
    assert masked.phases["forward"].amounts.flops_causal == expected * (16 * 17 / 2) / (16 * 16)


def test_the_encoders_fast_path_stays_on() -> None:
    """Counting changes nothing of what runs, and counts the fused operator by its own formula."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(3, 5, 16)
    with torch.no_grad():
        profile = recorded(layer, lambda: layer(x))
    names = {op.name for op in profile.operators}
    assert "aten::_transformer_encoder_layer_fwd" in names
    tokens, width = 15, 16
    products = 4 * width * width + 2 * width * 32
    attention = 2 * 3 * 5 * 5 * (width + width)
    assert flops(profile, "") == 2 * tokens * products + attention


def test_agrees_with_flop_counter_mode_where_that_is_right() -> None:
    """resnet18 has neither groups nor fused layers: PyTorch's own counter is right about it."""
    model = torchvision.models.resnet18()
    x = torch.randn(2, 3, 64, 64)
    with FlopCounterMode(display=False) as theirs:
        model(x).sum().backward()
    profile = recorded(model, lambda: model(x).sum().backward())
    ours = flops(profile, "") + flops(profile, "", "backward")
    assert ours == theirs.get_total_flops()


def test_flop_counter_mode_is_wrong_about_grouped_convolutions() -> None:
    """It leaves the groups out of the backward; each output meets its own group's inputs only."""
    model = nn.Conv2d(8, 8, 3, groups=8, bias=False)
    x = torch.randn(1, 8, 10, 10, requires_grad=True)
    profile = recorded(model, lambda: model(x).sum().backward())
    one_way = 2 * 8 * 8 * 8 * 9
    assert flops(profile, "") == one_way
    assert flops(profile, "", "backward") == 2 * one_way
    with FlopCounterMode(display=False) as theirs:
        model(x).sum().backward()
    assert theirs.get_total_flops() > 3 * one_way


def test_checkpointing_is_recomputation() -> None:
    """What runs again is counted where it runs, and apart."""
    layer = nn.Linear(8, 8)
    model = Calls(lambda self, x: checkpoint(self.a, x, use_reentrant=False), a=layer)
    x = torch.randn(4, 8, requires_grad=True)
    profile = recorded(model, lambda: model(x).sum().backward())
    one_way = 2 * 4 * 8 * 8
    assert flops(profile, "a") == one_way
    assert flops(profile, "a", "recompute") == one_way
    assert flops(profile, "a", "backward") == 2 * one_way


def test_steps_with_other_shapes_are_counted_again() -> None:
    """The first step is counted; then only what is called with other shapes."""
    model = nn.Linear(8, 8)
    with layertrace.profile(model) as session:
        for batch in (2, 2, 6, 2):
            model(torch.randn(batch, 8))
            session.step()
    profile = session.profile
    assert flops(profile, "") == 2 * 8 * 8 * (2 + 2 + 6 + 2) / 4
    assert profile.counted_share == 1


def test_counting_can_be_turned_off() -> None:
    model = nn.Linear(8, 8)
    profile = recorded(model, lambda: model(torch.randn(2, 8)), count="off")
    assert not any(op.counted for op in profile.operators), "by their times alone"
    assert flops(profile, "") == 0
    with pytest.raises(ValueError, match="first, always"):
        layertrace.profile(model, count="sometimes")


def test_results_are_those_of_an_uncounted_run() -> None:
    model = torchvision.models.mobilenet_v3_small()
    x = torch.randn(2, 3, 32, 32)

    def gradients_of(run: Callable[[], object]) -> list[Tensor]:
        torch.manual_seed(1)
        model.zero_grad()
        state = {name: value.clone() for name, value in model.state_dict().items()}
        run()
        found = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.load_state_dict(state)
        return found

    def step() -> None:
        model(x).sum().backward()

    plain = gradients_of(step)
    counted = gradients_of(lambda: recorded(model, step, count="always"))
    assert all(torch.equal(a, b) for a, b in zip(plain, counted, strict=True))


def test_layers_slices_have_what_their_calls_computed(tmp_path: Path) -> None:
    """Each call's own, with what is inside; none where nothing was counted."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    trace = tmp_path / "run.pftrace"
    with layertrace.profile(model, output=trace) as session:
        for batch in (5, 3, 5):
            model(torch.randn(batch, 4)).sum().backward()
            session.step()
    found: dict[tuple[str, str], list[object]] = {}
    for each in decode(trace).slices:
        if each.path is not None and "macs" in each.end_args:
            assert each.end_args["flops"] == 2 * int(str(each.end_args["macs"]))
            found.setdefault((each.category, each.path), []).append(each.end_args["flops"])
    # Two for each multiply-add; the weights' gradients, and of the second layer the input's.
    assert found["forward", "0"] == [2 * batch * 4 * 8 for batch in (5, 3)]
    assert found["forward", "1"] == [0, 0]
    assert found["forward", ""] == [2 * batch * (4 * 8 + 8 * 2) for batch in (5, 3)]
    assert found["backward", "0"] == [2 * batch * 4 * 8 for batch in (5, 3)]
    assert found["backward", "2"] == [2 * 2 * batch * 8 * 2 for batch in (5, 3)]
    again = layertrace.load(trace)
    assert flops(again, "") == flops(session.profile, "")
