"""kill -9 during a build without a language model: the finished index equals one that nobody disturbed."""

import json
import random
import shutil
import subprocess
import sys
import time

import pytest

from sire_core.index import Index
from sire_core.testing.contracts import read_contents

pytestmark = [pytest.mark.slow, pytest.mark.data]

CHILD = """
import json, sys
from sire_core import Document, Index
folder, corpus, count = sys.argv[1:]
with open(corpus, encoding="utf-8") as lines:
    rows = [json.loads(line) for line, _ in zip(lines, range(int(count)))]
with Index(folder, recipe="sirerag") as index:
    print("ready", flush=True)
    index.build(Document(row["id"], row["text"], row["title"]) for row in rows)
"""


def start(folder, corpus, count):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(corpus), str(count)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    return child


def finish(child):
    child.communicate(timeout=1800)
    assert child.returncode == 0


def kill(child, moment):
    """Kill when `moment()` says so; returns whether the child still ran."""
    while child.poll() is None and not moment():
        time.sleep(0.002)
    running = child.poll() is None
    child.kill()
    child.communicate()
    return running


def generation(folder):
    manifest = folder / "manifest.json"
    return json.loads(manifest.read_text())["generation"] if manifest.exists() else 0


@pytest.fixture(scope="module")
def corpus(sire_data):
    return sire_data / "2wikimultihopqa" / "corpus.jsonl"


def test_three_kills_at_random_moments(tmp_path, corpus):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    began = time.monotonic()
    finish(start(whole, corpus, 6119))
    took = time.monotonic() - began
    waited = []
    while len(waited) < 3:
        began, wait = time.monotonic(), random.uniform(0.02, 0.6) * took
        child = start(killed, corpus, 6119)
        if kill(child, lambda until=began + wait: time.monotonic() > until):
            waited.append(wait)
        else:  # the machine is not as busy any more
            took = time.monotonic() - began
            if not waited:
                shutil.rmtree(killed)
    finish(start(killed, corpus, 6119))
    assert read_contents(killed) == read_contents(whole)
    with Index(killed) as one, Index(whole) as other:
        question = "When did Lothair Ii's mother die?"
        assert one.search(question, 20) == other.search(question, 20)


@pytest.mark.parametrize("stage", ["extraction", "commit", "publication"])
def test_a_kill_in_each_window(tmp_path, corpus, stage):
    """Not before or after by luck: the files show when the build is in the window."""
    folder, count = tmp_path / "killed", 400

    def size(name):
        file = folder / name
        return file.stat().st_size if file.exists() else 0

    moments = {
        "extraction": lambda: size("calls.sqlite-wal") > 200_000,
        "commit": lambda: size("index.sqlite-wal") > 200_000,
        "publication": lambda: any((folder / "derived").glob("*.partial")),
    }
    finish(start(tmp_path / "whole", corpus, count))
    hit = 0
    for _ in range(3):
        before = generation(folder)
        hit += kill(start(folder, corpus, count), moments[stage])
        with Index(folder) as index:
            if generation(folder) or stage == "publication":
                assert index.search("Who directed the film?", 3)
        if before:
            break
    assert hit
    finish(start(folder, corpus, count))
    assert read_contents(folder) == read_contents(tmp_path / "whole")
    with Index(folder) as one, Index(tmp_path / "whole") as other:
        assert one.search("Who directed the film?", 20) == other.search("Who directed the film?", 20)
