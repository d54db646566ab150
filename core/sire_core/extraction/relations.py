"""Triples from the order of names in a sentence: what stands between two names is taken as their relation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Pair", "relate"]

_WORD = re.compile(r"[\w'\u2019&%$-]+")
_LINK_WORDS = frozenset(("and", "or", "as", "well", "the", "a", "an", "with", "both", "his", "her", "its", "their"))
_MAX_WORDS = 8


class Pair(NamedTuple):
    """A relation between two mentions, by their place in the row of mentions."""

    head: int
    predicate: str
    tail: int


def relate(sentence: str, mentions: Sequence[tuple[int, int, bool]], subject: int | None) -> list[Pair]:
    """Relate the mentions of a sentence.

    Each mention is tied to the one before it by the words between, at most the last eight; a date or quantity is never
    a head. In an enumeration (nothing but commas and `and` between) the predicate of its first member goes on. What
    the sentence is about is tied to every mention.

    Args:
        sentence: The text that the mentions stand in.
        mentions: `(start, end, is_head)` in order of occurrence.
        subject: Which mention the sentence is about, or None.
    """
    pairs: dict[Pair, None] = {}
    head: int | None = None
    listed: tuple[int, str] | None = None
    for number, (start, _, is_head) in enumerate(mentions):
        if number:
            words = _WORD.findall(sentence[mentions[number - 1][1] : start])
            predicate = " ".join(words[-_MAX_WORDS:])
            if all(word in _LINK_WORDS for word in words):
                if listed is not None:
                    pairs[Pair(listed[0], listed[1], number)] = None
                    predicate = listed[1]
            elif head is not None:
                pairs[Pair(head, predicate, number)] = None
                listed = (head, predicate)
            if subject is not None and number > subject and predicate and listed is not None:
                pairs[Pair(subject, predicate, number)] = None
        if is_head:
            head = number
    return list(pairs)
