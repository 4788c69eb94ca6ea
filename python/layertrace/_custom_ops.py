"""Operators of one's own that PyTorch tells nobody of."""

from __future__ import annotations

from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

# PyTorch reports an operator that is called by its name, `torch.ops.mylib.attend(x)`. What
# `@torch.library.custom_op` gives calls the overload itself, of which nobody is told.
_call: Any = CustomOpDef.__call__


def _call_by_name(self: CustomOpDef, /, *args: Any, **kwargs: Any) -> Any:
    if torch.compiler.is_compiling():
        return _call(self, *args, **kwargs)
    return self._opoverload._overloadpacket(*args, **kwargs)


def install() -> None:
    """From now on they are called by their names."""
    if CustomOpDef.__call__ is _call:
        setattr(CustomOpDef, "__call__", _call_by_name)  # noqa: B010


def remove() -> None:
    """As before. What somebody else put there since stays."""
    if CustomOpDef.__call__ is _call_by_name:
        setattr(CustomOpDef, "__call__", _call)  # noqa: B010
