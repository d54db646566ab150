"""Citations such as [1] in the text of an answer: which passages they name, and a text without those that do not exist.

A citation of a passage that was not shown is left out; where the sentence would lack it ("According to [7], ..."), [?]
stands in its place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence

from sire_core.text.languages import find_language, language
from sire_core.text.words import FINAL_MARKS

_UNKNOWN = "[?]"
_DASH = "-\u2010-\u2015"
_CITED = rf"\[(?!0[{_DASH}])\d{{1,3}}(?:\s*[{_DASH},;]\s*\d{{1,3}})*\]"  # [0-9] is a class of characters
_AND = r"(?:and|or|to|und|oder|bis|et|ou|y|o|e|och|en|i|\u0438)"
_JOINED = rf" {{0,2}}[{_DASH},;&/]? {{0,2}}(?:{_AND} {{1,2}})?"
# Begins where white space does: otherwise a long run of it would be read once from each of its places.
_CITATIONS = re.compile(rf"(?<!\s)\s*{_CITED}(?:{_JOINED}{_CITED})*")
_ONE = re.compile(rf"({_JOINED})({_CITED})")
_RANGE_OF_CITED = re.compile(rf"(\[\d{{1,3}})\] ?(?:[{_DASH}]|to|bis) ?\[(\d{{1,3}}\])")
_NUMBERS = re.compile(rf"(\d+)(?:\s*[{_DASH}]\s*(\d+))?")
_CITED_NUMBER = re.compile(r"\[(\d{1,3})\]")
_LEADS_TO_SOURCE = frozenset(
    "see per cf passage passages source sources document documents siehe laut gem\u00e4\u00df voir selon ver "
    "seg\u00fan secondo segundo volgens enligt wed\u0142ug \u0441\u043e\u0433\u043b\u0430\u0441\u043d\u043e".split()
)
"""Words behind which a sentence needs a source, beside the function words of its language."""
CONTEXT_CHARS = 80  # Characters before a citation that tell whether the sentence would lack it
_PENDING = 12  # Characters behind citations that may still join them with others
_INSIDE = frozenset("0123456789,; \t\r\n-\u2010\u2011\u2012\u2013\u2014\u2015")  # of the brackets of a citation


def tidy_citations(text: str, shown: Collection[int], start: int = 0) -> tuple[str, tuple[int, ...]]:
    """Normalise citations from a place of a text on to [1][3]; leave out those of passages that were not shown.

    Returns the text from `start` on, and the passages that it cites.
    """
    inside: list[int] = []
    parts: list[str] = []
    for match in _CITATIONS.finditer(text, start):
        marks = match.group().lstrip()
        before = text[max(0, match.start() - CONTEXT_CHARS) : match.start()]
        is_needed = _is_part_of_sentence(before, text[match.end() :][:_PENDING])
        tidied, numbers = _tidied(marks, shown, _UNKNOWN if is_needed else "")
        inside += numbers
        space = match.group()[: -len(marks)] if tidied else ""
        parts += [text[start : match.start()], space, tidied]
        start = match.end()
    return "".join([*parts, text[start:]]), tuple(dict.fromkeys(inside))


def _tidied(marks: str, shown: Collection[int], unknown: str) -> tuple[str, list[int]]:
    """Citations side by side without the false ones, the last one joined as the last one was; and their numbers."""
    remaining: list[tuple[str, str]] = []
    inside: list[int] = []
    joined = ""
    for joined, bracket, numbers in _brackets(marks):
        existing = [number for number in numbers if number in shown]
        is_other = not existing and _is_no_citation(numbers, shown)
        inside += existing
        if text := "".join(f"[{number}]" for number in existing) or (bracket if is_other else unknown):
            remaining.append((joined, text))
    first, last = (text for _, text in remaining[:1]), (f"{joined}{text}" for _, text in remaining[1:][-1:])
    return "".join([*first, *(f"{before}{text}" for before, text in remaining[1:-1]), *last]), inside


def _brackets(marks: str) -> Iterator[tuple[str, str, list[int]]]:
    """Brackets of citations side by side: what joins each with the one before, the bracket, and the numbers in it."""
    for joined, bracket in _ONE.findall(_RANGE_OF_CITED.sub(r"\1-\2", marks)):
        pairs = [(int(first), int(last or first)) for first, last in _NUMBERS.findall(bracket)]
        yield joined, bracket, [number for first, last in pairs for number in range(first, max(first, last) + 1)]


def _is_no_citation(numbers: Sequence[int], shown: Collection[int]) -> bool:
    """True if numbers in brackets are larger than passages are numbered: a year, say."""
    return min(numbers) > max([99, *shown])


def _is_part_of_sentence(before: str, after: str) -> bool:
    """True if a sentence is not well formed without citations: behind a function word, or where it begins."""
    before, following = before.rstrip(), after.lstrip()[:1]
    if word := re.search(r"\w+$", before):
        is_source = word.group().lower() in _LEADS_TO_SOURCE
        return is_source or word.group().lower() in language(find_language(before)).function_words
    if before and before[-1] in "(:-*\u2022":
        return True
    begins = not before or before[-1] in f"{FINAL_MARKS},;"
    return begins and (following == ":" or (following.isalpha() and not following.isupper()))


def false_citations(text: str, shown: Collection[int]) -> list[int]:
    """Return cited numbers that no passage shown has, as far as `tidy_citations` drops them."""
    return [
        number
        for match in _CITATIONS.finditer(text)
        for _, _, numbers in _brackets(match.group().lstrip())
        if any(number in shown for number in numbers) or not _is_no_citation(numbers, shown)
        for number in numbers
        if number not in shown
    ]


def without_citations(text: str) -> str:
    """The text alone."""
    return _CITATIONS.sub("", text)


def named_citations(text: str, names: Sequence[str]) -> str:
    """Replace cited numbers by names: [1][3] becomes [a][c]."""

    def name(match: re.Match[str]) -> str:
        number = int(match.group(1))
        return f"[{names[number - 1]}]" if 1 <= number <= len(names) else match.group(0)

    return _CITED_NUMBER.sub(name, text)


def settled(text: str) -> str:
    """The beginning of a text that what follows cannot change: without trailing space and citations that may go on."""
    sure = text.rstrip()
    opened = sure.rfind("[")
    if opened >= 0 and _INSIDE.issuperset(sure[opened + 1 :]):
        sure = sure[:opened].rstrip()
    last = deque(_CITATIONS.finditer(sure), 1)
    return sure[: last[0].start()] if last and len(sure) - last[0].end() < _PENDING else sure
