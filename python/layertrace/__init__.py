"""Which layer is a training step's time going to, forward and backward?

    import layertrace

    with layertrace.profile(model, output="run.pftrace") as session:
        for batch in loader:
            train_step(batch)
            session.step()
    print(session.tree())

`session.profile` is the data behind the tree. The trace opens in Perfetto UI (`layertrace view
run.pftrace`), and `layertrace.load` reads it back. Programs that are not to be changed are run by
`layertrace run -- python train.py`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from layertrace import _versions

_versions.check()

if TYPE_CHECKING:
    from layertrace._benchmark import benchmark, throughput
    from layertrace._card import (
        MetricInput,
        add_metric,
        card,
        compare_cards,
        metrics,
        remove_metric,
    )
    from layertrace._compare import compare
    from layertrace._core import (
        Amounts,
        Benchmark,
        CallShapes,
        CardComparison,
        ComparedFigure,
        ComparedMetric,
        ComparedRow,
        ComparedValue,
        Comparison,
        ConventionCounts,
        DeviceInfo,
        DeviceMemory,
        DeviceStep,
        GpuHealth,
        Health,
        Idle,
        Kernel,
        Layer,
        MemoryForecast,
        MemoryPoint,
        MemoryStats,
        MetricInfo,
        MetricValue,
        ModelCard,
        NotInAll,
        Operator,
        Parameter,
        PhaseStats,
        Profile,
        Rates,
        RunInfo,
        Schedule,
        SourceEvents,
        Stat,
        Step,
        Table,
        TableColumn,
        Throughput,
        TimeStats,
        TimingEnvironment,
        Unattributed,
    )
    from layertrace._core import version as __version__
    from layertrace._errors import Error, LayertraceWarning
    from layertrace._formulas import add_formula, count_call, remove_formula
    from layertrace._session import (
        Session,
        import_trace,
        load,
        profile,
        register_shapes,
        schedule,
        scope,
    )
    from layertrace._summary import summary
    from layertrace._tables import calls

__all__ = [
    "Amounts",
    "Benchmark",
    "CallShapes",
    "CardComparison",
    "ComparedFigure",
    "ComparedMetric",
    "ComparedRow",
    "ComparedValue",
    "Comparison",
    "ConventionCounts",
    "DeviceInfo",
    "DeviceMemory",
    "DeviceStep",
    "Error",
    "GpuHealth",
    "Health",
    "Idle",
    "Kernel",
    "Layer",
    "LayertraceWarning",
    "MemoryForecast",
    "MemoryPoint",
    "MemoryStats",
    "MetricInfo",
    "MetricInput",
    "MetricValue",
    "ModelCard",
    "NotInAll",
    "Operator",
    "Parameter",
    "PhaseStats",
    "Profile",
    "Rates",
    "RunInfo",
    "Schedule",
    "Session",
    "SourceEvents",
    "Stat",
    "Step",
    "Table",
    "TableColumn",
    "Throughput",
    "TimeStats",
    "TimingEnvironment",
    "Unattributed",
    "__version__",
    "add_formula",
    "add_metric",
    "benchmark",
    "calls",
    "card",
    "compare",
    "compare_cards",
    "count_call",
    "import_trace",
    "load",
    "metrics",
    "profile",
    "register_shapes",
    "remove_formula",
    "remove_metric",
    "schedule",
    "scope",
    "summary",
    "throughput",
]

_SESSION = {
    "Session",
    "import_trace",
    "load",
    "profile",
    "register_shapes",
    "schedule",
    "scope",
}
_MODULES = {
    "MetricInput": "layertrace._card",
    "add_formula": "layertrace._formulas",
    "add_metric": "layertrace._card",
    "benchmark": "layertrace._benchmark",
    "calls": "layertrace._tables",
    "card": "layertrace._card",
    "compare": "layertrace._compare",
    "compare_cards": "layertrace._card",
    "count_call": "layertrace._formulas",
    "metrics": "layertrace._card",
    "remove_formula": "layertrace._formulas",
    "remove_metric": "layertrace._card",
    "summary": "layertrace._summary",
    "throughput": "layertrace._benchmark",
}
_ERRORS = {"Error", "LayertraceWarning"}


def __getattr__(name: str) -> Any:
    # Not before they are asked for: torch takes seconds to import, and the command needs none.
    if name not in __all__:
        raise AttributeError(f"module 'layertrace' has no attribute {name!r}")
    if name in _ERRORS:
        value = getattr(importlib.import_module("layertrace._errors"), name)
    elif name in _MODULES:
        value = getattr(importlib.import_module(_MODULES[name]), name)
    elif name in _SESSION:
        value = getattr(importlib.import_module("layertrace._session"), name)
    else:
        importlib.import_module("torch")  # loads the libraries that the extension refers to
        core = importlib.import_module("layertrace._core")
        value = core.version if name == "__version__" else getattr(core, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
