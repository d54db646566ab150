"""What IRCoT's released code adds to its paragraphs: no near-duplicates, nothing too long, fifteen at most."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.types import Unit

__all__ = ["admit_paragraphs", "nearly_equal"]

_COMPARED = 1000
"""Characters of each text that are compared; enough to tell passages apart, and it bounds the time."""


def nearly_equal(one: str, other: str, ratio: float = 0.9) -> bool:
    """Whether two texts agree in at least that share of their characters (upper case counts as lower case)."""
    matcher = SequenceMatcher(None, one.casefold()[:_COMPARED], other.casefold()[:_COMPARED], autojunk=False)
    # Two upper bounds first: they settle almost every comparison.
    return matcher.real_quick_ratio() >= ratio and matcher.quick_ratio() >= ratio and matcher.ratio() >= ratio


def admit_paragraphs(collected: Sequence[Unit], found: Sequence[Unit], *, most: int, max_words: int) -> list[int]:
    """Places in `found` of the paragraphs that join those collected, first come first served.

    Args:
        collected: What is there already.
        found: What a search found, best first.
        most: Paragraphs in all.
        max_words: Longer ones are left out, unless there is nothing else.
    """
    kept = list(collected)
    short = [place for place, unit in enumerate(found) if len(unit.text.split()) <= max_words]
    places: list[int] = []
    for place in short if short or collected else range(len(found)):
        unit = found[place]
        if len(kept) >= most:
            break
        if any(nearly_equal(unit.title, other.title) and nearly_equal(unit.text, other.text) for other in kept):
            continue
        kept.append(unit)
        places.append(place)
    return places
