"""What operators and modules compute, in one's own words: add_formula(), count_call()."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from layertrace import _core

Formula = Callable[..., int | None]
Formulas = Mapping[str | type[torch.nn.Module], Formula]

_process: dict[str | type[torch.nn.Module], Formula] = {}


def add_formula(what: str | type[torch.nn.Module], formula: Formula) -> None:
    """Says what calls of an operator, or of a class of modules, compute. For this process.

    Of an operator, `formula(arguments)` is given the call's arguments by name: tensors as their
    shapes, lists of tensors as lists of shapes, numbers as they are. Of a module,
    `formula(module, inputs, output)` is given the call's positional inputs and what came out, and
    takes the place of what was counted inside that call. Both give FLOPs, two for each
    multiply-add, or None where they cannot tell: then the call is listed as uncounted. What a
    formula raises never reaches the program.

    >>> layertrace.add_formula("mylib::attend", lambda a: 4 * a["q"][0] * a["q"][1] ** 2)
    >>> layertrace.count_call("mylib::attend", {"q": (8, 16)})
    8192
    >>> layertrace.remove_formula("mylib::attend")
    """
    _set(what, formula)
    _process[what] = formula


def remove_formula(what: str | type[torch.nn.Module]) -> None:
    """Takes away one that was added; built-in ones are back in their place."""
    if _process.pop(what, None) is None:
        raise KeyError(f"no formula was added for {what}")
    _unset(what)


def count_call(op: str, arguments: Mapping[str, Any]) -> int | None:
    """What a call of an operator would be counted as: for tests of a formula.

    Shapes are tuples, lists of tensors lists of tuples. None where there is no formula for it, or
    where that cannot tell.

    >>> layertrace.count_call("aten::mm", {"self": (2, 3), "mat2": (3, 4)})
    48
    """
    return _core.count_call(op, dict(arguments))


def _set(what: str | type[torch.nn.Module], formula: Formula) -> None:
    if not callable(formula):
        raise TypeError(f"a formula is a function; this is a {type(formula).__name__}")
    if isinstance(what, str):
        _core.add_formula(what, formula)
    elif isinstance(what, type) and issubclass(what, torch.nn.Module):
        _core.set_module_formula(what, formula)
    else:
        raise TypeError(
            "a formula is for an operator's name or for a class of modules; this is a "
            f"{type(what).__name__}"
        )


def _unset(what: str | type[torch.nn.Module]) -> None:
    if isinstance(what, str):
        _core.remove_formula(what)
    else:
        _core.set_module_formula(what, None)


def _is_registered(op: str) -> bool:
    name, _, overload = op.partition(".")
    schemas = torch._C._jit_get_schemas_for_operator(name)
    return any(not overload or schema.overload_name == overload for schema in schemas)


class SessionFormulas:
    """Formulas for as long as a session lasts; then the process's are back."""

    def __init__(self, formulas: Formulas | None) -> None:
        self._formulas = dict(formulas or {})
        self._added: list[str | type[torch.nn.Module]] = []

    def add(self) -> None:
        """Before the session starts. An error leaves none of them behind."""
        try:
            for what, formula in self._formulas.items():
                _set(what, formula)
                self._added.append(what)
        except BaseException:
            self.remove()
            raise

    def unknown(self) -> list[str]:
        """When recording ends: names of operators that nobody has registered until then."""
        return [op for op in self._added if isinstance(op, str) and not _is_registered(op)]

    def remove(self) -> None:
        """When it is over."""
        while self._added:
            what = self._added.pop()
            if what in _process:
                _set(what, _process[what])
            else:
                _unset(what)
