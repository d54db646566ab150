"""Votes for passages (MS-RAG), and a model's order in numbers. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
P = TypeVar("P")

_NUMBER = re.compile(r"\d+")


def count_votes(items: Iterable[tuple[float, Iterable[P]]]) -> dict[P, float]:
    """Add up votes: per recalled item the worth of its vote and its passages."""
    votes: dict[P, float] = {}
    for worth, passages in items:
        for passage in dict.fromkeys(passages):
            votes[passage] = votes.get(passage, 0.0) + worth
    return votes


def parse_order(answer: str, items: Sequence[T]) -> list[T]:
    """Reorder numbered items as a model's answer says: those named, then all others in their old order."""
    first = parse_numbers(answer, len(items))
    return [items[number] for number in first] + [item for i, item in enumerate(items) if i not in first]


def parse_numbers(answer: str, size: int) -> list[int]:
    """Read the numbers that a model's answer names, each once, in its order.

    Args:
        answer: Any text; its whole numbers count, from 0.
        size: How many things are numbered; larger numbers are passed over.
    """
    numbers = (int(found) for found in _NUMBER.findall(answer) if len(found) < 10)
    return list(dict.fromkeys(number for number in numbers if number < size))
