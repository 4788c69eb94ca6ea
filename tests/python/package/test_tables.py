"""Tables, read back by others: pandas, polars, DuckDB, pyarrow, csv, JSON Schema, an HTML parser.

What they must give is what the Table's own values are, and those are held against the model
itself, torchinfo and moduleprofiler.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import moduleprofiler
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
import torch
import torchinfo
from models import FromForms
from support import BIN, TRACES, layertrace_output
from support import layertrace as layertrace_command
from torch import Tensor, nn

import layertrace

KINDS = ["layers", "kernels", "operators", "steps", "parameters", "sizes", "ledger", "metrics"]
kinds = pytest.mark.parametrize("kind", KINDS)
# Those that a profile does not have, too: single calls are in the file, counts have a convention.
all_kinds = pytest.mark.parametrize("kind", [*KINDS, "calls", "counts"])


class Recorded:
    def __init__(self, model: nn.Module, inputs: Tensor, path: Path, steps: int = 2) -> None:
        self.model = model
        self.inputs = inputs
        self.path = path
        with layertrace.profile(model, output=path) as session:
            for _ in range(steps):
                output = model(inputs)
                (output if isinstance(output, Tensor) else output.logits).sum().backward()
                session.step()
            session.add_metric("accuracy", 12.5, unit="%")
        self.profile = session.profile

    def table(self, kind: str) -> layertrace.Table:
        if kind == "calls":
            return layertrace.calls(self.path)
        if kind == "counts":
            return self.profile.counts_table("moduleprofiler")
        return self.profile.table(kind)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(
        FromForms(), torch.randn(16, 10), tmp_path_factory.mktemp("zoo") / "zoo.pftrace"
    )


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
    )
    path = tmp_path_factory.mktemp("vit") / "vit.pftrace"
    return Recorded(ViTForImageClassification(config), torch.randn(2, 3, 32, 32), path)


@pytest.fixture(scope="module")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "empty.pftrace"
    with layertrace.profile(ops=False, output=path):
        pass
    return path


@pytest.fixture(scope="module")
def empty(empty_file: Path) -> layertrace.Profile:
    return layertrace.load(empty_file)


@pytest.fixture(params=["zoo", "vit"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


SCHEMA = {
    "type": "object",
    "required": ["table", "columns", "rows"],
    "additionalProperties": False,
    "properties": {
        "table": {"enum": [*KINDS, "calls", "counts"]},
        "columns": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "kind", "unit"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "pattern": "^[a-z0-9_]+$"},
                    "kind": {"enum": ["text", "integer", "real", "boolean"]},
                    "unit": {"type": ["string", "null"]},
                },
            },
        },
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            },
        },
    },
}


@all_kinds
def test_json_follows_its_schema(recorded: Recorded, kind: str) -> None:
    table = recorded.table(kind)
    parsed = json.loads(table.to_json())
    jsonschema.validate(parsed, SCHEMA)
    assert parsed["rows"] == table.rows()
    assert [column["name"] for column in parsed["columns"]] == table.column_names


@all_kinds
def test_csv_is_read_by_the_csv_module(recorded: Recorded, kind: str) -> None:
    table = recorded.table(kind)
    rows = list(csv.DictReader(io.StringIO(table.to_csv(), newline=""), strict=True))
    assert len(rows) == len(table)
    for read, row in zip(rows, table.rows(), strict=True):
        for column in table.columns:
            text, value = read[column.name], row[column.name]
            if value is None:
                assert text == ""
            elif column.kind == "boolean":
                assert text == ("true" if value else "false")
            else:
                assert type(value)(text) == value, column.name


def same(read: Any, table: layertrace.Table) -> None:
    """A pyarrow.Table has the same columns, kinds and values."""
    types = {"text": "string", "integer": "int64", "real": "double", "boolean": "bool"}
    assert read.column_names == table.column_names
    for column in table.columns:
        field = read.schema.field(column.name)
        assert str(field.type).replace("large_", "") == types[column.kind], column.name
        assert read.column(column.name).to_pylist() == column.values, column.name


@all_kinds
def test_parquet_is_read_by_four(recorded: Recorded, kind: str, tmp_path: Path) -> None:
    table = recorded.table(kind)
    path = tmp_path / "table.parquet"
    table.save(path)
    read = pyarrow.parquet.read_table(path)
    same(read, table)
    assert read.schema.metadata[b"layertrace.table"] == kind.encode()
    units = json.loads(read.schema.metadata[b"layertrace.units"])
    assert units == {column.name: column.unit for column in table.columns if column.unit}
    assert polars.read_parquet(path).to_dict(as_series=False) == table.to_dict()
    same(duckdb.sql(f"select * from '{path}'").to_arrow_table(), table)
    assert list(pandas.read_parquet(path).columns) == table.column_names
    assert len(pandas.read_parquet(path)) == len(table)


def test_files_say_that_a_gpu_was_simulated(recorded: Recorded, tmp_path: Path) -> None:
    assert recorded.profile.table("layers").note == ""
    table = layertrace.load(TRACES / "residual_cnn_counted_gpu.pftrace").table("layers")
    assert table.note.startswith("Simulated: recorded on a ")
    table.save(tmp_path / "layers.parquet")
    for schema in (
        pyarrow.parquet.read_schema(tmp_path / "layers.parquet"),
        pyarrow.schema(table),
        pyarrow.table(table).schema,
    ):
        assert schema.metadata[b"layertrace.note"].decode() == table.note


@all_kinds
def test_the_arrow_stream_is_taken_as_it_is(recorded: Recorded, kind: str) -> None:
    table = recorded.table(kind)
    read = pyarrow.table(table)
    same(read, table)
    for column in table.columns:
        metadata = read.schema.field(column.name).metadata or {}
        assert metadata.get(b"unit", b"").decode() == column.unit
    assert pyarrow.schema(table).names == table.column_names
    assert polars.DataFrame(table).to_dict(as_series=False) == table.to_dict()
    rows = table  # DuckDB finds it by the variable's name
    same(duckdb.sql("select * from rows").to_arrow_table(), rows)
    assert pandas.DataFrame.from_arrow(table).columns.tolist() == table.column_names


@all_kinds
def test_pandas_has_the_same_values(recorded: Recorded, kind: str) -> None:
    table = recorded.table(kind)
    frame = table.to_pandas()
    assert list(frame.columns) == table.column_names
    assert len(frame) == len(table)
    for column in table.columns:
        values = [None if pandas.isna(value) else value for value in frame[column.name].tolist()]
        assert values == column.values, column.name


class Cells(HTMLParser):
    """The texts of a table's cells, by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@all_kinds
def test_forms_for_people_have_one_shape(recorded: Recorded, kind: str) -> None:
    table = recorded.table(kind)
    cells = Cells()
    cells.feed(table.to_html())
    assert cells.open == []
    assert len(cells.rows) == len(table) + 1
    width = len(cells.rows[0])
    assert all(len(row) == width for row in cells.rows)
    lines = table.to_latex().splitlines()
    assert lines[0].startswith("\\begin{tabular}{") and lines[-1] == "\\end{tabular}"
    assert len(lines[0]) - len("\\begin{tabular}{}") == width
    body = [line for line in lines if line.endswith(" \\\\")]
    assert len(body) == len(table) + 1
    assert all(line.replace("\\&", "").count("&") == width - 1 for line in body)
    markdown = table.to_markdown().splitlines()
    assert len(markdown) == len(table) + 2
    assert all(line.replace("\\|", "").count("|") == width + 1 for line in markdown)
    assert table._repr_html_() == table.to_html()
    assert str(table) == table.to_markdown()


@kinds
def test_an_empty_run_gives_empty_tables(
    empty: layertrace.Profile, kind: str, tmp_path: Path
) -> None:
    table = empty.table(kind, limit=0)
    if kind in ("steps", "ledger"):
        pytest.skip("an empty session still has the recording itself")
    assert len(table) == 0
    assert table.rows() == []
    jsonschema.validate(json.loads(table.to_json()), SCHEMA)
    assert table.to_csv().count("\n") == 1
    path = tmp_path / "empty.parquet"
    table.save(path)
    same(pyarrow.parquet.read_table(path), table)
    assert polars.read_parquet(path).shape == (0, len(table.columns))
    assert duckdb.sql(f"select * from '{path}'").fetchall() == []
    same(pyarrow.table(table), table)
    assert polars.DataFrame(table).shape == (0, len(table.columns))
    assert table.to_pandas().shape == (0, len(table.columns))
    for text in (table.to_markdown(), table.to_html(), table.to_latex()):
        assert "(ns)" in text or kind in ("parameters", "sizes", "metrics")


COMMANDS = {
    "layers": "layers",
    "kernels": "kernels",
    "ops": "operators",
    "calls": "calls",
    "steps": "steps",
    "parameters": "parameters",
    "sizes": "sizes",
    "ledger": "ledger",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_writes_tables_of_an_empty_run(
    empty_file: Path, command: str, tmp_path: Path
) -> None:
    """In every format, and each is read back: no row, all columns."""
    if command == "calls":
        table = layertrace.calls(empty_file)
    else:
        table = layertrace.load(empty_file).table(COMMANDS[command])
    has_rows = command in ("steps", "ledger")  # of the recording itself
    assert (len(table) > 0) == has_rows

    def written(suffix: str) -> Path:
        path = tmp_path / f"table.{suffix}"
        assert layertrace_output(command, empty_file, "-o", path) == ""
        return path

    same(pyarrow.parquet.read_table(written("parquet")), table)
    assert polars.read_parquet(written("parquet")).shape == (len(table), len(table.columns))
    rows = csv.DictReader(io.StringIO(written("csv").read_bytes().decode(), newline=""))
    assert len(list(rows)) == len(table)
    assert rows.fieldnames == table.column_names
    cells = Cells()
    cells.feed(written("html").read_text())
    assert cells.open == [] and len(cells.rows) == len(table) + 1
    assert len(written("md").read_text().splitlines()) == len(table) + 2
    latex = written("tex").read_text()
    assert latex.startswith("\\begin{tabular}{") and latex.endswith("\\end{tabular}\n")
    document = json.loads(written("json").read_text())
    if command in ("layers", "kernels"):  # the documents of docs/json.md
        assert document[command] == []
    else:
        jsonschema.validate(document, SCHEMA)
        assert document["rows"] == table.rows()


@kinds
def test_a_file_gives_the_same_tables(recorded: Recorded, kind: str) -> None:
    assert layertrace.load(recorded.path).table(kind).rows() == recorded.profile.table(kind).rows()


def test_layers_are_the_models_modules(recorded: Recorded) -> None:
    table = recorded.profile.table("layers")
    modules = dict(recorded.model.named_modules())
    assert table["path"] == list(modules)
    assert table["type"] == [type(module).__name__ for module in modules.values()]
    assert table["params"] == [
        sum(p.numel() for p in module.parameters()) for module in modules.values()
    ]
    layers = recorded.profile.layers
    assert table["forward_host_ns"] == [
        layer.forward.host_ns.mean if layer.forward.host_ns.max else None for layer in layers
    ]


def test_paths_read_as_asked_for(zoo: Recorded) -> None:
    paths = zoo.profile.table("layers", root="__root__", leading_dot=True)["path"]
    assert paths[:3] == ["__root__", ".linear1", ".linear2"]
    assert zoo.profile.table("layers", module="linear4")["path"] == [
        "linear4",
        "linear4.0",
        "linear4.1",
        "linear4.2",
    ]
    assert zoo.profile.table("layers", module="linear4", depth=0)["path"] == ["linear4"]


def test_parameters_are_moduleprofilers(recorded: Recorded) -> None:
    told = moduleprofiler.ModuleProfiler(verbose=False).count_params(recorded.model)
    table = recorded.profile.table("parameters", by_layer=True, root="__root__")
    assert table["module"] == list(told)
    for row in table.rows():
        theirs = told[row["module"]]
        assert row["type"] == theirs["type"]
        assert row["trainable_params"] == theirs["trainable_params"]
        assert row["nontrainable_params"] == theirs["nontrainable_params"]
        assert row["bits"] == (
            theirs["trainable_params_size_bits"] + theirs["nontrainable_params_size_bits"]
        )


def test_parameters_need_no_input() -> None:
    model = FromForms()
    model.linear1.weight.requires_grad_(False)
    table = layertrace.summary(model).table("parameters")
    assert [f"{row['module']}.{row['name']}".lstrip(".") for row in table.rows()] == [
        name for name, _ in model.named_parameters()
    ]
    assert table["shape"] == [str(list(p.shape)) for p in model.parameters()]
    assert sum(table["nontrainable_params"]) == 110
    assert sum(table["share"]) == pytest.approx(1)


def test_sizes_are_moduleprofilers(zoo: Recorded) -> None:
    told = moduleprofiler.ModuleProfiler(verbose=False).trace_io_sizes(zoo.model, zoo.inputs)
    for row in zoo.profile.table("sizes", root="__root__").rows():
        theirs = told[row["module"]]
        assert row["type"] == theirs["type"]
        assert row["input_size"] == str(list(theirs["input_size"]))
        assert row["output_size"] == str(list(theirs["output_size"]))


def test_layers_are_torchinfos(zoo: Recorded) -> None:
    told = torchinfo.summary(zoo.model, input_data=zoo.inputs, verbose=0, depth=9)
    root = zoo.profile.table("layers").rows()[0]
    assert root["params"] == told.total_params
    assert root["params_trainable"] == told.trainable_params
    weight_bytes = 40  # the root's own parameter, which torchinfo has no bytes of
    assert root["param_bytes"] == told.total_param_bytes + weight_bytes
    linears = [info for info in told.summary_list if info.class_name == "Linear"]
    rows = [row for row in zoo.profile.table("sizes").rows() if row["type"] == "Linear"]
    assert sorted(row["output_size"] for row in rows) == sorted(
        str(list(info.output_size)) for info in linears
    )


def test_each_module_is_torchinfos(recorded: Recorded) -> None:
    """Parameters of every module; sizes of every one that is called, inputs too."""
    told = torchinfo.summary(recorded.model, input_data=recorded.inputs, verbose=0, depth=99)
    paths = {id(module): path for path, module in recorded.model.named_modules()}
    layers = {row["path"]: row for row in recorded.profile.table("layers").rows()}
    sizes = {row["module"]: row for row in recorded.profile.table("sizes").rows()}
    assert {paths[info.layer_id] for info in told.summary_list} == set(layers)
    called = set()
    for info in told.summary_list:
        path = paths[info.layer_id]
        layer = layers[path]
        assert layer["type"] == info.class_name
        assert layer["params"] == info.num_params, path
        assert layer["params_trainable"] == info.trainable_params, path
        assert layer["param_bytes"] == info.param_bytes, path
        if info.executed:
            called.add(path)
            assert sizes[path]["input_size"] == str(list(info.input_size)), path
            assert sizes[path]["output_size"] == str(list(info.output_size)), path
    assert called == set(sizes)
    assert len(called) > 10


def test_steps_and_calls(zoo: Recorded) -> None:
    steps = zoo.profile.table("steps")
    assert steps["index"] == [0, 1]
    assert all(row["forward_ns"] <= row["wall_ns"] for row in steps.rows())
    calls = layertrace.calls(zoo.path)
    forward = [row for row in calls.rows() if row["phase"] == "forward"]
    # Modules that are called: neither the list nor the dict.
    called = [
        path for path in dict(zoo.model.named_modules()) if path not in ("linear3", "linear5")
    ]
    for step in (0, 1):
        assert sorted(row["path"] for row in forward if row["step"] == step) == sorted(called)
    assert calls["start_ns"] == sorted(calls["start_ns"])
    for path in called:
        layer = zoo.profile.find(path)
        mine = [row["host_ns"] for row in forward if row["path"] == path]
        assert layer is not None
        assert sum(mine) / 2 == pytest.approx(layer.forward.host_ns.mean)
    assert next(row["input"] for row in forward if row["path"] == "linear1") == "float32[16, 10]"
    of_one = layertrace.calls(zoo.path, module="linear4", depth=0, columns=["path", "phase"])
    assert set(of_one["path"]) == {"linear4"}
    with pytest.raises(layertrace.Error, match="no layer has this path"):
        layertrace.calls(zoo.path, module="nothing")


def test_kernels_of_calls_are_those_of_their_layers() -> None:
    """What single calls launched adds up to what their layers' phases have without children."""
    path = TRACES / "residual_cnn_gpu.pftrace"
    profile = layertrace.load(path)
    calls = layertrace.calls(path).rows()
    compared = 0
    for layer in profile.table("layers").rows():
        for phase in ("forward", "backward"):
            expected = layer[f"{phase}_self_activity_ns"]
            mine = [
                row["self_kernel_ns"]
                for row in calls
                if row["path"] == layer["path"] and row["phase"] == phase
            ]
            if expected and mine:
                assert sum(mine) / profile.step_count == pytest.approx(expected), layer["path"]
                compared += 1
    assert compared > 5
    kernels = profile.table("kernels")
    assert sum(kernels["total_ns"]) == profile.health.activity_ns
    by_layer = profile.table("kernels", by_layer=True)
    assert sum(by_layer["total_ns"]) == sum(kernels["total_ns"])
    assert sum(by_layer["count"]) == sum(kernels["count"])


def test_counts_are_a_table(recorded: Recorded, tmp_path: Path) -> None:
    """As moduleprofiler has its own: module, type, ops, the top one called __root__."""
    table = recorded.profile.counts_table("moduleprofiler", root="__root__")
    assert table.column_names == ["module", "type", "ops"]
    counts = recorded.profile.counts("moduleprofiler")
    assert [column.unit for column in table.columns] == ["", "", counts.unit]
    types = {path: type(module).__name__ for path, module in recorded.model.named_modules()}
    assert table.rows() == [
        {"module": path or "__root__", "type": types[path], "ops": ops}
        for path, ops in counts.by_module.items()
    ]
    told = moduleprofiler.ModuleProfiler(verbose=False).estimate_ops(
        recorded.model, recorded.inputs
    )
    ours = table.to_pandas().set_index("module")["ops"]
    for path, theirs in told.items():
        if theirs["ops"] is not None:
            whole = sum(each["ops"] or 0 for each in told.values())
            assert ours[path] == (whole if path == "__root__" else theirs["ops"]), path
    path = tmp_path / "ops.csv"
    words = ("layers", recorded.path, "--convention", "moduleprofiler", "--root", "__root__")
    assert layertrace_output(*words, "-o", path) == ""
    assert path.read_bytes().decode() == table.to_csv()
    with pytest.raises(layertrace.Error, match="Use one of: module, type, ops, activations"):
        recorded.profile.counts_table(columns=["speed"])
    with pytest.raises(layertrace.Error, match="Use one of: layertrace, fvcore"):
        recorded.profile.counts_table("thop")


def test_counts_are_dicts_and_a_file(zoo: Recorded, tmp_path: Path) -> None:
    counts = zoo.profile.counts()
    assert counts.by_module["linear1"] == 2 * 16 * 10 * 11
    assert counts.by_module[""] == sum(counts.by_operator.values())
    assert counts.activations_by_module["linear1"] == 16 * 11
    path = tmp_path / "counts.json"
    path.write_text(zoo.profile.counts_json())
    assert json.loads(path.read_text())["by_module"] == counts.by_module


def test_operators_add_up_over_layers(zoo: Recorded) -> None:
    whole = zoo.profile.table("operators").rows()
    by_layer = zoo.profile.table("operators", by_layer=True).rows()
    for op in whole:
        parts = [row for row in by_layer if row["name"] == op["name"]]
        assert sum(row["flops"] for row in parts) == op["flops"]


def test_wrong_names_list_the_right_ones(zoo: Recorded, tmp_path: Path) -> None:
    with pytest.raises(layertrace.Error, match="Use one of: layers, kernels"):
        zoo.profile.table("rows")
    with pytest.raises(layertrace.Error, match="Use one of: module, type"):
        zoo.profile.table("sizes", columns=["size"])
    with pytest.raises(layertrace.Error, match=r"\.json, \.csv"):
        zoo.profile.table("sizes").save(tmp_path / "sizes.xml")
    with pytest.raises(layertrace.Error, match=r"linear4.*has 0, 1, 2"):
        zoo.profile.table("layers", module="linear4.7")


def test_unicode_and_nulls_come_back_from_parquet(tmp_path: Path) -> None:
    model = nn.Sequential()
    model.add_module("größe|&_<b>", nn.Linear(2, 2))
    model.add_module("層", nn.Tanh())
    table = layertrace.summary(model).table("layers")
    path = tmp_path / "t.parquet"
    table.save(path)
    same(pyarrow.parquet.read_table(path), table)
    assert table["path"] == ["", "größe|&_<b>", "層"]
    assert table["forward_ns"] == [None, None, None]


@pytest.mark.parametrize("suffix", ["json", "csv", "md", "html", "tex", "parquet"])
@pytest.mark.parametrize("command", ["kernels", "ops", "calls", "steps", "parameters", "sizes"])
def test_the_command_writes_what_python_does(
    zoo: Recorded, tmp_path: Path, command: str, suffix: str
) -> None:
    if (command, suffix) == ("kernels", "json"):
        pytest.skip("is the document of docs/json.md")
    path = tmp_path / f"table.{suffix}"
    layertrace_output(command, zoo.path, "-o", path)
    mine = tmp_path / f"mine.{suffix}"
    if command == "calls":
        layertrace.calls(zoo.path).save(mine)
    else:
        kind = {"ops": "operators"}.get(command, command)
        layertrace.load(zoo.path).table(kind).save(mine)
    assert path.read_bytes() == mine.read_bytes()


def test_the_command_keeps_its_json(zoo: Recorded) -> None:
    layers = json.loads(layertrace_output("layers", zoo.path))
    assert {"layers", "steps", "health"} <= set(layers)
    assert set(json.loads(layertrace_output("kernels", zoo.path, "--format", "json"))) == {
        "kernels"
    }


def test_a_terminal_gets_no_parquet(zoo: Recorded) -> None:
    ours, terminal = pty.openpty()
    words = [BIN, "sizes", zoo.path, "--format", "parquet"]
    refused = subprocess.run(words, stdout=terminal, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(terminal)
    os.close(ours)
    assert refused.returncode == 1
    assert refused.stderr == (
        "layertrace: cannot write Parquet to a terminal: it is no text. "
        "Name a file with -o, or send the output to one\n"
    )


def test_the_command_refuses_an_unknown_format(zoo: Recorded) -> None:
    failed = layertrace_command("layers", zoo.path, "--format", "xml")
    assert failed.returncode == 2
    assert "json, csv, md, html, latex, parquet" in failed.stderr
    failed = layertrace_command("sizes", zoo.path, "--columns", "size")
    assert failed.returncode == 2
    assert "Use one of: module, type" in failed.stderr


def test_a_suffix_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    trace = TRACES / "residual_cnn_counted_gpu.pftrace"
    result = layertrace_command("layers", trace, "-o", tmp_path / "layers.xlsx")
    assert result.returncode == 2
    assert "json, csv, md" in result.stderr
    assert not (tmp_path / "layers.xlsx").exists()
    assert layertrace_output("layers", trace, "-o", tmp_path / "L.CSV") == ""
    assert (tmp_path / "L.CSV").read_text().startswith("path,")


def test_options_of_a_table_are_not_for_the_whole_profile() -> None:
    trace = TRACES / "residual_cnn_counted_gpu.pftrace"
    for options in (("--module", "blocks.0"), ("--columns", "path,type"), ("--limit", "3")):
        result = layertrace_command("layers", trace, *options)
        assert result.returncode == 2
        assert "--format csv" in result.stderr
    rows = layertrace_output("layers", "--columns", "path,type", trace, "--format", "csv")
    assert rows.splitlines()[0] == "path,type"
    assert (
        len(layertrace_output("layers", trace, "--format", "csv", "--limit", "3").splitlines()) == 4
    )
