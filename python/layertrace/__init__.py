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

from layertrace import _versions

_versions.check()

from layertrace._core import (  # noqa: E402
    Health,
    Layer,
    PhaseStats,
    Profile,
    RunInfo,
    Schedule,
    Stat,
    Step,
    Unattributed,
)
from layertrace._core import version as __version__  # noqa: E402
from layertrace._errors import Error, LayertraceWarning  # noqa: E402
from layertrace._session import Session, load, profile, schedule, scope  # noqa: E402

__all__ = [
    "Error",
    "Health",
    "Layer",
    "LayertraceWarning",
    "PhaseStats",
    "Profile",
    "RunInfo",
    "Schedule",
    "Session",
    "Stat",
    "Step",
    "Unattributed",
    "__version__",
    "load",
    "profile",
    "schedule",
    "scope",
]
