"""Sentences, tokens and parts of texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.extend import count_tokens, cut_line, split_sentences, text_length
from sire_core.papers.trees.similarity_tree import abstractiveness
from sire_core.text.words import find_words, packed, split_words, token_pattern

WHOLE = [
    "Er wurde am 3. Mai 1902 geboren.",
    "Es gilt vom 3. bis 5. Mai und im 19. Jahrhundert.",
    "Es war der 2. Senat.",
    "Nach § 5 Abs. 2 Nr. 3 BGB und gem. § 7 gilt es.",
    "Das ist z. B. Bier, d. h. Wasser und u. a. Malz.",
    "Der Verein Seehund e. V. Husum ist da.",
    "Przy ul. Lipowej stoi dom.",
    "Он живёт в г. Москва на ул. Ленина.",
    "La casa núm. 5 es vieja.",
    "Voir Art. 12 et p. 7 du texte.",
    "Il Prof. Dott. Guido Tersilli.",
    "See Nos. 5 and 7.",
    "Ring Lucia, ext. 214, with max. 20 people.",
]
SEVERAL = [
    ["He scored 12.", "The team won in 1961.", "He left."],
    ["It ran on Erlang 20.", "September came."],
    ["This is modern art.", "The gem.", "It ends."],
    ["Open the Jobs tab.", "2.", "Click Save."],
    ["Take option x.", "Then go on."],
    ["Он родился в 1902 г.", "Он умер."],
    ["यह घर है।", "वह जाता है।", "अंत॥"],
    ["هل هذا بيت؟", "نعم هذا بيت.", "یہ گھر ہے۔", "نعم"],
]


@pytest.mark.parametrize("text", WHOLE)
def test_ordinals_and_abbreviations_end_no_sentence(text):
    assert split_sentences(f"{text} Then it ends.") == [text, "Then it ends."]


@pytest.mark.parametrize("sentences", SEVERAL)
def test_sentences_end_where_they_end(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=255)), st.text("aZ_0\u00e9\u4e2d .,'-\n\u2003")))
def test_tokens_are_words_and_single_marks(text: str) -> None:
    assert count_tokens(text) == len(token_pattern().findall(text))


def test_every_latin_letter_counts_as_the_pattern_counts_it() -> None:
    for code in range(0x180):
        for text in (chr(code), f"a{chr(code)}b", f"{chr(code)}{chr(code)} x"):
            assert count_tokens(text) == len(token_pattern().findall(text)), hex(code)


TEXTS = st.text(st.sampled_from("ab  .!?,\n字é"), max_size=80)


@given(TEXTS, st.integers(1, 12))
def test_pieces_hold_everything_within_the_room(text, room):
    pieces = cut_line(text, room)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    if text_length(text) <= room:
        assert pieces == [text]
    assert all(text_length(piece) <= room for piece in pieces)


def test_sentences_stay_whole_where_they_fit():
    assert cut_line("Ann sang for Bob. Bob slept. Cid drank a lot of tea in the garden.", 6) == [
        "Ann sang for Bob.",
        "Bob slept.",
        "Cid drank a lot of tea",
        "in the garden.",
    ]


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(1, 12), st.one_of(st.none(), st.integers(1, 4)))
def test_items_are_packed_in_order_into_groups_that_could_not_take_the_next_one(sizes, room, most):
    groups = list(packed(enumerate(sizes), lambda item: item[1], room, most))
    assert [item for group in groups for item in group] == list(enumerate(sizes))
    totals = [sum(size for _, size in group) for group in groups]
    for number, (group, total) in enumerate(zip(groups, totals, strict=True)):
        assert total <= room or len(group) == 1
        assert most is None or len(group) <= most
        if number + 1 < len(groups):
            assert len(group) == most or total + groups[number + 1][0][1] > room


@pytest.mark.parametrize(
    "text",
    [
        "On 4 May 1912 the ship left Cork for Boston with 1,200 people, among them Mary Flynn and her son John.",
        "The novel follows Anna, who leaves Moscow with Count Vronsky and returns to her brother Stiva in the spring.",
        "Types of cheese",
        "",
    ],
)
def test_details_and_fragments(text):
    assert abstractiveness(text) == "low"


@pytest.mark.parametrize(
    "text",
    [
        "Drifting is a technique where the driver oversteers, with loss of traction, while keeping control of the car.",
        "There are various kinds of clouds. Most of them consist of water. In Europe they often bring rain.",
    ],
)
def test_overviews(text):
    assert abstractiveness(text) == "high"


def test_words_and_tokens_of_every_letter_of_ascii():
    text = "".join(f"{chr(code)}a{chr(code)} " for code in range(128)) + "x" * 40
    assert find_words(text) == re.findall(r"\w+", text)
    assert split_words(text) == re.findall(r"\w+", text.lower())
    assert count_tokens(text) == len(re.findall(r"\w+|[^\w\s]", text))
    assert count_tokens(text, 16) == count_tokens(text) + 2
