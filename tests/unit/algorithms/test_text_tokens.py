"""`count_tokens` takes a short way for Latin text; it has to say what the pattern says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sire_core.algorithms.text import count_tokens, token_pattern


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=255)), st.from_regex(r"[\w .,'\s-]{0,60}")))
def test_tokens_are_words_and_single_marks(text: str) -> None:
    assert count_tokens(text) == len(token_pattern().findall(text))


def test_every_latin_letter_counts_as_the_pattern_counts_it() -> None:
    for code in range(0x180):
        for text in (chr(code), f"a{chr(code)}b", f"{chr(code)}{chr(code)} x"):
            assert count_tokens(text) == len(token_pattern().findall(text)), hex(code)
