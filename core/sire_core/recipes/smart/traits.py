"""What kind of thing an entity is in a passage: its part in relations, its type, the words that describe it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key, tokenize
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.types import hash64

if TYPE_CHECKING:
    from sire_core.types import Entity, Triple

__all__ = ["PART", "TYPE", "WORD", "entity_traits", "part_traits", "predicate_family", "word_traits"]

PART, TYPE, WORD = 0, 1, 2
"""Kinds of traits: an end of a kind of relation, an entity type, a word that describes it."""
_NEGATIONS = frozenset(("not", "no", "never", "cannot", "without", "t"))
_MOST_WORDS, _MOST_SAID = 40, 8
_LOWER = re.compile(r"\b[^\W\d_A-Z][^\W\d_]{2,}\b")


@lru_cache(1 << 16)
def predicate_family(predicate: str) -> str:
    """What predicates share that say the same in other forms: stems of the telling words, and whether it is denied.

    `was born in` and `born at` are one; `cannot produce` and `produces` are not.
    """
    words = tokenize(predicate.replace("_", " "))
    stems = [_stem(word) for word in words if word not in FUNCTION_WORDS]
    denied = ["not"] if any(word in _NEGATIONS for word in words) else []
    return " ".join((*denied, *(stems or map(_stem, words))))


def part_traits(triple: Triple) -> tuple[int, int]:
    """Traits of the head and of the tail of a relation."""
    family = predicate_family(triple.predicate)
    return hash64(f"head {family}"), hash64(f"tail {family}")


def entity_traits(entity: Entity) -> Iterator[tuple[int, int]]:
    """Kinds and hashes of the traits that a record gives an entity by itself."""
    if entity.type:
        yield TYPE, hash64(name_key(entity.type))
    for word in _stems(tokenize(entity.description))[:_MOST_WORDS]:
        yield WORD, hash64(word)


def word_traits(text: str) -> list[int]:
    """What a statement without relations says of those that it names: its words but for names."""
    return [hash64(word) for word in _stems(_LOWER.findall(text))[:_MOST_SAID]]


def _stems(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_stem(word) for word in words if word not in FUNCTION_WORDS))


@lru_cache(1)
def _stemmer() -> object:
    import Stemmer

    return Stemmer.Stemmer("english")


@lru_cache(1 << 16)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))  # type: ignore[attr-defined] # PyStemmer has no type information
