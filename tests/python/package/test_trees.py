"""Trees in every form: columns, brackets, the model's own repr, nested dicts; of real models."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import torch
from models import FromForms
from torch import nn

import layertrace


def run_steps(model: nn.Module, session: layertrace.Session, steps: int = 2) -> None:
    for _ in range(steps):
        model(torch.randn(16, 10)).sum().backward()
        session.step()


@pytest.fixture(scope="module")
def forms() -> tuple[FromForms, layertrace.Session]:
    model = FromForms()
    with layertrace.profile(model) as session:
        run_steps(model, session)
    return model, session


TIME = r"\d+\.\d{3}ms"
BOTH = rf"Forward Time: {TIME}\|Backward Time: {TIME}"


def without_times(text: str) -> str:
    """The lines of times alone, and the times behind other words."""
    text = re.sub(rf"\n *{BOTH}(?=\n)", "", text)
    return re.sub(rf"(, )?Forward Time: {TIME}(\|Backward Time: {TIME})?", "", text)


def test_the_repr_is_the_models_own(forms: tuple[FromForms, layertrace.Session]) -> None:
    model, session = forms
    text = session.repr_tree()
    assert without_times(text) == f"{model!r}\n"
    lines = text.splitlines()
    assert re.fullmatch(rf"  {BOTH}", lines[1])
    linear1 = rf"  \(linear1\): Linear\(in_features=10, out_features=11, bias=True, {BOTH}\)"
    assert re.fullmatch(linear1, lines[2])
    containers = [line.strip() for line in lines if line.endswith("(")]
    assert containers == [
        "FromForms(",
        "(linear3): ModuleList(",
        "(linear4): Sequential(",
        "(linear5): ModuleDict(",
    ]
    after = {line.strip(): following.strip() for line, following in pairwise(lines)}
    assert after["(linear3): ModuleList("].startswith("(0): Linear(")
    assert re.fullmatch(BOTH, after["(linear4): Sequential("])
    assert after["(linear5): ModuleDict("].startswith("(a): Linear(")
    # Without the model at hand.
    alone = session.profile.repr_tree()
    assert re.search(rf"\n  \(linear1\): Linear\({BOTH}\)\n", alone)


def test_times_are_the_profiles(forms: tuple[FromForms, layertrace.Session]) -> None:
    _, session = forms
    nested = session.nested()
    text = session.profile.repr_tree()

    def check(node: dict[str, Any], path: str, depth: int) -> None:
        layer = session.profile.find(path)
        assert layer is not None
        assert (node["path"], node["type"], node["depth"]) == (path, layer.type, depth)
        if layer.calls:
            assert node["forward_ns"] == layer.forward.host_ns.mean
            assert node["backward_ns"] == layer.backward.host_ns.mean
            assert f"Forward Time: {layer.forward.host_ns.mean / 1e6:.3f}ms" in text
        else:
            assert node["forward_ns"] is None and node["backward_ns"] is None
        for name, child in node["children"].items():
            check(child, f"{path}.{name}" if path else name, depth + 1)

    check(nested, "", 0)
    kinds = {name: child["container"] for name, child in nested["children"].items()}
    assert kinds == {
        "linear1": None,
        "linear2": None,
        "linear3": "ModuleList",
        "linear4": "Sequential",
        "linear5": "ModuleDict",
    }
    assert nested["children"]["linear3"]["calls"] == 0
    assert nested["children"]["linear4"]["forward_ns"] > 0


def test_all_of_it_can_be_read_while_recording() -> None:
    model = FromForms()
    with layertrace.profile(model) as session:
        run_steps(model, session)
        assert without_times(session.repr_tree()) == f"{model!r}\n"
        inside = session.nested()
        assert inside["children"]["linear1"]["forward_ns"] > 0
        assert "linear4" in session.tree(style="brackets", view="cost")
        run_steps(model, session)
    assert session.profile.step_count == 4


def test_the_session_does_not_keep_the_model(forms: tuple[FromForms, layertrace.Session]) -> None:
    model = FromForms()
    with layertrace.profile(model) as session:
        run_steps(model, session, 1)
    assert "in_features=10" in session.repr_tree()
    del model
    assert "in_features" not in session.repr_tree()


def test_brackets_have_pytorchs_numbers(forms: tuple[FromForms, layertrace.Session]) -> None:
    model, session = forms
    text = session.tree(columns="type,parameters,trainable,output_size", style="brackets")
    for path, module in model.named_modules():
        count = sum(each.numel() for each in module.parameters())
        if isinstance(module, nn.Linear):
            name = path.rpartition(".")[2]
            shape = f"float32[16, {module.out_features}]"
            sizes = f"Parameters={count}, Trainable={count}, Output Size={shape}"
            row = f"── {name} [Type=Linear, {sizes}]"
            assert row in text
    whole = sum(each.numel() for each in model.parameters())
    assert re.search(rf"^FromForms \[Parameters={whole}, ", text, flags=re.MULTILINE)


def test_filters_and_views(forms: tuple[FromForms, layertrace.Session]) -> None:
    _, session = forms
    tree = session.tree(view="cost", type="Tanh")
    assert "MACs" in tree and "Shown: 1 of 13 layers" in tree
    assert "linear4" in tree and "linear1" not in tree
    assert session.profile.nested(match="linear5.*")["children"].keys() == {"linear5"}
    assert "No layer is there" in session.tree(match="nothing*")
    assert "linear1" not in session.tree(min_share=1.0)


def test_unknown_names_list_those_that_exist(forms: tuple[FromForms, layertrace.Session]) -> None:
    profile = forms[1].profile
    with pytest.raises(layertrace.Error, match="time, cost, memory, roofline, all"):
        profile.tree(view="fast")
    with pytest.raises(layertrace.Error, match=r'no layer "linear4\.9" in this profile'):
        profile.nested(start="linear4.9")
    with pytest.raises(layertrace.Error, match="columns, brackets"):
        profile.tree(style="round")
    with pytest.raises(TypeError, match=r"tree\(\) got an unexpected keyword argument 'colour'"):
        profile.tree(colour=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="depth is a str; it takes a whole number"):
        profile.tree(depth="2")  # type: ignore[arg-type]


# ---- An unpatched model of Hugging Face's --------------------------------------------------------


@pytest.fixture(scope="module")
def vit() -> tuple[nn.Module, layertrace.Profile]:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
        num_labels=5,
    )
    model: nn.Module = transformers.ViTForImageClassification(config)
    images = torch.randn(2, 3, 32, 32)
    with layertrace.profile(model) as session:
        for _ in range(2):
            model(pixel_values=images).logits.sum().backward()
            session.step()
    return model, session.profile


def test_vit_in_every_form(vit: tuple[nn.Module, layertrace.Profile]) -> None:
    model, profile = vit
    columns = profile.tree()
    assert re.search(r"0–3 +4 × \w+ .* each .* forward, .* backward", columns)
    every = profile.tree(view="all", style="brackets", fold=False)
    for path, module in model.named_modules():
        name = path.rpartition(".")[2]
        own = sum(each.numel() for each in module.parameters())
        if own and path:
            assert f"{name} [Type={type(module).__name__}, " in every
            assert f"Parameters={own}," in every
    text = profile.repr_tree(model)
    expected = re.sub(r"\((\d+)-(\d+)\): \d+ x ", "", repr(model))
    assert text.count("(attention): ") == 4 * expected.count("(attention): ")
    nested = profile.nested()

    def paths(node: dict[str, Any]) -> list[str]:
        below = [path for child in node["children"].values() for path in paths(child)]
        return [node["path"], *below]

    assert paths(nested) == [path for path, _ in model.named_modules()]


@pytest.mark.parametrize("view", ["time", "cost", "memory", "roofline", "all"])
@pytest.mark.parametrize("style", ["columns", "brackets"])
def test_vit_in_every_view(
    vit: tuple[nn.Module, layertrace.Profile], view: str, style: str
) -> None:
    tree = vit[1].tree(view=view, style=style, depth=2)
    assert "ViTForImageClassification" in tree
    linear = vit[1].tree(view=view, style=style, type="Linear", fold=False)
    shown = re.search(r"Shown: (\d+) of ", linear)
    assert shown is not None
    linears = sum(type(module) is nn.Linear for module in vit[0].modules())
    assert int(shown[1]) == linears
