"""Vectors of English words that ship with the package, made by `benchmarks/word_vectors.py`.

A word's vector is the sum of those of its pieces, the longest from the left (WordPiece, Wu et al., 2016), so that words
which nobody has seen have one, too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.lists import weighted_sums
from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.text.words import split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray

    Keys = NDArray[np.uint64]

FILE = Path(__file__).parents[1] / "data" / "word_vectors.npz"
WIDTH = 128
INNER = "##"
"""Mark of a piece that does not begin a word."""
_LONGEST_PIECE = 18
_MAX_LETTERS = 100  # Of a word that has pieces, as in BERT; encoded data means nothing
_SLICE = 1024  # Texts or words whose vectors are summed at once: so few, that scipy is not imported for them
_MAX_REMEMBERED_LETTERS = 40  # Of such a word
_REMEMBERED = 100_000  # Words whose pieces are remembered, at most 20 MB


class _PieceRows(dict[str, tuple[int, ...]]):
    """Rows of the pieces of words, worked out when a word is first looked up; many words are remembered."""

    def __init__(self, pieces: Mapping[str, int]) -> None:
        super().__init__({piece: (row,) for piece, row in pieces.items()})
        self.pieces = pieces

    def __missing__(self, word: str) -> tuple[int, ...]:
        rows = tuple(self._longest_from_left(word))
        if len(self) < _REMEMBERED and len(word) <= _MAX_REMEMBERED_LETTERS:
            self[word] = rows
        return rows

    def _longest_from_left(self, word: str) -> list[int]:
        """Rows of the longest pieces of a word from the left; none if it is very long or a letter has no piece."""
        if len(word) > _MAX_LETTERS:
            return []
        if not word.isascii():
            word = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
        rows: list[int] = []
        start = 0
        while start < len(word):
            piece = (INNER if start else "") + word[start : start + _LONGEST_PIECE]
            shortest = len(INNER) + 1 if start else 1
            while piece not in self.pieces:
                piece = piece[:-1]
                if len(piece) < shortest:
                    return []
            rows.append(self.pieces[piece])
            start += len(piece) - shortest + 1
        return rows


@dataclass(frozen=True, slots=True)
class _Pieces:
    words: list[str]  # English words, the commonest of each stem
    rows: _PieceRows
    codes: NDArray[np.int8]  # vectors of the pieces in 8 bits, `[pieces, WIDTH]`
    scales: NDArray[np.float16]  # of the codes, `[pieces]`

    def vectors(self, rows: NDArray[np.intp]) -> FloatArray:
        """Vectors of pieces, float32 `[len(rows), WIDTH]`."""
        return self.codes[rows] * self.scales[rows].astype(np.float32)[:, None]


@cache
def _pieces() -> _Pieces:
    with np.load(FILE) as file:
        words, pieces = (file[name].tobytes().decode("ascii").split("\n") for name in ("words", "pieces"))
        rows = _PieceRows({piece: row for row, piece in enumerate(pieces)})
        return _Pieces(words, rows, file["codes"], file["scales"])


def _stems_of(words: Sequence[str]) -> list[str]:
    import Stemmer

    return list(Stemmer.Stemmer("english").stemWords(words))


@cache
def _stems() -> frozenset[str]:
    """Stems of the English words, each of one word."""
    return frozenset(_stems_of(_pieces().words))


@cache
def _stem_keys(key_of: Callable[[Sequence[str]], Keys]) -> Keys:
    """Keys of the stems of the English words."""
    return key_of(list(_stems()))


@cache
def _whole_words(key_of: Callable[[Sequence[str]], Keys]) -> tuple[Keys, FloatArray]:
    """Keys of the stems whose word is one piece, ascending, and the vector of each, of length 1."""
    pieces = _pieces().rows.pieces
    words = [word for word in _pieces().words if word in pieces]
    keys = key_of(_stems_of(words))
    order = np.argsort(keys)
    rows = np.array([pieces[word] for word in words])[order]
    return keys[order], unit_rows(_pieces().vectors(rows))


def is_english(word: str) -> bool:
    """True if a word, in small letters and any inflection, is one of those that ship."""
    return word.isascii() and _stems_of([word])[0] in _stems()  # it refuses lone surrogates


def are_english(keys: Keys, key_of: Callable[[Sequence[str]], Keys]) -> NDArray[np.bool_]:
    """For keys of stems, as `key_of` makes them, whether they are of English words, bool `[len(keys)]`."""
    return np.isin(keys, _stem_keys(key_of))


def word_vectors(words: Sequence[str]) -> FloatArray:
    """Vectors of words in small letters, float32 `[len(words), WIDTH]`; the longer, the more a word says."""
    return _sums([_pieces().rows[word] for word in words])


def text_vectors(texts: Sequence[str]) -> FloatArray:
    """Sums over the words of texts, of length one, float32 `[len(texts), WIDTH]`; zeros for texts without a word."""
    rows = _pieces().rows
    return unit_rows(_sums([[*chain.from_iterable(map(rows.__getitem__, split_words(text)))] for text in texts]))


def _sums(rows: Sequence[Sequence[int]]) -> FloatArray:
    """Sums of the vectors of some pieces, `[len(rows), WIDTH]`."""
    sums = np.zeros((len(rows), WIDTH), dtype=np.float32)
    for start in range(0, len(rows), _SLICE):
        part = rows[start : start + _SLICE]
        pieces, columns = np.unique(np.fromiter(chain.from_iterable(part), dtype=np.intp), return_inverse=True)
        ends = np.cumsum([0, *map(len, part)])
        counts = np.ones(len(columns), dtype=np.float32)
        sums[start : start + _SLICE] = weighted_sums(counts, columns, ends, _pieces().vectors(pieces))
    return sums


def stem_vectors(keys: Keys, key_of: Callable[[Sequence[str]], Keys]) -> FloatArray:
    """Vectors of length 1 of the words of stems, float32 `[len(keys), WIDTH]`, by keys as `key_of` makes them.

    Zeros where a word is not English, or is made of several pieces: such words are near others of the same pieces,
    whatever both mean.
    """
    numbers, whole_words = known_stems(keys, key_of)
    vectors = np.zeros((len(keys), WIDTH), dtype=np.float32)
    vectors[numbers] = whole_words
    return vectors


def known_stems(keys: Keys, key_of: Callable[[Sequence[str]], Keys]) -> tuple[NDArray[np.intp], FloatArray]:
    """Which stems `stem_vectors` has no zeros for, ascending, and their vectors, float32 `[known, WIDTH]`."""
    whole, vectors = _whole_words(key_of)
    positions = np.minimum(np.searchsorted(whole, keys), len(whole) - 1)
    single = np.flatnonzero(whole[positions] == keys)
    return single, vectors[positions[single]]
