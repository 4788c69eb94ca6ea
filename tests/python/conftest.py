from __future__ import annotations

import pytest
from support import BUILD_DIR, Demo, run


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    trace = tmp_path_factory.mktemp("demo") / "demo.pftrace"
    result = run(BUILD_DIR / "bin" / "train_residual_cnn", trace)
    assert result.returncode == 0, result.stderr
    return Demo(trace, result.stdout)
