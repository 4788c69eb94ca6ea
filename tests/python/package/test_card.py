"""Model cards and the metric registry, and metrics that a run carries."""

from __future__ import annotations

import contextlib
import doctest
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch
from support import BIN, BUILD_DIR, SOURCE_DIR, run
from test_conventions import SmallResNet
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import layertrace
from layertrace import _card, _card_command

CALL_S = [0.004, 0.002, 0.030]


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.fc = nn.Linear(4, width)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return self.fc(self.drop(self.norm(x))) * scale  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def no_metrics_left() -> Iterator[None]:
    before = [(info.key, info.name) for info in layertrace.metrics()]
    yield
    for info in layertrace.metrics():
        with contextlib.suppress(KeyError):  # a built-in one
            layertrace.remove_metric(info.key)
    assert [(info.key, info.name) for info in layertrace.metrics()] == before


@pytest.fixture
def fixed_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_card, "_time_calls", lambda call, *_: CALL_S if call else [])


def loader(size: int = 10, batch: int = 4) -> DataLoader[tuple[Tensor, ...]]:
    numbers = torch.arange(size * 4, dtype=torch.float32).reshape(size, 4)
    return DataLoader(TensorDataset(numbers, torch.zeros(size, dtype=torch.long)), batch)


def keys(card: layertrace.ModelCard) -> list[str]:
    return [metric.key for metric in card.metrics]


# ---- Cards ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("fixed_times")
def test_a_card_is_a_boxed_table() -> None:
    model = nn.Sequential(nn.Linear(1024, 1024, bias=False), nn.ReLU())
    card = layertrace.card(
        model,
        torch.randn(16, 1024),
        name="one layer",
        metrics=["evaluation", "model_size", "macs", "parameters", "execution_time", "throughput"],
        evaluate=lambda model, data: 0.5,
    )
    assert str(card) == (
        "┌──────────────────────────────────────────────┐\n"
        "│ one layer · cpu · batch size 16              │\n"
        "├─────────────────────────────────────┬────────┤\n"
        "│ Evaluation                          │ 0.5000 │\n"
        "│ Model size (MiB)                    │      4 │\n"
        "│ Computational complexity (GigaMACs) │ 0.0168 │\n"
        "│ Parameters (millions)               │ 1.0486 │\n"
        "│ Execution time (ms)                 │      4 │\n"
        "│ Throughput (samples/s)              │  4,000 │\n"
        "└─────────────────────────────────────┴────────┘\n"
    )
    assert card.text(ascii=True).splitlines()[0].startswith("+--")
    assert (card.name, card.device, card.batch_size) == ("one layer", "cpu", 16)


def test_what_the_built_in_metrics_say() -> None:
    card = layertrace.card(Net(), torch.randn(5, 4), iterations=3, warmup=1)
    assert keys(card) == [
        "model_size",
        "macs",
        "parameters",
        "memory_footprint",
        "execution_time",
        "throughput",
    ]
    parameters = 4 + 4 + 4 * 8 + 8
    buffers = 4 * 4 + 4 * 4 + 8  # running mean and variance, and a count
    assert card["parameters"] == parameters
    assert card["model_size"] == 4 * parameters + buffers
    assert card["macs"] == 5 * 4 * 8
    footprint, time, throughput = (
        card[key] for key in ("memory_footprint", "execution_time", "throughput")
    )
    assert footprint is not None and time is not None and throughput is not None
    assert footprint >= 4 * parameters + buffers + 4 * 5 * 4 + 4 * 5 * 8
    assert time > 0
    assert throughput == pytest.approx(5 / time)
    assert card.summary.find("fc") is not None
    assert "fc" in card.summary.tree()


def test_deeplites_figures() -> None:
    """The four that deeplite-profiler 1.1.12 gives of this model."""
    card = layertrace.card(
        SmallResNet(), torch.randn(1, 3, 32, 32), convention="deeplite", iterations=1, warmup=0
    )
    shown = {metric.key: (metric.shown_value, metric.shown_unit) for metric in card.metrics}
    rounded = {key: (round(value or 0, 4), unit) for key, (value, unit) in shown.items()}
    assert rounded["macs"] == (0.5567, "GigaMACs")
    assert rounded["parameters"] == (11.2201, "millions")
    assert rounded["model_size"] == (42.8014, "MiB")
    assert rounded["memory_footprint"] == (48.4389, "MiB")
    assert card["macs"] == 556_697_700
    for line in ("42.8014", "0.5567", "11.2201", "48.4389"):
        assert line in str(card)
    ours = layertrace.card(SmallResNet(), torch.randn(1, 3, 32, 32), iterations=1, warmup=0)
    assert ours["parameters"] == 11_220_132
    assert ours["macs"] != card["macs"], "contractions only, without batch norms and biases"


@pytest.mark.parametrize("convention", ["fvcore", "torchinfo", "moduleprofiler"])
def test_other_conventions(convention: str) -> None:
    model = nn.Linear(8, 4)
    card = layertrace.card(model, torch.randn(2, 8), convention=convention, iterations=1)
    assert card.convention == convention
    counts = card.summary.counts(convention)
    if convention == "moduleprofiler":
        assert "macs" not in keys(card)
        assert any("no MACs" in note for note in card.notes)
    else:
        assert card["macs"] == counts.by_module[""]


def test_without_inputs_what_needs_no_call() -> None:
    card = layertrace.card(Net())
    assert keys(card) == ["model_size", "parameters"]
    assert card.batch_size is None


def test_on_the_meta_device_nothing_is_timed() -> None:
    model = Net()
    card = layertrace.card(model, torch.randn(5, 4), device="meta")
    assert card.device == "meta"
    assert card["macs"] == 5 * 4 * 8
    assert "execution_time" not in keys(card)
    assert "memory_footprint" not in keys(card), "no tensor took any there"
    assert model.fc.weight.device.type == "cpu"


def test_parameters_that_the_first_call_makes_are_there() -> None:
    card = layertrace.card(nn.LazyLinear(3), torch.randn(2, 4), iterations=1)
    assert card["parameters"] == 4 * 3 + 3


@pytest.mark.parametrize("training", [False, True])
def test_the_model_is_left_as_it_was(training: bool) -> None:
    model = Net().train(training)
    model.drop.train(not training)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    numbers = torch.random.get_rng_state()
    seen = []

    def evaluate(evaluated: nn.Module, data: Any) -> float:
        seen.append((evaluated.training, torch.is_grad_enabled()))
        torch.rand(3)
        evaluated.train()
        return 1.0

    layertrace.card(model, torch.randn(5, 4), evaluate=evaluate, iterations=2, warmup=1)
    assert seen == [(False, False)]
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(
        torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters() if p.grad is not None
    )
    assert all(not module._forward_hooks for module in model.modules())
    assert torch.is_grad_enabled()
    assert not torch.equal(numbers, torch.random.get_rng_state())  # by the inputs alone
    torch.random.set_rng_state(numbers)
    torch.randn(5, 4)
    after_inputs = torch.random.get_rng_state()
    torch.random.set_rng_state(numbers)
    layertrace.card(model, torch.randn(5, 4), evaluate=evaluate, iterations=2, warmup=1)
    assert torch.equal(after_inputs, torch.random.get_rng_state())


def test_a_model_that_raises_is_left_as_it_was_too() -> None:
    model = Net().train()
    with pytest.raises(RuntimeError):
        layertrace.card(model, torch.randn(5, 3))
    assert all(module.training for module in model.modules())


# ---- Loaders, forward, evaluation -----------------------------------------------------------


def test_a_loaders_first_batch_is_called_and_all_of_it_evaluated() -> None:
    batches = []

    def evaluate(model: nn.Module, data: Any) -> Tensor:
        batches.extend(inputs.shape[0] for inputs, _ in data)
        return torch.tensor(0.25)

    card = layertrace.card(Net(), loader(), evaluate=evaluate, iterations=1, warmup=0)
    assert batches == [4, 4, 2]
    assert card["evaluation"] == 0.25
    assert card.batch_size == 4
    assert card["macs"] == 4 * 4 * 8


def test_batches_of_other_shapes() -> None:
    of_dicts = [{"x": torch.randn(3, 4), "scale": 2.0}]
    assert layertrace.card(Net(), of_dicts, iterations=1)["macs"] == 3 * 4 * 8
    of_tensors = [torch.randn(6, 4)]
    assert layertrace.card(Net(), of_tensors, iterations=1).batch_size == 6


def test_forward_makes_the_call() -> None:
    batch = {"images": torch.randn(2, 3, 4), "labels": torch.zeros(2)}
    calls = []

    def forward(model: nn.Module, given: Any) -> Tensor:
        calls.append(given)
        return model(given["images"].flatten(0, 1))  # type: ignore[no-any-return]

    card = layertrace.card(Net(), [batch], forward=forward, iterations=2, warmup=1, batch_size=2)
    assert card["macs"] == 6 * 4 * 8
    assert len(calls) == 1 + 2 + 1
    assert set(calls[0]) == {"images", "labels"}
    assert card.batch_size == 2


def test_a_loader_without_batches_is_an_error() -> None:
    with pytest.raises(layertrace.Error, match="the loader has no batch"):
        layertrace.card(Net(), [])


def test_an_evaluation_that_is_no_number_names_itself() -> None:
    with pytest.raises(layertrace.Error, match=r'metric "evaluation": TypeError: .* a dict'):
        layertrace.card(Net(), evaluate=lambda model, data: {"accuracy": 1})  # type: ignore[arg-type, return-value]


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="takes an nn"):
        layertrace.card(lambda: None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="iterations is -1"):
        layertrace.card(Net(), iterations=-1)
    with pytest.raises(layertrace.Error, match=r'"speed": no such name\. Use one of: evaluation, '):
        layertrace.card(Net(), metrics=["speed"])
    with pytest.raises(layertrace.Error, match=r"thop.*Use one of: layertrace, fvcore"):
        layertrace.card(Net(), convention="thop")


# ---- The registry ---------------------------------------------------------------------------


def test_a_metric_of_ones_own() -> None:
    def sparsity(given: layertrace.MetricInput) -> float:
        assert given.call is not None and given.batch_size == 5
        assert given.summary.find("fc") is not None
        given.call()
        return 50.0

    layertrace.add_metric(
        "sparsity", sparsity, name="Sparsity", unit="%", description="Zeros.", comparison="ratio"
    )
    card = layertrace.card(Net(), torch.randn(5, 4), iterations=1)
    metric = card.metric("sparsity")
    assert (metric.name, metric.unit, metric.value, metric.comparison) == (
        "Sparsity",
        "%",
        50.0,
        "ratio",
    )
    assert "Sparsity (%)" in str(card)
    assert card.table()["metric"][-1] == "Sparsity"
    layertrace.remove_metric("sparsity")
    assert "sparsity" not in keys(layertrace.card(Net()))
    with pytest.raises(KeyError):
        layertrace.remove_metric("sparsity")


def test_two_metrics_with_one_key_are_an_error() -> None:
    layertrace.add_metric("mine", lambda given: 1.0)
    with pytest.raises(layertrace.Error, match='"mine": another metric has this key already'):
        layertrace.add_metric("mine", lambda given: 2.0)
    with pytest.raises(layertrace.Error, match='"macs": a built-in metric has this key'):
        layertrace.add_metric("macs", lambda given: 2.0)
    assert layertrace.card(Net())["mine"] == 1.0


def test_override_replaces_and_removing_brings_back() -> None:
    layertrace.add_metric("parameters", lambda given: 7, name="Few", override=True)
    assert layertrace.card(Net())["parameters"] == 7
    assert [info.name for info in layertrace.metrics()][3] == "Few"
    layertrace.remove_metric("parameters")
    assert layertrace.card(Net())["parameters"] == 48
    with pytest.raises(KeyError):
        layertrace.remove_metric("parameters")


@pytest.mark.parametrize("result", [{"top5": 0.9, "top1": 0.7}, (0.7, 0.9), [0.7, 0.9]])
def test_one_function_computes_several(result: Any) -> None:
    calls = []
    infos = [
        layertrace.MetricInfo("top1", name="Top 1", comparison="difference"),
        layertrace.MetricInfo("top5"),
    ]
    layertrace.add_metric(infos, lambda given: calls.append(1) or result)
    card = layertrace.card(Net())
    assert (card["top1"], card["top5"], len(calls)) == (0.7, 0.9, 1)
    assert card.metric("top5").name == "top5"


@pytest.mark.parametrize(
    "result, message",
    [
        ({"top1": 0.7}, "nothing for top5"),
        ((0.7,), "1 values for 2 metrics"),
        (("a", 1), "gives a str, not a number"),
    ],
)
def test_results_that_do_not_fit(result: Any, message: str) -> None:
    infos = [layertrace.MetricInfo("top1"), layertrace.MetricInfo("top5")]
    layertrace.add_metric(infos, lambda given: result)
    with pytest.raises(layertrace.Error, match=f'metric "top1": .*{message}'):
        layertrace.card(Net())


def test_what_a_metric_raises_names_it_and_nothing_is_lost() -> None:
    def broken(given: layertrace.MetricInput) -> float:
        raise ZeroDivisionError("no samples")

    layertrace.add_metric("broken", broken)
    layertrace.add_metric("later", lambda given: 3)
    model = Net().train()
    with pytest.raises(layertrace.Error) as caught:
        layertrace.card(model, torch.randn(5, 4), iterations=1)
    assert str(caught.value) == (
        'cannot compute the metric "broken": ZeroDivisionError: no samples'
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    card = caught.value.card  # type: ignore[attr-defined]
    assert card["later"] == 3
    assert card["macs"] == 5 * 4 * 8
    assert "broken" in str(card)
    assert all(module.training for module in model.modules())


def test_none_says_that_it_is_not_known() -> None:
    layertrace.add_metric("unknown", lambda given: None)
    assert "unknown" not in keys(layertrace.card(Net()))
    card = layertrace.card(Net(), metrics=["unknown"])
    assert card["unknown"] is None
    with pytest.raises(KeyError):
        card["other"]


def test_units_and_comparisons_that_there_are_not() -> None:
    with pytest.raises(layertrace.Error, match="Use one of: ns, µs, ms, s, min, h"):
        layertrace.add_metric("t", lambda given: 1, unit="s", shown_in="days")
    with pytest.raises(layertrace.Error, match="none, ratio, reciprocal, difference"):
        layertrace.add_metric("t", lambda given: 1, comparison="rato")
    with pytest.raises(layertrace.Error, match="Use one of: high, low"):
        layertrace.add_metric("t", lambda given: 1, better="best")
    with pytest.raises(TypeError, match="a metric is a function"):
        layertrace.add_metric("t", 3)  # type: ignore[arg-type]
    layertrace.add_metric(
        "t", lambda given: 180, unit="s", shown_in="rounds", scales={"rounds": 60}
    )
    metric = layertrace.card(Net()).metric("t")
    assert (metric.shown_value, metric.shown_unit) == (3, "rounds")


# ---- Side by side ---------------------------------------------------------------------------


def test_models_side_by_side() -> None:
    layertrace.add_metric("quality", lambda given: given.model.fc.out_features, comparison="ratio")
    small, large = layertrace.card(Net(4), name="small"), layertrace.card(Net(8), name="large")
    comparison = large.compare(small)
    verdicts = {row.key: row.models[1].verdict for row in comparison.rows}
    assert verdicts == {"model_size": "better", "parameters": "better", "quality": "worse"}
    assert comparison.rows[1].models[1].score == 48 / 28
    assert "1.71× better" in str(comparison)
    assert "0.50× worse" in str(comparison)
    table = comparison.table()
    assert table.column_names[3:7] == ["large", "small", "score", "verdict"]
    assert comparison.to_dict()["rows"][0]["models"][1]["verdict"] == "better"
    assert len(layertrace.compare_cards(large, small, large).rows[0].models) == 3
    with pytest.raises(layertrace.Error, match="there are 1 cards, not two"):
        layertrace.compare_cards(small)


def test_cards_in_all_formats() -> None:
    card = layertrace.card(Net(), name="net")
    table = card.table()
    frame = table.to_pandas()
    assert list(frame["key"]) == ["model_size", "parameters"]
    assert list(frame["model"]) == ["net", "net"]
    assert "| Parameters" in table.to_markdown()
    assert table.to_parquet().startswith(b"PAR1")
    assert table.__arrow_c_stream__() is not None
    assert card.to_dict()["metrics"][1]["value"] == 48
    assert json.loads(card.to_json()) == card.to_dict()
    assert "<table" in card._repr_html_()


# ---- Metrics of a run -----------------------------------------------------------------------


def train(
    output: Path | None = None, accuracy: float | None = None, after: bool = False
) -> layertrace.Session:
    model = nn.Linear(4, 4)
    with layertrace.profile(model, output=output) as session:
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
            session.step()
        if accuracy is not None and not after:
            session.add_metric("accuracy", accuracy / 2, comparison="difference")
            session.add_metric("accuracy", accuracy, name="Accuracy", comparison="difference")
    if accuracy is not None and after:
        session.add_metric("accuracy", accuracy, name="Accuracy", comparison="difference")
    return session


@pytest.mark.parametrize("after", [False, True], ids=["while recording", "after it"])
def test_a_run_carries_metrics(tmp_path: Path, after: bool) -> None:
    path = tmp_path / "run.pftrace"
    session = train(path, 0.93, after)
    for profile in (session.profile, layertrace.load(path)):
        assert [(m.key, m.name, m.value) for m in profile.metrics] == [
            ("accuracy", "Accuracy", 0.93)
        ]
        assert profile.metrics[0].comparison == "difference"
        assert profile.step_count == 3
        assert not profile.health.cut
    copy = tmp_path / "copy.pftrace"
    session.save(copy)
    loaded = layertrace.load(copy)
    assert loaded.metrics[0].value == 0.93
    assert loaded.table("metrics").to_dict()["value"] == [0.93]
    assert loaded.to_dict()["metrics"][0]["comparison"] == "difference"
    info = run(BIN, "info", path)
    assert "metric      Accuracy: 0.93\n" in info.stdout
    table = run(BIN, "metrics", path)
    assert "| Accuracy" in table.stdout
    page = tmp_path / "run.html"
    assert run(BIN, "report", path, "-o", page).returncode == 0
    assert '"name":"Accuracy","value":"0.9300"' in page.read_text()


def test_a_metric_after_save_is_in_what_was_saved(tmp_path: Path) -> None:
    session = train()
    saved, other = tmp_path / "saved.pftrace", tmp_path / "other.pftrace"
    session.save(saved)
    session.save(other)
    other.write_bytes(other.read_bytes()[:-1])
    changed = other.read_bytes()
    session.add_metric("accuracy", 0.9)
    session.add_metric("accuracy", 0.93)
    session.add_metric("loss", 2)
    loaded = layertrace.load(saved)
    assert [(m.key, m.value) for m in loaded.metrics] == [("accuracy", 0.93), ("loss", 2.0)]
    assert (loaded.step_count, loaded.health.cut) == (3, False)
    assert other.read_bytes() == changed, "it is no longer ours"


def test_a_metric_while_recording_is_in_the_profile_so_far() -> None:
    model = nn.Linear(4, 4)
    with layertrace.profile(model) as session:
        session.add_metric("early", torch.tensor(2.0))
        model(torch.randn(2, 4))
        session.step()
        assert session.profile.metrics[0].value == 2.0
    assert session.profile.metrics[0].value == 2.0


def test_a_registered_metric_needs_its_key_alone() -> None:
    layertrace.add_metric("loss", lambda given: None, name="Loss", unit="nats", better="low")
    session = train()
    session.add_metric("loss", 2.5)
    metric = session.profile.metrics[0]
    assert (metric.name, metric.unit, metric.better, metric.value) == ("Loss", "nats", "low", 2.5)


def test_runs_are_compared_by_their_metrics(tmp_path: Path) -> None:
    before, after = tmp_path / "before.pftrace", tmp_path / "after.pftrace"
    train(before, 0.9)
    train(after, 0.8)
    comparison = layertrace.compare(before, after)
    row = next(row for row in comparison.rows if row.kind == "metric")
    assert (row.name, row.metric, row.runs[1].verdict) == ("Accuracy", "accuracy", "worse")
    assert any("how much they vary is not known" in note for note in comparison.notes)
    assert comparison.check("metrics.accuracy < -5%") is not None
    assert comparison.check("metrics.accuracy < -50%") is None
    result = run(BIN, "compare", before, after, "--fail-if", "metrics.accuracy<-5%")
    assert result.returncode == 3, result.stderr


def test_metrics_that_a_session_refuses() -> None:
    session = layertrace.profile(nn.Linear(4, 4))
    with pytest.raises(layertrace.Error, match="it has not been started"):
        session.add_metric("a", 1.0)
    session = train()
    with pytest.raises(layertrace.Error, match="it has no key"):
        session.add_metric("", 1.0)
    with pytest.raises(layertrace.Error, match="no such name"):
        session.add_metric("a", 1.0, comparison="rato")
    assert session.profile.metrics == []


# ---- The command ----------------------------------------------------------------------------

MODELS = """
import sys
import torch
import layertrace

def small():
    return torch.nn.Linear(4, 4), torch.randn(2, 4)

def large():
    return torch.nn.Linear(4, 8), [(torch.randn(2, 4), torch.zeros(2))]

def broken():
    return torch.nn.Linear(4, 4), (torch.randn(2, 4), torch.randn(2, 4))

def odd():
    return torch.nn.Linear(4, 4), [{"x": torch.randn(2, 4), "scale": 2.0}]

def call(model, batch):
    return model(batch["x"])

class Slow(torch.nn.Module):
    def forward(self, x):
        raise SystemError("it was called")

def slow():
    return Slow(), torch.randn(2, 4)

def accuracy(model, data):
    return 0.75

def given_up():
    assert sys.argv[1:] == []
    import numpy

    numpy.random.choice(0, 3)

layertrace.add_metric("ones", lambda given: 1, unit="ones")
"""


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "mymodels.py").write_text(MODELS)
    return run(BIN, "card", *arguments, cwd=folder, LAYERTRACE_PYTHON=sys.executable)


def test_the_command(tmp_path: Path) -> None:
    one = command(
        tmp_path, "mymodels:small", "--evaluate", "mymodels:accuracy", "--iterations", "1"
    )
    assert one.returncode == 0, one.stderr
    assert "│ Linear · cpu · batch size 2" in one.stdout
    assert "│ Evaluation " in one.stdout and "0.7500" in one.stdout
    assert "│ ones (ones) " in one.stdout
    two = command(
        tmp_path, "mymodels:large", "mymodels:small", "--format", "json", "--metrics", "macs,ones"
    )
    assert two.returncode == 0, two.stderr
    cards = json.loads(two.stdout)
    assert [card["name"] for card in cards["cards"]] == ["large", "small"]
    assert [row["models"][1]["verdict"] for row in cards["rows"]] == ["better", "same"]


class Here:
    """The command in this process: another would load torch again."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        code = _card_command.main(list(words))
        return subprocess.CompletedProcess(words, code, *self._capsys.readouterr())


@pytest.fixture
def here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Here:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mymodels", raising=False)
    (tmp_path / "mymodels.py").write_text(MODELS)
    return Here(tmp_path, capsys)


def test_the_command_writes_every_format(here: Here) -> None:
    words = ("mymodels:small", "--iterations", "1", "--metrics", "macs,parameters")
    for suffix in ("json", "csv", "md", "html", "tex", "parquet"):
        told = here(*words, "-o", f"card.{suffix}")
        assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    table = pyarrow.parquet.read_table(here.folder / "card.parquet")
    assert table.column("key").to_pylist() == ["macs", "parameters"]
    assert table.column("python_version").to_pylist() == [platform.python_version()] * 2
    written = json.loads((here.folder / "card.json").read_text())
    assert written["run"]["layertrace_version"] == layertrace.__version__
    assert "pytest" in written["run"]["command"]
    assert [layer["params"] for layer in written["layers"]] == [20]
    assert (here.folder / "card.csv").read_text().startswith("key,metric,value,unit")


def test_the_command_shows_the_layers(here: Here) -> None:
    words = ("mymodels:small", "--iterations", "1", "--layers")
    text = here(*words).stdout
    assert text.startswith("┌") and "└" in text
    assert "Of one call of the model." in text
    rows = here(*words, "--format", "csv").stdout
    assert rows.splitlines()[0].startswith("path,type,")
    both = here("mymodels:small", "mymodels:large", *words[1:])
    assert both.stdout.count("Of one call of the model.") == 2
    refused = here("mymodels:small", "mymodels:large", *words[1:], "--format", "csv")
    assert refused.returncode == 2
    assert "Name one model" in refused.stderr


def test_the_command_calls_by_a_function(here: Here) -> None:
    told = here(
        "mymodels:odd",
        *("--forward", "mymodels:call", "--iterations", "1", "--format", "json"),
    )
    assert told.returncode == 0, told.stderr
    macs = next(each for each in json.loads(told.stdout)["metrics"] if each["key"] == "macs")
    assert macs["value"] == 2 * 4 * 4


def test_names_are_checked_before_anything_is_called(here: Here) -> None:
    wrong = here("mymodels:slow", "--metrics", "speed")
    assert wrong.returncode == 2
    assert "Use one of: evaluation" in wrong.stderr
    assert "it was called" not in wrong.stderr
    suffix = here("mymodels:slow", "-o", "card.xlsx")
    assert suffix.returncode == 2
    assert "Use one of: text, json, csv, md, html, latex, parquet" in suffix.stderr
    assert not (here.folder / "card.xlsx").exists()


def test_the_example_prints_what_the_docs_show(tmp_path: Path) -> None:
    examples = SOURCE_DIR / "examples/python"
    result = run(
        sys.executable,
        examples / "model_card.py",
        cwd=tmp_path,
        PYTHONPATH=str(BUILD_DIR / "python"),
    )
    assert (result.stdout, result.stderr) == ((examples / "model_card.txt").read_text(), "")


def test_the_docstrings_examples_hold() -> None:
    results = doctest.testmod(_card, extraglobs={"layertrace": layertrace})
    assert (results.failed, results.attempted > 8) == (0, True)


def test_the_commands_errors(tmp_path: Path) -> None:
    unknown = command(tmp_path, "mymodels:small", "--metrics", "speed")
    assert unknown.returncode == 2
    assert "Use one of: evaluation, model_size" in unknown.stderr
    missing = command(tmp_path, "mymodels:none")
    assert missing.returncode == 1
    assert "cannot build a model by mymodels:none" in missing.stderr
    raises = command(tmp_path, "mymodels:broken")
    assert raises.returncode == 1
    assert raises.stderr.startswith("layertrace: cannot call the model: ")
    assert raises.stderr.count("\n") == 1, "no traceback"
    builder = command(tmp_path, "mymodels:given_up")
    assert builder.returncode == 1
    assert re.fullmatch(
        r"layertrace: cannot build a model by mymodels:given_up: a must be [^(]* "
        r"\(mymodels\.py:\d+, in given_up\)\n",
        builder.stderr,
    )
    assert command(tmp_path, "mymodels").returncode == 2
    assert command(tmp_path, "mymodels:small", "--names", "a,b").returncode == 2
