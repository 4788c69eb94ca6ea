"""A model in a few figures: card(), compare_cards(), and the metrics that cards are made of."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch

from layertrace import _core
from layertrace._benchmark import call_times, modes_kept
from layertrace._core import CardComparison, MetricInfo, ModelCard, Profile
from layertrace._errors import Error
from layertrace._formulas import Formulas
from layertrace._summary import (
    _arguments,
    _moved,
    _random_numbers_kept,
    _tensors,
    recorded_call,
)

Forward = Callable[[torch.nn.Module, Any], object]
Evaluate = Callable[[torch.nn.Module, Any], float]


@dataclass(frozen=True)
class MetricInput:
    """What a metric is computed from: what `card()` was given, and what it found."""

    model: torch.nn.Module
    data: Any
    """The inputs or the loader, as they were given; None without any."""
    batch: Any
    """What one call is made with: the inputs, or of the loader's first batch what goes in."""
    call: Callable[[], object] | None
    """Calls the model once with that; None without inputs."""
    summary: Profile
    """Of one call, by layer."""
    device: torch.device
    batch_size: int | None
    call_s: list[float] = field(default_factory=list)
    """How long each timed call took, in seconds."""
    convention: str = "layertrace"


MetricFunction = Callable[[MetricInput], Any]


# ---- the registry ----


def add_metric(
    key: str | Sequence[MetricInfo],
    function: MetricFunction,
    *,
    name: str = "",
    description: str = "",
    unit: str = "",
    shown_in: str = "",
    scales: Mapping[str, float] | None = None,
    comparison: str = "none",
    better: str = "",
    override: bool = False,
) -> None:
    """Adds a metric to what cards tell, for this process.

    key: what it is known by; or several `MetricInfo`, which `function` computes at once.
    function: given a `MetricInput`, gives the value in `unit`, or None where it cannot tell. Of
        several metrics: a dict by key, or a sequence in their order.
    name: what cards call it; the key unless given.
    unit: of the value: "bytes", "s", "MACs", "FLOPs", "parameters", or any other.
    shown_in: what cards show it in: "MiB" of bytes, "ms" of s, "GigaMACs" of MACs, or one of
        `scales`, which says how much of the unit each is. Else whatever it is short in.
    comparison: of two models, "ratio" (more is better), "reciprocal" (less is better),
        "difference" (more is better) or "none".
    better: "high" or "low", where it is not as the comparison has it.
    override: take the place of a metric with the same key, a built-in one, say.

    >>> layertrace.add_metric(
    ...     "zeros",
    ...     lambda given: sum(int((p == 0).sum()) for p in given.model.parameters()),
    ...     unit="parameters", comparison="ratio",
    ... )
    >>> model = torch.nn.Linear(3, 2, bias=False)
    >>> _ = torch.nn.init.zeros_(model.weight)
    >>> layertrace.card(model)["zeros"]
    6.0
    >>> layertrace.remove_metric("zeros")
    """
    if not callable(function):
        raise TypeError(f"a metric is a function; this is a {type(function).__name__}")
    if isinstance(key, str):
        infos = [
            MetricInfo(
                key,
                name=name,
                description=description,
                unit=unit,
                shown_in=shown_in,
                scales=dict(scales or {}),
                comparison=comparison,
                better=better,
            )
        ]
    else:
        infos = list(key)
        if any((name, description, unit, shown_in, scales, better)) or comparison != "none":
            raise TypeError("of several metrics, each MetricInfo says what it is")
    _core.add_metric(infos, _Values(function, [info.key for info in infos]), override)


def remove_metric(key: str) -> None:
    """Takes away a metric that was added; a built-in one of that key is back in its place."""
    if not _core.remove_metric(key):
        raise KeyError(f"no metric was added with the key {key!r}")


def metrics() -> list[MetricInfo]:
    """What cards tell: the built-in metrics, then those that were added.

    >>> [info.key for info in layertrace.metrics()][:3]
    ['evaluation', 'model_size', 'macs']
    """
    return _core.metrics()


class _Values:
    """A metric's function, whose results are a list of numbers, whatever form they were in."""

    def __init__(self, function: MetricFunction, keys: list[str]) -> None:
        self._function = function
        self._keys = keys

    def __call__(self, given: MetricInput) -> list[float | None]:
        result = self._function(given)
        if isinstance(result, Mapping):
            if missing := [key for key in self._keys if key not in result]:
                raise ValueError(f"its function gives nothing for {', '.join(missing)}")
            values = [result[key] for key in self._keys]
        elif len(self._keys) > 1:
            values = list(result)
            if len(values) != len(self._keys):
                raise ValueError(
                    f"its function gives {len(values)} values for {len(self._keys)} metrics"
                )
        else:
            values = [result]
        return [None if value is None else _number(value) for value in values]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"its function gives a {type(value).__name__}, not a number") from error


# ---- cards ----


def card(
    model: torch.nn.Module,
    inputs: Any = None,
    *,
    name: str | None = None,
    metrics: Iterable[str] | None = None,
    evaluate: Evaluate | None = None,
    forward: Forward | None = None,
    device: torch.device | str | None = None,
    batch_size: int | None = None,
    iterations: int = 30,
    warmup: int = 5,
    convention: str = "layertrace",
    formulas: Formulas | None = None,
) -> ModelCard:
    """A model in a few figures: size, MACs, parameters, memory, time, throughput; and your own.

    inputs: what the model is called with, as in `summary()`: a tensor, several as a tuple, keywords
        as a dict. Or a data loader: the model is called with its first batch (of a batch that is a
        tuple or a list, with its first part), moved to where the model is. Without any, the card
        has what needs no call.
    name: of the model; its class unless given.
    metrics: these alone, by key, in this order.
    evaluate: `evaluate(model, inputs)` gives the metric `evaluation`, a number of which more is
        better. Of a loader, it is given the whole of it.
    forward: `forward(model, batch)` makes a call, for batches of another shape.
    device: where it runs, if not where the model is: a copy of it. On "meta", which computes
        nothing, nothing is timed.
    batch_size: the first dimension of the first tensor unless given.
    iterations, warmup: how many calls are timed, each by itself, and how many before them are not.
    convention: "deeplite", "fvcore", "torchinfo": size, MACs, parameters and footprint as that tool
        would count them (docs/card.md).

    The model is called in eval mode and without gradients, and is left as it was. What a metric
    raises is raised as an Error that names it when all others are computed; its attribute `card`
    has these.

    >>> model = torch.nn.Linear(1000, 1000)
    >>> card = layertrace.card(model, torch.randn(8, 1000), name="one layer")
    >>> card["macs"], card.metric("macs").shown_unit
    (8000000.0, 'GigaMACs')
    >>> card.compare(layertrace.card(torch.nn.Linear(500, 1000))).rows[0].models[1].verdict
    'better'
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"card() takes an nn.Module; this is a {type(model).__name__}")
    for count, what in ((iterations, "iterations"), (warmup, "warmup")):
        if count < 0:
            raise ValueError(f"{what} is {count}; it must be 0 or more")
    keys = list(metrics or [])
    _core.check_metrics(keys)  # before anything is timed
    model = _placed(model, device)
    place = _place_of(model, inputs, device)
    raised: list[BaseException] = []
    with _evaluating(model, place):
        if _is_loader(inputs):
            first, inputs = _first_of(inputs)
            batch = _moved(first, place)
            if forward is None and isinstance(batch, (tuple, list)):
                batch = batch[0]
        else:
            batch = _moved(inputs, device)
        call = _call_of(model, batch, forward)
        if call is not None and any(torch.nn.parameter.is_lazy(p) for p in model.parameters()):
            call()  # makes the parameters that the summary is to tell of
        found = recorded_call(model, call, formulas, name=name or "")
        given = MetricInput(
            model=model,
            data=inputs,
            batch=batch,
            call=call,
            summary=found,
            device=place,
            batch_size=batch_size or _batch_size(batch),
            call_s=_time_calls(call, place, warmup, iterations),
            convention=convention,
        )
        result = _core.make_card(
            given,
            raised,
            found,
            name or type(model).__name__,
            str(place),
            given.batch_size or 0,
            None if batch is None else _bytes_of(batch),
            given.call_s,
            None if evaluate is None else lambda: _number(evaluate(model, inputs)),
            keys,
            convention,
        )
    _raise_failures(result, raised)
    return result


def compare_cards(*cards: ModelCard) -> CardComparison:
    """Models side by side, each held against the first, as each metric is compared.

    >>> small = layertrace.card(torch.nn.Linear(10, 10), name="small")
    >>> large = layertrace.card(torch.nn.Linear(20, 10), name="large")
    >>> row = layertrace.compare_cards(large, small).rows[1]
    >>> row.name, round(row.models[1].score, 3), row.models[1].verdict
    ('Parameters', 1.909, 'better')
    """
    if len(cards) < 2:
        raise Error(
            "cannot compare models", f"there are {len(cards)} cards, not two", "Give two or more"
        )
    return _core.compare_cards(list(cards))


def _raise_failures(result: ModelCard, raised: list[BaseException]) -> None:
    if not result.failures:
        return
    for each in raised:
        if not isinstance(each, Exception):  # Ctrl-C, or the end of the program
            raise each
    tried, cause = result.failures[0]
    error = Error(tried, cause)
    error.card = result  # type: ignore[attr-defined]
    raise error from (raised[0] if raised else None)


def _placed(model: torch.nn.Module, device: torch.device | str | None) -> torch.nn.Module:
    """The model itself where it is there already, else a copy that is."""
    if device is None or all(p.device == torch.empty(0, device=device).device for p in _own(model)):
        return model
    try:
        # In place of each tensor its copy there: nothing is copied twice, and to "meta" nothing.
        moved: dict[int, object] = {}
        for parameter in model.parameters():
            copied = parameter.detach().to(device)
            moved[id(parameter)] = torch.nn.Parameter(copied, parameter.requires_grad)
        for buffer in model.buffers():
            moved[id(buffer)] = buffer.detach().to(device)
        return copy.deepcopy(model, moved)
    except Exception as error:
        raise Error(
            f"cannot make a card on {device}",
            f"the model cannot be copied there: {error}",
            "Move the model and its inputs yourself, and leave `device` out",
        ) from error


def _own(model: torch.nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


def _place_of(
    model: torch.nn.Module, inputs: Any, device: torch.device | str | None
) -> torch.device:
    if device is not None:
        return torch.empty(0, device=device).device
    tensors = [*_own(model), *([] if _is_loader(inputs) else _tensors(inputs))]
    return tensors[0].device if tensors else torch.device("cpu")


def _is_loader(inputs: Any) -> bool:
    is_inputs = inputs is None or isinstance(inputs, (torch.Tensor, tuple, Mapping))
    return not is_inputs and isinstance(inputs, Iterable)


def _first_of(loader: Iterable[Any]) -> tuple[Any, Iterable[Any]]:
    """The first batch, and all of them: what can be gone through once only has lost that one."""
    batches = iter(loader)
    for first in batches:
        return first, chain([first], batches) if batches is loader else loader
    raise Error("cannot make a card", "the loader has no batch", "Give it data, or give inputs")


def _call_of(
    model: torch.nn.Module, batch: Any, forward: Forward | None
) -> Callable[[], object] | None:
    if batch is None:
        return None
    if forward is not None:
        return lambda: forward(model, batch)
    args, kwargs = _arguments(batch)
    return lambda: model(*args, **kwargs)


def _batch_size(batch: Any) -> int | None:
    first = next(_tensors(batch), None)
    return None if first is None or first.dim() == 0 else first.shape[0]


def _bytes_of(batch: Any) -> float:
    return float(sum({id(t): t.numel() * t.element_size() for t in _tensors(batch)}.values()))


@contextmanager
def _evaluating(model: torch.nn.Module, place: torch.device) -> Iterator[None]:
    """In eval mode, without gradients; then as it was, the program's random numbers too."""
    random_numbers = _random_numbers_kept(model, None if place.type == "meta" else place)
    with random_numbers, torch.no_grad(), modes_kept(model, eval=True):
        yield


def _time_calls(
    call: Callable[[], object] | None, place: torch.device, warmup: int, iterations: int
) -> list[float]:
    """How long calls take, each from an idle device to an idle one; with nothing recorded."""
    if call is None or place.type == "meta":
        return []
    devices = [place] if place.type == "cuda" else []
    taken_ns = call_times(call, warmup + iterations, warmup, devices)
    return [ns / 1e9 for ns in taken_ns]
