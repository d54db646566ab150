"""Words of a text that mean nearly the same as words of a question, or in other languages look nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.models.lexical_embedder import gram_vectors, keys_of_stems, stem_keys
from sire_core.models.word_vectors import stem_vectors
from sire_core.text.snippets import stems
from sire_core.text.words import find_words

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray
    from sire_core.text.languages import Language

MIN_ALIKE_COSINE = 0.45


class AlikeWords:
    """Words of a question, and vectors of what they mean, or in other languages than English of their n-grams."""

    def __init__(self, question: str, spoken: Language, weight: dict[str, float]) -> None:
        self._spoken = spoken
        self._read: dict[str, FloatArray] = {}
        words = self._content_words(question)
        self._spelled, self._vectors = [stems(word, spoken) for word in words], self._vectors_of(words)
        rarest = max(weight.values(), default=1.0)
        self._weights = np.array([max((weight.get(one, rarest) for one in own), default=0) for own in self._spelled])

    def share(self, text: str, had: frozenset[str]) -> float:
        """Share of the question in words that a text lacks and has one of nearly the same meaning for."""
        others = self._vectors_of(self._content_words(text))
        if not len(others) or not self._spelled:
            return 0.0
        nearest = (self._vectors @ others.T).max(axis=1)
        counted = [not own & had for own in self._spelled] & (nearest >= MIN_ALIKE_COSINE)
        return float((self._weights * nearest)[counted].sum() / (self._weights.sum() or 1.0))

    def _content_words(self, text: str) -> list[str]:
        is_english = self._spoken.is_english
        words = dict.fromkeys(map(str.lower, find_words(text)) if is_english else self._spoken.words(text))
        return [word for word in words if word not in self._spoken.function_words]

    def _vectors_of(self, words: Sequence[str]) -> FloatArray:
        """Vectors of length one, `[words, n]`."""
        if new := [word for word in words if word not in self._read]:
            is_english = self._spoken.is_english
            rows = stem_vectors(stem_keys(new), keys_of_stems) if is_english else gram_vectors(new)
            self._read.update(zip(new, rows, strict=True))
        return np.array([self._read[word] for word in words])
