"""Sessions and profiles, as the C++ core gives them; written in ../binding/core.cc.

What is in `layertrace.__all__` is public. The rest is for the modules beside this one.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

import torch
from matplotlib.figure import Figure

from layertrace._pictures import Graph

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
class Amounts:
    """What operators computed and moved, per step, by the convention of docs/flops.md."""

    @property
    def flops(self) -> float:
        """Of contractions: two for each multiply-add."""
    @property
    def macs(self) -> float:
        """Half of them."""
    @property
    def aux_flops(self) -> float:
        """All other arithmetic, never in the above."""
    @property
    def flops_causal(self) -> float:
        """`flops`, with only those products that a causal mask leaves."""
    @property
    def bytes(self) -> float:
        """Of the tensors that operators read and wrote."""
    @property
    def activations(self) -> float:
        """Elements that contractions put out."""
    @property
    def fvcore_flops(self) -> float:
        """As fvcore counts, in its unit."""
    @property
    def fvcore_activations(self) -> float:
        """Elements that the products which fvcore sees put out."""
    @property
    def flops_by_format(self) -> dict[str, float]:
        """`flops` by the format of the factors: "fp32", "bf16", …; those that have any."""
    @property
    def empty(self) -> bool: ...

@final
class MemoryStats:
    """Memory by the allocators' own reports, in bytes per counted step.

    Of the GPUs where the step took memory there, else of the host.
    """

    @property
    def allocated(self) -> float: ...
    @property
    def freed(self) -> float:
        """Of these, given back in the same step, wherever that was."""
    @property
    def kept(self) -> float:
        """Of these, given back by a backward: what was kept for it."""
    @property
    def peak(self) -> float:
        """Most in use at once while it ran, above what was when the counting began."""

@final
class MemoryPoint:
    """How much was in use from a moment on, above what was when the step's counting began."""

    @property
    def ns(self) -> float:
        """Since the step's start."""
    @property
    def bytes(self) -> float: ...
    @property
    def layer(self) -> int | None:
        """Who took or gave back: an index into `Profile.layers`, None outside any."""
    @property
    def phase(self) -> str: ...

@final
class DeviceMemory:
    """What the allocator of one device told in the counted steps, in bytes."""

    @property
    def device(self) -> int | None:
        """Of CUDA; None is the host."""
    @property
    def allocated(self) -> float:
        """Per counted step."""
    @property
    def freed(self) -> float:
        """Per counted step; with blocks from before it where their size is told: on GPUs."""
    @property
    def peak(self) -> float:
        """Most in use at once, above what was when a step's counting began."""
    @property
    def peak_layer(self) -> int | None:
        """Where it came to that: an index into `Profile.layers`, None outside any."""
    @property
    def peak_phase(self) -> str: ...
    @property
    def peak_ns(self) -> float:
        """How long after the step's start it came to that."""
    @property
    def timeline(self) -> list[MemoryPoint]:
        """The step with that peak: each change, or of many the highest of several."""

@final
class MemoryForecast:
    """The memory that training takes, in bytes: what there is of each when a backward begins."""

    @property
    def parameters(self) -> float: ...
    @property
    def gradients(self) -> float:
        """Of the trainable parameters, as large as these."""
    @property
    def optimizer(self) -> float:
        """Its state; 0 where that is not known."""
    @property
    def optimizer_known(self) -> bool:
        """Whether it is: its state may have been there before, and it may not have told."""
    @property
    def activations(self) -> float:
        """Kept for the backward, as measured."""
    @property
    def total(self) -> float: ...

@final
class Rates:
    """What was achieved while the device was busy, and how far that is from what it can do.

    0 for what is not known; docs/roofline.md says how each is computed.
    """

    @property
    def flops_per_s(self) -> float: ...
    @property
    def bytes_per_s(self) -> float: ...
    @property
    def intensity(self) -> float:
        """FLOP per byte."""
    @property
    def roof(self) -> str:
        """What limits it: "compute", "memory", or "none" where nothing is known."""
    @property
    def roof_share(self) -> float:
        """Above 1: a peak is wrong."""
    @property
    def unexplained_ns(self) -> float:
        """Busy time that neither roof explains."""

@final
class Operator:
    """An operator that was counted, with what its calls come to. Per step."""

    @final
    class Use:
        """Whose they are."""

        @property
        def layer(self) -> int | None:
            """Index into `Profile.layers`; None outside any."""
        @property
        def phase(self) -> str: ...
        @property
        def calls(self) -> float: ...
        @property
        def amounts(self) -> Amounts: ...

    @property
    def name(self) -> str:
        """Such as "aten::addmm"."""
    @property
    def calls(self) -> float: ...
    @property
    def counted(self) -> bool:
        """False in a run that counted nothing: only its calls and times are known."""
    @property
    def uncounted(self) -> float:
        """Of the calls, those without a formula."""
    @property
    def amounts(self) -> Amounts: ...
    @property
    def host_ns(self) -> float:
        """Its own time on the host, where operators are recorded: with that of operators that it
        called and that are not in the list themselves."""
    @property
    def uses(self) -> list[Use]: ...

@final
class DeviceInfo:
    """What the device can do at most, which rates are held against, and who says so."""

    @property
    def name(self) -> str: ...
    @property
    def origin(self) -> str:
        """ "published", "given", "measured" or "simulated"; "" where nothing is known."""
    @property
    def flops_per_s(self) -> dict[str, float]:
        """Of products of matrices, by number format; those that are known."""
    @property
    def bytes_per_s(self) -> float:
        """Of its memory; 0 where it is not known."""
    @property
    def source(self) -> str:
        """The document, or how it was measured."""
    @property
    def count(self) -> int:
        """Devices that were in use; the figures are of one."""

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
    def copies(self) -> Stat:
        """Those of a GPU's activities that are copies or sets."""
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
    def amounts(self) -> Amounts:
        """What its operators computed, where they were counted."""
    @property
    def self_amounts(self) -> Amounts:
        """The same without children's."""
    @property
    def memory(self) -> MemoryStats:
        """Of the counted steps."""
    @property
    def rates(self) -> Rates: ...
    @property
    def empty(self) -> bool:
        """Nothing of this layer ran in this phase."""

@final
class Parameter:
    """A parameter or buffer of a module."""

    @property
    def name(self) -> str:
        """As the module has it: "weight"."""
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str:
        """Without "torch.": "float32"."""
    @property
    def elements(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def trainable(self) -> bool: ...
    @property
    def buffer(self) -> bool: ...
    @property
    def shared_with(self) -> str:
        """The first path of the same tensor, where several modules have it; else ""."""

@final
class CallShapes:
    """What went into a layer's calls and came out: "float32[2, 64, 512], int64[2]"."""

    @property
    def input(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def calls(self) -> float:
        """Per step."""

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
    def params(self) -> int:
        """Elements of parameters, with children's; a tensor that several have counts once."""
    @property
    def params_trainable(self) -> int: ...
    @property
    def param_bytes(self) -> int: ...
    @property
    def buffer_bytes(self) -> int: ...
    @property
    def self_params(self) -> int:
        """Its own, without children's."""
    @property
    def self_params_trainable(self) -> int: ...
    @property
    def self_param_bytes(self) -> int: ...
    @property
    def parameters(self) -> list[Parameter]:
        """Its own, buffers too."""
    @property
    def kernel_size(self) -> str:
        """Of a convolution or pooling: "3 × 3"; else ""."""
    @property
    def shapes(self) -> list[CallShapes]:
        """Of the calls that were counted; the most frequent first."""
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
    @property
    def exposed_communication_ns(self) -> int:
        """Collectives' kernels, while no other kernel ran."""

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
    class Launch:
        """How it was launched."""

        @property
        def grid(self) -> tuple[int, int, int]: ...
        @property
        def block(self) -> tuple[int, int, int]: ...
        @property
        def registers(self) -> int: ...
        @property
        def shared_bytes(self) -> int: ...
        @property
        def occupancy(self) -> float:
            """In 0…1, as far as registers, shared memory and the block's size allow."""

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
        def outside_count(self) -> int: ...
        @property
        def outside_ns(self) -> int: ...
        @property
        def longest(self) -> Kernel.Launch:
            """Of those for this layer and phase."""

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
    def outside_count(self) -> int:
        """Of an imported trace: those of all these that no recorded step asked for."""
    @property
    def outside_ns(self) -> int: ...
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
    def clock_set(self) -> int:
        """How often the clock of its times was set while it was read."""
    @property
    def early(self) -> int:
        """Activities that begin before they were asked for; kept."""
    @property
    def earlier_graphs(self) -> int:
        """Activities of graphs captured while nothing was recorded."""

@final
class SourceEvents:
    """What became of the events of another profiler's trace."""

    @property
    def events(self) -> int:
        """Of the file; 0 where layertrace recorded the run."""
    @property
    def kept(self) -> int:
        """Each as something of its own."""
    @property
    def merged(self) -> int:
        """Parts of those that were kept."""
    @property
    def left_out(self) -> list[Unattributed]:
        """The others, by reason."""

@final
class Health:
    """How much a profile explains, what went missing, and what recording cost."""

    @property
    def attributed_share(self) -> float:
        """Of activity time, in 0…1."""
    @property
    def activities(self) -> int:
        """In all recorded steps; of an imported trace, all that there are."""
    @property
    def activity_ns(self) -> int:
        """Their time, in all recorded steps."""
    @property
    def unattributed(self) -> list[Unattributed]:
        """Activities without a layer, by cause."""
    @property
    def rejected(self) -> list[Unattributed]:
        """Of an imported trace: activities that could not be kept, by cause."""
    @property
    def source(self) -> SourceEvents:
        """Of an imported trace: what became of its events."""
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
    def name(self) -> str:
        """Given by the user; "" for none."""
    @property
    def command(self) -> str:
        """As a shell would take it; secrets read "***"."""
    @property
    def commit(self) -> str:
        """Of the repository that the program is run in or comes from; "" for none."""
    @property
    def python_version(self) -> str:
        """ "" for a program without."""
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
    def summary(self) -> bool:
        """Of one call of a model, to see what that is."""
    @property
    def device(self) -> str:
        """The GPU whose work was recorded; "" for none."""
    @property
    def simulated(self) -> str:
        """The simulated GPU that it ran on; "" for none."""
    @property
    def imported_from(self) -> str:
        """ "Kineto" or "Chrome JSON"; "" where layertrace recorded it."""
    @property
    def rank(self) -> int:
        """Of the processes that train together, where an imported trace tells; else -1."""
    @property
    def world_size(self) -> int:
        """How many these are, likewise; else 0."""

@final
class ConventionCounts:
    """What another tool would say of the forward, rebuilt from what was recorded. Per step."""

    @property
    def unit(self) -> str:
        """ "FLOPs", "MACs", "mult-adds" or "operations"."""
    @property
    def by_module(self) -> dict[str, float]:
        """By path, with children; the whole under ""."""
    @property
    def by_operator(self) -> dict[str, float]:
        """Of the whole, the largest first; of a tool that looks at modules only, by their class."""
    @property
    def activations_by_module(self) -> dict[str, float]:
        """Elements that contractions put out; of layertrace and fvcore."""
    @property
    def activations_by_operator(self) -> dict[str, float]:
        """The same by operator."""
    @property
    def parameters(self) -> float:
        """A tensor that several modules have counts once; deeplite's are of what it knows."""
    @property
    def parameter_bytes(self) -> float: ...
    @property
    def model_size_mb(self) -> float | None:
        """deeplite's, in units of 2^20 bytes."""
    @property
    def footprint_mb(self) -> float | None:
        """deeplite's: parameters, the input, and what modules put out."""
    @property
    def notes(self) -> list[str]:
        """Where and why it is not what is computed; a sentence each."""

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
    def device_memory(self) -> list[DeviceMemory]:
        """Of the counted steps; the host first."""
    @property
    def gradient_bytes(self) -> float:
        """Allocated by a backward, and there when it was over."""
    @property
    def optimizer_bytes(self) -> float:
        """Allocated by optimizers, and there at the end of a step."""
    @property
    def optimizer_state_bytes(self) -> float | None:
        """What the state of the optimizers that stepped takes; None where none told."""
    def forecast(self) -> MemoryForecast:
        """The memory that training takes."""
    @property
    def operators(self) -> Sequence[Operator]:
        """Those that were counted; the ones with most FLOPs first."""
    @property
    def counted_share(self) -> float:
        """Of the recorded steps, those that were counted or like counted ones, 0 to 1."""
    @property
    def device(self) -> DeviceInfo: ...
    @property
    def mfu(self) -> float:
        """Of the device's peak, what the model's own FLOPs took of a step; 0: not known."""
    @property
    def hfu(self) -> float:
        """The same with what was computed again in the backward."""
    @property
    def metrics(self) -> list[MetricValue]:
        """That `session.add_metric()` gave to the run."""
    @property
    def health(self) -> Health:
        """How much it explains, and what went missing."""
    @property
    def run(self) -> RunInfo:
        """Where and with what it was made."""
    def graph(
        self,
        *,
        depth: int | None = None,
        start: str = "",
        fold: bool = True,
        columns: str | Sequence[str] | None = None,
        trainable: bool = False,
    ) -> Graph:
        """The layers as a graph, coloured by their share of the step, for Graphviz.

        `graph().save("tree.svg")`; a notebook shows it as it is where the program `dot` is there.
        `columns` are what the boxes tell, by the names of `tree()`: `"type,params,macs"`. With
        `trainable`, only layers with trainable parameters, in them or below.
        """
    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        trace: str | os.PathLike[str] | None = None,
        embed_trace: bool = False,
    ) -> Path:
        """Writes one page of HTML with all that there is to see; it opens without any network.

        `trace` is the file that the run was saved to: the page tells of it and, with `embed_trace`,
        holds it, so that its button opens it in Perfetto UI.
        """
    def plot(
        self,
        kind: str = "both",
        path: str | os.PathLike[str] | None = None,
        *,
        clock: str | None = None,
        limit: int = 40,
    ) -> Figure:
        """Bars of the layers' "forward" time, their "backward" or "both", by matplotlib.

        To a .png, .svg or .pdf where a path is given. `clock` is "gpu" or "host"; the GPU's where
        one was recorded. Each layer is without those below it. Of more than `limit`, those that
        took longest.
        """
    def find(self, path: str) -> Layer | None:
        """The layer with this path, or None."""
    def table(
        self,
        kind: str,
        *,
        module: str = "",
        depth: int | None = None,
        root: str = "",
        leading_dot: bool = False,
        by_layer: bool = False,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        trainable: bool = False,
    ) -> Table:
        """A table of the run: `layers`, `kernels`, `operators`, `steps`, `parameters`, `sizes`,
        `ledger` or `metrics`; docs/tables.md has the columns of each.

        `module` and `depth` choose layers; `root` is what the root's path reads (`"__root__"`),
        `leading_dot` writes paths below it as `.encoder.0`. `by_layer` gives kernels and operators
        a row for each layer and phase, and parameters a row for each module. `columns` chooses
        columns, in their order; `limit` is the most rows. With `trainable`, only layers with
        trainable parameters, in them or below.

        >>> profile.table("layers", depth=1).to_pandas()
        """
    def counts_table(
        self,
        convention: str = "layertrace",
        *,
        module: str = "",
        depth: int | None = None,
        root: str = "",
        leading_dot: bool = False,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Table:
        """`counts()` by module as a table: module, type, ops; activations where there are such.

        The other options are those of `table`.

        >>> profile.counts_table("moduleprofiler", root="__root__").to_pandas()
        """
    def counts_json(self, convention: str = "layertrace") -> str:
        """`counts()` as JSON."""
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
        columns: str | Iterable[str] | None = None,
        view: str | None = None,
        style: str = "columns",
        match: str = "",
        type: str = "",
        min_share: float = 0,
        trainable: bool = False,
        width: int | None = None,
        color: bool = False,
        ascii: bool = False,
    ) -> str:
        """The layer tree as text, with what could not be attributed as its last lines.

        depth: levels below the start node; all of them by default.
        start: path of the start node; "" for the whole model. An unknown one gives a line that
            says so.
        sort: "definition", "forward", "backward", "total", "self", "calls", "activities", "name",
            "gpu", "flops", "bytes", "params" or "memory".
        fold: numbered siblings of one shape become "12 × Block", with the sums of their figures
            and the spread between them.
        columns: names in a list, or in a text with commas between: "type", "forward",
            "backward", "total", "flops", … An unknown one is an error that lists all; docs/tree.md
            says what each is. By default type, the GPU's forward and backward where they were
            recorded, forward, backward, recompute where there is any, calls, activities or kernels
            of a GPU, and FLOPs where they were counted.
        view: columns that belong together: "time", "cost", "memory", "roofline" or "all". What
            `columns` has comes after them.
        style: "columns", or "brackets": `├── fc [Parameters=288, MACs=256]`.
        match, type, min_share, trainable: only layers with a path or a class like a pattern
            ("blocks.*.attn", "Linear,Conv*"), that take at least this share of the step (in 0…1),
            or that have trainable parameters; and those that hold them.
        width: columns of the terminal; as wide as it takes by default.
        color: with a terminal's colours.
        ascii: without box-drawing characters.
        """
    def repr_tree(
        self,
        model: torch.nn.Module | dict[str, torch.nn.Module] | None = None,
        *,
        depth: int | None = None,
        start: str = "",
        sort: str = "definition",
        match: str = "",
        type: str = "",
        min_share: float = 0,
        trainable: bool = False,
        ascii: bool = False,
    ) -> str:
        """The model as it prints itself, with times behind what each module says.

        Modules that were not called have none. With the model at hand, its modules' `extra_repr()`
        is there, too. The options are those of `tree()`.
        """
    def nested(
        self,
        *,
        depth: int | None = None,
        start: str = "",
        sort: str = "definition",
        match: str = "",
        type: str = "",
        min_share: float = 0,
        trainable: bool = False,
    ) -> dict[str, Any]:
        """The same as dicts inside each other: `nested()["children"]["fc"]["forward_ns"]`.

        docs/json.md describes the keys. The options are those of `tree()`; an unknown start node
        raises an Error.
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
    def counts(self, convention: str = "layertrace") -> ConventionCounts:
        """The forward's counts as another tool has them.

        convention: "layertrace", "fvcore", "torchinfo", "moduleprofiler" or "deeplite", as in
            docs/flops.md. Raises Error for another name.
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
    def add_metric(self, info: MetricInfo, value: float) -> None:
        """Keeps a figure of the user's with the run."""
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
    count: str,
    device_peaks: str,
    summary: bool,
    name: str = "",
    meta: bool = False,
) -> Session:
    """Begins to record; raises Error if another session is active.

    output: "" for none.
    name_model: called with a module that was called outside any other and that is none of
        `models`; gives its name, or None to leave it unregistered.
    program: what `RunInfo.program` says; "" for the executable's name.
    device_peaks: JSON, or the path of a file with it; "" for none.
    meta: the call of a summary is on the meta device, where no memory is taken.
    """

def module_calls() -> object:
    """The descriptor that sees module calls from the class attribute of nn.Module."""

def add_parameter(module: object, name: str, parameter: object) -> None:
    """Tells the session of a parameter that a module has got since it began."""

def tell_optimizer(optimizer: object, state_bytes: int) -> None:
    """Tells the session what an optimizer's state takes."""

def forget_optimizer(address: int) -> None:
    """Tells the session that the optimizer which had this id() is gone, and its state with it."""

def register_shapes(type: type, function: Callable[[Any], Iterable[object]]) -> None:
    """Objects of this type hold the tensors that the function gives."""

def add_formula(op: str, function: Callable[[dict[str, Any]], int | None]) -> None:
    """Calls of the operator are counted by the function."""

def remove_formula(op: str) -> bool:
    """False where none was added."""

def set_module_formula(type: type, function: Callable[..., int | None] | None) -> bool:
    """Calls of such modules are counted by the function; without one, as ever."""

def count_call(op: str, arguments: dict[str, Any]) -> int | None:
    """What a call would be counted as."""

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

@final
class TableColumn:
    """A column of a table."""

    @property
    def name(self) -> str:
        """With its unit: `forward_ns`."""
    @property
    def unit(self) -> str:
        """`ns`, `bytes`, `FLOP`, `share`…; empty where there is none."""
    @property
    def kind(self) -> str:
        """`text`, `integer`, `real` or `boolean`."""
    @property
    def detail(self) -> bool:
        """Whether Markdown, HTML and LaTeX leave it out."""
    @property
    def values(self) -> list[Any]:
        """None where nothing is known."""

@final
class Table:
    """Rows and columns: what `Profile.table` gives.

    It is an Arrow stream, so pyarrow, polars, DuckDB and pandas take it as it is:

        polars.DataFrame(profile.table("layers"))

    JSON, CSV and Parquet have every column and values in full. Markdown, HTML and LaTeX are for
    people: three significant digits, units in the headings, without details and empty columns.
    """

    @property
    def name(self) -> str: ...
    @property
    def note(self) -> str:
        """What a reader must know, a line for each: that a GPU was simulated, what was left out."""
    @property
    def columns(self) -> list[TableColumn]: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int:
        """How many rows."""
    def __bool__(self) -> bool: ...
    def __getitem__(self, name: str, /) -> list[Any]:
        """The values of a column."""
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each row."""
    def to_dict(self) -> dict[str, list[Any]]:
        """The columns' values by their names."""
    def to_json(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_markdown(self) -> str: ...
    def to_html(self) -> str: ...
    def to_latex(self) -> str: ...
    def to_parquet(self) -> bytes:
        """The bytes of a file."""
    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
    def save(self, path: str | PathLike[str]) -> None:
        """Writes a file in the format that its suffix names: .json, .csv, .md, .html, .tex or
        .parquet."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

def calls(
    path: str,
    *,
    module: str = "",
    depth: int | None = None,
    root: str = "",
    leading_dot: bool = False,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> Table:
    """Every single call of a layer in a trace."""

def import_trace(path: str, output: str, /) -> Profile:
    """Reads a trace of torch.profiler and writes `output`, unless that is ""."""

def load(path: str, /) -> Profile:
    """Reads a saved run back; raises Error if it cannot."""

@final
class ComparedFigure:
    """A figure of one run, held against the first run's."""

    @property
    def value(self) -> float | None:
        """Per step; None where the run has no such figure."""
    @property
    def low(self) -> float | None:
        """Of times: the fastest step, and `high` as far above the median."""
    @property
    def high(self) -> float | None: ...
    @property
    def change(self) -> float | None:
        """Against the first run's: 0.05 is 5 % more."""
    @property
    def verdict(self) -> str:
        """ "unknown", "same", "within noise", "faster", "slower", "less" or "more"; of a metric
        "better" or "worse"."""

@final
class ComparedRow:
    """A figure of the total, a metric, a layer or a kernel, in each run."""

    @property
    def kind(self) -> str:
        """ "total", "metric", "layer" or "kernel"."""
    @property
    def name(self) -> str:
        """A layer's path, a metric's or a kernel's name; "" of the total."""
    @property
    def type(self) -> str:
        """A layer's class."""
    @property
    def metric(self) -> str:
        """ "forward_ms", "flops"…"""
    @property
    def unit(self) -> str:
        """ "ms", "FLOP", "bytes", "elements" or "per step"; of a metric its own."""
    @property
    def runs(self) -> list[ComparedFigure]: ...

@final
class NotInAll:
    """A layer or kernel that not all runs have."""

    @property
    def kind(self) -> str:
        """ "layer" or "kernel"."""
    @property
    def name(self) -> str: ...
    @property
    def runs(self) -> list[int]:
        """Which have it, counted from 0."""

@final
class Comparison:
    """What changed from one run to others: what `compare()` gives. `print()` shows it."""

    @property
    def names(self) -> list[str]: ...
    @property
    def rows(self) -> list[ComparedRow]:
        """Of the total, then of layers and kernels, those that changed first."""
    @property
    def not_in_all(self) -> list[NotInAll]: ...
    @property
    def notes(self) -> list[str]:
        """What cannot be compared, and what to bear in mind."""
    @property
    def simulated(self) -> list[str]:
        """Of each run: the simulated GPU that it ran on; "" for none."""
    def text(
        self, *, all: bool = False, width: int = 0, color: bool = False, ascii: bool = False
    ) -> str:
        """For people: the total, and what changed; with `all`, what did not, too."""
    def table(self) -> Table:
        """A row for each figure of each run after the first, then for what one alone has."""
    def check(self, condition: str) -> str | None:
        """Why a condition holds, as in "forward_ms > +5%"; None where it does not."""
    def _repr_html_(self) -> str: ...

def compare(
    runs: Sequence[Profile],
    names: Sequence[str],
    files: Sequence[str],
    min_change: float,
    error_rate: float,
) -> Comparison:
    """Holds runs against the first."""

@final
class MetricInfo:
    """What a metric is: a figure of a model or of a run; `layertrace.add_metric` says what of."""

    def __init__(
        self,
        key: str,
        *,
        name: str = "",
        description: str = "",
        unit: str = "",
        shown_in: str = "",
        scales: dict[str, float] = ...,
        comparison: str = "none",
        better: str = "",
    ) -> None: ...
    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def unit(self) -> str:
        """Of the value; empty for a mere number."""
    @property
    def shown_in(self) -> str:
        """What people are shown it in; empty for the unit in which it is short."""
    @property
    def scales(self) -> dict[str, float]: ...
    @property
    def comparison(self) -> str:
        """One of none, ratio, reciprocal, difference."""
    @property
    def better(self) -> str:
        """high, low, or empty where it is as the comparison has it."""

@final
class MetricValue:
    """A metric, and what it comes to."""

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def unit(self) -> str:
        """Of the value; empty for a mere number."""
    @property
    def shown_in(self) -> str:
        """What people are shown it in; empty for the unit in which it is short."""
    @property
    def scales(self) -> dict[str, float]: ...
    @property
    def comparison(self) -> str:
        """One of none, ratio, reciprocal, difference."""
    @property
    def better(self) -> str:
        """high, low, or empty where it is as the comparison has it."""
    @property
    def value(self) -> float | None:
        """In `unit`; None where it is not known."""
    @property
    def shown_value(self) -> float | None:
        """The same in `shown_unit`."""
    @property
    def shown_unit(self) -> str: ...

@final
class ModelCard:
    """A model in a few figures: what `card()` gives. `print()` shows it, `card["macs"]` is one."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def batch_size(self) -> int | None: ...
    @property
    def convention(self) -> str: ...
    @property
    def simulated(self) -> str:
        """The simulated GPU that it ran on; empty for none."""
    @property
    def metrics(self) -> list[MetricValue]: ...
    @property
    def failures(self) -> list[tuple[str, str]]:
        """Of metrics that could not be computed: what was tried, and why it failed."""
    @property
    def notes(self) -> list[str]: ...
    @property
    def summary(self) -> Profile:
        """By layer: `card.summary.tree()`."""
    def __getitem__(self, key: str) -> float | None:
        """The value of a metric, in its unit."""
    def metric(self, key: str) -> MetricValue: ...
    def compare(self, *others: ModelCard) -> CardComparison:
        """Side by side with others, each held against this one."""
    def text(self, *, color: bool = False, ascii: bool = False) -> str:
        """A boxed table for people."""
    def table(self) -> Table: ...
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

@final
class ComparedValue:
    """A model's value of a metric, held against the first model's."""

    @property
    def value(self) -> float | None: ...
    @property
    def score(self) -> float | None:
        """A ratio or a difference, as the metric is compared; above 1 or 0 it is better."""
    @property
    def verdict(self) -> str:
        """better, worse, same; more or less of what is not compared; unknown."""

@final
class ComparedMetric:
    """A metric of several models."""

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def unit(self) -> str:
        """Of the value; empty for a mere number."""
    @property
    def shown_in(self) -> str:
        """What people are shown it in; empty for the unit in which it is short."""
    @property
    def scales(self) -> dict[str, float]: ...
    @property
    def comparison(self) -> str:
        """One of none, ratio, reciprocal, difference."""
    @property
    def better(self) -> str:
        """high, low, or empty where it is as the comparison has it."""
    @property
    def models(self) -> list[ComparedValue]: ...

@final
class CardComparison:
    """Models side by side: what `compare_cards()` gives. `print()` shows it."""

    @property
    def cards(self) -> list[ModelCard]: ...
    @property
    def rows(self) -> list[ComparedMetric]: ...
    @property
    def notes(self) -> list[str]: ...
    def text(self, *, color: bool = False, ascii: bool = False) -> str:
        """A boxed table for people."""
    def table(self) -> Table: ...
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

def add_metric(infos: list[MetricInfo], function: Callable[..., Any], override: bool) -> None: ...
def remove_metric(key: str) -> bool: ...
def metrics() -> list[MetricInfo]: ...
def check_metrics(keys: list[str]) -> None:
    """Raises Error where one of them is no metric's key."""

def compare_cards(cards: Sequence[ModelCard]) -> CardComparison: ...
def make_card(
    input: object,
    raised: list[BaseException],
    summary: Profile,
    name: str,
    device: str,
    batch_size: int,
    input_bytes: float | None,
    call_s: list[float],
    evaluate: Callable[[], float] | None,
    metrics: list[str],
    convention: str,
) -> ModelCard: ...

largest_embedded_trace: int

def graph_dot(
    profile: Profile,
    depth: int | None,
    start: str,
    fold: bool,
    columns: str | Sequence[str] | None,
    trainable: bool,
) -> str: ...
def report_html(profile: Profile, title: str, trace_file: str, trace: bytes) -> str: ...

@final
class TimeStats:
    """What single times come to."""

    @property
    def count(self) -> int: ...
    @property
    def mean_ms(self) -> float: ...
    @property
    def stdev_ms(self) -> float:
        """The sample's (n - 1)."""
    @property
    def min_ms(self) -> float: ...
    @property
    def p5_ms(self) -> float:
        """This and the others: between the two nearest times, in proportion."""
    @property
    def p25_ms(self) -> float: ...
    @property
    def median_ms(self) -> float: ...
    @property
    def p75_ms(self) -> float: ...
    @property
    def p90_ms(self) -> float: ...
    @property
    def p95_ms(self) -> float: ...
    @property
    def p99_ms(self) -> float: ...
    @property
    def max_ms(self) -> float: ...

@final
class TimingEnvironment:
    """Where times were measured."""

    @property
    def device(self) -> str:
        """By PyTorch's name: "cpu", "cuda:0"."""
    @property
    def gpu(self) -> str:
        """Its name, where it was used; "" otherwise."""
    @property
    def simulated(self) -> bool:
        """That is a simulated GPU: its times say nothing about a real one."""
    @property
    def intra_op_threads(self) -> int: ...
    @property
    def inter_op_threads(self) -> int: ...
    @property
    def host_name(self) -> str: ...
    @property
    def os(self) -> str: ...
    @property
    def os_release(self) -> str: ...
    @property
    def cpu(self) -> str: ...
    @property
    def cpu_count(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def torch_version(self) -> str: ...
    @property
    def layertrace_version(self) -> str: ...
    @property
    def python_version(self) -> str: ...
    @property
    def command(self) -> str:
        """As a shell would take it; secrets read "***"."""
    @property
    def commit(self) -> str:
        """Of the repository that the program is run in or comes from; "" for none."""
    @property
    def run_name(self) -> str:
        """Given by the user; "" for none."""
    @property
    def created(self) -> str:
        """UTC, ISO 8601."""

@final
class Benchmark:
    """How long a model takes, as a whole and by module: what `benchmark()` gives."""

    @property
    def model(self) -> str:
        """Its class."""
    @property
    def iterations(self) -> int: ...
    @property
    def drop_first(self) -> int: ...
    @property
    def aggregate(self) -> bool: ...
    @property
    def total_ns(self) -> list[int]:
        """Of single calls, without any scope inside the model."""
    @property
    def scoped_ns(self) -> list[int]:
        """Of single calls, with scopes: the pass that modules' times are from."""
    @property
    def environment(self) -> TimingEnvironment: ...
    @property
    def notes(self) -> list[str]:
        """What to bear in mind; a sentence each."""
    @property
    def stats(self) -> TimeStats:
        """Of the whole without scopes."""
    @property
    def scope_overhead(self) -> float | None:
        """By how much scopes made the model slower, as a share of its median without them."""
    @property
    def total(self) -> Table:
        """The whole without scopes."""
    @property
    def modules(self) -> Table:
        """Each module, with scopes."""
    def table(
        self,
        rows: str = "all",
        *,
        aggregate: bool | None = None,
        module: str = "",
        depth: int | None = None,
        root: str = "",
        leading_dot: bool = False,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Table:
        """A row for the whole without scopes and one for each module with them.

        `rows` is "all", "total" or "modules". Without `aggregate`, a row for each iteration. The
        other options are those of `Profile.table`.
        """
    def text(
        self,
        *,
        root: str = "",
        depth: int | None = None,
        width: int = 0,
        color: bool = False,
        ascii: bool = False,
    ) -> str:
        """For a terminal: statistics, and how they were measured."""
    def to_pandas(self) -> Any:
        """`table()` as a pandas.DataFrame."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `table()` to a file, in the format that its suffix names."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Throughput:
    """Latency and throughput over sizes of batches: what `throughput()` gives."""

    @property
    def model(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def drop_first(self) -> int: ...
    @property
    def environment(self) -> TimingEnvironment: ...
    @property
    def batch_sizes(self) -> list[int]:
        """Those that were timed."""
    @property
    def out_of_memory_at(self) -> int | None:
        """The size for which memory did not suffice, if one was tried."""
    def table(self) -> Table:
        """A row for each size: statistics, the time of one sample, and samples per second."""
    def text(self, *, width: int = 0, color: bool = False, ascii: bool = False) -> str:
        """For a terminal."""
    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Both as curves; to a .png, .svg or .pdf where a path is given. Needs matplotlib."""
    def to_pandas(self) -> Any:
        """`table()` as a pandas.DataFrame."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `table()` to a file, in the format that its suffix names."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def _repr_html_(self) -> str: ...

def time_stats(ns: Sequence[int]) -> TimeStats: ...
def timing_environment(device: str, gpu: str, run_name: str = "") -> TimingEnvironment: ...
def make_benchmark(
    model: str,
    iterations: int,
    drop_first: int,
    aggregate: bool,
    total_ns: Sequence[int],
    scoped_ns: Sequence[int],
    trace: str,
    profile: Profile | None,
    environment: TimingEnvironment,
) -> Benchmark: ...
def make_throughput(
    model: str,
    iterations: int,
    drop_first: int,
    batches: Sequence[tuple[int, Sequence[int]]],
    environment: TimingEnvironment,
    out_of_memory_at: int,
) -> Throughput: ...
def terminal_benchmark(
    benchmark: Benchmark, file_descriptor: int, root: str, depth: int | None
) -> str: ...
def terminal_throughput(throughput: Throughput, file_descriptor: int) -> str: ...
