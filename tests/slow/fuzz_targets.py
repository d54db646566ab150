"""Targets of the coverage-guided fuzzer: `python fuzz_targets.py TARGET -max_total_time=SECONDS`; see test_fuzzing.py.

Foreign text may be refused with an error of ours, within a CPU time that is in proportion to its length. Anything else
ends the run with the input in a file.
"""

import io
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sire_core"]):
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.documents.markdown_cleaning import clean_markdown
    from sire_core.documents.markdown_sections import paths_of
    from sire_core.documents.media import media_parts, split_media
    from sire_core.errors import SireError
    from sire_core.extraction.answer_schemas import ExtractionAnswer
    from sire_core.extraction.rules import RulesExtractor
    from sire_core.files.html import html_to_markdown
    from sire_core.files.readers import read_documents
    from sire_core.filters import parse_filter
    from sire_core.models.answer_parsing import parse_answer, tolerant_json, without_thinking
    from sire_core.reason.citations import tidy_citations
    from sire_core.reason.output_parsing import (
        AnswerText,
        abstains,
        first_sentence,
        is_done,
        states_answer,
    )
    from sire_core.text.words import split_sentences
    from sire_core.types import Chunk, Document

BASE, PER_LETTER = 1.0, 1e-3  # CPU seconds that an input may take, instrumented: a constant and so much per letter

EXTRACTOR, CHUNKER = RulesExtractor(), SentenceChunker()
FOLDER = Path(tempfile.mkdtemp(prefix="sire-fuzz-"))
SUFFIXES = (".txt", ".md", ".html", ".jsonl", ".json")


def extraction(data):
    text = data.decode("utf-8", "replace")
    EXTRACTOR.records([Chunk("c", "d", 0, text[:80], text)])
    split_sentences(text)
    CHUNKER.split(text)


def markdown(data):
    text = data.decode("utf-8", "replace")
    paths_of(clean_markdown(text))
    list(media_parts(text))
    html_to_markdown(text)
    split_media([Document("d", text)])


def answers(data):
    text = data.decode("utf-8", "replace")
    with suppress(ValueError):  # what callers expect of an answer that does not fit
        tolerant_json(text)
    with suppress(ValueError):
        parse_answer(text, ExtractionAnswer)
    AnswerText(range(1, 6)).add('{"answer": "' + text)
    tidy_citations(text, range(1, 6))
    for read in (abstains, first_sentence, is_done, states_answer, without_thinking):
        read(text)


def filters(data):
    found = parse_filter(data.decode("utf-8", "replace"))
    if found is not None:
        for metadata in ({}, {"a": 1, "tenant": "a"}, {"a": [1, "x"], "b": True}):
            found.matches(metadata)
        assert not parse_filter({"and": [{"tenant": "a"}, {"tenant": "b"}]}).matches({"tenant": "a"})


def readers(data):
    kind, content = data[:1] or b"\0", data[1:]
    file = FOLDER / f"x{SUFFIXES[kind[0] % len(SUFFIXES)]}"
    file.write_bytes(content)
    read_documents([file])


def archives(data):
    from sire_core.files.archive_limits import unpacked_size

    file = FOLDER / "x.docx"
    if data[:1] == b"P":
        file.write_bytes(data)
    else:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("word/document.xml", data)
        whole = bytearray(made.getvalue())
        for place in range(0, min(len(data), 64), 2):
            whole[data[place] * len(whole) // 256] ^= data[place]
        file.write_bytes(whole)
    unpacked_size(file, 1_000_000)


TARGETS = {target.__name__: target for target in (extraction, markdown, answers, filters, readers, archives)}


def main():
    target = TARGETS[sys.argv.pop(1)]

    def one(data):
        start = time.process_time()
        with suppress(SireError):
            target(data)
        used = time.process_time() - start
        if used > BASE + PER_LETTER * len(data):
            raise RuntimeError(f"{used:.1f} CPU seconds for {len(data)} bytes")

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
