"""Eight readers and one writer for a minute: every answer belongs to one generation."""

import os
import re
import threading
import time

import pytest

from sire_core.index import Index
from sire_core.types import Document

SECONDS = float(os.environ.get("SIRE_READ_SECONDS", "60"))
READERS = 8
TOLD = re.compile(r"Round (\d+)")
NAMES = ["Alma", "Boris", "Ceuta", "Drava", "Ewa Fell", "Port Guam"]

pytestmark = pytest.mark.slow


def documents(number):
    """All documents tell of one round; the number of documents changes from round to round."""
    return [
        Document(f"d{i}", f"Round {number} tells that {NAMES[i % 6]} met {NAMES[i % 5]} at mill {i}.", f"Mill {i}")
        for i in range(60 + number % 7)
    ]


@pytest.mark.parametrize("readers", ["threads of the writer", "indexes of their own"])
def test_every_answer_belongs_to_one_generation(tmp_path, readers):
    writer = Index(tmp_path / "index", recipe="sirerag")
    writer.build(documents(0))
    stop, errors, answers = threading.Event(), [], []

    def read(seed):
        own = writer if readers == "threads of the writer" else Index(tmp_path / "index")
        try:
            last, count = 0, 0
            while not stop.is_set():
                hits = own.search(f"Who met {NAMES[(seed + count) % 6]} at mill {count % 60}?", 20)
                told = {int(found) for hit in hits for found in TOLD.findall(hit.unit.text)}
                assert len(hits) == 20
                assert len(told) == 1
                assert min(told) >= last
                last, count = min(told), count + 1
            answers.append(count)
        except BaseException as error:  # noqa: BLE001 - a thread must not die in silence
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(READERS)]
    for thread in threads:
        thread.start()
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end and not stop.is_set():
        number += 1
        writer.build(documents(number))
    stop.set()
    for thread in threads:
        thread.join()
    writer.close()
    assert not errors
    assert number > 2
    assert len(answers) == READERS
    assert all(answers)
