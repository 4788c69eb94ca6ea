"""What changed from one run to others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from layertrace import _core
from layertrace._core import Comparison, Profile
from layertrace._errors import Error
from layertrace._session import Session, load

Run = Profile | Session | str | os.PathLike[str]


def compare(*runs: Run, names: Sequence[str] | None = None, min_change: float = 0.05) -> Comparison:
    """Holds runs against the first: layers by path, kernels by name, and the total.

    runs: profiles, sessions, or the files of saved runs; two or more.
    names: what the runs are called; files have their own unless given.
    min_change: of times, what counts as a change. What is less is within noise, and so is what the
        steps of the runs differ by anyway.

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
    return _core.compare(
        [_profile_of(run) for run in runs],
        list(names) if names is not None else _names_of(runs),
        min_change,
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


def _names_of(runs: Sequence[Run]) -> list[str]:
    """Of files their names; of others what they say themselves, where all are such."""
    if not all(isinstance(run, (str, os.PathLike)) for run in runs):
        return []
    paths = [os.fspath(run) for run in runs if not isinstance(run, (Profile, Session))]
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else paths
