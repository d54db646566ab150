"""Words and character n-grams of texts as hashed, sparse features. Pure functions."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.words import UNSPACED, bare_text, signs, word_pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

_WORD = re.compile(r"\w+")
_DIACRITIC = re.compile("[\u0300-\u036f]")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_WRITTEN = re.compile(f"[{UNSPACED}\uff66-\uff9f]+")  # half-width kana, too: they are folded to the others
_GRAM_SIZES = (3, 4, 5)
_BASE = np.uint64(0x100000001B3)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What is added between two values that `mixed` is to tell apart."""


def split_words(text: str) -> list[str]:
    """Lower-case words without diacritics; runs of a script without spaces become overlapping pairs of characters."""
    if text.isascii():
        return _WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _DIACRITIC.sub("", unicodedata.normalize("NFD", bare_text(folded)))
    words = []
    for word in word_pattern().findall(unicodedata.normalize("NFC", folded)):
        if not _UNSPACED.search(word):
            words.append(word)
            continue
        start = 0
        for run in _UNSPACED.finditer(word):
            words += [word[start : run.start()]] if run.start() > start else []
            piece = run.group()
            words += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
            start = run.end()
        words += [word[start:]] if start < len(word) else []
    return words


def spaced_text(text: str) -> str:
    """A text for who splits at spaces: runs of a script without them as pairs, see `split_words`; all of it bare."""
    if text.isascii():
        return text
    return _WRITTEN.sub(lambda run: f" {' '.join(split_words(run.group()))} ", bare_text(text))


@cache
def indexed_words() -> re.Pattern[str]:
    """Words of two letters or more, as `bm25s` has them; a character by itself is one in a script without spaces."""
    return re.compile(rf"\w[\w{signs()}]+|[{UNSPACED}]")


def count_words(texts: Sequence[str]) -> tuple[sparse.csr_matrix, list[str]]:
    """Count the words of texts.

    Returns:
        Counts, float32 `[len(texts), len(words)]`, and the words in order of their first appearance.
    """
    from scipy import sparse

    vocabulary: dict[str, int] = {}
    indptr, indices, counts = [0], list[int](), list[int]()
    for text in texts:
        row = Counter(split_words(text))
        indices += [vocabulary.setdefault(word, len(vocabulary)) for word in row]
        counts += row.values()
        indptr.append(len(indices))
    shape = (len(texts), len(vocabulary))
    data = np.asarray(counts, dtype=np.float32)
    matrix = sparse.csr_matrix((data, np.asarray(indices, dtype=np.int32), np.asarray(indptr)), shape=shape)
    return matrix, list(vocabulary)


def stem_keys(words: Sequence[str]) -> NDArray[np.uint64]:
    """64-bit keys of the words' stems, `[len(words)]`; words of one stem have one key."""
    import Stemmer

    return keys_of_stems(Stemmer.Stemmer("english").stemWords(list(words)))


def keys_of_stems(stems: Sequence[str]) -> NDArray[np.uint64]:
    """64-bit keys of stems, `[len(stems)]`."""
    raw = b"".join(hashlib.blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest() for stem in stems)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def gram_keys(words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Character n-grams (3 to 5) of words, each word between two spaces."""
    text = "".join(f" {word} " for word in words)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    owner = np.repeat(np.arange(len(words)), [len(word) + 2 for word in words])
    owners, keys = [], []
    for size in _GRAM_SIZES:
        starts = np.flatnonzero(owner[: max(0, len(owner) - size + 1)] == owner[size - 1 :])
        key = np.full(len(starts), size, dtype=np.uint64)
        for offset in range(size):
            key = key * _BASE + codes[starts + offset]  # wraps around at 64 bits, as wanted
        owners.append(owner[starts])
        keys.append(mixed(key))
    return np.concatenate(owners).astype(np.int64), np.concatenate(keys)


def random_signs(keys: NDArray[np.uint64], width: int) -> NDArray[np.float32]:
    """A pseudo-random vector of +1 and -1 per key, float32 `[len(keys), width]`: a dense sign projection."""
    blocks = -(-width // 64)
    with np.errstate(over="ignore"):
        steps = np.arange(1, blocks + 1, dtype=np.uint64) * GOLDEN
        bits = mixed(keys[:, None] + steps[None, :]).astype("<u8")
    unpacked = np.unpackbits(bits.view(np.uint8).reshape(len(keys), blocks * 8), axis=1)[:, :width]
    signs = unpacked.view(np.int8)
    signs *= 2
    signs -= 1
    return signs.astype(np.float32)


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the input reaches every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)
