"""benchmark(): what times come to, and the model that is as it was afterwards."""

from __future__ import annotations

import csv
import doctest
import io
import json
import os
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moduleprofiler
import numpy
import pytest
import torch
from models import FromForms, Pair
from torch import Tensor, nn

import layertrace
import layertrace._benchmark
from layertrace import _core
from layertrace._benchmark import call_times, latency

STATISTICS = [
    "mean_ms",
    "std_ms",
    "min_ms",
    "p5_ms",
    "p25_ms",
    "median_ms",
    "p75_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
]


def timed(model: nn.Module, inputs: Any, **options: Any) -> layertrace.Benchmark:
    return layertrace.benchmark(model, inputs, **{"iterations": 12, "drop_first": 2, **options})


# ---- what times come to -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 10, 901])
def test_statistics_are_pythons_and_numpys(count: int) -> None:
    numbers = random.Random(count)
    ns = [numbers.randrange(1, 10**9) for _ in range(count)]
    ms = [each / 1e6 for each in ns]
    stats = _core.time_stats(ns)
    assert stats.count == count
    assert stats.mean_ms == pytest.approx(statistics.fmean(ms), rel=1e-12)
    assert (stats.min_ms, stats.max_ms) == (min(ms), max(ms))
    assert stats.median_ms == pytest.approx(statistics.median(ms), rel=1e-12)
    if count > 1:
        assert stats.stdev_ms == pytest.approx(statistics.stdev(ms), rel=1e-9)
    for percent in (5, 25, 75, 90, 95, 99):
        told = getattr(stats, f"p{percent}_ms")
        assert told == pytest.approx(numpy.percentile(ms, percent), rel=1e-12)


def test_statistics_of_a_table_are_those_of_its_single_times() -> None:
    result = timed(Pair(), torch.randn(4, 3))
    single = result.table(aggregate=False).to_pandas()
    for row in result.table().to_pandas().itertuples():
        chosen = single[(single.module == row.module) & (single.scopes == row.scopes)].time_ms
        assert row.iterations == len(chosen) == 10
        assert row.mean_ms == pytest.approx(chosen.mean())
        assert row.std_ms == pytest.approx(chosen.std())
        assert row.median_ms == pytest.approx(chosen.median())
        assert row.p95_ms == pytest.approx(chosen.quantile(0.95))
        assert (row.min_ms, row.max_ms) == (chosen.min(), chosen.max())


# ---- tables -------------------------------------------------------------------------------------


def test_the_whole_is_without_scopes_and_modules_are_with() -> None:
    result = timed(FromForms(), torch.randn(16, 10))
    table = result.table(root="__root__")
    assert table["module"] == [
        *("__root__", "__root__", "linear1", "linear2"),
        *("linear3", "linear3.0", "linear3.1"),
        *("linear4", "linear4.0", "linear4.1", "linear4.2"),
        *("linear5", "linear5.a", "linear5.b"),
    ]
    assert table["scopes"] == [False] + [True] * 13
    assert set(table["clock"]) == {"host"}
    # Lists and dicts of modules are not called themselves.
    calls = dict(zip(table["module"], table["calls"], strict=True))
    assert {path for path, count in calls.items() if count == 0} == {"linear3", "linear5"}
    assert all(value > 0 for name in STATISTICS for value in table[name])
    assert table["type"][:2] == ["FromForms"] * 2
    assert len(result.total) == 1
    assert len(result.modules) == 13
    assert result.total["mean_ms"] == [result.stats.mean_ms]
    assert len(result.total_ns) == len(result.scoped_ns) == 10


def test_each_iteration_is_a_row() -> None:
    result = timed(Pair(), torch.randn(4, 3), aggregate=False)
    table = result.total
    assert len(table) == 12 - 2
    assert table["iteration"] == list(range(2, 12))
    assert [round(ms * 1e6) for ms in table["time_ms"]] == result.total_ns
    modules = result.modules
    assert len(modules) == 3 * 10
    assert modules["iteration"] == list(range(2, 12)) * 3
    assert len(result.to_pandas()) == 4 * 10


def test_a_part_lasts_no_longer_than_the_whole_of_the_same_call() -> None:
    result = timed(Pair(), torch.randn(4, 3), aggregate=False)
    frame = result.modules.to_pandas().pivot(index="iteration", columns="module", values="time_ms")
    assert (frame["a"] + frame["b"] <= frame[""]).all()
    scoped = [ns / 1e6 for ns in result.scoped_ns]
    # By two clocks that are alike but for some millionths.
    assert all(root <= 1.001 * whole for root, whole in zip(frame[""], scoped, strict=True))


def test_the_environment_is_in_each_row() -> None:
    table = timed(Pair(), torch.randn(4, 3), intra_op_threads=1).table()
    (row, *others) = table.rows()
    system = os.uname()
    assert (row["host_name"], row["os"], row["os_release"]) == (
        system.nodename,
        system.sysname,
        system.release,
    )
    assert row["cpu_count"] == os.cpu_count()
    assert row["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert (row["intra_op_threads"], row["device"]) == (1, "cpu")
    assert row["inter_op_threads"] == torch.get_num_interop_threads()
    assert (row["gpu"], row["simulated"]) == (None, False)
    assert torch.__version__.startswith(row["torch_version"])
    keys = ("host_name", "cpu", "cpu_count", "simulated")
    assert all(other[key] == row[key] for other in others for key in keys)


@pytest.mark.parametrize("aggregate", [True, False])
def test_columns_are_moduleprofilers(aggregate: bool) -> None:
    """What both call by other names is the same figure; what they measured differs."""
    inner = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), inner).eval(), torch.randn(3, 4)
    theirs = moduleprofiler.ModuleProfiler(verbose=False).estimate_inference_time_df(
        model, x, num_iters=12, drop_first=2, aggr=aggregate
    )
    ours = timed(model, x, aggregate=aggregate).table("modules", root="__root__").to_pandas()
    renamed = {"interop_threads": "inter_op_threads", "intraop_threads": "intra_op_threads"}
    renamed |= {"total_memory": "memory_bytes", "inference_time_ms": "time_ms"}
    named = [renamed.get(name, name.removeprefix("inference_time_")) for name in theirs.columns]
    assert set(named) <= set(ours.columns)
    theirs.columns = named
    assert set(theirs.module) == set(ours.module)  # theirs fails where a module is never called
    if not aggregate:  # theirs (0.0.4) keeps those that were to be dropped
        assert set(ours.module.value_counts()) == {10}
    for name in ("type", "intra_op_threads", "inter_op_threads", "host_name", "os", "os_release"):
        assert set(theirs[name]) == set(ours[name])
    assert set(theirs.cpu_count) == set(ours.cpu_count)
    (megabytes,) = set(theirs.memory_bytes)
    (ours_bytes,) = set(ours.memory_bytes)
    assert abs(int(megabytes.split()[0]) - ours_bytes / 2**20) <= 1


def test_the_total_has_moduleprofilers_columns_and_rows() -> None:
    model, x = Pair().eval(), torch.randn(4, 3)
    profiler = moduleprofiler.ModuleProfiler(verbose=False)
    for aggregate, rows in ((True, 1), (False, 10)):
        theirs = profiler.estimate_total_inference_time_df(
            model, x, num_iters=12, drop_first=2, aggr=aggregate
        )
        ours = timed(model, x, modules=False, aggregate=aggregate).to_pandas()
        assert len(theirs) == len(ours) == rows
        times = [name for name in theirs.columns if name.startswith("inference_time_")]
        named = {"time_ms" if name == "inference_time_ms" else name[15:] for name in times}
        assert named <= set(ours.columns)
        assert (len(named) == 5) is aggregate


def test_every_format_is_read_back(tmp_path: Path) -> None:
    import pyarrow.parquet

    result = timed(Pair(), torch.randn(4, 3))
    for suffix in ("json", "csv", "md", "html", "tex", "parquet"):
        result.save(tmp_path / f"times.{suffix}")
    means = result.table()["mean_ms"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "times.csv").read_text())))
    assert [float(row["mean_ms"]) for row in rows] == means
    document = json.loads((tmp_path / "times.json").read_text())
    assert [row["mean_ms"] for row in document["rows"]] == means
    units = {column["name"]: column["unit"] for column in document["columns"]}
    assert all(units[name] == "ms" for name in STATISTICS)
    parquet = pyarrow.parquet.read_table(tmp_path / "times.parquet")
    assert parquet.column("mean_ms").to_pylist() == means
    html = (tmp_path / "times.html").read_text()
    assert (html.count(">Pair</td>"), html.count(">Linear</td>")) == (2, 2)
    assert (tmp_path / "times.tex").read_text().count(r"\\") == 5
    assert pyarrow.table(result).num_rows == 4


def test_a_module_that_runs_now_and_then_counts_where_it_ran() -> None:
    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.often = nn.Linear(3, 3)
            self.rare = nn.Linear(3, 3)
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return self.rare(self.often(x)) if self.calls % 5 == 0 else self.often(x)  # type: ignore[no-any-return]

    table = timed(Sometimes(), torch.randn(2, 3)).modules
    counts = dict(zip(table["module"], table["iterations"], strict=True))
    assert counts == {"": 10, "often": 10, "rare": 2}


def test_a_slow_layer_is_the_slowest_row() -> None:
    class Work(nn.Module):
        def __init__(self, times: int) -> None:
            super().__init__()
            self.times = times

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(self.times):
                x = torch.tanh(x @ x)
            return x

    model = nn.Sequential(Work(1), Work(1), Work(100), Work(1))
    result = timed(model, torch.randn(64, 64), iterations=20, drop_first=5)
    table = result.modules
    least = dict(zip(table["module"], table["min_ms"], strict=True))  # undisturbed
    assert max(least, key=lambda path: (path != "") * least[path]) == "2"
    assert least["2"] > 0.5 * least[""]


def test_an_unpatched_vit() -> None:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
    )
    model = ViTForImageClassification(config)
    result = timed(model, {"pixel_values": torch.randn(1, 3, 32, 32)})
    ran = set(result.modules["module"])
    called = []
    hooks = [
        module.register_forward_hook(lambda *_, path=path: called.append(path))  # type: ignore[misc]
        for path, module in model.named_modules()
    ]
    model(torch.randn(1, 3, 32, 32))
    for hook in hooks:
        hook.remove()
    assert set(called) <= ran
    assert "vit" in ran
    assert "ViTForImageClassification" in str(result)


def test_the_total_alone() -> None:
    result = timed(Pair(), torch.randn(4, 3), modules=False)
    assert result.scoped_ns == []
    assert len(result.modules) == 0
    assert result.scope_overhead is None
    assert "with scopes" not in str(result)


def test_how_the_two_totals_differ_is_told() -> None:
    result = timed(Pair(), torch.randn(4, 3))
    without, with_scopes = (statistics.median(each) for each in (result.total_ns, result.scoped_ns))
    assert result.scope_overhead == pytest.approx(with_scopes / without - 1)
    (told,) = (line for line in str(result).splitlines() if line.startswith("With scopes in it"))
    share = abs(with_scopes / without - 1) * 100
    shown = {f"{share:.1f} %", "<0.1 %", "0 %"} if share < 99.9 else {f"{share:.0f} %", ">99.9 %"}
    assert any(each in told for each in shown), told


# ---- how it is called ---------------------------------------------------------------------------


class Watching(nn.Module):
    """Notes in which state it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.seen: list[tuple[bool, ...]] = []
        self.fails_at = -1

    def forward(self, x: Tensor) -> Tensor:
        scoped = torch.nn.Module.__dict__["_compiled_call_impl"] is not None
        inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        self.seen.append((scoped, self.training, inference, grad))
        if len(self.seen) == self.fails_at:
            raise KeyboardInterrupt
        return self.drop(self.linear(x))  # type: ignore[no-any-return]


def test_the_whole_is_called_without_anything_in_the_model() -> None:
    model = Watching()
    timed(model, torch.randn(2, 3))
    assert model.seen == [(False, False, True, False)] * 12 + [(True, False, True, False)] * 12


def test_modes_are_kept_where_asked() -> None:
    model = Watching()
    timed(model, torch.randn(2, 3), eval=False, inference_mode=False, modules=False)
    assert model.seen == [(False, True, False, True)] * 12


def state_of(model: nn.Module) -> list[Any]:
    """All that a module has, as far as it can be told apart."""
    return [
        (
            path,
            sorted(module.__dict__),
            module.training,
            type(module).__dict__.keys(),
            [
                (name, id(value))
                for name, value in sorted(module.__dict__.items())
                if name != "seen"
            ],
        )
        for path, module in model.named_modules()
    ]


@pytest.fixture
def mixed() -> Iterator[Watching]:
    """In training, but for a part that is frozen; and hooks that are its own."""
    model = Watching().train()
    model.drop.eval()
    model.linear.register_forward_hook(lambda *_: None)
    before, threads = state_of(model), torch.get_num_threads()
    numbers, tensors = torch.random.get_rng_state(), [p.clone() for p in model.parameters()]
    with torch.enable_grad():
        yield model
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
    assert state_of(model) == before
    assert torch.equal(torch.random.get_rng_state(), numbers)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), tensors, strict=True))
    assert torch.get_num_threads() == threads


def test_the_model_is_as_it_was(mixed: Watching) -> None:
    timed(mixed, torch.ones(2, 3), intra_op_threads=2)
    layertrace.throughput(mixed, torch.ones(1, 3), [1, 2], iterations=3, drop_first=1)


def test_random_numbers_are_given_back(mixed: Watching) -> None:
    timed(mixed, torch.ones(2, 3), eval=False, inference_mode=False)


@pytest.mark.parametrize("call", [1, 5, 13, 20], ids=lambda call: f"call{call}")
def test_an_interruption_passes_on(mixed: Watching, call: int) -> None:
    mixed.fails_at = call
    try:
        with pytest.raises(KeyboardInterrupt):
            timed(mixed, torch.ones(2, 3), intra_op_threads=2)
    finally:
        mixed.fails_at = -1
    with layertrace.profile(mixed):  # no session was left behind
        mixed(torch.ones(2, 3))


def test_inputs_in_every_way() -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
            assert y is not None
            return x + y

    x = torch.ones(2)
    assert timed(Two(), (x, x)).stats.count == 10
    assert timed(Two(), {"x": x, "y": x}).stats.count == 10
    result = timed(Two(), [x, x], forward=lambda model, given: model(*given))
    assert result.stats.count == 10


def test_threads_are_told_as_they_were_meanwhile() -> None:
    before = torch.get_num_threads()
    result = timed(Pair(), torch.randn(4, 3), intra_op_threads=2, modules=False)
    assert result.environment.intra_op_threads == 2
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"iterations": 5, "drop_first": 5}, ValueError, "of 5 iterations the first 5 would be"),
        ({"iterations": 0}, ValueError, "iterations is 0; it is a whole number, 1 or more"),
        ({"drop_first": -1}, ValueError, "drop_first is -1"),
        ({"iterations": 2.5}, ValueError, "iterations is 2.5"),
        ({"inputs": None}, ValueError, "benchmark() needs inputs"),
        ({"model": 3}, TypeError, "benchmark() takes an nn.Module; this is a int"),
        ({"intra_op_threads": 0}, ValueError, "intra_op_threads is 0"),
        ({"inter_op_threads": True}, ValueError, "inter_op_threads is True"),
        ({"timing": "sundial"}, layertrace.Error, "Use one of: both, cupti, events"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    given = {"model": Pair(), "inputs": torch.randn(4, 3), "iterations": 5, "drop_first": 1}
    with pytest.raises(kind) as raised:
        layertrace.benchmark(**{**given, **arguments})
    assert text in str(raised.value)


def test_wrong_names_list_the_right_ones(tmp_path: Path) -> None:
    result = timed(Pair(), torch.randn(4, 3))
    with pytest.raises(layertrace.Error, match="Use one of: all, total, modules"):
        result.table("some")
    with pytest.raises(layertrace.Error, match="Use one of: module, type"):
        result.table(columns=["mean"])
    with pytest.raises(layertrace.Error, match="no module that was timed has this path"):
        result.table(module="c")
    with pytest.raises(layertrace.Error, match=r"Use one of: \.json, \.csv"):
        result.save(tmp_path / "times.xyz")


def test_not_while_a_session_is_active() -> None:
    model = Pair()
    with (
        layertrace.profile(model),
        pytest.raises(layertrace.Error, match="a session is active, whose scopes would be timed"),
    ):
        timed(model, torch.randn(4, 3))


def test_what_the_model_raises_passes_on() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        timed(Pair(), torch.randn(4, 5))


def test_nothing_is_left_in_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    timed(Pair(), torch.randn(4, 3))
    assert list(tmp_path.iterdir()) == []


def test_calls_are_timed_one_by_one() -> None:
    made: list[int] = []
    ns = call_times(lambda: made.append(1), 7, 3)
    assert (len(made), len(ns)) == (7, 4)
    assert latency(lambda: None, iterations=5, drop_first=1).count == 4


def test_the_docstrings_examples_run() -> None:
    results = doctest.testmod(layertrace._benchmark, extraglobs={"layertrace": layertrace})
    assert results.attempted >= 8
    assert results.failed == 0
