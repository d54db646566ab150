"""Citations such as [2] or [1, 3] in the text of an answer. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["named_citations", "numbered_findings", "tidy_citations", "without_citations"]

# Begins where white space does: otherwise a long run of it would be read once from each of its places.
_CITATION = re.compile(r"(?<!\s)\s*\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
_NUMBER = re.compile(r"\[(\d{1,3})\]")
_FINDING = re.compile(r"^\[(\d{1,2})\] ", re.MULTILINE)


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


def numbered_findings(report: str) -> frozenset[int]:
    """Numbers of the findings of a report, which open its lines: `[1] Both ships were built by ...`.

    Args:
        report: Its text.
    """
    return frozenset(int(number) for number in _FINDING.findall(report))


def without_citations(text: str) -> str:
    """The text alone."""
    return _CITATION.sub("", text)


def named_citations(text: str, names: Sequence[str]) -> str:
    """The text with names in the place of the numbers that it cites: [1][3] becomes [a][c].

    Args:
        text: With citations as `tidy_citations` leaves them.
        names: Of the passages.
    """

    def name(match: re.Match[str]) -> str:
        number = int(match.group(1))
        return f"[{names[number - 1]}]" if 1 <= number <= len(names) else match.group(0)

    return _NUMBER.sub(name, text)
