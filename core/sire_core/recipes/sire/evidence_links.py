"""Which entities a question names, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.packed_words import word_keys
from sire_core.extraction.lexicon import DEMONYMS, FUNCTION_WORDS, HONORIFICS, MONTHS, OPENERS, WEEKDAYS
from sire_core.recipes.sire.evidence_texts import LONGEST_NAME, name_words, phrase_keys

if TYPE_CHECKING:
    from sire_core.recipes.sire.evidence_index import EvidenceIndex

__all__ = ["linked_entities"]

_COMMON = FUNCTION_WORDS | OPENERS | DEMONYMS | HONORIFICS | WEEKDAYS | frozenset(MONTHS)
_SHORT, _LOWERED = 0.7, 0.5  # how sure a name of one word is, and one in lower case
_SHORTEST_NAME = 3


def linked_entities(question: str, index: EvidenceIndex) -> dict[int, float]:
    """Entities that a question names, and how sure that is.

    The longest names win. Function words, months, nationalities and single words in lower case never link; several
    words in lower case only where a passage is about them.
    """
    words = name_words(question)
    spelled = _spellings(question, words)
    lowered = question[1:] == question[1:].lower()
    used = np.zeros(len(words), dtype=bool)
    found: dict[int, float] = {}
    phrases = phrase_keys(word_keys(words), LONGEST_NAME)[::-1]
    places = [slice(start, start + len(words) + 1 - len(keys)) for keys in phrases for start in range(len(keys))]
    for number, entities in index.entities_named(np.concatenate([np.zeros(0, dtype=np.uint64), *phrases])):
        place = places[number]
        if used[place].any():
            continue
        about = bool((index.owners.lengths(entities) > 0).any())
        sure = _confidence(words[place], spelled[place], first=place.start == 0, lowered=lowered, about=about)
        if sure:
            used[place] = True
            found |= dict.fromkeys(entities.tolist(), sure)
    return found


def _spellings(question: str, words: list[str]) -> list[bool]:
    """Whether the words of a question look like parts of a name."""
    raw = [part for part in question.replace("&", " and ").split() if part]
    marks: list[bool] = []
    for part in raw:
        inner = name_words(part)
        bare = part.lstrip("\"'\u201c\u2018([{<")
        capital = bool(bare) and not bare[0].islower()
        marks += [capital] * len(inner)
    return marks if len(marks) == len(words) else [True] * len(words)


def _confidence(words: list[str], capitals: list[bool], *, first: bool, lowered: bool, about: bool) -> float:
    if all(word in _COMMON or (word.isdigit() and len(word) < _SHORTEST_NAME) for word in words):
        return 0.0
    if len(words) == 1:
        plain = len(words[0]) >= _SHORTEST_NAME and not words[0].isdigit()
        return _SHORT if plain and (lowered or (capitals[0] and not first)) else 0.0
    proper = sum(capitals)
    if proper >= max(1, len(words) // 2):
        return 1.0
    return _LOWERED if proper or about else 0.0
