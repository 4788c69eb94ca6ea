"""Python imports this when it starts under `layertrace run`: it waits for torch to be imported.

Nothing here may fail the program: whatever goes wrong is said on stderr, and the program goes on
unrecorded. A sitecustomize of the user's own is imported as it would have been.
"""

from __future__ import annotations

import _thread
import importlib.machinery
import importlib.util
import os
import sys

TYPE_CHECKING = False  # typing is slow to import, and a program may do without
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


def _others() -> list[str]:
    return [path for path in sys.path if os.path.abspath(path or ".") != _HERE]


class _ArmingLoader:
    """torch's own loader; when torch is there, layertrace gets ready."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        module.__spec__.loader = self._loader  # type: ignore[union-attr]
        self._loader.exec_module(module)
        if _TorchFinder in sys.meta_path:
            sys.meta_path.remove(_TorchFinder)
            _arm()


_asking: set[int] = set()  # threads that look for torch


class _TorchFinder:
    """Stands before all other finders until torch is imported; who only asks whether it is there
    does not import it."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        thread = _thread.get_ident()
        if name != "torch" or thread in _asking:
            return None
        _asking.add(thread)
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            _asking.discard(thread)
        if spec is not None and spec.loader is not None:
            spec.loader = _ArmingLoader(spec.loader)  # type: ignore[assignment]
        return spec


def _arm() -> None:
    try:
        root = os.path.dirname(os.path.dirname(_HERE))
        if importlib.util.find_spec("layertrace") is None:
            sys.path.append(root)
        from layertrace import _run

        _run.arm()
    except Exception as error:
        print(f"layertrace: nothing is recorded: {error}", file=sys.stderr)


def _import_others() -> None:
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others())
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("LAYERTRACE_RUN"):
    sys.meta_path.insert(0, _TorchFinder)
_import_others()
