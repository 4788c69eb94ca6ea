"""Models as people train them: each node and each operator attributed, nothing else changed.

Everything is compared with what PyTorch's own hooks and graphs tell of an unprofiled run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from recorded import Node, Recorded, record
from torch import Tensor, nn
from torch.nn import functional
from trace_decoder import Slice
from witness import OperatorWitness, Witness, gradients, same_gradients

LABELS = torch.tensor([1, 2])
CROSS_ENTROPY = ("LogSoftmaxBackward0", "NllLossBackward0")
OUTSIDE = "backward of operators outside any module"
# Which of its ways a composite operator goes depends on whether a dispatch mode is active:
# scaled_dot_product_attention adds in place without one, and linear views less often.
CHOSEN_DIFFERENTLY = {"aten::add", "aten::view", "aten::_unsafe_view"}


@dataclass
class Trained:
    """A model, a step's loss, and the names of the nodes that the loss makes outside the model."""

    model: nn.Module
    loss: Callable[[], Tensor]
    outside: tuple[str, ...] = CROSS_ENTROPY


def images(model: nn.Module, size: int) -> Trained:
    x = torch.randn(2, 3, size, size)
    return Trained(model, lambda: functional.cross_entropy(model(x), LABELS))


def resnet18() -> Trained:
    from torchvision.models import resnet18  # type: ignore[import-untyped]

    return images(resnet18(), 64)


def resnet50() -> Trained:
    from torchvision.models import resnet50

    return images(resnet50(), 64)


def mobilenet() -> Trained:
    from torchvision.models import mobilenet_v3_small

    return images(mobilenet_v3_small(), 32)


def vision_transformer() -> Trained:
    """vit_b_16, made small."""
    from torchvision.models import VisionTransformer

    model = VisionTransformer(
        image_size=32,
        patch_size=16,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        mlp_dim=32,
        num_classes=5,
    )
    return images(model, 32)


def tokens() -> Tensor:
    return torch.randint(0, 50, (2, 8))


def gpt2(**options: Any) -> Trained:
    """Its loss is computed in the root's forward: nothing is left outside."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(  # type: ignore[call-arg]
        vocab_size=50,
        n_positions=16,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        loss_type="ForCausalLM",
    )
    model, ids = GPT2LMHeadModel(config), tokens()  # type: ignore[no-untyped-call]
    return Trained(model, lambda: model(ids, labels=ids, **options).loss, outside=())


def bert() -> Trained:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(  # type: ignore[call-arg]
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=3,
    )
    model, ids = BertForSequenceClassification(config), tokens()  # type: ignore[no-untyped-call]
    mask = torch.ones_like(ids)
    return Trained(
        model, lambda: functional.cross_entropy(model(ids, attention_mask=mask).logits, LABELS)
    )


def vit() -> Trained:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(  # type: ignore[call-arg]
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
        num_labels=3,
    )
    model, x = ViTForImageClassification(config), torch.randn(2, 3, 16, 16)
    return Trained(model, lambda: functional.cross_entropy(model(x).logits, LABELS))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 8, num_layers=2, bidirectional=True, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, ids: Tensor) -> Tensor:
        output, (hidden, _) = self.lstm(self.embed(ids))
        return self.head(output[:, -1] + torch.cat([hidden[-2], hidden[-1]], 1))  # type: ignore[no-any-return]


def lstm() -> Trained:
    model, ids = Recurrent(), tokens()
    return Trained(model, lambda: functional.cross_entropy(model(ids), LABELS))


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


def packed_lstm() -> Trained:
    model, x, lengths = Packed(), torch.randn(2, 4, 3), torch.tensor([4, 2])
    return Trained(model, lambda: model(x, lengths).sum(), ("SumBackward0",))


def transformer_encoder() -> Trained:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
    x = torch.randn(2, 5, 16)
    return Trained(model, lambda: model(x).square().mean(), ("MeanBackward0", "PowBackward0"))


MODELS: dict[str, Callable[[], Trained]] = {
    each.__name__: each
    for each in (
        resnet18,
        resnet50,
        mobilenet,
        vision_transformer,
        gpt2,
        bert,
        vit,
        lstm,
        packed_lstm,
        transformer_encoder,
    )
}


@dataclass
class Compared:
    """One training step unprofiled, with hooks, and the same step recorded."""

    trained: Trained
    nodes: Counter[Node]
    calls: Counter[str]
    loss: Tensor
    gradients: dict[str, Tensor | None]
    run: Recorded
    recorded_loss: Tensor


def compare(trained: Trained) -> Compared:
    model = trained.model
    torch.manual_seed(7)
    with Witness(model) as witness:
        loss = trained.loss()
    nodes = witness.nodes(loss)
    torch.autograd.backward(loss)
    unprofiled = gradients(model)
    model.zero_grad()
    recorded: list[Tensor] = []

    def step() -> None:
        recorded.append(trained.loss())
        torch.autograd.backward(recorded[0])

    torch.manual_seed(7)  # before the session, which must not draw from it, either
    run = record(model, step)
    return Compared(
        trained, nodes, witness.calls, loss.detach(), unprofiled, run, recorded[0].detach()
    )


@pytest.fixture(scope="module", params=MODELS)
def compared(request: pytest.FixtureRequest) -> Iterator[Compared]:
    torch.manual_seed(0)
    yield compare(MODELS[request.param]())


def test_each_node_has_the_layer_that_made_it(compared: Compared) -> None:
    run = compared.run
    assert run.nodes == compared.nodes
    assert run.profile.health.nodes == compared.nodes.total()


def test_only_the_losss_own_nodes_have_no_layer(compared: Compared) -> None:
    found = compared.run.profile.health.unattributed_nodes
    expected = Counter(compared.trained.outside)
    assert Counter({each.name: each.count for why in found for each in why.names}) == expected
    assert {why.cause for why in found} == ({OUTSIDE} if expected else set())


def test_each_module_is_called_as_often_as_hooks_say(compared: Compared) -> None:
    run = compared.run
    assert run.forward_calls() == compared.calls
    assert {layer.path: layer.calls for layer in run.profile.layers if layer.calls} == (
        compared.calls
    )
    # Each of the model's modules has a layer, and there are no others.
    paths = {path for path, _ in compared.trained.model.named_modules(remove_duplicate=False)}
    assert {layer.path for layer in run.profile.layers} == paths


def holds(outer: Slice, inner: Slice) -> bool:
    assert outer.end_ns is not None
    assert inner.end_ns is not None
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def test_each_operator_has_a_layer(compared: Compared) -> None:
    """In the forward: all. In the backward: those of the node around, which may be the loss's."""
    run = compared.run
    without = [each for each in run.operators if each.path is None]
    loss_nodes = [each for each in run.node_slices if each.path is None]
    for operator in without:
        if operator.category != "loss":
            assert any(holds(node, operator) for node in loss_nodes), operator.name
    assert {each.cause for each in run.profile.health.unattributed} <= {OUTSIDE}
    assert run.operators_of(None, "forward").total() == 0
    assert any(each.category == "forward" for each in run.operators)


def test_operators_are_those_that_each_forward_dispatches(compared: Compared) -> None:
    with torch.no_grad(), Witness(compared.trained.model) as witness:
        operators = OperatorWitness(witness)
        with operators:
            compared.trained.loss()
    assert operators.found
    recorded = Counter(
        (each.name, str(each.path)) for each in compared.run.operators if each.category == "forward"
    )
    missing = operators.found - recorded
    assert {key: n for key, n in missing.items() if key[0] not in CHOSEN_DIFFERENTLY} == {}


def test_the_loss_and_the_gradients_are_the_same(compared: Compared) -> None:
    """To the last bit."""
    assert torch.equal(compared.loss, compared.recorded_loss)
    assert any(each is not None for each in compared.gradients.values())
    assert same_gradients(compared.trained.model, compared.gradients)


def test_gpt2_with_checkpointing() -> None:
    """Transformers' own switch: each block's layers run again, in a phase of their own."""
    trained = gpt2(use_cache=False)
    plain = compare(trained)
    trained.model.gradient_checkpointing_enable()  # type: ignore[operator]
    trained.model.zero_grad()
    checkpointed = compare(trained)
    assert checkpointed.run.nodes == plain.run.nodes == plain.nodes
    assert same_gradients(trained.model, plain.gradients)
    recomputed = {path for path, phase in checkpointed.run.calls if phase == "recompute"}
    blocks = {f"transformer.h.{i}" for i in range(2)}
    assert blocks <= recomputed
    assert {path for path in recomputed if path.startswith("transformer.h.")} == recomputed
    for path in recomputed:
        assert checkpointed.run.calls[path, "recompute"] == 1
        assert checkpointed.run.calls[path, "forward"] == 1
    assert not any(phase == "recompute" for _, phase in plain.run.calls)
