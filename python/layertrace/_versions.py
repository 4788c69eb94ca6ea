"""Is this the torch that layertrace was built against? The next has another C++ interface."""

import importlib.metadata
import importlib.util

from layertrace import _files


def built_against() -> str | None:
    """The version of torch that the extension module was built against; None where unknown."""
    file = _files.find("torch_version.txt")
    return None if file is None else file.read_text().strip()


def series(version: str) -> tuple[str, ...]:
    """What must agree: 2.15 of 2.15.0+cu132."""
    return tuple(version.split("+")[0].split(".")[:2])


def check() -> None:
    """Raises ImportError unless the environment's torch fits."""
    rebuild = "pip install --force-reinstall --no-deps --no-cache-dir <layertrace's folder>"
    if importlib.util.find_spec("torch") is None:
        raise ImportError(
            "layertrace needs torch, which this environment does not have. Install torch, and then "
            f"build layertrace against it: {rebuild}"
        )
    built = built_against()
    found = importlib.metadata.version("torch")
    if built is not None and series(built) != series(found):
        raise ImportError(
            f"layertrace was built against torch {built}, and this environment has torch {found}. "
            f"Build it again: {rebuild}"
        )
