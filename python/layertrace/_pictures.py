"""Profile.graph, Profile.report and Profile.plot: a profile as something to look at."""

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layertrace import _core
from layertrace._errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from layertrace._core import Layer, Profile, Throughput

_DRAWN_BY_DOT = ("svg", "pdf", "png")
_PLOTS = ("png", "svg", "pdf")
_KINDS = ("both", "forward", "backward")
_CLOCKS = ("gpu", "host")
_MOST_BARS = 40
_LEAST_OWN_SHARE = 0.01
_FORWARD, _BACKWARD = "#2a78b8", "#e0982c"
_MIB = 1 << 20


def _ending(path: str | os.PathLike[str], known: tuple[str, ...]) -> str:
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in known:
        names = ", ".join("." + each for each in known)
        raise Error(
            f"cannot write {os.fspath(path)}",
            "its ending does not say what it is to be",
            f"Give a name that ends in one of: {names}",
        )
    return ending


def _one_of(name: str, what: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise Error(
            f'cannot use "{name}" as a {what}', "no such name", f"Use one of: {', '.join(known)}"
        )


class Graph:
    """The layers in Graphviz' language; a notebook shows it where the program `dot` is there.

    profile.graph(depth=2).save("tree.svg")
    """

    def __init__(self, dot: str) -> None:
        self.dot = dot

    def render(self, format: str = "svg") -> bytes:
        """The picture, drawn by `dot`: "svg", "pdf" or "png"."""
        _one_of(format, "format", _DRAWN_BY_DOT)
        tried = f"cannot draw the graph as {format}"
        program = shutil.which("dot")
        if program is None:
            raise Error(
                tried,
                "there is no `dot` on PATH",
                "Install Graphviz (Debian: apt-get install graphviz), or save it as .dot and draw "
                "it elsewhere",
            )
        command = [program, f"-T{format}"]
        drawn = subprocess.run(command, input=self.dot.encode(), capture_output=True, check=False)
        if drawn.returncode != 0:
            raise Error(tried, f"`dot` failed: {drawn.stderr.decode(errors='replace').strip()}")
        return drawn.stdout

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it, by the ending: .dot or .gv as text, .svg, .pdf or .png as a picture."""
        ending = _ending(path, ("dot", "gv", *_DRAWN_BY_DOT))
        is_text = ending in ("dot", "gv")
        Path(path).write_bytes(self.dot.encode() if is_text else self.render(ending))

    def __str__(self) -> str:
        return self.dot

    def _repr_svg_(self) -> str | None:
        return self.render().decode() if shutil.which("dot") else None


def graph(
    profile: "Profile",
    *,
    depth: int | None = None,
    start: str = "",
    fold: bool = True,
    columns: "str | Sequence[str] | None" = None,
    trainable: bool = False,
) -> Graph:
    if start and profile.find(start) is None:
        raise Error(
            f"cannot draw {start}", "no layer has this path", "The layers have those that exist"
        )
    return Graph(_core.graph_dot(profile, depth, start, fold, columns, trainable))


def report(
    profile: "Profile",
    path: str | os.PathLike[str],
    *,
    title: str = "",
    trace: str | os.PathLike[str] | None = None,
    embed_trace: bool = False,
) -> Path:
    content = b""
    if embed_trace:
        if trace is None:
            raise Error(
                "cannot keep the trace in the page",
                "it is not known which file that is",
                'Give it: report(path, trace="run.pftrace", embed_trace=True)',
            )
        size = Path(trace).stat().st_size
        if size > _core.largest_embedded_trace:
            raise Error(
                f"cannot keep {os.fspath(trace)} in the page",
                f"it has {size // _MIB} MiB, and at most "
                f"{_core.largest_embedded_trace // _MIB} MiB fit",
                "Leave embed_trace out; `layertrace view` opens the trace",
            )
        content = Path(trace).read_bytes()
    name = "" if trace is None else os.fspath(trace)
    page = _core.report_html(profile, title, name, content)
    written = Path(path)
    written.write_text(page, encoding="utf-8")
    return written


def _times(layer: "Layer", figure: str) -> tuple[float, float]:
    phases = layer.phases

    def mean(phase: str) -> float:
        return float(getattr(phases[phase], figure).mean)

    return mean("forward") + mean("loss"), mean("backward")


def _own_times(layers: "Sequence[Layer]", layer: "Layer", figure: str) -> tuple[float, float]:
    """Without the layers below it."""
    own = {"host_ns": "self_host_ns", "busy_ns": "self_activity_ns"}.get(figure)
    if own is not None:
        return _times(layer, own)
    # CUDA events are around each layer.
    below = [_times(layers[child], figure) for child in layer.children]
    forward, backward = _times(layer, figure)
    return (
        max(0.0, forward - sum(each for each, _ in below)),
        max(0.0, backward - sum(each for _, each in below)),
    )


_Bar = tuple[str, float, float]


def _bars(layers: "Sequence[Layer]", figure: str) -> list[_Bar]:
    """Where time is spent: each layer without those below it, in the order of the model.

    Of the layers above others, which do little but call them, those that take a hundredth of the
    whole themselves: an attention between its projections, the root around its functional calls.
    """
    called_below = [False] * len(layers)
    for index in range(len(layers) - 1, -1, -1):  # children come after their parents
        parent = layers[index].parent
        if parent is not None and (layers[index].calls > 0 or called_below[index]):
            called_below[parent] = True
    whole = sum(sum(_times(layer, figure)) for layer in layers if layer.parent is None)
    bars: list[_Bar] = []
    for layer, is_above in zip(layers, called_below, strict=True):
        if not layer.ran or (layer.parent is not None and not called_below[layer.parent]):
            continue  # nothing ran of it, or it is part of the one above, which did the work
        name = layer.path or layer.name
        if not is_above:
            bars.append((name, *_times(layer, figure)))
            continue
        forward, backward = _own_times(layers, layer, figure)
        if forward + backward >= _LEAST_OWN_SHARE * whole > 0:
            bars.append((f"{name}, its own", forward, backward))
    return bars


def _figure_class() -> "type[Figure]":
    try:
        return importlib.import_module("matplotlib.figure").Figure  # type: ignore[no-any-return]
    except ImportError as error:
        raise ImportError(
            "layertrace cannot plot: there is no matplotlib. Install it: pip install matplotlib"
        ) from error


def plot(
    profile: "Profile",
    kind: str = "both",
    path: str | os.PathLike[str] | None = None,
    *,
    clock: str | None = None,
    limit: int = _MOST_BARS,
) -> "Figure":
    _one_of(kind, "kind of plot", _KINDS)
    has_gpu = bool(profile.run.device)
    clock = clock or ("gpu" if has_gpu else "host")
    _one_of(clock, "clock", _CLOCKS)
    if clock == "gpu" and not has_gpu:
        raise Error("cannot plot the GPU's time", "no GPU was recorded", 'Use clock="host"')
    if path is not None:
        _ending(path, _PLOTS)
    figure_class = _figure_class()

    events_only = profile.health.gpu.timing == "events"
    by = "host_ns" if clock == "host" else "event_ns" if events_only else "busy_ns"
    all_bars = [
        (name, forward if kind != "backward" else 0, backward if kind != "forward" else 0)
        for name, forward, backward in _bars(profile.layers, by)
    ]
    longest = sorted(all_bars, key=lambda bar: bar[1] + bar[2], reverse=True)[: max(1, limit)]
    bars = [bar for bar in all_bars if bar in longest]
    return _draw(figure_class, bars, len(all_bars), kind, clock, path, profile.run.simulated)


def _draw(
    figure_class: "type[Figure]",
    bars: list[_Bar],
    of: int,
    kind: str,
    clock: str,
    path: str | os.PathLike[str] | None,
    simulated: str,
) -> "Figure":
    most = max((forward + backward for _, forward, backward in bars), default=0.0)
    unit, scale = next(
        ((unit, scale) for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if most >= scale),
        ("ns", 1.0),
    )
    figure = figure_class(figsize=(9, max(2.4, 1.3 + 0.24 * len(bars))), layout="constrained")
    axes: Any = figure.add_subplot()
    # A dollar would begin a formula.
    names = [name.replace("$", r"\$") for name, _, _ in bars]
    places = range(len(bars))
    forward = [each / scale for _, each, _ in bars]
    backward = [each / scale for _, _, each in bars]
    if kind != "backward":
        axes.barh(places, forward, height=0.72, color=_FORWARD, label="forward")
    if kind != "forward":
        left = forward if kind == "both" else None
        axes.barh(places, backward, height=0.72, left=left, color=_BACKWARD, label="backward")
    axes.set_yticks(places, names, fontsize=8)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlabel(f"{'GPU' if clock == 'gpu' else 'host'} time per step ({unit})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dfe4e9", linewidth=0.8)
    axes.set_axisbelow(True)
    shown = f", the {len(bars)} of {of} that took longest" if len(bars) < of else ""
    title = f"Layers, each without those below it{shown}"
    if simulated:
        title += f"\nOn a {simulated}: its times say nothing about how fast a real GPU is"
    axes.set_title(title.replace("$", r"\$"), fontsize=10, loc="left")
    if bars:
        axes.legend(frameon=False, fontsize=9)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def plot_throughput(sweep: "Throughput", path: str | os.PathLike[str] | None = None) -> "Figure":
    """Latency above, samples per second below, over the sizes of batches."""
    if path is not None:
        _ending(path, _PLOTS)
    figure = _figure_class()(figsize=(7, 5.5), layout="constrained")
    table = sweep.table().to_dict()
    sizes = table["batch_size"]
    above: Any = figure.add_subplot(2, 1, 1)
    above.plot(sizes, table["median_ms"], marker="o", color=_FORWARD, label="median")
    above.fill_between(
        sizes,
        table["p5_ms"],
        table["p95_ms"],
        color=_FORWARD,
        alpha=0.2,
        linewidth=0,
        label="5th to 95th percentile",
    )
    above.set_ylabel("time of a call (ms)")
    below: Any = figure.add_subplot(2, 1, 2, sharex=above)
    below.plot(sizes, table["samples_per_s"], marker="o", color=_BACKWARD)
    below.set_ylabel("samples per second")
    below.set_xlabel("batch size")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#dfe4e9", linewidth=0.8)
        axes.set_axisbelow(True)
    if len(sizes) > 1 and max(sizes) > 8 * min(sizes):
        below.set_xscale("log", base=2)
    below.set_xticks(sizes, [str(size) for size in sizes])
    below.minorticks_off()
    above.legend(frameon=False, fontsize=9)
    where = sweep.environment
    device = where.gpu or where.cpu
    simulated = ", simulated: not a GPU's times" if where.simulated else ""
    title = f"{sweep.model} on {device}{simulated}".replace("$", r"\$")
    above.set_title(title, fontsize=10, loc="left")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
