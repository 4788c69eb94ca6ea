"""Profile.graph, Profile.report and Profile.plot, and how memory goes over a step."""

from __future__ import annotations

import base64
import html.parser
import json
import shutil
import struct
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import train
from models import Pair
from support import SOURCE_DIR
from torch import nn

import layertrace

TRACES = SOURCE_DIR / "traces"


@pytest.fixture(scope="module")
def of_gpu() -> layertrace.Profile:
    return layertrace.load(TRACES / "residual_cnn_counted_gpu.pftrace")


@pytest.fixture(scope="module")
def of_cpu() -> layertrace.Profile:
    return layertrace.load(TRACES / "residual_cnn.pftrace")


# ---- Graph ----------------------------------------------------------------------------------


def test_dot_draws_a_box_for_each_layer(of_cpu: layertrace.Profile, tmp_path: Path) -> None:
    path = tmp_path / "tree.svg"
    of_cpu.graph(fold=False).save(path)
    root = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    boxes = [group for group in root.iter(f"{space}g") if group.get("class") == "node"]
    edges = [group for group in root.iter(f"{space}g") if group.get("class") == "edge"]
    assert len(boxes) == len(of_cpu.layers)
    assert len(edges) == len(of_cpu.layers) - 1
    texts = {text.text for box in boxes for text in box.iter(f"{space}text")}
    assert {"ResidualNet", "blocks", "BatchNorm2d"} <= texts


def test_a_graph_shows_less_of_it(of_cpu: layertrace.Profile, tmp_path: Path) -> None:
    assert "3 × ResidualBlock" in str(of_cpu.graph())
    shallow = of_cpu.graph(depth=1)
    assert "conv1" not in shallow.dot
    assert '"head\\n' in shallow.dot
    assert '"head\\n' not in of_cpu.graph(start="blocks.0").dot
    with pytest.raises(layertrace.Error, match=r"cannot draw blocks\.99: no layer has this path"):
        of_cpu.graph(start="blocks.99")
    shallow.save(tmp_path / "tree.gv")
    assert (tmp_path / "tree.gv").read_text() == shallow.dot


def test_a_graph_tells_what_is_asked_for() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    model[2].requires_grad_(False)
    profile = layertrace.summary(model, torch.randn(1, 3, 8, 8))
    for columns in ("type,kernel_size,params", ["type", "kernel_size", "params"]):
        dot = profile.graph(columns=columns).dot
        assert r"0\nType=Conv2d\nKernel Size=3 × 3\nParameters=112" in dot
        assert r"2\nType=Linear\nParameters=14" in dot
    trainable = profile.graph(trainable=True)
    assert "Conv2d" in trainable.dot
    assert "Linear" not in trainable.dot and "ReLU" not in trainable.dot
    if shutil.which("dot"):
        ElementTree.fromstring(profile.graph(columns="type", trainable=True).render())
    with pytest.raises(layertrace.Error, match="Use one of: type, forward"):
        profile.graph(columns="speed")
    assert profile.table("layers", trainable=True)["path"] == ["", "0"]


def test_without_dot_a_graph_says_what_to_do(
    of_cpu: layertrace.Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = of_cpu.graph(depth=1)
    shown = graph._repr_svg_()
    assert shown is not None
    assert "</svg>" in shown
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert graph._repr_svg_() is None
    with pytest.raises(layertrace.Error, match=r"no `dot` on PATH\. Install Graphviz"):
        graph.save(tmp_path / "tree.svg")
    assert not (tmp_path / "tree.svg").exists()
    with pytest.raises(layertrace.Error, match=r"one of: \.dot, \.gv, \.svg, \.pdf, \.png"):
        graph.save(tmp_path / "tree.txt")


# ---- Report ---------------------------------------------------------------------------------


class Scripts(html.parser.HTMLParser):
    """The text of each script element, by its id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str | None, str] = {}
        self._id: str | None = None
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self._id = dict(attrs).get("id")
            self.texts[self._id] = ""
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._id] += data


def test_a_report_is_one_page(of_gpu: layertrace.Profile, tmp_path: Path) -> None:
    trace = TRACES / "residual_cnn_counted_gpu.pftrace"
    path = of_gpu.report(tmp_path / "run.html", title="mine", trace=trace)
    assert path == tmp_path / "run.html"
    scripts = Scripts(path.read_text())
    data = json.loads(scripts.texts["data"])
    assert data["title"] == "mine"
    assert data["layers"]["path"] == [layer.path for layer in of_gpu.layers]
    assert data["layers"]["gpu_backward"] == [
        pytest.approx(layer.backward.busy_ns.mean, abs=1) for layer in of_gpu.layers
    ]
    assert scripts.texts["trace"] == ""


def test_a_report_holds_the_trace_where_asked(of_cpu: layertrace.Profile, tmp_path: Path) -> None:
    trace = TRACES / "residual_cnn.pftrace"
    page = of_cpu.report(tmp_path / "run.html", trace=trace, embed_trace=True).read_text()
    assert base64.b64decode(Scripts(page).texts["trace"], validate=True) == trace.read_bytes()
    with pytest.raises(layertrace.Error, match="not known which file"):
        of_cpu.report(tmp_path / "run.html", embed_trace=True)
    large = tmp_path / "large.pftrace"
    with large.open("wb") as file:
        file.truncate(40 << 20)
    with pytest.raises(layertrace.Error, match="it has 40 MiB, and at most 32 MiB fit"):
        of_cpu.report(tmp_path / "run.html", trace=large, embed_trace=True)


# ---- Plot -----------------------------------------------------------------------------------


def names_of(figure: Any) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.project = nn.Linear(64, 64)
        self.mix = Mix()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x, x, x, need_weights=False)[0]
        return self.mix(self.project(x))  # type: ignore[no-any-return]


class Mix(nn.Module):
    """Multiplies by itself what a layer below it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate(x)
        for _ in range(8):
            x = x @ gate.transpose(-1, -2) @ x
        return x


def test_a_layer_that_does_the_work_itself_is_seen(tmp_path: Path) -> None:
    """MultiheadAttention has a layer below it that it never calls; another calls one, and computes
    something between."""
    model = Attends()
    with layertrace.profile(model) as session:
        for _ in range(2):
            model(torch.randn(4, 64, 64)).sum().backward()
            session.step()
    profile = session.profile
    figure = profile.plot(limit=100)
    names = [name for name in names_of(figure) if not name.startswith("Attends")]
    assert names == ["attention", "project", "mix, its own", "mix.gate"]
    attention, mix = profile.find("attention"), profile.find("mix")
    assert attention is not None and mix is not None
    forward = dict(zip(names_of(figure), figure.axes[0].containers[0], strict=True))
    scale = {"ms": 1e6, "µs": 1e3, "s": 1e9}[figure.axes[0].get_xlabel().split("(")[1][:-1]]
    assert forward["attention"].get_width() * scale == pytest.approx(attention.forward.host_ns.mean)
    own = mix.forward.self_host_ns.mean
    assert forward["mix, its own"].get_width() * scale == pytest.approx(own)
    # The roofline of the page has them, too.
    data = json.loads(Scripts(profile.report(tmp_path / "run.html").read_text()).texts["data"])
    assert [data["layers"]["path"][each["layer"]] for each in data["own"]] == ["mix"]
    assert data["own"][0]["rate"] > 0 and data["own"][0]["intensity"] > 0
    at = data["layers"]["path"].index("attention")
    assert data["layers"]["rate"][at] > 0


@pytest.mark.parametrize("kind", ["both", "forward", "backward"])
def test_a_plot_has_a_bar_for_each_layer(
    of_cpu: layertrace.Profile, kind: str, tmp_path: Path
) -> None:
    figure = of_cpu.plot(kind, tmp_path / "layers.png")
    header = (tmp_path / "layers.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert min(struct.unpack(">II", header[16:])) > 300
    (axes,) = figure.axes
    leaves = {layer.path: layer for layer in of_cpu.layers if layer.ran and not layer.children}
    drawn = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert set(drawn) == ({"forward", "backward"} if kind == "both" else {kind})
    assert axes.get_xlabel() == "host time per step (ms)"
    names = names_of(figure)
    assert [name for name in names if not name.endswith(", its own")] == list(leaves)
    for phase, widths in drawn.items():
        for name, width in zip(names, widths, strict=True):
            if name in leaves:
                expected = getattr(leaves[name], phase).host_ns.mean
            else:
                layer = of_cpu.find(name.removesuffix(", its own"))
                assert layer is not None
                expected = getattr(layer, phase).self_host_ns.mean
            assert width == pytest.approx(expected / 1e6), name


def test_a_plot_is_of_the_gpu_where_there_is_one(
    of_gpu: layertrace.Profile, of_cpu: layertrace.Profile, tmp_path: Path
) -> None:
    figure = of_gpu.plot(path=tmp_path / "layers.svg", limit=5)
    ElementTree.parse(tmp_path / "layers.svg")
    (axes,) = figure.axes
    assert axes.get_xlabel().startswith("GPU time per step")
    assert axes.get_title(loc="left") == (
        "Layers, each without those below it, the 5 of "
        f"{sum(layer.ran and not layer.children for layer in of_gpu.layers)} that took longest\n"
        f"On a {of_gpu.run.simulated}: its times say nothing about how fast a real GPU is"
    )
    assert "\n" not in of_cpu.plot().axes[0].get_title(loc="left")
    assert of_gpu.plot(clock="host").axes[0].get_xlabel().startswith("host time")
    with pytest.raises(layertrace.Error, match="no GPU was recorded"):
        of_cpu.plot(clock="gpu")


def test_a_plot_that_cannot_be_says_why(
    of_cpu: layertrace.Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(layertrace.Error, match="Use one of: both, forward, backward"):
        of_cpu.plot("sideways")
    with pytest.raises(layertrace.Error, match=r"one of: \.png, \.svg, \.pdf"):
        of_cpu.plot(path=tmp_path / "layers.doc")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        of_cpu.plot()


# ---- Memory over a step ---------------------------------------------------------------------


def test_memory_goes_up_to_its_peak_and_is_the_same_from_the_file(tmp_path: Path) -> None:
    model, output = Pair(), tmp_path / "run.pftrace"
    with layertrace.profile(model, output=output) as session:
        train(model)
        session.step()
        kept = torch.zeros(1 << 20)  # 4 MiB, after the counted step
        session.step()
    del kept
    (host,) = session.profile.device_memory
    assert 1 < len(host.timeline) <= 2000
    assert max(point.bytes for point in host.timeline) == host.peak
    assert host.peak_ns in [point.ns for point in host.timeline]
    times = [point.ns for point in host.timeline]
    assert times == sorted(times)
    assert {"forward", "backward"} <= {point.phase for point in host.timeline}
    (loaded,) = layertrace.load(output).device_memory
    told = [(point.ns, point.bytes, point.layer, point.phase) for point in host.timeline]
    read = [(point.ns, point.bytes, point.layer, point.phase) for point in loaded.timeline]
    assert read == told


def test_a_run_on_a_simulated_gpu_shows_its_memory(of_gpu: layertrace.Profile) -> None:
    _, device = of_gpu.device_memory
    assert device.device == 0
    assert max(point.bytes for point in device.timeline) == device.peak
