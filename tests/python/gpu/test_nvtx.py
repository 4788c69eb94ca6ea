"""Layers as NVTX ranges, read by an injection library as tools such as Nsight Systems bring one.

The witness are plain hooks of PyTorch, which write into the same file (ranges.py): what a hook sees
must lie in the range of the module that it is of.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import support
from on_simgpu import needs_simgpu
from support import BIN, BUILD_DIR, GPU_PYTHONPATH

INJECTION = str(BUILD_DIR / "lib" / "tests" / "libnvtx_injection.so")
PROGRAM = Path(__file__).parent / "ranges.py"
DEVICES = ["cpu", pytest.param("cuda", marks=needs_simgpu)]
PHASES = {
    "forward",
    "loss",
    "backward",
    "recompute",
    "optimizer",
    "communication",
    "data",
    "other",
}
# The phases in which layers have ranges; the others are regions'.
OF_LAYERS = {"forward", "backward", "recompute"}
REGIONS = {"data", "mix", "zero_grad", "backward", "SGD.step"}
ROOTS = {"Net", "ResidualNet"}  # of the script and of the example in C++


@dataclass(frozen=True)
class Range:
    category: str
    message: str

    @property
    def is_layer(self) -> bool:
        return self.category in OF_LAYERS and self.message not in REGIONS

    @property
    def path(self) -> str:
        """Of a layer; the root's range has its type for a name."""
        return "" if self.message in ROOTS else self.message


@dataclass(frozen=True)
class Event:
    """A line of the log, with the ranges that are open on its thread then, its own included."""

    thread: int
    what: str
    of: str
    open: tuple[Range, ...]


@dataclass
class Log:
    events: list[Event] = field(default_factory=list)
    left_open: dict[int, list[Range]] = field(default_factory=dict)
    messages: Counter[str] = field(default_factory=Counter)  # by how they were given

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.what in kinds]

    def between(self, first: str, last: str) -> Log:
        """What was written between two of the program's own lines."""
        (begin,) = (i for i, e in enumerate(self.events) if (e.what, e.of) == ("now", first))
        (end,) = (i for i, e in enumerate(self.events) if (e.what, e.of) == ("now", last))
        return Log(self.events[begin:end])


def read(path: Path) -> Log:
    log = Log()
    stacks: defaultdict[int, list[Range]] = defaultdict(list)
    for line in path.read_text().splitlines():
        thread, what, *of = line.split("\t")
        stack = stacks[int(thread)]
        if what in ("push", "pop", "register") and of[0] != "layertrace":
            continue  # PyTorch's own
        if what == "push":
            _, category, how, message = of
            log.messages[how] += 1
            stack.append(Range(category, message))
        elif what == "pop":
            assert stack, f"a range ends that was never begun, on thread {thread}"
            stack.pop()
        log.events.append(Event(int(thread), what, of[-1], tuple(stack)))
    log.left_open = {thread: stack for thread, stack in stacks.items() if stack}
    return log


def train(folder: Path, device: str, *words: str, listener: str | None = INJECTION) -> Log:
    program: list[str | Path] = [sys.executable, PROGRAM, device, *words]
    simulated: list[str | Path] = [BIN, "simgpu", "--"] if device == "cuda" else []
    variables = {"PYTHONPATH": GPU_PYTHONPATH, "NVTX_LOG": str(folder / "log")}
    if listener is not None:
        variables["NVTX_INJECTION64_PATH"] = listener
    result = support.run(*simulated, *program, cwd=folder, **variables)
    assert (result.returncode, result.stdout) == (0, "trained\n"), result.stderr[-3000:]
    return read(folder / "log")


@pytest.fixture(scope="module", params=DEVICES)
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Log:
    return train(tmp_path_factory.mktemp("nvtx"), request.param)


def layers_in(event: Event, *categories: str) -> list[str]:
    """The paths of the layers around it, the outermost first."""
    return [each.path for each in event.open if each.is_layer and each.category in categories]


def is_inside(path: str, outer: str) -> bool:
    return outer in ("", path) or path.startswith(outer + ".")


def test_ranges_are_balanced_on_each_thread(log: Log) -> None:
    assert log.left_open == {}
    assert len(log.of("push")) == len(log.of("pop")) > 150


def test_messages_are_registered_once(log: Log) -> None:
    """So that a push hands over a pointer, not a text."""
    assert log.messages == {"registered": len(log.of("push"))}
    registered = Counter(event.of for event in log.of("register"))
    assert set(registered.values()) == {1}
    assert registered.keys() == {event.of for event in log.of("push")}


def test_categories_are_phases(log: Log) -> None:
    pushed = [event.open[-1] for event in log.of("push")]
    assert {each.category for each in pushed} <= PHASES
    regions = {(each.category, each.message) for each in pushed if not each.is_layer}
    assert regions == {
        ("data", "data"),
        ("other", "mix"),
        ("optimizer", "zero_grad"),
        ("backward", "backward"),
        ("optimizer", "SGD.step"),
    }


def test_forward_ranges_are_the_calls_that_hooks_see(log: Log) -> None:
    """In their order; a forward that runs again inside the backward is told apart."""
    recorded = log.between("recorded", "over")
    pushed = [e.open[-1] for e in recorded.of("push") if e.open[-1].category != "backward"]
    seen = [event.of for event in recorded.of("call")]
    assert [each.path for each in pushed if each.is_layer] == seen
    again = Counter(each.path for each in pushed if each.category == "recompute")
    paths = [f"{block}{layer}" for block in ("again", "lazily") for layer in ("", ".0", ".1", ".2")]
    assert again == Counter({path: 2 for path in paths}), "once in each step that has a backward"


def test_each_hook_is_called_in_the_range_of_its_module(log: Log) -> None:
    for event in log.between("recorded", "over").of("call", "return"):
        around = layers_in(event, "forward", "recompute")
        assert around[-1] == event.of, event


def test_each_gradient_comes_in_the_backward_of_its_layer(log: Log) -> None:
    recorded = log.between("recorded", "over")
    for event in recorded.of("parameter"):
        assert layers_in(event, "backward")[-1] == event.of, event
    for event in recorded.of("gradient"):
        # What a container returns was made by the last layer in it.
        around = layers_in(event, "backward")
        assert event.of in around, event
        assert is_inside(around[-1], event.of), event
    assert len(recorded.of("gradient")) > 60
    assert len(recorded.of("parameter")) == 2 * 32, "each parameter once in a step"


def test_every_layer_with_parameters_has_a_backward(log: Log) -> None:
    recorded = log.between("recorded", "over")
    with_parameters = {event.of for event in log.of("parameter")}
    backward = {e.open[-1].path for e in recorded.of("push") if e.open[-1].category == "backward"}
    assert len(with_parameters) == 16
    assert with_parameters <= backward


def test_ranges_are_nested_as_the_module_tree(log: Log) -> None:
    """A layer's range lies in those of the modules around it. What is computed again begins a tree
    of its own, inside the node that wanted it."""
    for event in log.of("push"):
        layers = [each for each in event.open if each.is_layer]
        for outer, inner in itertools.pairwise(layers):
            begins_again = (outer.category, inner.category) == ("backward", "recompute")
            assert begins_again or is_inside(inner.path, outer.path), event
            assert (outer.category, inner.category) != ("backward", "forward"), event
            assert outer.category != "forward" or inner.category == "forward", event


def test_backward_ranges_go_through_the_tree_level_by_level(log: Log) -> None:
    """As the calls of the forward did: each layer's backward is inside its caller's."""
    recorded = log.between("recorded", "over")
    callers: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for event in recorded.of("call"):
        callers[event.of].add(tuple(layers_in(event, "forward", "recompute")))
    for event in recorded.of("gradient"):
        stack = tuple(layers_in(event, "backward"))
        # A checkpoint's backward runs in the node of the module that has called it.
        below_root = {chain[1:] if chain[:1] == ("",) else chain for chain in callers[stack[-1]]}
        assert stack[0] == ""
        assert stack[1:] in below_root, event


def test_ranges_are_on_the_thread_that_works(log: Log) -> None:
    """A device's backward is autograd's own thread's."""
    recorded = log.between("recorded", "over")
    pushed = [event for event in recorded.of("push") if event.open[-1].is_layer]
    forward = {event.thread for event in pushed if event.open[-1].category == "forward"}
    backward = {event.thread for event in pushed if event.open[-1].category == "backward"}
    assert forward == {event.thread for event in recorded.of("now")}
    assert backward == {event.thread for event in recorded.of("gradient")}


def test_a_forward_that_raises_leaves_no_range_open(log: Log) -> None:
    (place,) = (i for i, e in enumerate(log.events) if (e.what, e.of) == ("now", "caught"))
    assert log.events[place].open == ()
    # What was open until then: the root's forward, which has raised.
    assert log.events[place - 1].what == "pop"
    assert [each.path for each in log.events[place - 2].open] == [""]


def test_a_backward_that_raises_leaves_no_range_open(log: Log) -> None:
    """On the thread of the node that raises, before the error reaches who called backward()."""
    broken = log.between("over", "caught in backward")
    (raises,) = (event for event in broken.events if (event.what, event.of) == ("now", "raises"))
    assert layers_in(raises, "backward") == ["", "blocks.1"]
    after = broken.events[broken.events.index(raises) + 1 :]
    assert {event.what for event in after} == {"pop"}
    assert {event.thread: event.open for event in after} == {each.thread: () for each in after}
    assert raises.thread in {event.thread for event in after}
    following = log.between("caught in backward", "stopped")
    whole = log.between("caught", "over")
    assert shown(following) == shown(whole), "the next step is shown as any other"


def shown(log: Log) -> list[tuple[Range, ...]]:
    return [event.open for event in log.of("push")]


def test_nothing_is_shown_before_and_after_the_session(log: Log) -> None:
    first = next(i for i, event in enumerate(log.events) if event.what == "push")
    assert ("now", "recorded") in [(e.what, e.of) for e in log.events[:first]]
    last = next(i for i, event in enumerate(log.events) if event.of == "stopped")
    assert [event for event in log.events[last:] if event.what in ("push", "pop")] == []
    assert len([event for event in log.events[last:] if event.what == "call"]) > 20


@pytest.mark.parametrize("device", DEVICES)
def test_switched_off_it_shows_nothing(tmp_path: Path, device: str) -> None:
    log = train(tmp_path, device, "silent")
    assert log.of("push", "pop") == []
    assert len(log.of("call")) > 100


@pytest.mark.parametrize("listener", [None, "/no/such/library.so"])
def test_without_a_listener_nothing_breaks(tmp_path: Path, listener: str | None) -> None:
    log = train(tmp_path, "cpu", listener=listener)
    assert log.of("push", "pop") == []
    assert len(log.of("call")) > 100


# ---- From C++ -------------------------------------------------------------------------------

EXAMPLE = "train_residual_cnn"
SHOWN_STEPS = 5  # all but the first, which is skipped; one of them is for warming up

Tree = tuple[str, list["Tree"]]


def expected_tree() -> Tree:
    """As the example's source has its calls. A Sequential's own are not seen in C++."""

    def leaf(path: str) -> Tree:
        return path, []

    blocks: list[Tree] = []
    for number in range(5):
        names = ["conv1", "bn1", "relu", "conv2", "bn2"]
        names += ["shortcut.0", "shortcut.1"] if number >= 3 else []
        block = f"blocks.{number}"
        blocks.append((block, [leaf(f"{block}.{name}") for name in [*names, "relu"]]))
    stem = [leaf(f"stem.{number}") for number in range(3)]
    return "", [*stem, *blocks, leaf("pool"), leaf("head")]


def reversed_tree(tree: Tree) -> Tree:
    return tree[0], [reversed_tree(child) for child in reversed(tree[1])]


def trees_of(log: Log, category: str) -> list[Tree]:
    """The ranges of layers in a phase, one in the other as they were open."""
    roots: list[Tree] = []
    open_trees: list[Tree] = []
    for event in log.of("push"):
        layers = layers_in(event, category)
        if not (event.open[-1].is_layer and event.open[-1].category == category):
            continue
        del open_trees[len(layers) - 1 :]
        tree: Tree = (layers[-1], [])
        (open_trees[-1][1] if open_trees else roots).append(tree)
        open_trees.append(tree)
    return roots


@needs_simgpu
def test_a_cpp_programs_ranges_are_its_module_tree(tmp_path: Path) -> None:
    """Forward as its source calls, backward the other way round, on autograd's own thread."""
    variables = {"NVTX_LOG": str(tmp_path / "log"), "NVTX_INJECTION64_PATH": INJECTION}
    program = (BUILD_DIR / "bin" / EXAMPLE, tmp_path / "out.pftrace")
    result = support.run(BIN, "simgpu", "--", *program, cwd=tmp_path, **variables)
    assert result.returncode == 0, result.stderr[-3000:]
    log = read(tmp_path / "log")
    assert log.left_open == {}
    assert log.messages == {"registered": len(log.of("push"))}
    assert len(log.of("push")) == len(log.of("pop"))
    tree = expected_tree()
    assert trees_of(log, "forward") == [tree] * SHOWN_STEPS
    assert trees_of(log, "backward") == [reversed_tree(tree)] * SHOWN_STEPS
    threads = {
        category: {e.thread for e in log.of("push") if e.open[-1].category == category}
        for category in ("forward", "optimizer", "data")
    }
    assert threads["forward"] == threads["optimizer"] == threads["data"]
    in_backward = {event.thread for event in log.of("push") if layers_in(event, "backward")}
    assert len(in_backward) == 1
    assert in_backward.isdisjoint(threads["forward"])
