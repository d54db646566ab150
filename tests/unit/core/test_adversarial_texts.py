"""Whatever a passage, a page, a model or an agent writes is read in linear time, or refused with an error of ours."""

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import sire_core
from sire_core import Document, Hit
from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import block_text
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.markdown_cleaning import clean_markdown
from sire_core.documents.markdown_writing import undo_escapes
from sire_core.documents.media import split_media
from sire_core.errors import SireError
from sire_core.extend import count_tokens, cut_line, name_key, normalize_answer, split_sentences
from sire_core.extraction.rules import RulesExtractor
from sire_core.files.html import html_to_markdown
from sire_core.files.readers import read_documents
from sire_core.filters import parse_filter
from sire_core.models.answer_parsing import tolerant_json, without_thinking
from sire_core.models.prompt_format import neutralize
from sire_core.reason.citations import tidy_citations
from sire_core.reason.output_parsing import AnswerText, abstains, first_sentence, is_done, is_factual, states_answer
from sire_core.search.extracts import extract_sentences
from sire_core.text.snippets import readable_sentences
from sire_core.text.words import clean_text, indexed_words, spaced_text, split_words
from sire_core.types import Chunk, Unit, UnitKind
from support.growth import growth

EXTRACTOR = RulesExtractor()


def quoted(text):
    """The sentences of a passage that are nearest to a question."""
    return extract_sentences(
        "Who opened the lock of --all?", [Hit(Unit("u", UnitKind.CHUNK, text, ("u",)), 1.0, ("d",))]
    )


PARSERS = {
    "extraction": lambda text: EXTRACTOR.records([Chunk("c", "d", 0, text[:200], text)]),
    "title": lambda text: EXTRACTOR.records([Chunk("c", "d", 0, text, "Alma lives in Drava.")]),
    "sentences": split_sentences,
    "snippets": readable_sentences,
    "quoted sentences": quoted,
    "cut lines": lambda text: cut_line(text, 20),
    "tokens": count_tokens,
    "words": lambda text: [read(text) for read in (split_words, spaced_text, indexed_words().findall, name_key)],
    "chunks": lambda text: chunk_document(Document("d", text), SentenceChunker()),
    "blocks": lambda text: [block_text(text, block) for block in read_blocks(text)],
    "cleaning": clean_text,
    "html": html_to_markdown,
    "marks": lambda text: undo_escapes(clean_markdown(text)),
    "media": lambda text: split_media([Document("d", text)]),
    "answer": tolerant_json,
    "fenced": lambda text: tolerant_json("```json\n" + text),
    "prompt": neutralize,
    "filter": parse_filter,
    "citations": lambda text: tidy_citations(text, range(1, 6)),
    "streamed answer": lambda text: AnswerText(range(1, 6)).add('{"answer": "' + text),
    "normalised answer": normalize_answer,
    "thinking": without_thinking,
    "reasoning": lambda text: [read(text) for read in (abstains, first_sentence, is_done, is_factual, states_answer)],
}
"""What reads text that somebody else wrote."""

PIECES = [
    *("1,", "1", "$1.", "1 a ", "12 May ", "A", "A ", "A.", "A-", "A of ", "\u0939\u093f", "\u093f", "x\u00ad"),
    *("\u0628\u200c", "\u0e01\u0e34", "In ", "a", "aa ", "\u00e9", "\u00cd", "\u4e2d", "# ", "#", "![", "![]("),
    *("![a](b", "[", "[1]", "[1,", "](", "|", "|-", "=\n", "-", "\n", "\n\n", " ", "\t", "\u200b", "```"),
    *("```\n", "``` ", "~~~\n", "<think>", "</think>", "<!--", "<a ", "{", "[{", "}", '"', '\\"', "\\", ","),
    *(",]", ",//", " //", "//\n", "'", "''", "(", ")", "((", "(born ", "known as ", "only ", "was ", ": "),
    *(". ", "! ", "\u2026", "answer ", "answer to ", "Final answer: ", "search: ", "\U0001f642", "\x00"),
    *("\ufeff", "and ", "not ", "a=1 or "),
]
LINEAR = 9  # Times as long, at most, for four times the text
LONG = st.tuples(
    st.lists(st.sampled_from(PIECES), max_size=3).map("".join),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=2).map("".join),
)


def slowdown(name, parts, size, floor=0.25):
    """How many times as long four times the text takes; quick readers count as `floor` seconds."""
    head, repeated, tail = parts

    def parse(length):
        with suppress(SireError, ValueError):
            PARSERS[name](head + repeated * (length // len(repeated)) + tail)

    return growth(parse, size, 4 * size, floor)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LONG)
def test_long_texts(name, parts):
    assert slowdown(name, parts, 10_000) < LINEAR


MARKDOWN = [
    *(
        "#",
        "# ",
        " #",
        "# a\n",
        "a\n===\n",
        "=\n",
        "---\n",
        ">",
        "> a\nb\n",
        "> - ",
        "- ",
        "1. a\n\n",
        "a: b\n\n",
        "```",
    ),
    *("```\n", "- ```", "- ```\n", "`", "`a` ", "*", "|", "|-", "a|b\n-|-\n", "[", "[a](b) ", "![a](b ", "<!--", "-->"),
    *("<!--\n-->", "--><!--", "<a id=", "{#", "From: a\nTo: b\n\n", " ", "\n", "\f", "a \f\n", ". ", "a" * 99 + "\n"),
]
SLOW = {
    "extraction": ["1,", "A ", "a-a (ABC) "],
    "title": ["("],
    "media": ["![", "![]("],
    "answer": ["<think>", '\\"', ",//", "'"],
    "fenced": ["``` "],
    "filter": ["a=1,", " "],
    "prompt": ["<\u200d"],
    "snippets": ["[a](", "**a ", ". ", "no 1. ", "# a\n"],
    "cut lines": ["a "],
    "quoted sentences": ["See a b", "0,"],
    "citations": [" "],
    "html": [
        "<a ",
        "<a b='",
        "<a b='>' ",
        "<!--",
        "<![",
        "<?a",
        "</a ",
        "<b c=\"d e='",
        "<p>x<!--<a b='",
        "<a'='",
        "&#9",
    ],
    "marks": [
        *("\\", "&", "`a ", "\\_", "&amp;", "\\#", "data:", "data:a/b,", "![a](data:", "<img ", "{{<", '<a b="'),
        *("A" * 60 + "\n", "!!! a\n    ", "```{note}\n", ":   a\n", "[^a]: "),
    ],
    "blocks": MARKDOWN,
    "chunks": [*MARKDOWN, "One sentence of prose.\n\n", "word ", "word, ", "x", "\u4f60\u597d\uff0c"],
}
"""What took more than linear time once."""


@pytest.mark.parametrize(("name", "repeated"), [(name, piece) for name in SLOW for piece in SLOW[name]])
def test_texts_that_were_slow(name, repeated):
    size, head, tail = (10_000, "# ", "<!-- x -->") if name in ("blocks", "chunks") else (20_000, '"', "")
    assert slowdown(name, (head, repeated, tail), size, floor=1 / 16) < LINEAR


REPEATED = [
    *("a", "A", "1", " ", "\n", "-", "_", ".", "a ", "Ab ", "a-"),
    *("a.", "a_", "1,", "[", "(", "<", "`", "*", "|", ":"),
]
BOUNDED = {
    "sire_core.documents.markdown_cleaning.ATTRIBUTES",
    "sire_core.documents.markdown_sections.ATTRIBUTES",
    "sire_core.documents.titles._NAMELESS",
    "sire_core.explore.name_kinds._CODE_NAME",
}
"""Patterns that read names of files, lines and names of limited length, or the end of a title."""


def patterns() -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Every pattern of a module that is not bounded by name, with the methods that the module calls on it."""
    for found in pkgutil.walk_packages(sire_core.__path__, "sire_core."):
        with suppress(ImportError):  # neural parts
            module = importlib.import_module(found.name)
            source = inspect.getsource(module)
            for name, value in vars(module).items():
                calls = re.findall(rf"\b{name}\.(match|fullmatch|search|finditer|findall|sub|split)\b", source)
                is_text = isinstance(value, re.Pattern) and isinstance(value.pattern, str)
                if is_text and calls and f"{found.name}.{name}" not in BOUNDED:
                    yield f"{found.name}.{name}", value, set(calls)


def least_time(pattern, method, text):
    """Processor seconds of one call, the least of three, if the first is not quick."""
    times = []
    while len(times) < 3 and (not times or times[0] > 0.02):
        started = time.process_time()
        if method in ("match", "fullmatch", "search"):
            getattr(pattern, method)(text)
        else:
            sum(1 for _ in pattern.finditer(text))
        times.append(time.process_time() - started)
    return min(times)


def goes_back(pattern, method, repeated, end):
    """True if a pattern takes long for a few letters, or more than eight times as long for four times as many."""

    def seconds(size):
        return least_time(pattern, method, repeated * (size // len(repeated)) + end)

    if seconds(24) > 0.02:  # forever shows here
        return True
    few = seconds(3_000)
    return few > 0.2 or (few > 0.002 and min(seconds(12_000) for _ in range(3)) > 8 * few)


def test_every_pattern_is_linear():
    """A pattern that goes back over what it has read takes seconds for a few thousand letters, or forever for forty."""
    slow = set()
    for name, pattern, methods in patterns():
        for repeated, end, method in product(REPEATED, ("", "\n\n", " !"), methods):
            if name not in slow and goes_back(pattern, method, repeated, end):
                slow.add(name)
    assert not slow


def test_headings_that_were_slow(tmp_path):
    (tmp_path / "a.md").write_text("# " + "#" * 200_000 + "\n# " + " " * 200_000 + "x\n\nText.", encoding="utf-8")
    started = time.process_time()
    (document,) = read_documents([tmp_path]).documents
    assert document.title == "x"
    assert time.process_time() - started < 5


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=20, deadline=None)
@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("")
def test_any_text_is_read_or_refused(name, text):
    outcome = "read"
    try:
        PARSERS[name](text)
    except (SireError, ValueError) as refused:
        outcome = str(refused)
    assert outcome, "a refusal says why"


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LONG)
def test_texts_of_a_megabyte(name, parts):
    assert slowdown(name, parts, 250_000) < LINEAR
