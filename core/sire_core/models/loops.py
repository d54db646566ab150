"""Answers that were cut off at their limit, often in a loop. Pure functions, linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["loop_at", "with_one_round", "without_loop", "without_rest"]

_REACH = 6_000
"""Letters at the end that are looked at: a few rounds of anything that a model repeats."""
_LEAST_ROUNDS = 3
_LEAST_LETTERS = 120
_DIGIT = re.compile(r"\d")
_CLOSES = {"{": "}", "[": "]"}


def loop_at(text: str) -> tuple[int, int] | None:
    """Where a text begins to repeat its own end, and the length of a round; None when it does not.

    A loop is the longest end of the text that consists of three or more rounds of the same letters, at least 120 in
    all, the last round perhaps cut off. Digits count as equal: "n57" and "n58" are one round of a list of ids. It
    begins as early as it can: with letters of what stands before the first round and happens to end like a round.
    """
    end = _DIGIT.sub("0", text[-_REACH:])[::-1]
    # The prefix function of the reversed end: its smallest period is that of the loop.
    border = [0] * len(end)
    best = 0
    period = 0
    for at in range(1, len(end)):
        k = border[at - 1]
        while k and end[at] != end[k]:
            k = border[k - 1]
        border[at] = k + (end[at] == end[k])
        length = at + 1
        if length >= max(_LEAST_LETTERS, _LEAST_ROUNDS * (length - border[at])):
            best, period = length, length - border[at]
    return (len(text) - best, period) if best else None


def without_loop(text: str) -> str | None:
    """The JSON value of an answer that ran in a circle until it was cut off, closed after the first round.

    Returns:
        The value up to an element that was finished in the first two rounds (one of them may be in it twice), with its
        brackets closed; None when the text does not repeat itself or holds no finished element.
    """
    loop = loop_at(text)
    if loop is None:
        return None
    start, period = loop
    return _finished(text, start + 2 * period - 1, period)


def with_one_round(text: str) -> str | None:
    """The JSON value of an answer that ran in a circle inside of one string, closed where the string said it once.

    Returns:
        None when the text does not repeat itself, or repeats more than a part of one string.
    """
    loop = loop_at(text)
    begin = _begin(text)
    if loop is None or begin < 0:
        return None
    start, period = loop
    stack: list[str] = []
    opened = -1  # where a string begins that has not ended
    for at, letter in _marks(text, begin, len(text)):
        if letter == '"':
            opened = at if opened < 0 else -1
        elif letter in _CLOSES:
            stack.append(letter)
        elif not stack or _CLOSES[stack.pop()] != letter:
            return None
    if not stack or not 0 <= opened < start:
        return None
    said = text[begin : start + period].rstrip("\\")
    return f'{said}"{"".join(_CLOSES[left] for left in reversed(stack))}'


def without_rest(text: str) -> str | None:
    """The JSON value of an answer that was cut off, up to its last finished element, with its brackets closed.

    Returns:
        None when it holds no finished element.
    """
    return _finished(text, len(text), 0)


def _begin(text: str) -> int:
    return min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)


def _finished(text: str, end: int, period: int) -> str | None:
    """The value of `text[:end]` up to a finished element; what begins in the last `period` letters is a repetition."""
    begin = _begin(text)
    if begin < 0:
        return None
    stack: list[str] = []
    before: tuple[int, int] | None = None  # index and depth of what was finished last, before the last round
    inside: tuple[int, int] | None = None  # and in it: what is least deep is repeated, the rest is a part of that
    for at, letter in _marks(text, begin, end):
        if letter == '"':
            continue
        if letter in _CLOSES:
            stack.append(letter)
            continue
        if not stack or _CLOSES[stack.pop()] != letter:
            return None
        if at < end - period:
            before = (at + 1, len(stack))
        elif inside is None or len(stack) <= inside[1]:
            inside = (at + 1, len(stack))
        if not stack:
            break
    kept, depth = inside or before or (0, 0)
    # What was opened before the last finished element and not closed up to it is the bottom of the stack.
    return text[begin:kept] + "".join(_CLOSES[opened] for opened in reversed(stack[:depth])) if kept else None


def _marks(text: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    """Brackets outside of strings, and the quotation marks of strings."""
    in_string = escaped = False
    for at in range(begin, end):
        letter = text[at]
        if in_string:
            in_string = escaped or letter != '"'
            if not in_string:
                yield at, letter
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            in_string = True
            yield at, letter
        elif letter in "{}[]":
            yield at, letter
