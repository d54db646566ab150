"""Coverage-guided fuzzing of whatever reads foreign text; `pip install atheris`, SIRE_FUZZ_SECONDS for each target."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = int(os.environ.get("SIRE_FUZZ_SECONDS", "10"))
TARGETS = Path(__file__).with_name("fuzz_targets.py")
SEEDS = {
    "extraction": ["Alma Kovac was born in Ceuta in 1,931. `dns.lookup` costs $5.00 (UTC).", "1," * 50, "A.B. of C-D "],
    "markdown": [
        "---\na: b\n---\n# T {#x}\n| a | b |\n|---|---|\n```py\nx\n```\n![a](b.png)\n<!-- c -->",
        "<p>x</p><!--",
    ],
    "answers": [
        '<think>x</think>```json\n{"entities": [{"name": "A"}]}\n```',
        '{"a": [1, {"b": "\\u00e9"}',
        "Done! [1]",
    ],
    "filters": ["tenant=a and (b>=2 or not c in [x, 'y'])", '{"and": [{"a": {"$gte": 1}}, {"b": {"exists": true}}]}'],
    "readers": ['\x03{"id": "a", "text": "b", "metadata": {"c": 1}}\n', "\x01# T\n\ntext", "\x02<h1>T</h1>"],
    "archives": ["PK\x03\x04", "<?xml version='1.0'?><!DOCTYPE x><a>b</a>"],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris: pip install atheris"),
]


@pytest.mark.parametrize("target", SEEDS)
def test_nothing_breaks_and_nothing_is_slow(tmp_path, target):
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for number, seed in enumerate(SEEDS[target]):
        (seeds / str(number)).write_bytes(seed.encode())
    limits = [f"-max_total_time={SECONDS}", "-max_len=8192", "-timeout=60", "-rss_limit_mb=4096", "-seed=1"]
    done = subprocess.run(
        [sys.executable, str(TARGETS), target, *limits, f"-artifact_prefix={tmp_path}/", str(seeds)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS + 600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.search(r"Done (\d+) runs", done.stderr)
    assert found
    assert int(found[1]) > 10
