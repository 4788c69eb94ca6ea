"""Sessions and profiles, as the C++ core gives them; written in ../binding/core.cc.

What is in `layertrace.__all__` is public. The rest is for the modules beside this one.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

import torch

version: str
"""The version of layertrace."""
format_version: int
"""The version of the trace's format that this layertrace writes."""
torch_version: str
"""The version of torch that this module was built against."""

@final
class Stat:
    """One figure over the recorded steps; a step in which it did not occur counts as 0.

    `stdev` is the sample's (n − 1). With more than 256 recorded steps (fewer where there are
    thousands of layers) `median` is taken over an even subset of them; the others are exact.
    """

    @property
    def mean(self) -> float: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...
    @property
    def median(self) -> float: ...
    @property
    def stdev(self) -> float: ...

@final
class PhaseStats:
    """A layer's figures in one phase, per step; children included unless the name says self."""

    @property
    def calls(self) -> Stat:
        """Scopes: forward, module calls; backward, runs of consecutive autograd nodes."""
    @property
    def host_ns(self) -> Stat:
        """Wall time on the host between entry and exit."""
    @property
    def self_host_ns(self) -> Stat:
        """The same without the scopes inside."""
    @property
    def activities(self) -> Stat:
        """Operators; on a GPU kernels, copies and sets."""
    @property
    def activity_ns(self) -> Stat:
        """Their times added up; time inside a nested activity is counted once, there."""
    @property
    def self_activity_ns(self) -> Stat:
        """The same without children's."""
    @property
    def busy_ns(self) -> Stat:
        """The union of their intervals: overlapping activities count once."""
    @property
    def launches(self) -> Stat:
        """Calls on the host that asked a GPU for activities."""
    @property
    def event_ns(self) -> Stat:
        """Time on a GPU's stream by CUDA events; several streams' added up."""
    @property
    def idle_ns(self) -> Stat:
        """While the host was inside, and a GPU had nothing to do."""
    @property
    def empty(self) -> bool:
        """Nothing of this layer ran in this phase."""

@final
class Layer:
    """A node of the result tree, named by its nn.Module path."""

    @property
    def path(self) -> str:
        """Dotted, as in `model.named_modules()`; "" for the root."""
    @property
    def name(self) -> str:
        """The path's last component; the class for the root."""
    @property
    def type(self) -> str:
        """The module's class: "Linear"."""
    @property
    def parent(self) -> int | None:
        """An index into `Profile.layers`, None for a root."""
    @property
    def children(self) -> list[int]:
        """Indices into `Profile.layers`."""
    @property
    def calls(self) -> float:
        """Module calls per step, forward and recompute."""
    @property
    def ran(self) -> bool:
        """It, or something below it, ran while recording."""
    @property
    def registered(self) -> bool:
        """False: not part of the model's tree; seen when it was called."""
    @property
    def shared_with(self) -> str:
        """The first path of the same module, where it has several; else ""."""
    @property
    def phases(self) -> dict[str, PhaseStats]:
        """The figures by phase.

        "forward", "loss", "backward", "recompute", "optimizer", "communication", "data", "other".
        """
    @property
    def forward(self) -> PhaseStats:
        """The same as `phases["forward"]`: inside the module's forward."""
    @property
    def backward(self) -> PhaseStats:
        """The same as `phases["backward"]`: the autograd nodes that its forward made."""
    @property
    def recompute(self) -> PhaseStats:
        """The same as `phases["recompute"]`: its forward run again inside the backward."""

@final
class Step:
    """One recorded training step."""

    @property
    def index(self) -> int:
        """Counted from the session's start, recorded or not."""
    @property
    def start_ns(self) -> int:
        """On the trace's clock."""
    @property
    def wall_ns(self) -> int: ...
    @property
    def phase_ns(self) -> dict[str, int]:
        """The step's wall time by phase, on the thread that steps."""
    @property
    def devices(self) -> list[DeviceStep]:
        """What each GPU did meanwhile, from the step on in which it first did something."""

@final
class DeviceStep:
    """What one GPU did while a step lasted, whoever had asked for it."""

    @property
    def device(self) -> int: ...
    @property
    def busy_ns(self) -> int: ...
    @property
    def idle_ns(self) -> int:
        """The rest of the step."""
    @property
    def exposed_copy_ns(self) -> int:
        """Copies and sets, while no kernel ran."""

@final
class Idle:
    """Idle time of GPUs by where the host was, per recorded step."""

    @property
    def layer(self) -> int | None:
        """An index into `Profile.layers`, None outside any."""
    @property
    def phase(self) -> str: ...
    @property
    def cause(self) -> str:
        """What the host was at: "launch", "synchronisation", "copy" or "data"."""
    @property
    def ns(self) -> float: ...
    @property
    def gaps(self) -> float:
        """Stretches of idle time that fell into it, in part or as a whole."""

@final
class Kernel:
    """One kernel, kind of copy or set, with all its launches in the recorded steps."""

    @final
    class Use:
        """Whom it serves."""

        @property
        def layer(self) -> int | None:
            """An index into `Profile.layers`, None outside any."""
        @property
        def phase(self) -> str: ...
        @property
        def count(self) -> int: ...
        @property
        def ns(self) -> int: ...

    @property
    def name(self) -> str:
        """Demangled, whole."""
    @property
    def short_name(self) -> str:
        """Without namespaces and arguments."""
    @property
    def kind(self) -> str:
        """One of "kernel", "copy" and "set"."""
    @property
    def count(self) -> int: ...
    @property
    def ns(self) -> int:
        """Their times added up."""
    @property
    def min_ns(self) -> int: ...
    @property
    def max_ns(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Of copies and sets, added up."""
    @property
    def grid(self) -> tuple[int, int, int]:
        """Of its longest run, as are the next four."""
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def registers(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def occupancy(self) -> float:
        """In 0…1, as far as registers, shared memory and the block's size allow."""
    @property
    def uses(self) -> list[Use]:
        """The longest first."""

@final
class Unattributed:
    """Why some activities or autograd nodes have no layer."""

    @final
    class Name:
        """An operator or a node that is among them, and how often."""

        @property
        def name(self) -> str: ...
        @property
        def count(self) -> int: ...

    @property
    def cause(self) -> str:
        """One clause, as the tree's last lines give it."""
    @property
    def count(self) -> int: ...
    @property
    def ns(self) -> int: ...
    @property
    def names(self) -> list[Name]:
        """The most frequent first."""

@final
class GpuHealth:
    """What became of a GPU's records."""

    @property
    def source(self) -> str:
        """ "CUPTI 130200"; "" where none were taken."""
    @property
    def timing(self) -> str:
        """ "both", "cupti" or "events"; "" where nothing was timed."""
    @property
    def cupti_version(self) -> int:
        """0 without CUPTI."""
    @property
    def records(self) -> int:
        """Delivered: activities, calls and the scopes of calls."""
    @property
    def dropped(self) -> int:
        """By the vendor's library, as it says."""
    @property
    def buffers_lost(self) -> int:
        """Handed over without memory."""
    @property
    def no_buffer(self) -> int:
        """How often one was wanted when all were in use."""
    @property
    def unknown(self) -> int:
        """Of a kind that is not known."""
    @property
    def untimed(self) -> int:
        """Activities without a start or an end; left out."""
    @property
    def reversed(self) -> int:
        """Activities that end before they begin; left out."""
    @property
    def outside_steps(self) -> int:
        """Activities asked for while nothing was recorded; left out."""
    @property
    def event_pairs(self) -> int:
        """CUDA events around layers, as pairs."""
    @property
    def events_missed(self) -> int:
        """Pairs not made or not resolved: none was free, or CUDA refused."""
    @property
    def events_capturing(self) -> int:
        """Pairs not made, since the stream was being captured."""
    @property
    def early(self) -> int:
        """Activities that begin before they were asked for; kept."""
    @property
    def earlier_graphs(self) -> int:
        """Activities of graphs captured while nothing was recorded."""

@final
class Health:
    """How much a profile explains, what went missing, and what recording cost."""

    @property
    def attributed_share(self) -> float:
        """Of activity time, in 0…1."""
    @property
    def activities(self) -> int:
        """In all recorded steps."""
    @property
    def activity_ns(self) -> int:
        """Their time, in all recorded steps."""
    @property
    def unattributed(self) -> list[Unattributed]:
        """Activities without a layer, by cause."""
    @property
    def inferred(self) -> int:
        """Activities whose layer was inferred from what ran around them."""
    @property
    def inferred_ns(self) -> int:
        """Their time, in all recorded steps."""
    @property
    def nodes(self) -> int:
        """Autograd nodes that ran, in all recorded steps."""
    @property
    def unattributed_nodes(self) -> list[Unattributed]:
        """Autograd nodes without a layer, by cause."""
    @property
    def emitted(self) -> int:
        """Records that hooks tried to write."""
    @property
    def recorded(self) -> int:
        """Records that were kept."""
    @property
    def dropped(self) -> int:
        """emitted − recorded, exactly."""
    @property
    def cut_scopes(self) -> int:
        """Scopes closed by the end of the recording, not by their own exit."""
    @property
    def thrown_scopes(self) -> int:
        """Scopes left by an exception."""
    @property
    def cut(self) -> bool:
        """The file ends without its closing record: the program was killed."""
    @property
    def scope_cost_ns(self) -> float:
        """One scope, entry and exit; measured at start on this machine."""
    @property
    def op_cost_ns(self) -> float:
        """One operator record, likewise."""
    @property
    def writer_cpu_ns(self) -> int:
        """Processor time of the writer thread."""
    @property
    def tracing_share(self) -> float:
        """Estimated share of the steps' time that recording took on the user's threads."""
    @property
    def gpu(self) -> GpuHealth:
        """What became of the GPU's records."""
    @property
    def notes(self) -> list[str]:
        """Anything else a reader must know, one sentence each."""

@final
class RunInfo:
    """Where and with what a run was made."""

    @property
    def layertrace_version(self) -> str: ...
    @property
    def format_version(self) -> int: ...
    @property
    def torch_version(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def os(self) -> str: ...
    @property
    def cpu(self) -> str: ...
    @property
    def cpu_count(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def program(self) -> str: ...
    @property
    def clock(self) -> str:
        """ "tsc" or "boottime"; "virtual" is a simulated GPU's."""
    @property
    def created(self) -> str:
        """UTC, ISO 8601."""
    @property
    def ops(self) -> bool:
        """Operators were recorded."""
    @property
    def device(self) -> str:
        """The GPU whose work was recorded; "" for none."""
    @property
    def simulated(self) -> str:
        """The simulated GPU that it ran on; "" for none."""

@final
class Profile:
    """The answer: the layers of a model with their time per phase, the steps, what is missing.

    All figures are per recorded step. A profile owns its data and does not change any more.
    """

    @property
    def layers(self) -> Sequence[Layer]:
        """Parents before children; `layers[0]` is the root where a model was given."""
    @property
    def steps(self) -> Sequence[Step]:
        """The recorded ones; of very many every second, every fourth…"""
    @property
    def step_count(self) -> int:
        """How many steps were recorded."""
    @property
    def step_ns(self) -> Stat:
        """The wall time of all of them."""
    @property
    def steps_marked(self) -> bool:
        """False: no step was ever marked, and the whole recording is one step."""
    @property
    def outside(self) -> dict[str, PhaseStats]:
        """What ran in no layer, by phase."""
    @property
    def kernels(self) -> Sequence[Kernel]:
        """Of GPUs, in all recorded steps; those that took longest first."""
    @property
    def idle(self) -> list[Idle]:
        """Where GPUs had nothing to do; the longest first."""
    @property
    def health(self) -> Health:
        """How much it explains, and what went missing."""
    @property
    def run(self) -> RunInfo:
        """Where and with what it was made."""
    def find(self, path: str) -> Layer | None:
        """The layer with this path, or None."""
    def to_json(self) -> str:
        """`{"layers": […], "steps": […], "health": {…}, …}`, as docs/json.md describes it."""
    def to_dict(self) -> dict[str, Any]:
        """The same as Python's dicts and lists."""
    def tree(
        self,
        *,
        depth: int | None = None,
        start: str = "",
        sort: str = "definition",
        fold: bool = True,
        columns: Sequence[str] | None = None,
        width: int | None = None,
        color: bool = False,
        ascii: bool = False,
    ) -> str:
        """The layer tree as text, with what could not be attributed as its last lines.

        depth: levels below the start node; all of them by default.
        start: path of the start node; "" for the whole model. An unknown one gives a line that
            says so.
        sort: "definition", "forward", "backward", "total", "self", "calls", "activities" or "name".
        fold: numbered siblings of one shape become "12 × Block", with the sums of their figures.
        columns: of "type", "forward", "backward", "total", "recompute", "self", "activity_time",
            "busy", "calls", "activities", "gpu_forward", "gpu_backward", "kernels", "launches",
            "gpu_event_forward", "gpu_event_backward", "idle" and "launch_bound"; by default type,
            the GPU's forward and backward where they were recorded, forward, backward, recompute
            where there is any, calls and activities, or kernels of a GPU.
        width: columns of the terminal; as wide as it takes by default.
        color: with a terminal's colours.
        ascii: without box-drawing characters.
        """
    def kernels_table(
        self,
        *,
        module: str = "",
        sort: str = "time",
        limit: int | None = None,
        width: int | None = None,
        color: bool = False,
        ascii: bool = False,
    ) -> str:
        """What ran on the GPU in all recorded steps as text, with the layers that it serves.

        module: path of a layer: only what serves it and those below. An unknown one gives a line
            that says so.
        sort: "time", "count" or "name".
        limit: so many kernels at most; all of them by default.
        width, color, ascii: as of `tree`.
        """
    def _repr_html_(self) -> str: ...

@final
class Schedule:
    """Which steps are recorded; made by `layertrace.schedule()`, which says what each is."""

    def __init__(
        self, skip: int = 0, warmup: int = 0, record: int = 0, repeat: int = 1
    ) -> None: ...
    @property
    def skip(self) -> int: ...
    @property
    def warmup(self) -> int: ...
    @property
    def record(self) -> int: ...
    @property
    def repeat(self) -> int: ...

@final
class Session:
    """A recording; `layertrace.Session` has one inside. Made by `start()`."""

    def step(self) -> None:
        """Marks the end of a training step."""
    def stop(self) -> Profile:
        """Ends the recording; raises Error if the trace cannot be written."""
    def profile(self) -> Profile:
        """The result; while recording, of the steps that have ended."""
    def save(self, path: str) -> None:
        """Writes the trace of a stopped session to another place."""
    @property
    def recording(self) -> bool:
        """Whether the step that runs is recorded."""

def start(
    models: Sequence[tuple[str, torch.nn.Module]],
    output: str,
    schedule: Schedule,
    ops: bool,
    memory_cap_bytes: int,
    name_model: Callable[[torch.nn.Module], str | None] | None,
    fold_wrappers: bool,
    program: str,
    require_gpu: bool,
    timing: str,
    nvtx: bool,
) -> Session:
    """Begins to record; raises Error if another session is active.

    output: "" for none.
    name_model: called with a module that was called outside any other and that is none of
        `models`; gives its name, or None to leave it unregistered.
    program: what `RunInfo.program` says; "" for the executable's name.
    """

def module_calls() -> object:
    """The descriptor that sees module calls from the class attribute of nn.Module."""

def add_parameter(module: object, parameter: object) -> None:
    """Tells the session of a parameter that a module has got since it began."""

def recording() -> bool:
    """Whether the step that runs is recorded by any session."""

def watch_calls(watcher: Callable[[torch.nn.Module, bool], None] | None) -> None:
    """Calls `watcher(module, entering)` where an outermost module call begins and where it ends.

    Recorded or not; None ends it. What the watcher raises is reported and goes no further.
    """

def terminal_tree(profile: Profile, file_descriptor: int, /) -> str:
    """The tree in the width and the colours that suit the stream (1 or 2)."""

def enter_region(name: str, /) -> int:
    """Opens a region on this thread; what it returns goes to `leave_region`. 0: not recorded."""

def enter_reported(name: str, /) -> int:
    """Likewise under the name by which PyTorch's record_function reports it."""

def leave_region(place: int, thrown: bool, /) -> None:
    """Closes the region; `thrown` says that it was left by an exception."""

def load(path: str, /) -> Profile:
    """Reads a saved run back; raises Error if it cannot."""
