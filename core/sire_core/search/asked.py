"""Parse a question: its parts, words of like meaning, a number, a name, a time, code. English only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.models.lexical_embedder import keys_of_stems, stem_keys
from sire_core.models.word_vectors import word_vectors
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.snippets import stems
from sire_core.text.words import find_words

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

MIN_ALIKE_COSINE = 0.45
_MAX_PARTS, _MIN_PART_STEMS = 3, 2  # Parts of a question, the last ones; and content words of each
_ASKING = (
    "(?:what|which|who|whom|whose|where|when|why|how|do|does|did|is|are|was|were|can|could|will|would|should|may|must"
    "|has|have)"
)
_BETWEEN_PARTS = re.compile(
    rf"(?<=[.?!;])\s+|,?\s(?:and|but|or)\s(?=(?:[a-z]{{2,6}} )?{_ASKING}\b)|,\s(?={_ASKING}\b)", re.IGNORECASE
)
_ASKS_NUMBER = re.compile(
    r"\b(?:when|how (?:many|much|long|old|far|large)|(?:what|which) (?:year|date)|numbers?)\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where|which|(?:what|whose) name)\b", re.IGNORECASE)
_ASKS_TIME = re.compile(
    r"\bhow (?:long|many (?:milliseconds|seconds|minutes|hours|days|weeks|months|years))\b", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])\d(?!\w*\.\d+\.)")
_TIME = re.compile(
    r"(?<![\w.,])\d[\d,.]*[ -]?(?:m?s|m|h|d|(?:millisecond|second|sec|minute|min|hour|day|week|month|year)s?)\b"
    r"|\bdefaults?\b\W+(?:\w+\W+){0,2}\d",
    re.IGNORECASE,
)
_ASKS_CODE = re.compile(
    r"\b(?:how (?:do|can|could|should|to)|(?:command|option|flag|syntax|example)s?)\b", re.IGNORECASE
)
_NAME = re.compile(r"\b[A-Z]\w+")


def question_parts(question: str) -> list[str]:
    """The parts of a question that asks for several things, the last ones."""
    parts = [part for part in _BETWEEN_PARTS.split(question) if len(stems(part)) >= _MIN_PART_STEMS]
    return parts[-_MAX_PARTS:] if len(parts) > 1 else [question]


def asks_code(question: str) -> bool:
    """True if a command, an option or the way to do something is asked for."""
    return _ASKS_CODE.search(question) is not None


def has_time_asked(question: str, sentence: str) -> bool:
    """True if a sentence has a time where the question asks for one."""
    return bool(_ASKS_TIME.search(question) and _TIME.search(sentence))


def has_kind_asked(question: str, asked: frozenset[str], sentence: str) -> bool:
    """True if a sentence has a number or a new name where the question asks for one."""
    if _ASKS_NUMBER.search(question):
        return bool(_NUMBER.search(sentence))
    return bool(_ASKS_NAME.search(question)) and any(not stems(name) & asked for name in _NAME.findall(sentence)[1:])


class AlikeWords:
    """Words of a question, and vectors of what they mean."""

    def __init__(self, question: str, weight: dict[str, float]) -> None:
        words = _content_words(question)
        self._spelled, self._vectors = list(map(stems, words)), _vectors(words)
        rarest = max(weight.values(), default=1.0)
        self._weights = np.array([max((weight.get(one, rarest) for one in own), default=0) for own in self._spelled])

    def share(self, text: str, had: frozenset[str]) -> float:
        """Share of the question in words that a text lacks and has one of nearly the same meaning for."""
        others = _vectors(_content_words(text))
        if not len(others) or not self._spelled:
            return 0.0
        nearest = (self._vectors @ others.T).max(axis=1)
        counted = [not own & had for own in self._spelled] & (nearest >= MIN_ALIKE_COSINE)
        return float((self._weights * nearest)[counted].sum() / (self._weights.sum() or 1.0))


def _content_words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(map(str.lower, find_words(text))) if word not in FUNCTION_WORDS]


def _vectors(words: Sequence[str]) -> FloatArray:
    """Vectors of length one of what words mean, `[words, n]`."""
    return unit_rows(word_vectors(stem_keys(words), keys_of_stems))
