"""The embedder that needs no download: hashed words and character n-grams, and vectors of English words."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.grouping import GOLDEN, mixed
from sire_core.arrays.lists import weighted_sums
from sire_core.errors import ConfigurationError
from sire_core.models.word_vectors import WIDTH, are_english, word_vectors
from sire_core.text.words import SOUTH_EAST, packed, split_words

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from sire_core.protocols import FloatArray

    Counts = tuple[FloatArray, NDArray[Any], NDArray[Any]]  # values, columns, and where rows end: a sparse matrix

# Truncated SVD alone loses the rare names that multi-hop questions turn on (recall@5 on 2WikiMultihopQA: 30 with 256
# dimensions, 42 with 512, MiniLM 62). Random signs keep inner products of rare words up to noise of 1 / sqrt(width), so
# one part of the vector is a sign projection (recall@5 61) and the other what the words mean, or where most are not
# English, with less weight, the topical directions of the SVD.
SKETCH, TOPICS = 448, 64
DIMENSION = SKETCH + TOPICS
_TOPIC_SHARE = 0.1
_MEANING_SHARE = 0.6
_MEANING_IDF_POWER = 0.25
_ENGLISH = 0.75  # Share of a corpus' words that have to be known for their meaning to be used
_GRAM_SHARE = 0.3
_IDF_POWER = 1.5
_FIT_WORDS = 100_000
_TEXTS_PER_BATCH = 2048
_LETTERS_PER_BATCH = 1 << 18  # fits the cache of a core: every different word takes 3 kB while its batch is embedded
_SLICE = 1024
_MAX_GRAM_LETTERS = 64  # Of a word whose n-grams are looked at; encoded data may be one word of megabytes
# A change of a corpus embeds a few dozen texts at a time, which have most words in common: up to 15 MB are remembered.
_KEPT_WORDS = 8192
_kept: dict[str, FloatArray] = {}
_MODEL_NAME = "lexical-svd/1"
_FIT_TEXTS = 20_000
_SMALL_BATCH = 16
_large: list[tuple[int, ThreadPoolExecutor]] = []  # The thread of large batches, by process: a fork has no threads
_GRAM_SIZES = (3, 4, 5)
_BASE = np.uint64(0x100000001B3)
_BIT_SIGNS = 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) - 1
"""Signs of the bits of a byte, `[256, 8]`."""


def count_words(texts: Sequence[str], *, whole_letters: bool = False) -> tuple[Counts, list[str]]:
    """Count words: by text and word, ascending, and the words in order of their first appearance."""
    vocabulary: dict[str, int] = {}
    indptr, indices, counts = [0], list[int](), list[int]()
    for text in texts:
        word_counts = Counter(split_words(text, whole_letters=whole_letters)).items()
        row = sorted((vocabulary.setdefault(word, len(vocabulary)), count) for word, count in word_counts)
        indices += [word for word, _ in row]
        counts += [count for _, count in row]
        indptr.append(len(indices))
    data = np.asarray(counts, dtype=np.float32)
    return (data, np.asarray(indices, dtype=np.int32), np.asarray(indptr)), list(vocabulary)


def stem_keys(words: Sequence[str]) -> NDArray[np.uint64]:
    """64-bit keys of the words' stems, `[len(words)]`; words of one stem have one key."""
    import Stemmer

    return keys_of_stems(Stemmer.Stemmer("english", 0).stemWords(list(words)))  # without a cache: no word comes twice


def keys_of_stems(stems: Sequence[str]) -> NDArray[np.uint64]:
    """64-bit keys of stems, `[len(stems)]`."""
    raw = b"".join(hashlib.blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest() for stem in stems)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def gram_keys(words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Character n-grams (3 to 5) of the first letters of words, each word between two spaces."""
    words = [word[:_MAX_GRAM_LETTERS] for word in words]
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


def gram_vectors(words: Sequence[str], width: int = 192) -> FloatArray:
    """Vectors of length one of the n-grams of words, float32 `[len(words), width]`: the more they share, the nearer."""
    owners, keys = gram_keys(words)
    signs = random_signs(keys[np.argsort(owners, kind="stable")], width)
    starts = np.searchsorted(np.sort(owners), np.arange(len(words)))
    return _unit(np.add.reduceat(signs, starts) if len(words) else signs)


def random_signs(keys: NDArray[np.uint64], width: int) -> NDArray[np.float32]:
    """A pseudo-random vector of +1 and -1 per key, float32 `[len(keys), width]`: a dense sign projection."""
    blocks = -(-width // 64)
    with np.errstate(over="ignore"):
        steps = np.arange(1, blocks + 1, dtype=np.uint64) * GOLDEN
        bits = mixed(keys[:, None] + steps[None, :]).astype("<u8")
    return np.take(_BIT_SIGNS, bits.view(np.uint8), axis=0).reshape(len(keys), blocks * 64)[:, :width]


@dataclass(frozen=True, slots=True)
class LexicalState:
    """Fitted state; `keys` are sorted stem keys that two or more texts share; no text can be read back."""

    fitted_on: int  # Number of texts given to `fit`
    sampled: int  # Number of texts that the frequencies were counted on
    keys: NDArray[np.uint64]  # uint64 `[words]`
    frequencies: NDArray[np.int32]  # Texts that have the stem, int32 `[words]`
    # Right singular vectors, float16 `[words, topics]`; `[words, 0]` where the words' meaning is used
    topics: NDArray[np.float16]
    whole_letters: bool = False  # True where most words are of scripts whose letters have signs, see `split_words`

    @property
    def by_meaning(self) -> bool:
        """True if words count by what they mean in English, not by topics."""
        return not self.topics.shape[1]

    def digest(self) -> str:
        """Digest of all that was learned."""
        state = hashlib.blake2b(f"{self.fitted_on}:{self.sampled}:{len(self.keys)}:".encode(), digest_size=12)
        for array, kind in ((self.keys, "<u8"), (self.frequencies, "<i4"), (self.topics, "<f2")):
            state.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        if self.by_meaning:
            state.update(b"pieces")
        if self.whole_letters:
            state.update(b"letters")
        return state.hexdigest()


def learn_state(texts: Sequence[str], fitted_on: int) -> LexicalState:
    """Count the stems' text frequencies; where most words are not English, take the SVD of the weighted counts."""
    by_stem, keys, whole_letters = _stem_counts(texts)
    frequencies = np.bincount(by_stem.indices, minlength=len(keys)).astype(np.int32)
    often = np.asarray(by_stem.sum(axis=0)).ravel()
    english = often[are_english(keys, keys_of_stems)].sum() >= _ENGLISH * often.sum()
    # A stem of a single text is treated like one never seen, which costs nothing to remember.
    common = np.flatnonzero(frequencies >= 2)
    if len(common) > _FIT_WORDS:
        common = np.sort(common[np.argsort(-frequencies[common], kind="stable")[:_FIT_WORDS]])
    keys, frequencies = keys[common], frequencies[common]
    if english:
        return LexicalState(fitted_on, len(texts), keys, frequencies, np.zeros((len(keys), 0), dtype=np.float16))
    rows = _weighted_rows(by_stem[:, common], _rarity(frequencies, len(texts)) ** _IDF_POWER)
    del by_stem  # as large as the rows, beside which the directions take the most memory of a build
    return LexicalState(fitted_on, len(texts), keys, frequencies, _topics(rows), whole_letters)


def _stem_counts(texts: Sequence[str]) -> tuple[sparse.csr_matrix, NDArray[np.uint64], bool]:
    """Counts of stems by text, keys of the stems, and whether the letters of most words have signs."""
    from scipy import sparse

    counts, words = count_words(texts)
    whole_letters = _has_signed_letters(counts, words)
    if whole_letters:
        counts, words = count_words(texts, whole_letters=True)
    keys, stem_of = np.unique(stem_keys(words), return_inverse=True)
    ones = np.ones(len(words), dtype=np.float32)
    merge = sparse.csr_matrix((ones, (np.arange(len(words)), stem_of)), shape=(len(words), len(keys)))
    return (sparse.csr_matrix(counts, shape=(len(texts), len(words))) @ merge).tocsr(), keys, whole_letters


def _has_signed_letters(counts: Counts, words: list[str]) -> bool:
    """True if more than half of the words are of Thai, Lao, Burmese or Khmer."""
    totals = np.bincount(counts[1], counts[0], minlength=len(words))
    signed = np.array([not word.isascii() and SOUTH_EAST.search(word) is not None for word in words], dtype=bool)
    return bool(2 * totals[signed].sum() > totals.sum())


def _weighted_rows(counts: sparse.csr_matrix, weights: NDArray[np.float64]) -> sparse.csr_matrix:
    """Damped counts times the weights of words; rows of length 1."""
    from scipy import sparse

    damped = sparse.csr_matrix((_damped(counts.data), counts.indices, counts.indptr), shape=counts.shape)
    weighted = damped @ sparse.diags(weights)
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1), dtype=np.float64).ravel())
    return (sparse.diags(1 / np.where(norms > 0, norms, 1)) @ weighted).tocsr()


def _topics(rows: sparse.csr_matrix) -> NDArray[np.float16]:
    """Right singular vectors of rows, length-normalised, `[words, topics]`, padded with zeros."""
    topics = np.zeros((rows.shape[1], TOPICS), dtype=np.float16)
    count = min(TOPICS, *rows.shape)
    if not count or not rows.nnz:
        return topics
    # In double precision and rounded to half afterwards: the same bits whatever the number of threads.
    sizes, vectors = _leading_directions(rows, count)
    solid = sizes > 1e-6 * sizes[0]
    topics[:, :count][:, solid] = vectors[solid].T
    return topics


def _leading_directions(rows: sparse.csr_matrix, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest singular values and their right vectors `[count, words]`, by random projections (Halko et al., 2011).

    Equal to `randomized_svd` of scikit-learn, whose import takes longer than the whole build of a small corpus.
    """
    from scipy.linalg import lu, qr, svd

    wide = rows.shape[0] < rows.shape[1]
    matrix = rows.T if wide else rows
    basis = np.random.RandomState(0).normal(size=(matrix.shape[1], count + 10))
    for _ in range(4):
        basis = lu(matrix @ basis, permute_l=True, overwrite_a=True, check_finite=False)[0]
        basis = lu(matrix.T @ basis, permute_l=True, overwrite_a=True, check_finite=False)[0]
    basis = qr(np.asfortranarray(matrix @ basis), overwrite_a=True, mode="economic", check_finite=False)[0]
    left, sizes, right = svd(basis.T @ matrix, full_matrices=False)
    left = (basis @ left).T
    del basis
    of_texts, of_words = (right, left) if wide else (left, right)
    largest = np.take_along_axis(of_texts, np.abs(of_texts).argmax(axis=1)[:, None], axis=1)
    of_words *= np.sign(largest)
    return sizes[:count], of_words[:count]


def _rarity(frequencies: NDArray[Any], texts: int) -> NDArray[np.float64]:
    """Inverse text frequency, never 0: `ln((n + 1) / (df + 1/2))`."""
    return np.asarray(np.log((texts + 1) / (frequencies + 0.5)), dtype=np.float64)


def _damped(counts: FloatArray) -> NDArray[np.float64]:
    return np.asarray(1 + np.log(counts.astype(np.float64)))


def embed_texts(fitted: LexicalState, texts: list[str]) -> FloatArray:
    """Vectors of texts, batch by batch; see `LexicalEmbedder.embed`."""
    vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
    start = 0
    for batch in packed(texts, len, _LETTERS_PER_BATCH, _TEXTS_PER_BATCH):
        counts, words = count_words(batch, whole_letters=fitted.whole_letters)
        if words:
            vectors[start : start + len(batch)] = _embed_counts(fitted, counts, words)
        start += len(batch)
    return vectors


def _embed_counts(fitted: LexicalState, counts: Counts, words: list[str]) -> FloatArray:
    """Sum the words' vectors per text and normalise the two parts, then the whole."""
    keys = stem_keys(words)
    position = np.minimum(np.searchsorted(fitted.keys, keys), max(len(fitted.keys) - 1, 0))
    is_fitted = fitted.keys[position] == keys if len(fitted.keys) else np.zeros(len(keys), dtype=bool)
    frequencies = np.ones(len(keys), dtype=np.int32)
    frequencies[is_fitted] = fitted.frequencies[position[is_fitted]]
    rarity = _rarity(frequencies, fitted.sampled).astype(np.float32)
    sketches = np.zeros((len(words), SKETCH), dtype=np.float32)
    _write_sketches(words, keys, sketches)
    sketches *= rarity[:, None] ** _IDF_POWER
    data, columns, ends = counts
    damped = _damped(data).astype(np.float32), columns, ends
    if fitted.by_meaning:
        sketches = sketches[:, : DIMENSION - WIDTH]  # all vectors are of one width
        weighted = word_vectors(words) * rarity[:, None] ** _MEANING_IDF_POWER
        share, meant = _MEANING_SHARE, weighted_sums(*counts, weighted)
    else:
        topics = np.zeros((len(words), TOPICS), dtype=np.float32)
        topics[is_fitted] = fitted.topics[position[is_fitted]] * rarity[is_fitted, None] ** _IDF_POWER
        share, meant = _TOPIC_SHARE, weighted_sums(*damped, topics)
    parts = (weighted_sums(*damped, sketches), 1 - share), (meant, share)
    return _unit(np.concatenate([_unit(part) * np.float32(weight**0.5) for part, weight in parts], axis=1))


def _write_sketches(words: list[str], keys: NDArray[np.uint64], into: FloatArray) -> None:
    """Sign vectors of the words' stems and n-grams, mixed, `[len(words), sketch]`; those of few words are kept."""
    if len(words) > _KEPT_WORDS // 2:
        return _make_sketches(words, keys, into)
    rows = [_kept.get(word) for word in words]  # another thread may forget words meanwhile
    new = [i for i, row in enumerate(rows) if row is None]
    if new:
        made = np.empty((len(new), SKETCH), dtype=np.float32)
        _make_sketches([words[i] for i in new], keys[new], made)
        if len(_kept) + len(new) > _KEPT_WORDS:
            _kept.clear()
        for i, row in zip(new, made, strict=True):
            _kept[words[i]] = rows[i] = row
    np.stack([row for row in rows if row is not None], out=into)
    return None


def _make_sketches(words: list[str], keys: NDArray[np.uint64], into: FloatArray) -> None:
    owners, grams = gram_keys(words)
    grams = grams[np.argsort(owners, kind="stable")]
    ends = np.append(0, np.bincount(owners, minlength=len(words)).cumsum())
    for start in range(0, len(words), _SLICE):  # the sign vectors of all n-grams would be large
        sketches, of_words = into[start : start + _SLICE], ends[start : start + _SLICE + 1]
        sketches[:] = random_signs(keys[start : start + _SLICE], SKETCH)
        sketches *= np.float32(((1 - _GRAM_SHARE) / SKETCH) ** 0.5)
        distinct, columns = np.unique(grams[of_words[0] : of_words[-1]], return_inverse=True)
        rows = np.ones(len(columns), dtype=np.float32), columns, of_words - of_words[0]
        sketches += _unit(weighted_sums(*rows, random_signs(distinct, SKETCH))) * np.float32(_GRAM_SHARE**0.5)


def _unit(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0), dtype=np.float32)


def is_lexical(fingerprint: str) -> bool:
    """True if a fingerprint is that of a `LexicalEmbedder`."""
    return fingerprint.split(":", 1)[0] == _MODEL_NAME


class LexicalEmbedder:
    """TF-IDF of stems and character n-grams as a sign projection, and beside it what the words mean.

    A text is the sum of its words' vectors, each weighted by `(1 + ln tf) * idf ** 1.5`. A word's vector is a
    pseudo-random sign vector of its stem, plus those of its character n-grams (so that spellings and inflections of any
    language meet). Beside it stands a second sum, of vectors of English words that ship with the package, each weighted
    by `tf * idf ** .25`. Where more than a quarter of the words it is fitted on are not English, the rows of a
    truncated SVD of these texts stand there instead. Words never seen before still have a vector, with the largest idf.
    Runs of scripts without spaces count as overlapping pairs of characters.

    Fitted once by `fit`, which returns a copy, and frozen then. Of more than 20,000 texts it looks at 20,000 spread
    evenly. Texts without any word get the zero vector.
    """

    spec = "lexical"  # Creates this embedder again, unfitted: `resolve_embedder(spec)`
    portable = True
    dimension = DIMENSION  # The same for every corpus

    def __init__(self, state: LexicalState | None = None) -> None:
        self._state = state
        self.fingerprint = _MODEL_NAME if state is None else f"{_MODEL_NAME}:{state.digest()}"
        self.fitted = state is not None  # Whether it can embed
        self.fitted_on = 0 if state is None else state.fitted_on  # Number of texts given to `fit`

    def fit(self, texts: Sequence[str]) -> LexicalEmbedder:
        """Return a fitted copy. Takes seconds for thousands of texts: call it in a worker thread."""
        if not texts:
            raise ConfigurationError("the lexical embedder learns from the corpus: give it at least one text to fit")
        count = min(len(texts), _FIT_TEXTS)
        sample = [texts[i * len(texts) // count] for i in range(count)]
        return LexicalEmbedder(learn_state(sample, len(texts)))

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Arrays that `from_state` restores the copy from, at most 14 MB."""
        fitted = self._fitted()
        return {
            "counts": np.array([fitted.fitted_on, fitted.sampled, *[1] * fitted.whole_letters], dtype=np.int64),
            "keys": fitted.keys,
            "frequencies": fitted.frequencies,
            "topics": fitted.topics,
        }

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> LexicalEmbedder:
        """Return a copy restored from `state()`."""
        try:
            fitted_on, sampled, *letters = (int(n) for n in state["counts"])
            keys = np.asarray(state["keys"], dtype=np.uint64)
            frequencies = np.asarray(state["frequencies"], dtype=np.int32)
            topics = np.asarray(state["topics"], dtype=np.float16)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"no state of a lexical embedder ({error}); fit it again") from error
        shapes = ((len(keys), TOPICS), (len(keys), 0))
        if keys.ndim != 1 or frequencies.shape != keys.shape or topics.shape not in shapes:
            raise ConfigurationError("no state of a lexical embedder (shapes differ); fit it again")
        return LexicalEmbedder(LexicalState(fitted_on, sampled, keys, frequencies, topics, bool(letters)))

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:  # noqa: ARG002 - the protocol's
        """Embed texts, questions and documents alike; float32 `[len(texts), dimension]`, rows of length 1 or 0."""
        fitted = self._fitted()
        if len(texts) <= _SMALL_BATCH:
            return await asyncio.to_thread(embed_texts, fitted, list(texts))
        work = _large_batches()
        return await asyncio.get_running_loop().run_in_executor(work, embed_texts, fitted, list(texts))

    def embed_here(self, texts: Sequence[str]) -> FloatArray:
        """As `embed`, in the thread of the caller."""
        return embed_texts(self._fitted(), list(texts))

    def _fitted(self) -> LexicalState:
        if self._state is None:
            raise ConfigurationError("the lexical embedder is not fitted; use what `fit(texts)` returns")
        return self._state


def _large_batches() -> ThreadPoolExecutor:
    """One thread for all large batches; a question does not wait behind them."""
    if not _large or _large[0][0] != os.getpid():
        _large[:] = [(os.getpid(), ThreadPoolExecutor(1, "sire-embedding"))]
    return _large[0][1]
