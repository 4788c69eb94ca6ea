"""Records a piece of training, and reads the trace with Perfetto's protos: see trace_decoder."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from trace_decoder import Decoded, Slice, decode

import layertrace

# A backward node by its name and its layer's path; None is nobody.
Node = tuple[str, str | None]
# Names of nodes, in any order, by the path of the layer that they must belong to.
Table = dict[str | None, str]


def is_node(each: Slice) -> bool:
    return "seq" in each.args or "accumulates" in each.args


def is_region(each: Slice) -> bool:
    return "region" in each.args


@dataclass
class Recorded:
    """What a session gave, and what its file says."""

    profile: layertrace.Profile
    trace: Decoded = field(repr=False)

    @property
    def slices(self) -> list[Slice]:
        """Scopes, nodes and regions of all threads."""
        return [each for thread in self.trace.threads for each in self.trace.on(thread.uuid)]

    @property
    def operators(self) -> list[Slice]:
        return [
            each
            for thread in self.trace.threads
            for each in self.trace.on(self.trace.ops_track(thread))
        ]

    @property
    def node_slices(self) -> list[Slice]:
        return [each for each in self.slices if is_node(each)]

    @property
    def nodes(self) -> Counter[Node]:
        """Each autograd node that ran, by name and layer."""
        for each in self.node_slices:
            assert each.category == "backward", each
        return Counter((each.name, each.path) for each in self.node_slices)

    @property
    def by_layer(self) -> Table:
        """The same, to be compared with a table written by hand: see `assert_nodes`."""
        found: dict[str | None, list[str]] = defaultdict(list)
        for each in self.node_slices:
            found[each.path].append(each.name)
        return {path: names(*found_names) for path, found_names in found.items()}

    @property
    def calls(self) -> Counter[tuple[str, str]]:
        """Module calls, by path and phase."""
        return Counter(
            (str(each.path), each.category)
            for each in self.slices
            if each.path is not None
            and each.category != "backward"
            and not is_node(each)
            and not is_region(each)
        )

    def forward_calls(self) -> dict[str, int]:
        return {path: n for (path, phase), n in self.calls.items() if phase == "forward"}

    def regions(self, phase: str) -> list[str]:
        return [each.name for each in self.slices if is_region(each) and each.category == phase]

    def operators_of(self, path: str | None, phase: str) -> Counter[str]:
        return Counter(
            each.name for each in self.operators if (each.path, each.category) == (path, phase)
        )


def names(*each: str) -> str:
    """Names in one order, so that a failure shows what is missing at a glance."""
    return " ".join(sorted(word for text in each for word in text.split()))


def times(n: int, text: str) -> str:
    return " ".join([text] * n)


def assert_nodes(run: Recorded, table: Table) -> None:
    """Exactly these nodes ran: in the trace, and in the report."""
    assert run.by_layer == {path: names(text) for path, text in table.items()}
    assert run.profile.health.nodes == len(run.node_slices)
    nobodys = sum(each.count for each in run.profile.health.unattributed_nodes)
    assert nobodys == len(table.get(None, "").split())


def record(
    model: torch.nn.Module | dict[str, torch.nn.Module] | None,
    body: Callable[[], object],
    **options: Any,
) -> Recorded:
    """Runs `body` as one recorded step."""
    with tempfile.TemporaryDirectory(prefix="layertrace-") as folder:
        output = Path(folder) / "run.pftrace"
        with layertrace.profile(model, output=output, **options) as session:
            body()
            session.step()
        profile = session.profile
        assert profile.health.dropped == 0
        assert profile.health.cut_scopes == 0
        return Recorded(profile, decode(output))
