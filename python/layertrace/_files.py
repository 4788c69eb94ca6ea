"""Where the package's files are: of an editable install, its sources are in another folder."""

from __future__ import annotations

from pathlib import Path

import layertrace


def find(name: str) -> Path | None:
    """The file or folder of this name in the package; None if it has none."""
    paths = (Path(folder) / name for folder in layertrace.__path__)
    return next((path for path in paths if path.exists()), None)
