"""Numbers with their nouns, for messages."""

from __future__ import annotations

__all__ = ["count"]


def count(number: int, noun: str, several: str = "") -> str:
    """A number with its noun, for example `1 document` or `6,119 documents`.

    Args:
        number: How many.
        noun: The word for one.
        several: The word for more than one; by default the noun with an `s`.
    """
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"
