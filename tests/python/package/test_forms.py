"""The forms that people know from other tools, of two models as they are: the example of a layer
profiler (a parameter and functional operators in the root; a list, a dict, a Sequential), and a ViT
of Hugging Face's.

What they must say is what PyTorch says of the models itself: modules by path, parameters, shapes by
hooks, FLOPs by torch.utils.flop_counter.
"""

from __future__ import annotations

import copy
import json
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import moduleprofiler
import pandas
import pytest
import torch
import torchinfo
from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis
from models import FromForms
from support import layertrace_output
from test_conventions import nonzero, quiet
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import layertrace
from layertrace._benchmark import modes_kept


def form5() -> tuple[nn.Module, Tensor]:
    return FromForms(), torch.randn(16, 10)


def vit() -> tuple[nn.Module, Tensor]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
    )
    return ViTForImageClassification(config), torch.randn(2, 3, 32, 32)


def first_tensor(value: Any) -> Tensor:
    """A model's output is a tensor, or has one."""
    return value if isinstance(value, Tensor) else value[0]


@dataclass
class Case:
    model: nn.Module
    inputs: Tensor
    path: Path
    profile: layertrace.Profile
    modules: dict[str, nn.Module]
    outputs: dict[str, Tensor] = field(default_factory=dict)  # of modules that are called
    flops: dict[str, int] = field(default_factory=dict)  # of a forward

    def params(self, path: str) -> int:
        return sum(each.numel() for each in self.modules[path].parameters())


@pytest.fixture(scope="module", params=[form5, vit], ids=["form5", "vit"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    make: Callable[[], tuple[nn.Module, Tensor]] = request.param
    torch.manual_seed(0)
    model, inputs = make()
    path = tmp_path_factory.mktemp("forms") / "run.pftrace"
    with layertrace.profile(model, output=path) as session:
        for _ in range(2):
            first_tensor(model(inputs)).sum().backward()
            session.step()
    made = Case(model, inputs, path, session.profile, dict(model.named_modules()))
    handles = [
        module.register_forward_hook(
            lambda _, __, output, path=path: made.outputs.update({path: first_tensor(output)})
        )
        for path, module in made.modules.items()
    ]
    model(inputs)
    for handle in handles:
        handle.remove()
    counter = FlopCounterMode(display=False, depth=None)
    with counter:
        model(inputs)
    name = type(model).__name__
    for module, counts in counter.get_flop_counts().items():
        if module != "Global":
            made.flops[module.removeprefix(name).removeprefix(".")] = sum(counts.values())
    return made


def macs_text(flops: int) -> str:
    return f"MACs={flops // 2}"


# ---- 1: attributes of the model's tree, as text, as a DataFrame, as a graph ----------------------


def tree_lines(text: str) -> list[tuple[int, str, str]]:
    """Depth, name and what is in brackets, of each line of a tree."""
    found = re.findall(r"^((?:│   |    |├── |└── )*)([^\s│├└][^\[\n]*?)(?: \[(.*)\])?$", text, re.M)
    return [(len(indent) // 4, name, inside) for indent, name, inside in found]


def test_the_attribute_tree(case: Case) -> None:
    """In one call, without a training loop."""
    summary = layertrace.summary(case.model, case.inputs)
    text = summary.tree(
        columns="type,kernel_size,input_size,output_size,parameters,macs",
        style="brackets",
        fold=False,
    )
    body = text.split("\n\n")[1]
    lines = tree_lines(body)
    assert len(lines) == len(case.modules)
    for (depth, name, inside), (path, module) in zip(lines, case.modules.items(), strict=True):
        assert depth == (path.count(".") + 1 if path else 0), path
        assert name == (path.rpartition(".")[2] or type(module).__name__)
        if path:
            assert f"Type={type(module).__name__}" in inside
        if case.params(path):
            assert f"Parameters={case.params(path)}" in inside
        if path in case.outputs:
            assert f"Output Size=float32{list(case.outputs[path].shape)}" in inside
        if case.flops.get(path):
            assert macs_text(case.flops[path]) in inside
    trainable = summary.tree(columns="parameters", style="brackets", trainable=True, fold=False)
    assert len(tree_lines(trainable.split("\n\n")[1])) == sum(
        case.params(path) > 0 for path in case.modules
    )


def test_the_data_frame_with_dotted_paths(case: Case) -> None:
    frame = case.profile.table("layers").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["path"].tolist() == list(case.modules)
    assert frame["params"].tolist() == [case.params(path) for path in case.modules]
    by_path = frame.set_index("path")
    for path, flops in case.flops.items():
        assert by_path.loc[path, "forward_flops"] == flops, path
    dotted = case.profile.table("layers", root="__root__", leading_dot=True).to_pandas()
    assert dotted["path"].tolist() == [f".{path}" if path else "__root__" for path in case.modules]
    assert (frame.loc[frame["ran"].astype(bool), "forward_ns"] > 0).all()


def test_the_graph_as_svg(case: Case, tmp_path: Path) -> None:
    case.profile.graph(fold=False).save(tmp_path / "tree.svg")
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        [text.text for text in group.iter(f"{space}text")]
        for group in ElementTree.parse(tmp_path / "tree.svg").getroot().iter(f"{space}g")
        if group.get("class") == "node"
    ]
    names = [path.rpartition(".")[2] or type(case.model).__name__ for path in case.modules]
    assert sorted(box[0] or "" for box in boxes) == sorted(names)
    layertrace_output("graph", case.path, "--no-fold", "-o", tmp_path / "command.svg")
    assert (tmp_path / "command.svg").read_bytes() == (tmp_path / "tree.svg").read_bytes()


# ---- 2: dicts by module and by operator ----------------------------------------------------------


def test_dicts_by_module_and_by_operator(case: Case, tmp_path: Path) -> None:
    counts = case.profile.counts()
    for path, flops in case.flops.items():
        assert counts.by_module[path] == flops, path
    assert counts.by_module[""] == sum(counts.by_operator.values()) == case.flops[""]
    linears = {
        path: case.outputs[path].numel()
        for path, module in case.modules.items()
        if isinstance(module, nn.Linear) and path in case.outputs
    }
    assert linears
    for path, elements in linears.items():
        assert counts.activations_by_module[path] == elements
    assert counts.activations_by_module[""] == sum(counts.activations_by_operator.values())
    by_hand, by_command = tmp_path / "python.json", tmp_path / "command.json"
    by_hand.write_text(case.profile.counts_json())
    layertrace_output("layers", case.path, "--convention", "layertrace", "-o", by_command)
    for path in (by_hand, by_command):
        written = json.loads(path.read_text())
        assert written["by_module"] == counts.by_module
        assert written["by_operator"] == counts.by_operator
        assert written["activations_by_module"] == counts.activations_by_module
        assert written["activations_by_operator"] == counts.activations_by_operator


# ---- 3: flat tables ------------------------------------------------------------------------------


def test_flat_tables(case: Case, tmp_path: Path) -> None:
    parameters = layertrace.summary(case.model).table(
        "parameters", by_layer=True, root="__root__"
    )  # needs no input
    rows = {row["module"]: row for row in parameters.rows()}
    assert list(rows) == [path or "__root__" for path in case.modules]
    for path in case.modules:
        row = rows[path or "__root__"]
        assert row["trainable_params"] == case.params(path)
        assert row["nontrainable_params"] == 0
        assert row["bits"] == 32 * case.params(path)
        assert row["share"] == pytest.approx(case.params(path) / case.params(""))
    sizes = case.profile.table("sizes", root="__root__")
    told = {row["module"]: row["output_size"] for row in sizes.rows()}
    for path, output in case.outputs.items():
        assert told[path or "__root__"] == str(list(output.shape))
    operators = case.profile.table("operators").to_pandas()
    # Forward and backward: each product of a step in one of them.
    layers = case.profile.table("layers").to_pandas()
    assert operators["flops"].sum() == layers.loc[layers["path"] == "", "flops"].item()
    for suffix in ("csv", "html", "tex"):
        parameters.save(tmp_path / f"parameters.{suffix}")
        written = (tmp_path / f"parameters.{suffix}").read_text()
        assert str(case.params("")) in written.replace(",", "")


def test_a_users_count_takes_the_place_of_ours(case: Case) -> None:
    counted = layertrace.summary(
        case.model, case.inputs, formulas={nn.Linear: lambda module, inputs, output: 7}
    ).counts()
    linears = [
        path
        for path, module in case.modules.items()
        if isinstance(module, nn.Linear) and path in case.outputs
    ]
    assert [counted.by_module[path] for path in linears] == [7] * len(linears)
    others = case.flops[""] - sum(case.flops[path] for path in linears)
    assert counted.by_module[""] == others + 7 * len(linears)


def test_counts_as_the_tools_have_them(case: Case) -> None:
    """fvcore, torchinfo and moduleprofiler, where a column means the same: module by module."""
    model = case.model
    with modes_kept(model, eval=True):
        profile = layertrace.summary(model, case.inputs)
        flops = quiet(FlopCountAnalysis(model, case.inputs))
        activations = quiet(ActivationCountAnalysis(model, case.inputs))
        by_fvcore = profile.counts("fvcore")
        assert nonzero(by_fvcore.by_module) == nonzero(flops.by_module())
        assert nonzero(by_fvcore.by_operator) == nonzero(flops.by_operator())
        assert nonzero(by_fvcore.activations_by_module) == nonzero(activations.by_module())
        assert nonzero(by_fvcore.activations_by_operator) == nonzero(activations.by_operator())
        told = torchinfo.summary(model, input_data=case.inputs, mode="eval", verbose=0, depth=99)
        by_torchinfo = profile.counts("torchinfo")
        paths = {id(module): path for path, module in case.modules.items()}
        leaves: Counter[str] = Counter()
        for info in told.summary_list:
            if info.is_leaf_layer:
                leaves[paths[info.layer_id]] += info.macs
        assert {path: by_torchinfo.by_module[path] for path in leaves} == leaves
        assert by_torchinfo.by_module[""] == told.total_mult_adds
        assert by_torchinfo.parameters == told.total_params
        profiler = moduleprofiler.ModuleProfiler(verbose=False)
        estimated = {
            "" if path == "__root__" else path: row["ops"]
            for path, row in profiler.estimate_ops(model, case.inputs).items()
            if row["ops"] is not None
        }
        by_profiler = profile.counts("moduleprofiler")
        assert {path: by_profiler.by_module[path] for path in estimated} == estimated
        assert by_profiler.by_module[""] == sum(estimated.values())
        assert set(profiler.count_params(model)) == {path or "__root__" for path in case.modules}


# ---- 4: the model card, single and side by side, and the registry behind it ----------------------


def card_of(case: Case, **options: Any) -> layertrace.ModelCard:
    return layertrace.card(case.model, case.inputs, iterations=3, warmup=1, **options)


def test_the_model_card(case: Case) -> None:
    card = card_of(case, name="mine", evaluate=lambda model, data: len(data) / 64)
    batch = case.inputs.shape[0]
    assert (card.name, card.device, card.batch_size) == ("mine", "cpu", batch)
    assert card["evaluation"] == batch / 64
    assert card["parameters"] == case.params("")
    buffers = sum(each.numel() * each.element_size() for each in case.model.buffers())
    assert card["model_size"] == 4 * case.params("") + buffers
    assert card["macs"] == case.flops[""] // 2
    footprint, seconds, rate = (
        card[key] for key in ("memory_footprint", "execution_time", "throughput")
    )
    assert footprint is not None and seconds is not None and rate is not None
    assert footprint > 4 * (case.params("") + case.inputs.numel())
    assert seconds > 0
    assert rate == pytest.approx(batch / seconds)
    lines = str(card).splitlines()
    assert lines[0].startswith("┌─") and lines[-1].startswith("└─")
    assert f"│ mine · cpu · batch size {batch} " in lines[1]
    names = [line.split("│")[1].strip() for line in lines[3:-1]]
    assert names == [
        "Evaluation",
        "Model size (MiB)",
        "Computational complexity (GigaMACs)",
        "Parameters (millions)",
        "Memory footprint (MiB)",
        "Execution time (ms)",
        "Throughput (samples/s)",
    ]
    table = card.table().to_pandas().set_index("key")
    assert table.loc["parameters", "base_value"] == case.params("")
    assert table.loc["parameters", "run_name"] == "mine"
    layers = card.to_dict()["layers"]
    assert [layer["path"] for layer in layers] == list(case.modules)
    assert [layer["params"] for layer in layers] == [case.params(path) for path in case.modules]


def test_a_card_of_a_loader(case: Case) -> None:
    """Pairs as loaders give them, and batches of another shape by a function of the user's."""
    pairs = [(case.inputs, torch.zeros(len(case.inputs))) for _ in range(2)]
    odd = [{"image": case.inputs, "weight": 2.0}]
    plain, by_loader = card_of(case), layertrace.card(case.model, pairs, iterations=1)
    by_forward = layertrace.card(
        case.model, odd, forward=lambda model, batch: model(batch["image"]), iterations=1
    )
    for card in (by_loader, by_forward):
        assert card.batch_size == plain.batch_size
        assert card["macs"] == plain["macs"]


def test_cards_side_by_side(case: Case) -> None:
    twice = copy.deepcopy(case.model).double()
    card = card_of(case, name="single")
    other = layertrace.card(twice, case.inputs.double(), name="double", iterations=3, warmup=1)
    comparison = card.compare(other)
    rows = {row.key: row for row in comparison.rows}
    for key, score, verdict in (
        ("parameters", 1, "same"),
        ("macs", 1, "same"),
        ("model_size", card["model_size"] / other["model_size"], "worse"),  # type: ignore[operator]
    ):
        assert rows[key].models[1].score == pytest.approx(score), key
        assert rows[key].models[1].verdict == verdict, key
    back = {row.key: row for row in other.compare(card).rows}
    assert back["model_size"].models[1].verdict == "better"
    assert rows["throughput"].models[1].score == pytest.approx(
        other["throughput"] / card["throughput"]  # type: ignore[operator]
    )
    assert rows["execution_time"].models[1].score == pytest.approx(
        card["execution_time"] / other["execution_time"]  # type: ignore[operator]
    )
    text = str(comparison)
    assert re.search(r"│ +│ +single │ +double │ against the first │", text)
    assert re.search(r"Model size \(MiB\) +│.*× worse │", text)
    assert comparison.table().column_names[3:7] == ["single", "double", "score", "verdict"]


def test_a_users_metric_is_in_the_card(case: Case) -> None:
    """One function gives two; a built-in one is replaced, and comes back."""
    infos = [
        layertrace.MetricInfo("linears", name="Linear layers", comparison="ratio"),
        layertrace.MetricInfo("widest", unit="features", comparison="reciprocal"),
    ]

    def linears(given: layertrace.MetricInput) -> dict[str, int]:
        found = [module for module in given.model.modules() if isinstance(module, nn.Linear)]
        return {"linears": len(found), "widest": max(each.out_features for each in found)}

    layertrace.add_metric(infos, linears)
    try:
        expected = linears(layertrace.MetricInput(case.model, None, None, None, None, None, None))  # type: ignore[arg-type]
        card = card_of(case)
        assert {key: card[key] for key in expected} == expected
        assert "│ Linear layers " in str(card)
        assert "Linear layers" in card._repr_html_()
        assert (
            card.table().to_pandas().set_index("key").loc["linears", "base_value"]
            == expected["linears"]
        )
        assert next(row for row in card.compare(card).rows if row.key == "widest").models[
            1
        ].verdict == ("same")
        with pytest.raises(layertrace.Error, match="linears"):
            layertrace.add_metric("linears", lambda given: 0)
        layertrace.add_metric("parameters", lambda given: 7, override=True)
        assert card_of(case)["parameters"] == 7
        layertrace.remove_metric("parameters")
        assert card_of(case)["parameters"] == case.params("")
        with pytest.raises(layertrace.Error, match="Use one of: evaluation, model_size"):
            card_of(case, metrics=["speed"])
    finally:
        for info in infos:
            layertrace.remove_metric(info.key)


# ---- 5: the model's own repr with times; nested dicts; a plot ------------------------------------


def test_the_repr_with_times(case: Case) -> None:
    text = case.profile.repr_tree(case.model)
    for path in case.modules:
        layer = case.profile.find(path)
        assert layer is not None
        if layer.calls:
            assert f"Forward Time: {layer.forward.host_ns.mean / 1e6:.3f}ms" in text
    time = r"\d+\.\d{3}ms"
    both = rf"Forward Time: {time}\|Backward Time: {time}"
    plain = re.sub(rf"\n *{both}(?=\n)", "", text)
    plain = re.sub(rf"(, )?Forward Time: {time}(\|Backward Time: {time})?", "", plain)
    # PyTorch writes equal neighbours once.
    once = {
        re.sub(r"\(\d+(-\d+)?\): (\d+ x )?", "", line) for line in repr(case.model).splitlines()
    }
    assert {re.sub(r"\(\d+\): ", "", line) for line in plain.splitlines()} == once
    assert plain.count("\n") >= repr(case.model).count("\n")


def test_the_nested_dict(case: Case) -> None:
    def check(node: dict[str, Any], path: str) -> list[str]:
        layer = case.profile.find(path)
        assert layer is not None
        assert (node["path"], node["type"]) == (path, type(case.modules[path]).__name__)
        expected = layer.forward.host_ns.mean if layer.calls else None
        assert node["forward_ns"] == expected
        below = node["children"].items()
        return [path, *(p for n, child in below for p in check(child, f"{path}.{n}".lstrip(".")))]

    nested = case.profile.nested()
    assert check(nested, "") == list(case.modules)
    assert json.loads(layertrace_output("tree", case.path, "--format", "json")) == nested


def test_the_plot(case: Case, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    assert matplotlib is not None
    for kind in ("forward", "backward", "both"):
        figure = case.profile.plot(kind, tmp_path / f"{kind}.png", limit=1000)
        header = (tmp_path / f"{kind}.png").read_bytes()[:24]
        assert header[:8] == b"\x89PNG\r\n\x1a\n"
        assert min(struct.unpack(">II", header[16:])) > 300
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(names)) == len(names)
    # Modules that were called and have none below them that were.
    called = set(case.outputs)
    innermost = [
        path for path in called if not any(other.startswith(f"{path}.") for other in called)
    ]
    if len(called) > 1:
        innermost = [path for path in innermost if path]
    assert set(innermost) <= set(names)
    for name in set(names) - set(innermost):
        assert name.endswith(", its own"), name
    # Root and rows: nothing twice, and hardly anything missing.
    root = case.profile.find("")
    assert root is not None
    whole = root.forward.host_ns.mean + root.backward.host_ns.mean
    drawn = sum(bar.get_width() for bars in figure.axes[0].containers for bar in bars)
    unit = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[
        re.search(r"\((\w+)\)$", figure.axes[0].get_xlabel())[1]  # type: ignore[index]
    ]
    assert 0.5 * whole < drawn * unit <= whole * 1.001


# ---- All of it in one page -----------------------------------------------------------------------


def test_the_page(case: Case, tmp_path: Path) -> None:
    page = case.profile.report(tmp_path / "run.html", trace=case.path).read_text()
    found = re.search(r'id="data">(.*?)</script>', page, re.S)
    assert found is not None
    data = json.loads(found[1])
    assert data["title"] == type(case.model).__name__
    assert data["layers"]["path"] == list(case.modules)
    assert data["layers"]["params"] == [case.params(path) for path in case.modules]
    root = case.profile.find("")
    assert root is not None
    assert data["layers"]["forward"][0] == pytest.approx(root.forward.host_ns.mean, abs=1)


# ---- 6: three levels of the same figures ---------------------------------------------------------


def test_three_levels(case: Case) -> None:
    """Model, layer and operator: FLOPs and time add up from one to the next."""
    layers = case.profile.table("layers").to_pandas().set_index("path")
    operators = case.profile.table("operators", by_layer=True).to_pandas()
    for path in case.flops:
        below = [
            each
            for each in case.modules
            if each == path or each.startswith(f"{path}." if path else "")
        ]
        mine = operators[operators["path"].isin(below) & (operators["phase"] == "forward")]
        assert mine["flops"].sum() == layers.loc[path, "forward_flops"], path
    root = layers.loc[""]
    assert root["memory_peak_bytes"] > 0
    assert root["flops_per_s"] > 0
    assert root["param_bytes"] == 4 * case.params("")
