"""What a session leaves: files, exceptions, errors that say what to do, a table in a notebook."""

from __future__ import annotations

import doctest
import gc
import html.parser
import json
import pickle
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import calls, train, trained
from models import Calls, Pair
from recorded import record
from torch import Tensor, nn
from trace_decoder import decode

import layertrace
import layertrace._session

# ---- Files ----------------------------------------------------------------------------------


def test_a_file_is_written(tmp_path: Path) -> None:
    model, output = Pair(), tmp_path / "run.pftrace"
    part = tmp_path / "run.pftrace.part"
    with layertrace.profile(model, output=output) as session:
        train(model)
        session.step()
        assert part.exists()
        assert not output.exists()
    assert list(tmp_path.iterdir()) == [output]
    trace = decode(output)
    assert trace.footer is not None
    assert trace.on(trace.track_named("steps"))[0].name == "step 0"
    assert layertrace.load(output).to_dict() == session.profile.to_dict()


def test_without_output_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    trained(Pair())
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_saved_and_loaded_it_is_the_same_profile(tmp_path: Path) -> None:
    model = nn.Sequential(Pair(), nn.ReLU(), Pair())
    with layertrace.profile(model) as session:
        for _ in range(3):
            train(model)
            session.step()
    session.save(tmp_path / "a.pftrace")
    session.save(str(tmp_path / "b.pftrace"))
    for name in ("a", "b"):
        loaded = layertrace.load(tmp_path / f"{name}.pftrace")
        assert loaded.to_dict() == session.profile.to_dict()
        assert loaded.to_json() == session.profile.to_json()
        assert loaded.tree() == session.tree()
    as_dict = session.profile.to_dict()
    assert json.loads(session.profile.to_json()) == as_dict
    assert [layer["path"] for layer in as_dict["layers"]] == list(calls(session.profile))
    assert len(as_dict["steps"]) == 3
    assert as_dict["health"]["nodes"] == session.profile.health.nodes


def test_the_folder_is_gone_when_it_ends(tmp_path: Path) -> None:
    """The training must not be lost for a trace: a warning, and the result is there."""
    folder, model = tmp_path / "gone", Pair()
    folder.mkdir()
    with (
        pytest.warns(layertrace.LayertraceWarning, match=re.escape(str(folder))),
        layertrace.profile(model, output=folder / "run.pftrace") as session,
    ):
        train(model)
        session.step()
        shutil.rmtree(folder)
    assert session.profile.find("a").calls == 1  # type: ignore[union-attr]
    session.save(tmp_path / "elsewhere.pftrace")
    assert layertrace.load(tmp_path / "elsewhere.pftrace").to_json() == session.profile.to_json()


def test_stop_raises_where_the_block_warns(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    session = layertrace.profile(Pair(), output=folder / "run.pftrace").start()
    shutil.rmtree(folder)
    with pytest.raises(layertrace.Error, match="cannot write"):
        session.stop()


# ---- Exceptions -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_exception_passes_and_the_trace_is_complete(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    error = kind("mine")

    def fail(_: nn.Module, x: Tensor) -> Tensor:
        raise error

    model = Calls(lambda self, x: self.bad(self.a(x)), a=nn.Linear(3, 3), bad=Calls(fail))
    output = tmp_path / "run.pftrace"
    with pytest.raises(kind) as raised, layertrace.profile(model, output=output) as session:
        train(model)
    assert raised.value is error
    assert list(tmp_path.iterdir()) == [output]
    health = layertrace.load(output).health
    assert not health.cut
    assert health.cut_scopes == 0
    assert health.thrown_scopes == 2  # the module, and the one that called it
    ended = {each.name: each.end_args.get("ended_by") for each in decode(output).slices}
    assert ended.items() >= {"Calls": "exception", "bad": "exception", "a": None}.items()
    assert calls(session.profile) == {"": 1, "a": 1, "bad": 1}


def test_an_exception_that_the_model_catches() -> None:
    """What comes after it is in its caller's scope again."""

    def fail(_: nn.Module, x: Tensor) -> Tensor:
        raise ValueError("mine")

    def forward(self: Any, x: Tensor) -> Tensor:
        with pytest.raises(ValueError, match="mine"):
            self.bad(x)
        return self.a(x).cosh()  # type: ignore[no-any-return]

    model, x = Calls(forward, a=nn.Linear(3, 3), bad=Calls(fail)), torch.randn(2, 3)
    run = record(model, lambda: model(x))
    assert run.operators_of("", "forward")["aten::cosh"] == 1
    (a,) = (each for each in run.slices if each.name == "a")
    assert a.parent is not None
    assert a.parent.path == ""


# ---- Errors ---------------------------------------------------------------------------------


def error_of(call: Callable[[], object]) -> layertrace.Error:
    with pytest.raises(layertrace.Error) as raised:
        call()
    error = raised.value
    assert error.tried
    assert error.cause
    for part in (error.tried, error.cause, error.remedy):
        assert part in str(error)
    return error


def test_a_second_session() -> None:
    model = Pair()
    with layertrace.profile(model) as session:
        error = error_of(layertrace.profile(model).start)
        assert "already active" in error.cause
        assert "Stop it" in error.remedy
        train(model)  # the first one goes on
    assert session.profile.find("a").calls == 1  # type: ignore[union-attr]
    assert "started before" in error_of(session.start).cause
    assert "stopped before" in error_of(session.stop).cause


def test_a_session_that_was_not_started() -> None:
    session = layertrace.profile(Pair())
    for call in (session.stop, session.tree, lambda: session.profile, lambda: session.save("x")):
        error = error_of(call)
        assert "not been started" in error.cause
        assert "start()" in error.remedy
    session.step()  # does nothing
    assert session._repr_html_() is None


def test_options_of_the_tree() -> None:
    profile = trained(nn.Sequential(Pair(), Pair(), Pair()))
    full = profile.tree(fold=False)
    assert re.findall(r"── (\w) +Linear", full) == ["a", "b"] * 3
    assert "3 × Pair" in profile.tree()
    assert "3 × Pair" not in full
    assert "3 x Pair" in profile.tree(ascii=True)
    assert profile.tree(ascii=True).isascii()
    assert profile.tree(fold=False, depth=1).count("2 layers below") == 3
    assert profile.tree(start="1", fold=False).count("Linear") == 2
    assert "\x1b[" in profile.tree(color=True)
    assert "\x1b[" not in profile.tree()
    assert max(map(len, profile.tree(width=50).splitlines())) <= 50
    columns = profile.tree(columns=["self", "busy"])
    assert "busy" in columns
    assert "backward" not in columns.splitlines()[3]
    by_name = profile.tree(sort="name", fold=False)
    assert sorted(by_name.splitlines()[4:13]) == sorted(full.splitlines()[4:13])
    assert str(profile) == profile.tree()


def test_options_that_do_not_exist() -> None:
    profile = trained(Pair())
    error = error_of(lambda: profile.tree(columns=["type", "colour"]))
    assert "colour" in error.tried
    assert "activity_time" in error.remedy
    error = error_of(lambda: profile.tree(sort="colour"))
    assert "definition" in error.remedy
    assert '"colour"' in profile.tree(start="colour")
    with pytest.raises(TypeError):
        profile.tree(colour=True)  # type: ignore[call-arg]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pftrace"
    error = error_of(lambda: layertrace.load(missing))
    assert str(missing) in error.tried
    assert "No such file" in error.cause
    text = tmp_path / "text.pftrace"
    text.write_text("layer,time\n" * 100)
    error = error_of(lambda: layertrace.load(text))
    assert "plain text" in error.cause
    assert error.remedy


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    model, output = Pair(), tmp_path / "missing" / "run.pftrace"
    error = error_of(layertrace.profile(model, output=output).start)
    assert str(output) in error.tried
    assert "Create the folder" in error.remedy
    with layertrace.profile(model) as session:  # nothing of the failed one is left
        train(model)
    error_of(lambda: session.save(output))


def test_names_that_models_cannot_have() -> None:
    model = Pair()
    assert "dot" in error_of(layertrace.profile({"a.b": model}).start).cause
    assert "no name" in error_of(layertrace.profile({"": model, "b": model}).start).cause


@pytest.mark.parametrize("model", [3, [nn.Linear(1, 1)], {}, {"a": 3}, {3: nn.Linear(1, 1)}, "m"])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(TypeError, match=r"takes an nn\.Module, or a dict of names"):
        layertrace.profile(model)


def test_what_is_no_model_leaves_no_half_made_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is printed about an exception that was ignored."""
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with pytest.raises(TypeError):
        layertrace.profile([nn.Linear(1, 1)])  # type: ignore[arg-type]
    gc.collect()
    assert ignored == []


NO_OPTIMIZER = r"takes a torch\.optim\.Optimizer or several.*session\.step"


def test_what_is_no_optimizer() -> None:
    with pytest.raises(TypeError, match=NO_OPTIMIZER):
        layertrace.profile(Pair(), optimizer=[3])  # type: ignore[list-item]


def test_what_is_no_optimizer_nor_several() -> None:
    with pytest.raises(TypeError, match=NO_OPTIMIZER):
        layertrace.profile(Pair(), optimizer=3)  # type: ignore[arg-type]


def test_errors_can_be_sent_to_another_process() -> None:
    error = layertrace.Error("cannot fly", "no wings", "Grow some")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == "cannot fly: no wings. Grow some"
    assert (copy.tried, copy.cause, copy.remedy) == ("cannot fly", "no wings", "Grow some")


# ---- Notebooks and docs ---------------------------------------------------------------------


class Text(html.parser.HTMLParser):
    """The words of a piece of HTML; raises where its tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data.replace("─", " ").split()

    def close(self) -> None:
        super().close()
        assert self._open == []


def test_a_notebook_shows_it_as_html() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        return nn.Tanh()(self.pair(x))  # type: ignore[no-any-return]

    model = Calls(forward, pair=Pair())
    with layertrace.profile(model) as session:
        train(model)
        session.step()
    text = Text()
    shown = session._repr_html_()
    assert shown is not None
    text.feed(shown)
    text.close()
    assert {"div", "table", "tr", "td"} <= set(text.tags)
    assert not {"script", "link", "style"} & set(text.tags)
    assert {"Calls", "pair", "Pair", "a", "b", "Linear", "<Tanh>"} <= set(text.words)
    assert shown == session.profile._repr_html_()


def test_the_docstrings_examples_run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = doctest.testmod(layertrace._session, extraglobs={"layertrace": layertrace})
    assert results.attempted >= 6
    assert results.failed == 0


# ---- What a user sees of it -----------------------------------------------------------------


def test_results_are_sequences_that_only_read() -> None:
    profile = trained(Pair())
    layers = profile.layers
    assert isinstance(layers, Sequence)
    assert layers[-1].path == layers[len(layers) - 1].path
    assert [layer.path for layer in layers[1:]] == [layer.path for layer in layers][1:]
    assert [layer.path for layer in layers[::-1]] == [layer.path for layer in reversed(layers)]
    with pytest.raises(IndexError):
        layers[len(layers)]
    with pytest.raises(IndexError):
        layers[-len(layers) - 1]
    for change in ("append", "clear", "pop", "__setitem__", "__delitem__"):
        assert not hasattr(layers, change)
        assert not hasattr(profile.steps, change)


def test_a_layer_keeps_its_profile_alive() -> None:
    layer = trained(Pair()).layers[1:][0]
    others = [trained(Pair()) for _ in range(3)]
    gc.collect()
    assert layer.path == others[0].layers[1].path == "a"
    assert layer.forward.host_ns.mean > 0


def test_without_a_gpu_there_are_no_kernels() -> None:
    profile = trained(Pair())
    assert len(profile.kernels) == 0
    assert list(profile.kernels) == profile.idle == profile.steps[0].devices == []
    assert profile.layers[1].forward.launches.max == 0
    assert profile.layers[1].forward.event_ns.max == profile.layers[1].forward.idle_ns.max == 0
    assert (profile.health.gpu.timing, profile.health.gpu.event_pairs) == ("", 0)
    assert "No GPU was recorded" in profile.kernels_table(limit=5)
    assert profile.kernels_table(module="c") == 'no layer "c" in this profile; "Pair" has a, b\n'
    with pytest.raises(layertrace.Error, match="time, count, name"):
        profile.kernels_table(sort="size")


def test_results_say_what_they_are() -> None:
    profile = trained(Pair())
    assert repr(profile.layers[1]) == "Layer(path='a', type='Linear', calls=1.0)"
    assert repr(profile.layers).startswith("[Layer(path='', type='Pair', calls=1.0), Layer(")
    assert repr(profile.layers[1].forward.calls) == (
        "Stat(mean=1.0, min=1.0, max=1.0, median=1.0, stdev=0.0)"
    )
    assert repr(profile.layers[1].forward).startswith("PhaseStats(calls=Stat(mean=1.0, ")
    assert repr(profile.steps[0]) == f"Step(index=0, wall_ns={profile.steps[0].wall_ns})"
    assert repr(layertrace.schedule(skip=5, record=2)) == (
        "Schedule(skip=5, warmup=0, record=2, repeat=1)"
    )
    assert repr(profile.health).endswith("dropped=0, cut=False)")


@pytest.mark.parametrize("columns", ["type,forward", " type , forward", ["type", "forward"]])
def test_columns_are_a_list_or_a_text(columns: object) -> None:
    profile = layertrace.summary(nn.Linear(2, 2), torch.randn(1, 2))
    expected = profile.tree(columns=("type", "forward"))
    assert profile.tree(columns=columns) == expected  # type: ignore[arg-type]
    assert "forward" in expected


def test_columns_that_are_none_of_these() -> None:
    profile = layertrace.summary(nn.Linear(2, 2), torch.randn(1, 2))
    for wrong in (3, [3], [None]):
        with pytest.raises(TypeError, match="columns are names, as in"):
            profile.tree(columns=wrong)  # type: ignore[arg-type]
    with pytest.raises(layertrace.Error, match=r'"colour" as a column.*Use one of: type, '):
        profile.tree(columns="type,colour")


def test_a_path_is_not_cut_at_a_null_character(tmp_path: Path) -> None:
    for read in (layertrace.load, layertrace.import_trace):
        with pytest.raises(ValueError, match="null character"):
            read(f"{tmp_path}/a.json\0b")
    with pytest.raises(ValueError, match="null character"):
        layertrace.import_trace(tmp_path / "a.json", f"{tmp_path}/out\0.pftrace")
