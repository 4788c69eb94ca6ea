"""What a model is and computes, by one call of it: summary()."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from layertrace._core import Profile
from layertrace._errors import Error
from layertrace._formulas import Formulas
from layertrace._session import DEFAULT_MEMORY_CAP, Session

Inputs = torch.Tensor | tuple[Any, ...] | Mapping[str, Any]


def summary(
    model: torch.nn.Module,
    inputs: Inputs | None = None,
    *,
    backward: bool = False,
    device: torch.device | str | None = None,
    formulas: Formulas | None = None,
) -> Profile:
    """Parameters, shapes, FLOPs and activations of a model, without a training loop.

    `inputs` is what the model is called with: a tensor, several as a tuple, keywords as a dict.
    Without any the result has the parameters alone. `backward` also runs a backward from the sum of
    the outputs. `device` runs the call there, for example on "meta", which computes nothing: a
    model of any size is counted in a moment. A model that is on the meta device already needs no
    `device`, but inputs that are there too. `formulas` is as in `profile()`.

    The model is left as it was: its parameters, buffers, gradients, mode and the random numbers of
    the program. It runs in the mode in which it is, so call `model.eval()` before if you mean that.

    >>> model = torch.nn.Linear(8, 32)
    >>> result = layertrace.summary(model, torch.randn(1, 8))
    >>> result.find("").phases["forward"].amounts.flops
    512.0
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"summary() takes an nn.Module; this is a {type(model).__name__}")
    call = None if inputs is None else _Call(model, inputs, device)
    is_meta = device is not None and torch.device(device).type == "meta"
    with _random_numbers_kept(model, device):
        return recorded_call(
            model, None if call is None else lambda: call(backward), formulas, is_meta
        )


def recorded_call(
    model: torch.nn.Module,
    call: Callable[[], object] | None,
    formulas: Formulas | None = None,
    is_meta: bool = False,
    name: str = "",
) -> Profile:
    """The summary of a call of the model that is ready to be made.

    On the meta device, where it is if the model is there, too, no memory is taken.
    """
    session = Session(
        model,
        None,
        None,
        None,
        ops=True,
        fold_wrappers=False,
        memory_cap_bytes=DEFAULT_MEMORY_CAP,
        nvtx=False,
        formulas=formulas,
        is_summary=True,
        is_meta=is_meta or any(parameter.is_meta for parameter in model.parameters()),
        name=name,
    )
    with session:
        if call is not None:
            call()
            session.step()
    return session.profile


def _arguments(inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}


@contextmanager
def _random_numbers_kept(
    model: torch.nn.Module, device: torch.device | str | None
) -> Iterator[None]:
    """What a call draws of the program's random numbers is given back."""
    places = [p.device for p in model.parameters()]
    if device is not None:
        places.append(torch.empty(0, device=device).device)
    devices = {place.index for place in places if place.type == "cuda"}
    with torch.random.fork_rng([d for d in devices if d is not None]):
        yield


class _Call:
    """A call of the model that changes nothing of it, ready to be made."""

    def __init__(
        self, model: torch.nn.Module, inputs: Inputs, device: torch.device | str | None
    ) -> None:
        self._model = model
        self._args, self._kwargs = _moved(_arguments(inputs), device)
        self._stand_ins = _stand_ins(model, device)

    def __call__(self, backward: bool) -> None:
        with torch.enable_grad() if backward else torch.no_grad():
            outputs = self._forward()
            if backward:
                parameters = {**dict(self._model.named_parameters()), **self._stand_ins}
                _backward(outputs, [*parameters.values(), *_tensors([self._args, self._kwargs])])

    def _forward(self) -> Any:
        if not self._stand_ins:
            return self._model(*self._args, **self._kwargs)
        return torch.func.functional_call(self._model, self._stand_ins, self._args, self._kwargs)


def _moved(value: Any, device: torch.device | str | None) -> Any:
    """The same with its tensors on the device, in whatever it has of tuples, lists and dicts."""
    if device is None:
        return value
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(each, device) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(each, device) for each in value)
    if isinstance(value, dict):
        return {key: _moved(each, device) for key, each in value.items()}
    return value


def _stand_ins(
    model: torch.nn.Module, device: torch.device | str | None
) -> dict[str, torch.Tensor]:
    """What takes the place of the model's tensors for the call: copies on another device, and of
    buffers (running means, say) where the call might change them."""
    tensors: dict[str, torch.Tensor] = {}
    if device is not None:
        for name, parameter in model.named_parameters():
            copy = parameter.detach().to(device)
            tensors[name] = copy.requires_grad_(parameter.requires_grad)
    if device is not None or model.training:
        for name, buffer in model.named_buffers():
            tensors[name] = buffer.detach().to(device or buffer.device, copy=True)
    return tensors


def _backward(outputs: Any, inputs: list[torch.Tensor]) -> None:
    """Makes the gradients and drops them: nothing is added to what the model has."""
    roots = [each for each in _tensors(outputs) if each.requires_grad]
    leaves = [each for each in inputs if each.requires_grad]
    if not roots or not leaves:
        raise Error(
            "cannot run a backward",
            "no output of the model needs a gradient",
            "Check that its parameters require gradients, or leave `backward` out",
        )
    torch.autograd.grad([each.sum() for each in roots], leaves, allow_unused=True)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))
