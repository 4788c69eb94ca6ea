"""What changed from one run to others."""

from __future__ import annotations

import os
from collections.abc import Sequence

from layertrace import _core
from layertrace._core import Comparison, Profile
from layertrace._errors import Error
from layertrace._session import Session, load

Run = Profile | Session | str | os.PathLike[str]


def compare(
    *runs: Run,
    names: Sequence[str] | None = None,
    min_change: float = 0.05,
    error_rate: float = 0.05,
) -> Comparison:
    """Holds runs against the first: layers by path, kernels by name, and the total.

    runs: profiles, sessions, or the files of saved runs; two or more.
    names: what the runs are called. Unless given, as they were named when they were recorded; a
        file without such a name, or with another's, by its own.
    min_change: of times, what counts as a change. What is less is within noise, and so is what the
        steps of the runs differ by anyway.
    error_rate: how often equal runs may show any time as changed: in one comparison of twenty.

    >>> model = torch.nn.Linear(4, 4)
    >>> def train():
    ...     with layertrace.profile(model) as session:
    ...         for _ in range(3):
    ...             model(torch.randn(2, 4)).sum().backward()
    ...             session.step()
    ...     return session
    >>> comparison = layertrace.compare(train(), train(), names=["before", "after"])
    >>> [row.runs[1].verdict for row in comparison.rows if row.metric == "params"]
    ['same', 'same']
    >>> comparison.check("params > +0%") is None
    True
    """
    if len(runs) < 2:
        raise Error(
            "cannot compare runs", f"there are {len(runs)}, not two", "Give two runs or more"
        )
    if isinstance(names, str) or (names is not None and len(names) != len(runs)):
        raise ValueError(f"names are {names!r}; there must be one for each of {len(runs)} runs")
    if not 0 <= error_rate <= 1:
        raise ValueError(f"error_rate is {error_rate}; it is in 0…1")
    return _core.compare(
        [_profile_of(run) for run in runs],
        list(names or []),
        ["" if isinstance(run, (Profile, Session)) else os.fspath(run) for run in runs],
        min_change,
        error_rate,
    )


def _profile_of(run: Run) -> Profile:
    if isinstance(run, Profile):
        return run
    if isinstance(run, Session):
        return run.profile
    if isinstance(run, (str, os.PathLike)):
        return load(run)
    raise TypeError(
        "compare() takes profiles, sessions and the files of saved runs; "
        f"this is a {type(run).__name__}"
    )
