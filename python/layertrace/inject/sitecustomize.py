"""Python imports this when it starts under `layertrace run`: it waits for torch to be imported.

Nothing here may fail the program: whatever goes wrong is said on stderr, and the program goes on
unrecorded. A sitecustomize of the user's own is imported as it would have been.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _others() -> list[str]:
    return [path for path in sys.path if os.path.abspath(path or ".") != _HERE]


class _ArmingLoader:
    """torch's own loader; when torch is there, layertrace gets ready."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _arm()


class _TorchFinder:
    """Stands before all other finders until torch is asked for."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _ArmingLoader(spec.loader)
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
