"""`Vocabulary`: the words of passages, with what their letters alone say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.packed_words import word_keys
from sire_core.extraction.lexicon import FUNCTION_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints

    Keys = NDArray[np.uint64]

__all__ = ["Vocabulary", "stem_keys"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Distinct words by number.

    Attributes:
        words: Lower case.
        keys: See `word_keys`.
        stems: See `stem_keys`; 0 for function words.
        plain: Whether a word can be a name alone: three letters at least, no number, no function word.
    """

    words: Sequence[str] = field(default=(), repr=False)
    keys: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)
    stems: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)
    plain: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)

    def __len__(self) -> int:
        """How many words."""
        return len(self.words)

    def followed_by(self, words: Sequence[str]) -> Vocabulary:
        """These words and others behind them; the others are looked at, these are not again."""
        stems = stem_keys(words)
        plain = np.array([len(word) > 2 and not word.isdigit() for word in words], dtype=bool) & (stems != 0)
        return Vocabulary(
            [*self.words, *words],
            np.concatenate([self.keys, word_keys(words)]),
            np.concatenate([self.stems, stems]),
            np.concatenate([self.plain, plain]),
        )

    def chosen(self, numbers: Ints) -> Vocabulary:
        """Some of the words, in this order."""
        words = [self.words[number] for number in numbers.tolist()]
        return Vocabulary(words, self.keys[numbers], self.stems[numbers], self.plain[numbers])


def stem_keys(words: Sequence[str]) -> Keys:
    """Key of every word's stem; 0 for function words, which say nothing."""
    import Stemmer

    keys = word_keys(Stemmer.Stemmer("english").stemWords(words))
    keys[[word in FUNCTION_WORDS for word in words]] = 0
    return keys
