"""SentenceChunker and chunk_document."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.algorithms.text import count_tokens, split_sentences
from sire_core.corpus.chunker import SentenceChunker, chunk_document, joined
from sire_core.errors import ConfigurationError
from sire_core.types import Document, Passage

PROSE = (
    'The mill burned in 1790. It was rebuilt by Dr. Ames; nobody asked why!\n\n"Was it cheap?" she said.  '
    "It cost 1,200 crowns, paid in herring.\r\nThe wheel still turns."
)
TEXTS = st.lists(
    st.sampled_from(
        [*"abAB1., ;:!?\n\r\t'\"#\u3002\uff0c\u4f60\u00e9\u2028\U0001f600", "word ", "a long one ", "End. "]
    ),
    max_size=300,
).map("".join)
CHUNKERS = st.integers(1, 40).flatmap(
    lambda largest: st.builds(SentenceChunker, st.just(largest), st.integers(0, largest - 1))
)


def uncovered(text: str, chunks: list[str]) -> str:
    """What is left when the chunks are laid on the text in order, none leaving out a character before it."""
    covered = 0
    for chunk in chunks:
        gap = covered
        while text[gap].isspace():
            gap += 1
        # The latest place without a gap: at least as good as the true one where text repeats itself.
        covered = max(covered, text.rindex(chunk, 0, gap + len(chunk)) + len(chunk))
    return text[covered:].strip()


@settings(max_examples=300, deadline=None)
@given(TEXTS, CHUNKERS)
def test_nothing_is_lost_and_no_chunk_is_too_large(text, chunker):
    chunks = chunker.split(text)
    assert all(count_tokens(chunk) <= chunker.max_tokens for chunk in chunks)
    assert all(chunk == chunk.strip() and chunk for chunk in chunks)
    assert chunks == SentenceChunker(**chunker.settings()).split(text)
    assert uncovered(text, chunks) == ""


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.integers(1, 40))
def test_without_overlap_the_chunks_are_the_text(text, largest):
    chunks = SentenceChunker(largest, 0).split(text)
    assert "".join("".join(chunks).split()) == "".join(text.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.integers(12, 40), st.integers(0, 11))
def test_overlap_is_whole_sentences_within_its_limit(lengths, largest, overlap):
    sentences = [f"S{number}" + " w" * (length - 1) + "." for number, length in enumerate(lengths)]
    largest += 1  # the full stop
    chunks = SentenceChunker(largest, overlap).split(" ".join(sentences))
    parts = [split_sentences(chunk) for chunk in chunks]
    assert list(dict.fromkeys(s for part in parts for s in part)) == sentences
    for before, after in pairwise(parts):
        repeated = [s for s in after if s in before]
        assert repeated == after[: len(repeated)]
        assert repeated == before[len(before) - len(repeated) :]
        assert sum(map(count_tokens, repeated)) <= overlap
        assert len(repeated) < len(after)


def test_a_chunk_is_a_verbatim_slice():
    chunks = SentenceChunker(max_tokens=22, overlap_tokens=0).split(PROSE)
    assert chunks == [
        "The mill burned in 1790. It was rebuilt by Dr. Ames; nobody asked why!",
        '"Was it cheap?" she said.  It cost 1,200 crowns, paid in herring.',
        "The wheel still turns.",
    ]
    assert SentenceChunker().split(f"\n {PROSE}\n") == [PROSE]


def test_pieces_of_a_long_sentence_are_not_repeated():
    text = "Start. one two, three four, five six, seven eight."
    assert SentenceChunker(max_tokens=6, overlap_tokens=5).split(text) == [
        "Start. one two,",
        "three four, five six,",
        "seven eight.",
    ]


def test_long_sentence_is_cut_at_clauses_then_words_then_inside_words():
    clauses = "red fish, blue fish; old fish: new fish"
    assert SentenceChunker(4, 0).split(clauses) == ["red fish,", "blue fish;", "old fish:", "new fish"]
    assert SentenceChunker(3, 0).split("one two three four five") == ["one two three", "four five"]
    assert SentenceChunker(2, 0).split("a-b-c") == ["a-", "b-", "c"]
    assert SentenceChunker(2, 0).split("x" * 40) == ["x" * 32, "x" * 8]
    # A comma inside a number is no clause boundary.
    assert SentenceChunker(5, 0).split("about 10,000 souls, maybe") == ["about 10,000", "souls, maybe"]


def test_text_without_spaces_is_cut_at_its_own_punctuation():
    assert SentenceChunker(3, 0).split("\u4f60\u597d\uff0c\u4e16\u754c\u3002\u518d\u89c1") == [
        "\u4f60\u597d\uff0c",
        "\u4e16\u754c\u3002",
        "\u518d\u89c1",
    ]


HEAD = "| Name | Room |\n|---|---|"
ROWS = [f"| Person, the {number}th | Office {number} |" for number in range(40)]
STAFF = "\n".join([HEAD, *ROWS])


@pytest.mark.parametrize(
    ("before", "behind"), [("", ""), ("The staff. All of it.\n\n", "\n\nThat was all. It is of 2024.")]
)
def test_a_long_table_is_cut_between_rows_and_repeats_its_header(before, behind):
    chunker = SentenceChunker(60, 8)
    chunks = chunker.split(f"{before}{STAFF}{behind}")
    assert len(chunks) > 5
    assert all(count_tokens(chunk) <= 60 for chunk in chunks)
    assert all(chunk.startswith(HEAD) for chunk in chunks[1:])
    assert [line for chunk in chunks for line in chunk.split("\n") if line.startswith("| Person")] == ROWS
    assert joined([Passage(chunk) for chunk in chunks], chunker) == f"{before}{STAFF}{behind}"


def test_a_row_or_a_header_longer_than_a_chunk_is_cut_within_the_limit():
    chunks = SentenceChunker(30, 0).split(f"{HEAD}\n| {'word ' * 60}| 1 |\n| Ann | 2 |")
    assert all(chunk.startswith(HEAD) and count_tokens(chunk) <= 30 for chunk in chunks)
    assert sum(chunk.count("word") for chunk in chunks) == 60
    wide = "| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |\n| 5 | 6 | 7 | 8 |"
    chunks = SentenceChunker(18, 0).split(wide)
    assert all(count_tokens(chunk) <= 18 for chunk in chunks)
    assert "".join(chunks).count("| 5 | 6 | 7 | 8 |") == "".join(chunks).count("| a | b | c | d |") == 1


def test_long_code_is_cut_between_its_lines():
    code = "\n".join(["```python", *(f"    call({number}, {number}, {number})" for number in range(30)), "```"])
    chunks = SentenceChunker(40, 8).split(f"See this.\n\n{code}\n\nThat was it.")
    assert len(chunks) > 5
    cut = [line for chunk in chunks for line in chunk.split("\n")]
    assert [line for line in cut if "call" in line] == code.split("\n")[1:-1]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Verse {number // 3}. Amen. Amen. Amen. " for number in range(60)).strip(),
        " ".join(["GET /health 200."] * 300),
        " ".join(f"Sentence {number} of the log, as it is." for number in range(90)),
        "\n\n".join(f"## Part {number}\n\n" + "It rained. " * 40 + "Amen." for number in range(4)),
    ],
)
def test_joined_chunks_are_the_text_even_where_it_repeats_itself(text):
    for chunker in (SentenceChunker(50, 16), SentenceChunker(50, 0), SentenceChunker(64, 40)):
        passages = [Passage(chunk.text) for chunk in chunk_document(Document("d", text), chunker)]
        assert joined(passages, chunker).split() == text.split()


@pytest.mark.parametrize(
    ("given_settings", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 12.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"overlap_tokens": -1}, "overlap_tokens"),
        ({"overlap_tokens": "8"}, "overlap_tokens"),
        ({"max_tokens": 64, "overlap_tokens": 64}, "smaller than max_tokens"),
    ],
)
def test_settings_are_checked(given_settings, named):
    with pytest.raises(ConfigurationError, match=named):
        SentenceChunker(**given_settings)


def test_given_chunks_are_taken_as_they_are():
    given_chunks = ("  first, as it is ", " ", "second. third.")
    chunks = chunk_document(Document("d", "ignored", chunks=given_chunks), SentenceChunker(2, 0))
    assert [(c.position, c.text) for c in chunks] == [(0, given_chunks[0]), (1, given_chunks[2])]
    whole = chunk_document(Document("d", " kept verbatim\n"), None)
    assert [c.text for c in whole] == [" kept verbatim\n"]


@pytest.mark.parametrize(
    "unit",
    [PROSE + "\n\n", "word ", "word, ", "x", "\u4f60\u597d\uff0c"],
    ids=["prose", "words", "commas", "blob", "cjk"],
)
def test_time_grows_with_the_text(unit):
    chunker = SentenceChunker()

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            chunker.split(text)
            best = min(best, time.process_time() - start)
        return best

    # Four times the text, a quadratic method would need sixteen times the time.
    assert seconds(320_000) < 10 * seconds(80_000) + 0.05
