"""How ordinary an English word is, by a fixed list: extraction depends on the passage alone, never on its corpus."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

__all__ = ["is_everyday", "rarity"]


@lru_cache(1)
def _ranks() -> dict[str, int]:
    """Rank by stem, 0 for the commonest.

    `common_words.txt` holds Snowball stems by falling document frequency, counted where words stand in lower case
    inside sentences of encyclopaedia articles and of software documentation, and frequent in both kinds or in most
    samples of one.
    """
    words = (Path(__file__).parent / "common_words.txt").read_text(encoding="ascii").split()
    return {word: rank for rank, word in enumerate(words)}


@lru_cache(1)
def _stemmer() -> object:
    import Stemmer

    return Stemmer.Stemmer("english")


@lru_cache(1 << 13)
def _rank(word: str) -> int | None:
    stem: str = _stemmer().stemWord(word)  # type: ignore[attr-defined] # PyStemmer has no type information
    return _ranks().get(stem)


def is_everyday(word: str) -> bool:
    """Whether a word, in any case and inflection, is an ordinary word of English prose rather than a name."""
    return _rank(word.lower()) is not None


@lru_cache(1 << 13)
def rarity(word: str) -> float:
    """How much a lower-case word tells: an inverse document frequency of English at large, from 0 for `the` to about 9.

    Frequencies fall about as ranks rise (Zipf's law), so the logarithm of the rank stands in for what counting a corpus
    would give.
    """
    rank = _rank(word)
    return math.log1p(3 * len(_ranks()) if rank is None else rank)
