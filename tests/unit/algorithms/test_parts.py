"""Long texts in parts: nothing is lost, no part is too long, whatever the text is like."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.text import cut_line, packed, text_length

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


@pytest.mark.parametrize("text", ["a", "a ", "字", "... ", "A. b! "])
def test_cutting_is_linear(text):
    def seconds(letters):
        start = time.process_time()
        assert len(cut_line(text * (letters // len(text)), 20)) > 100
        return time.process_time() - start

    short = min(seconds(25_000) for _ in range(3))
    assert seconds(200_000) < 24 * short  # eight times as long; what is quadratic takes 64 times as long


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
