"""Fixtures of all tests."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def sire_data():
    """Folder of the benchmark data, from SIRE_DATA (default: ../shared/data beside the repository)."""
    path = Path(os.environ.get("SIRE_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not path.is_dir():
        pytest.skip(f"no benchmark data in {path}; set SIRE_DATA")
    return path
