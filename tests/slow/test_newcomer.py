"""The first minutes of a newcomer, in a fresh environment."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "newcomer.py"


@pytest.mark.skipif(not (shutil.which("chromium") or shutil.which("chromium-browser")), reason="no chromium here")
def test_every_step_of_the_walk_holds_within_ten_minutes(tmp_path):
    report = tmp_path / "seconds.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", str(report)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    seconds = json.loads(report.read_text(encoding="utf-8"))
    assert list(seconds) == [
        "environment", "install", "demo", "index", "query", "explore", "langchain", "llama-index",
    ]  # fmt: skip
    assert sum(seconds.values()) < 600
