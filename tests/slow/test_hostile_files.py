"""Over a hundred damaged and swollen files of 18 formats: each is read or refused, within memory and linear time."""

import importlib.util
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sire_core.errors import CorpusError
from sire_core.files.readers import read_documents
from support.growth import growth

pytestmark = pytest.mark.slow
_spec = importlib.util.spec_from_file_location("reading_cost", Path(__file__).parents[2] / "benchmarks/reading_cost.py")
reading_cost = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reading_cost)

KINDS = "txt md html rst docx pptx xlsx pdf odt ods odp epub fb2 xml ipynb eml csv rtf".split()
OPENINGS = {
    "html": b"<div><table><b>", "xml": b"<a b='c'>", "fb2": b"<section>", "rtf": b"{\\b ", "md": b"> - ", "eml": b"A: b\n",
    "csv": b'a,"b\n', "rst": b"* a\n\n  ", "ipynb": b'[{"cells":', "txt": b"\t(", "pdf": b"q [ << /A ",
}  # fmt: skip
"""What nests in a format, or is never closed; of archives it is their first bytes."""
SHAPES = {
    "half": lambda raw, kind: raw[: len(raw) // 2],
    "flipped": lambda raw, kind: bytes(byte ^ 0x55 if random.Random(7 * n).random() < 0.01 else byte for n, byte in enumerate(raw)),
    "twice": lambda raw, kind: raw + raw,
    "zeros": lambda raw, kind: raw + bytes(200_000),
    "nested": lambda raw, kind: swollen(raw, kind, 200_000),
    "headless": lambda raw, kind: raw[64:],
}  # fmt: skip
MEASURED = """
import json, resource, sys
from sire_core.errors import CorpusError
from sire_core.files.readers import read_documents
from pathlib import Path
import sire_core.files.converters
from sire_core.documents.block_reading import read_blocks
read_blocks("# a")
base = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
try:
    loaded = read_documents(sys.argv[1])
    read, failed = loaded.ids, [failure.reason for failure in loaded.failures]
except CorpusError as error:
    read, failed = (), [str(error)]
peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({"read": len(read), "failed": failed, "ours": peak - base, "child": child}))
"""


def sample(kind):
    """A file of a format with forty paragraphs."""
    return reading_cost.sample(
        kind, [f"Step {n}. A worker claims one job at a time and renews its lease." for n in range(40)]
    )


def swollen(raw, kind, size):
    """A file in whose middle something opens again and again."""
    opening = OPENINGS.get(kind, raw[:40])
    return raw[: len(raw) // 2] + opening * (size // len(opening)) + raw[len(raw) // 2 :]


def test_damaged_files_are_read_or_refused_within_300_mb(tmp_path):
    names = []
    for kind in KINDS:
        for shape, damage in SHAPES.items():
            names.append(f"{shape}.{kind}")
            (tmp_path / names[-1]).write_bytes(damage(sample(kind), kind))
    assert len(names) >= 100
    done = subprocess.run([sys.executable, "-c", MEASURED, str(tmp_path)], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["read"] + len(result["failed"]) >= len(names)
    assert not [reason for reason in result["failed"] if "fault of sire-rag" in reason]
    assert result["ours"] < 300 * 1024
    assert result["child"] < 500 * 1024  # with all libraries, which take some 150 MB


@pytest.mark.parametrize("kind", KINDS)
def test_what_never_closes_takes_linear_time(tmp_path, kind):
    path, raw = tmp_path / f"a.{kind}", sample(kind)

    def work(size):
        path.write_bytes(swollen(raw, kind, size))
        try:
            read_documents(path)
        except CorpusError:
            return

    assert growth(work, 50_000, 400_000) < 16


def test_a_file_that_changes_while_it_is_read_is_read_or_refused(tmp_path):
    stop = threading.Event()

    def change():
        kinds = ("pdf", "docx", "md", "csv")
        contents = {kind: sample(kind) for kind in kinds}
        while not stop.is_set():
            for kind in kinds:
                path = tmp_path / f"a.{kind}"
                path.write_bytes(contents[kind][: random.randrange(1, len(contents[kind]))])
                path.write_bytes(contents[kind])

    changing = threading.Thread(target=change)
    changing.start()
    try:
        time.sleep(0.5)
        for _ in range(20):
            loaded = read_documents([tmp_path, *tmp_path.glob("a.md")])
            assert not [one for one in loaded.failures if "fault of sire-rag" in one.reason]
    finally:
        stop.set()
        changing.join()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.py", "a.eml", "a.json", "a.jsonl", "a.xml"])
def test_one_line_of_500_mb_is_refused_at_once(tmp_path, name):
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(b'{"text": "' if "json" in name else b"From: a@b.example\nSubject: ")
        file.seek(500_000_000)
        file.write(b'"}')
    start = time.process_time()
    with pytest.raises(CorpusError, match=r"above|longer|memory|UTF-8"):
        read_documents(path)
    assert time.process_time() - start < 5
