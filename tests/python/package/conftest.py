"""Makes the built package importable, and what reads its traces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded; see support.ENVIRONMENT
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import BUILD_DIR

sys.path.insert(0, str(BUILD_DIR / "python"))
pytest.register_assert_rewrite("recorded")

import torch  # noqa: E402

torch.set_num_threads(1)  # sums in one order: gradients are compared bit by bit


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Each test has the same weights and inputs, whichever ran before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def nothing_left_on_module() -> Iterator[None]:
    """No test may leave a session behind: it would be the next one's failure."""
    yield
    assert torch.nn.Module.__dict__["_compiled_call_impl"] is None


@pytest.fixture(params=[True, False], ids=["ops", "no_ops"])
def ops(request: pytest.FixtureRequest) -> bool:
    """Both modes: they learn of autograd's nodes along different ways."""
    return bool(request.param)
