"""Citations such as [2] or [1, 3] in the text of an answer. Pure functions."""

from __future__ import annotations

import re

__all__ = ["tidy_citations", "without_citations"]

_CITATION = re.compile(r"\s*\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")


def tidy_citations(text: str, hits: int) -> tuple[str, tuple[int, ...]]:
    """Bring citations into one form, [1][3], and leave out those of passages that do not exist.

    Args:
        text: An answer, or a part of one that neither begins nor ends inside of a citation and the space before it.
        hits: How many passages there are.

    Returns:
        The text, and the numbers that it cites, each once.
    """
    inside: list[int] = []

    def tidy(match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match.group(1))]
        known = [number for number in numbers if 1 <= number <= hits]
        inside.extend(known)
        if not known and min(numbers) > max(hits, 99):  # a year in brackets, say
            return match.group(0)
        space = match.group(0)[: len(match.group(0)) - len(match.group(0).lstrip())]
        return space + "".join(f"[{number}]" for number in known) if known else ""

    return _CITATION.sub(tidy, text), tuple(dict.fromkeys(inside))


def without_citations(text: str) -> str:
    """The text alone."""
    return _CITATION.sub("", text)
