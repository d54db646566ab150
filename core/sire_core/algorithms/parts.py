"""Long texts in parts: where lines are put together, and where a line itself is cut. Pure functions."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

from sire_core.algorithms.text import count_tokens, split_sentences

T = TypeVar("T")

_WORD = re.compile(r"\S+")
_LETTERS = 8
"""Letters that count as a token at least: some languages write without spaces, and some texts are one endless word."""


def text_length(text: str) -> int:
    """Tokens of a text; a long run of letters counts as several."""
    return max(count_tokens(text), -(-len(text) // _LETTERS))


def packed(items: Iterable[T], size: Callable[[T], int], room: int, most: int | None = None) -> Iterator[list[T]]:
    """Items in order, in as few groups as fit; one that is larger than `room` stays alone."""
    group: list[T] = []
    used = 0
    for item in items:
        length = size(item)
        if group and (used + length > room or len(group) == most):
            yield group
            group, used = [], 0
        group.append(item)
        used += length
    if group:
        yield group


def part_starts(lengths: Sequence[int], hashes: Sequence[int], room: int) -> list[int]:
    """Where the parts of a list of lines begin, so that no part of several lines is longer than `room`."""
    ends = [0, *accumulate(lengths)]
    starts = [0]
    while ends[-1] - ends[starts[-1]] > room:
        start = starts[-1]
        last = max(start + 1, bisect_right(ends, ends[start] + room) - 1)
        first = min(last, max(start + 1, bisect_left(ends, ends[start] + room / 2)))
        if first >= len(lengths):
            break
        starts.append(min(range(first, min(last, len(lengths) - 1) + 1), key=lambda place: (hashes[place], place)))
    return starts


def cut_line(text: str, room: int) -> list[str]:
    """A text as pieces no longer than `room`: whole if it fits, else by sentences, these by words if needed."""
    if text_length(text) <= room:
        return [text]
    return [piece for sentence in split_sentences(text) for piece in _pieces(sentence, room)]


def _pieces(sentence: str, room: int) -> Iterator[str]:
    start = end = spent = 0
    for left, right in _words(sentence, room):
        tokens = count_tokens(sentence[left:right])
        if end and (spent + tokens > room or right - start > room * _LETTERS):
            yield sentence[start:end]
            start, spent = left, 0
        end, spent = right, spent + tokens
    if end:
        yield sentence[start:end]


def _words(sentence: str, room: int) -> Iterator[tuple[int, int]]:
    """Where words begin and end; one that is longer than `room` counts as several."""
    for match in _WORD.finditer(sentence):
        step = len(match[0]) if text_length(match[0]) <= room else room
        for left in range(match.start(), match.end(), step):
            yield left, min(left + step, match.end())
