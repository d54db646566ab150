"""Twenty times kill -9 during a model-based build or add: no committed answer is asked again, the end is the same."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sire_core.models.caching import answer_key
from sire_core.protocols import ModelRequest, Prompt
from sire_core.types import content_hash
from support.faults import replay
from support.scripted_server import ScriptedServer

DATA = Path(os.environ.get("SIRE_DATA", "../shared/data")) / "musique"
PASSAGES = int(os.environ.get("SIRE_KILL_PASSAGES", "1890"))
KILLS = int(os.environ.get("SIRE_KILLS", "20"))
NOTICE = "\n\nThe next message holds"

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.skipif(not DATA.is_dir(), reason="no benchmark data")]

CHILD = """
import json, sys
import openai, scipy.sparse, sklearn.decomposition, sklearn.feature_extraction.text
from sire_core import Document, Index
from sire_core.models.openai.client import OpenAIChat
folder, url, corpus, first, count = sys.argv[1:]
with open(corpus, encoding="utf-8") as lines:
    rows = [json.loads(line) for line, _ in zip(lines, range(int(count)))]
documents = [Document(row["id"], row["text"], row["title"], chunks=(row["text"],)) for row in rows]
index = Index(folder, recipe="sirerag", language_model=OpenAIChat("m", base_url=url, concurrency=16), workers=16)
print("ready", flush=True)
report = index.add(documents[int(first):]) if int(first) else index.build(documents)
print(json.dumps({"failures": len(report.failures)}), flush=True)
index.close()
"""


def start(folder: Path, url: str, first: int = 0, count: int = PASSAGES) -> subprocess.Popen[str]:
    """Build the first passages; or add those behind the `first` ones."""
    command = [sys.executable, "-c", CHILD, str(folder), url, str(DATA / "corpus.jsonl"), str(first), str(count)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def finish(child: subprocess.Popen[str]) -> None:
    output, _ = child.communicate(timeout=1_200)
    assert child.returncode == 0
    assert json.loads(output) == {"failures": 0}


def rows(path: Path, sql: str) -> list[tuple]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def committed(folder: Path) -> tuple[set[str], set[str]]:
    """Hashes of passages that have a record, and keys of answers."""
    calls = folder / "calls.sqlite"
    hashes = rows(calls, "SELECT hash FROM records WHERE status != 'failed'")
    return {found for (found,) in hashes}, {key for (key,) in rows(calls, "SELECT key FROM answers")}


def pool(folder: Path) -> tuple[list[tuple], list[tuple]]:
    index = folder / "index.sqlite"
    units = rows(index, "SELECT id, kind, text, level, tree, chunk_ids FROM units ORDER BY id")
    edges = rows(index, "SELECT kind, source, target, weight FROM edges ORDER BY kind, source, target")
    return units, edges


class Log:
    """The server's log, read on from where it was read last."""

    def __init__(self, path: Path) -> None:
        self.path, self.at = path, 0

    def news(self) -> list[dict]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8") as lines:
            lines.seek(self.at)
            found = [json.loads(line) for line in lines]
            self.at = lines.tell()
        return found


def passage_hash(line: dict) -> str | None:
    try:
        fields = json.loads(line["data"])
    except ValueError:
        return None
    return content_hash(fields.get("title", ""), fields["passage"])


def key_of(line: dict) -> str:
    prompt = Prompt(line["instructions"].split(NOTICE)[0], line["data"])
    return answer_key("openai:m", ModelRequest(prompt, max_tokens=line["max_tokens"]))


def test_twenty_kills_cost_nothing_twice_and_change_nothing(tmp_path: Path) -> None:
    script = replay(DATA / "extractions.jsonl", DATA / "corpus.jsonl")
    log = Log(tmp_path / "log.jsonl")
    with ScriptedServer(script, latency=0.005, log_path=log.path) as server:
        child = start(tmp_path / "calm", server.base_url)
        begun = time.time()
        finish(child)
        calm = time.time() - begun
        asked = log.news()
        lead_in = asked[0]["time"] - begun
        assert sum(passage_hash(line) is not None for line in asked) == PASSAGES
        # Passages with characters that the fence changes have other keys; nearly all can be followed.
        assert len({key_of(line) for line in asked} & committed(tmp_path / "calm")[1]) > 0.9 * (len(asked) - PASSAGES)

        chance = random.Random(11)
        folder = tmp_path / "killed"
        seen_records = seen_answers = 0
        for kill in range(KILLS):
            hashes, keys = committed(folder)
            before = server.received
            child = start(folder, server.base_url)
            if kill % 2:  # at any moment
                time.sleep(chance.uniform(0.0, calm / 4))
            else:  # while it asks
                patience = time.time() + 20 * lead_in
                while server.received == before and child.poll() is None and time.time() < patience:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0.0, (calm - lead_in) / 4))
            child.kill()
            child.wait(10)
            child.stdout.close()
            time.sleep(0.05)  # what was on its way arrives
            for line in log.news():
                assert passage_hash(line) not in hashes
                assert key_of(line) not in keys
            assert pool(folder) in (([], []), pool(tmp_path / "calm"))
            seen_records, seen_answers = max(seen_records, len(hashes)), max(seen_answers, len(keys))
        assert seen_records > PASSAGES / 2
        assert seen_answers > 0
        hashes, keys = committed(folder)
        finish(start(folder, server.base_url))
        for line in log.news():
            assert passage_hash(line) not in hashes
            assert key_of(line) not in keys
        assert pool(folder) == pool(tmp_path / "calm")
        assert len(pool(folder)[0]) > PASSAGES
