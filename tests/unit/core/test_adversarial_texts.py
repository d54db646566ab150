"""Whatever a passage, a page, a model or an agent writes is read in linear time, or refused with an error of ours."""

import time
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sire_core.algorithms.snippets import readable_sentences
from sire_core.algorithms.text import clean_text, count_tokens, cut_line, name_key, normalize_answer, split_sentences
from sire_core.corpus.chunker import SentenceChunker
from sire_core.corpus.markdown_blocks import markdown_blocks
from sire_core.corpus.media import split_media
from sire_core.corpus.readers import read_documents
from sire_core.errors import SireError
from sire_core.extraction.rules import RulesExtractor
from sire_core.filters import parse_filter
from sire_core.models.answers import tolerant_json, without_thinking
from sire_core.models.lexical_embedder import indexed_words, spaced_text, split_words
from sire_core.models.prompt_format import neutralize
from sire_core.reason.output_parsing import (
    AnswerText,
    abstains,
    first_sentence,
    is_done,
    is_factual,
    states_answer,
    tidy_citations,
)
from sire_core.types import Chunk, Document
from support.growth import growth

EXTRACTOR = RulesExtractor()
PARSERS = {
    "extraction": lambda text: EXTRACTOR.records([Chunk("c", "d", 0, text[:200], text)]),
    "title": lambda text: EXTRACTOR.records([Chunk("c", "d", 0, text, "Alma lives in Drava.")]),
    "sentences": split_sentences,
    "snippets": readable_sentences,
    "cut lines": lambda text: cut_line(text, 20),
    "tokens": count_tokens,
    "words": lambda text: [read(text) for read in (split_words, spaced_text, indexed_words().findall, name_key)],
    "chunks": SentenceChunker().split,
    "cleaning": clean_text,
    "markdown": markdown_blocks,
    "media": lambda text: split_media([Document("d", text)]),
    "answer": tolerant_json,
    "fenced": lambda text: tolerant_json("```json\n" + text),
    "prompt": neutralize,
    "filter": parse_filter,
    "citations": lambda text: tidy_citations(text, 5),
    "streamed answer": lambda text: AnswerText(5).add('{"answer": "' + text),
    "normalised answer": normalize_answer,
    "thinking": without_thinking,
    "reasoning": lambda text: [read(text) for read in (abstains, first_sentence, is_done, is_factual, states_answer)],
}
"""What reads text that somebody else wrote."""

PIECES = [
    *(
        "1,",
        "1",
        "$1.",
        "1 a ",
        "12 May ",
        "A",
        "A ",
        "A.",
        "A-",
        "A of ",
        "\u0939\u093f",
        "\u093f",
        "x\u00ad",
        "\u0628\u200c",
        "\u0e01\u0e34",
        "In ",
        "a",
        "aa ",
        "\u00e9",
        "\u00cd",
        "\u4e2d",
    ),
    *(
        "# ",
        "#",
        "![",
        "![](",
        "![a](b",
        "[",
        "[1]",
        "[1,",
        "](",
        "|",
        "|-",
        "=\n",
        "-",
        "\n",
        "\n\n",
        " ",
        "\t",
        "\u200b",
    ),
    *(
        "```",
        "```\n",
        "``` ",
        "~~~\n",
        "<think>",
        "</think>",
        "<!--",
        "<a ",
        "{",
        "[{",
        "}",
        '"',
        '\\"',
        "\\",
        ",",
        ",]",
    ),
    *(
        ",//",
        " //",
        "//\n",
        "'",
        "''",
        "(",
        ")",
        "((",
        "(born ",
        "known as ",
        "only ",
        "was ",
        ": ",
        ". ",
        "! ",
        "\u2026",
    ),
    *("answer ", "answer to ", "Final answer: ", "search: ", "\U0001f642", "\x00", "\ufeff", "and ", "not ", "a=1 or "),
]
LINEAR = 9
"""Times as long, at most, for four times the text."""
LONG = st.tuples(
    st.lists(st.sampled_from(PIECES), max_size=3).map("".join),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=2).map("".join),
)


def slowdown(name, parts, size):
    """How many times as long four times the text takes; quick readers count as a quarter of a second."""
    head, repeated, tail = parts

    def parse(length):
        with suppress(SireError, ValueError):
            PARSERS[name](head + repeated * (length // len(repeated)) + tail)

    return growth(parse, size, 4 * size, floor=0.25)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LONG)
def test_long_texts(name, parts):
    assert slowdown(name, parts, 10_000) < LINEAR


@pytest.mark.parametrize(
    ("name", "repeated"),
    [
        ("extraction", "1,"),
        ("extraction", "A "),
        ("title", "("),
        ("markdown", "!["),
        ("markdown", "![]("),
        ("answer", "<think>"),
        ("answer", '\\"'),
        ("answer", ",//"),
        ("fenced", "``` "),
        ("filter", "a=1,"),
        ("filter", " "),
        ("prompt", "<\u200d"),
        ("snippets", "[a]("),
        ("snippets", "**a "),
        ("snippets", ". "),
        ("snippets", "no 1. "),
        ("cut lines", "a "),
        ("answer", "'"),
        ("citations", " "),
    ],
)
def test_texts_that_were_slow(name, repeated):
    assert slowdown(name, ('"', repeated, ""), 40_000) < LINEAR


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
