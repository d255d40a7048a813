"""The environment with the packages of other products, whose stores are imported."""

import os
from pathlib import Path

import pytest

_PYTHON = Path(__file__).resolve().parents[2] / ".venv" / "stores" / "bin" / "python"


def stores_python() -> Path:
    """Its Python. Without it the test is skipped; in CI it fails."""
    if not _PYTHON.exists():
        if os.environ.get("CI"):
            pytest.fail("make .venv/stores/.ready makes the environment of other products")
        pytest.skip("no environment of other products: make .venv/stores/.ready")
    return _PYTHON
