"""PDF files that may expand to far more than they hold are read in a process of their own, with limits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sire_core.corpus.pdf import pdf_to_markdown
from sire_core.errors import CorpusError

_LARGE = 8 << 20
"""Bytes of an unpacked stream; that of a page has a few thousand."""
_SHARED = 10
"""So many pages may have a stream in common, such as their background."""
_DICTIONARY = 4_000
_STREAM = re.compile(rb"\bstream\r?\n")
_OBJECT = re.compile(rb"(\d+)\s+\d+\s+obj\b")
_FILTERS = re.compile(rb"/(?:FlateDecode|Fl|LZWDecode|LZW|RunLengthDecode|RL)\b")
_FLATE = (b"/FlateDecode", b"/Fl")
_DRAWS = re.compile(rb"\sDo\s")
_CONTENTS = re.compile(rb"/Contents\s*(\[[^\]]*\]|\d+\s+\d+\s+R)")
_ARRAY = re.compile(rb"\[\s*(?:\d+\s+\d+\s+R\s*){100,}\]")
_REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R")
_SECONDS, _SECONDS_PER_MB = 10, 10
_BYTES, _BYTES_PER_BYTE = 1 << 30, 40


def read_pdf(path: Path) -> tuple[str, str]:
    """Title and Markdown of a file."""
    raw = path.read_bytes()
    return _read_limited(path, len(raw)) if may_expand(raw) else pdf_to_markdown(raw)


def may_expand(raw: bytes) -> bool:
    """Whether a stream, a page, or drawings within drawings may be far larger than the file."""
    uses, pictures = _uses(raw), set[bytes]()
    for number, head, packed in _streams(raw):
        filters = _FILTERS.findall(head)
        if len(filters) > 1 or (filters and filters[0] not in _FLATE):
            return True
        if b"/Image" in head:
            pictures.add(number)
            continue
        try:
            content = zlib.decompressobj().decompress(packed, _LARGE)
        except zlib.error:
            content = bytes(packed[:_LARGE])
        if len(content) >= _LARGE or (b"/Form" in head and _DRAWS.search(content)):
            return True
        uses += _uses(content) if b"/ObjStm" in head else Counter()
    return max(uses.values(), default=0) > _SHARED or not pictures.isdisjoint(uses)


def _uses(dictionaries: bytes) -> Counter[bytes]:
    """How often the streams of pages are named."""
    found = [match[1] for match in _CONTENTS.finditer(dictionaries)]
    uses = Counter(number for references in found for number in _REFERENCE.findall(references))
    for match in _ARRAY.finditer(dictionaries):  # what `/Contents` refers to may be an array that stands elsewhere
        named = Counter(_REFERENCE.findall(match[0]))
        uses += named if len(named) * _SHARED < named.total() else Counter()
    return uses


def _streams(raw: bytes) -> Iterator[tuple[bytes, bytes, memoryview]]:
    """Number, dictionary and packed content of each stream."""
    end = 0
    while match := _STREAM.search(raw, end):
        numbers = list(_OBJECT.finditer(raw, max(end, match.start() - _DICTIONARY), match.start()))
        end = raw.find(b"endstream", match.end())
        end = len(raw) if end < 0 else end
        start, number = (numbers[-1].end(), numbers[-1][1]) if numbers else (match.start(), b"")
        yield number, raw[start : match.start()], memoryview(raw)[match.end() : end]
        end += len(b"endstream")


def _read_limited(path: Path, size: int) -> tuple[str, str]:
    """Title and Markdown of a file, read in another process that may use so much time and memory."""
    seconds = _SECONDS + size * _SECONDS_PER_MB // 1_000_000
    command = [sys.executable, "-m", __name__, str(path), str(seconds), str(_BYTES + _BYTES_PER_BYTE * size)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(  # noqa: S603 (this module, with a path as one argument)
            command, capture_output=True, check=False, timeout=6 * seconds, env=environment
        )
        found = json.loads(done.stdout.rpartition(b"\n")[2]) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        found = None
    if found is None:
        raise CorpusError(
            f"the file needs more time ({seconds} seconds) or memory than a document does; "
            "print it to a new PDF to read it"
        )
    if "error" in found:
        raise CorpusError(found["error"])
    return found["title"], found["text"]


def _main() -> None:
    """Read the file that the command names."""
    path, seconds, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if sys.platform != "win32":  # there, only the time is limited
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        title, text = pdf_to_markdown(path.read_bytes())
        found = {"title": title, "text": text}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (the parent says it: what a library raises is no interface)
        found = {"error": str(error) if isinstance(error, CorpusError) else f"cannot be converted: {error}"}
    sys.stdout.write(f"\n{json.dumps(found)}")


if __name__ == "__main__":
    _main()
