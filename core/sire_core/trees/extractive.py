"""`ExtractiveSummarizer`: summaries without a model, made of the sources' own sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.text import count_tokens, split_sentences, tokenize
from sire_core.types import Unit, UnitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ExtractiveSummarizer", "select_sentences"]


@dataclass(frozen=True, slots=True)
class ExtractiveSummarizer:
    """Picks the sentences that are closest to the cluster's centroid and different from each other.

    Sentences are compared by TF-IDF over all sentences of the level, chosen by maximal marginal relevance under the
    token budget, and printed verbatim in source order. A passage's sentences carry its title, since many say only "he"
    or "the film".

    Attributes:
        max_tokens: Maximum tokens of a summary.
        diversity: Weight of being different from what is chosen already, in [0, 1].
        progress: Called as `progress(done, total)`.
    """

    max_tokens: int = 200
    diversity: float = 0.4
    progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """Names the method and its settings."""
        return f"extractive/1:{self.max_tokens}:{self.diversity:g}"

    async def summarize(self, clusters: Sequence[Sequence[Unit]]) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Summarise each cluster; see `Summarizer`."""
        import asyncio

        say = self.progress or _silent
        say(0, len(clusters))
        found = await asyncio.to_thread(self._summarize, clusters)
        say(len(clusters), len(clusters))
        return found

    def _summarize(self, clusters: Sequence[Sequence[Unit]]) -> list[tuple[str, tuple[str, ...]]]:
        members = {unit.id: unit for cluster in clusters for unit in cluster}
        sentences: list[str] = []
        rows_of: dict[str, range] = {}
        for unit in members.values():
            own = _sentences(unit)
            rows_of[unit.id] = range(len(sentences), len(sentences) + len(own))
            sentences += own
        if not sentences:
            return [("", ()) for _ in clusters]
        matrix = _tfidf(sentences)
        lengths = np.array([count_tokens(sentence) for sentence in sentences], dtype=np.int64)
        return [self._one(cluster, rows_of, sentences, lengths, matrix) for cluster in clusters]

    def _one(
        self,
        cluster: Sequence[Unit],
        rows_of: dict[str, range],
        sentences: Sequence[str],
        lengths: NDArray[np.int64],
        matrix: Any,
    ) -> tuple[str, tuple[str, ...]]:
        rows = [row for unit in cluster for row in rows_of[unit.id]]
        if not rows:
            return "", ()
        first: dict[str, int] = {}
        for row in rows:
            first.setdefault(sentences[row], row)
        distinct = list(first.values())
        picked = select_sentences(matrix[distinct], lengths[distinct], self.max_tokens, self.diversity)
        chosen = [distinct[i] for i in picked]
        owner = {row: unit.id for unit in cluster for row in rows_of[unit.id]}
        ranked = tuple(dict.fromkeys(owner[row] for row in chosen))
        # `distinct` is in source order, and so are the sorted picks.
        text = "\n".join(sentences[distinct[i]] for i in sorted(picked))
        return _truncate(text, self.max_tokens), ranked


def select_sentences(vectors: Any, lengths: NDArray[np.int64], budget: int, diversity: float) -> list[int]:
    """Choose sentences by maximal marginal relevance to their centroid under a token budget.

    Args:
        vectors: Sparse rows (CSR) of length one, `[n, vocabulary]`.
        lengths: Tokens of each sentence, `[n]`.
        budget: Tokens that may be spent; sentences that do not fit any more are skipped.
        diversity: 0 looks at relevance only, 1 at novelty only.

    Returns:
        Row numbers in the order of choice; the first choice is made even when it alone is over the budget.
    """
    # A row's mean similarity with all rows is, up to a common factor, its cosine with their centroid. Similarities
    # themselves are worked out for chosen rows only: those of all pairs do not fit into memory for a whole book.
    width = vectors.shape[1]
    centroid = np.bincount(vectors.indices, weights=vectors.data, minlength=width) / max(1, len(lengths))
    relevance = vectors @ centroid
    relevance = relevance / max(float(relevance.max()), 1e-9)
    redundancy = np.zeros(len(lengths), dtype=np.float32)
    row = np.zeros(width, dtype=np.float32)
    open_ = np.ones(len(lengths), dtype=bool)
    chosen: list[int] = []
    left = budget
    while True:
        if chosen:
            open_ &= lengths <= left
        if not open_.any():
            return chosen
        value = np.where(open_, (1 - diversity) * relevance - diversity * redundancy, -np.inf)
        # Rounded, so that the last bits of a sum do not decide between equals.
        best = int(np.argmax(np.round(value, 5)))
        chosen.append(best)
        open_[best] = False
        left -= int(lengths[best])
        own = slice(vectors.indptr[best], vectors.indptr[best + 1])
        row[vectors.indices[own]] = vectors.data[own]
        redundancy = np.maximum(redundancy, vectors @ row)
        row[vectors.indices[own]] = 0


def _sentences(unit: Unit) -> list[str]:
    lines = [line for line in unit.text.splitlines() if line.strip()]
    if unit.kind is not UnitKind.CHUNK:
        # Derived texts hold one self-contained statement a line.
        return lines if len(lines) > 1 else split_sentences(unit.text)
    found = [sentence for line in lines for sentence in split_sentences(line)]
    title = unit.title
    return [s if not title or title.casefold() in s.casefold() else f"{title}: {s}" for s in found]


def _tfidf(sentences: Sequence[str]) -> Any:
    """TF-IDF rows of length one (1 + log tf, smoothed idf), sparse `[n, vocabulary]`."""
    from scipy.sparse import csr_matrix, diags

    vocabulary: defaultdict[str, int] = defaultdict(lambda: len(vocabulary))
    columns: list[int] = []
    pointers = [0]
    for sentence in sentences:
        columns += map(vocabulary.__getitem__, tokenize(sentence))
        pointers.append(len(columns))
    shape = (len(sentences), max(1, len(vocabulary)))
    counts = csr_matrix((np.ones(len(columns), dtype=np.float32), columns, pointers), shape=shape)
    counts.sum_duplicates()
    frequency = np.bincount(counts.indices, minlength=shape[1])
    idf = np.log((1 + shape[0]) / (1 + frequency)) + 1
    counts.data = ((1 + np.log(counts.data)) * idf[counts.indices]).astype(np.float32)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return diags(1 / np.where(norms > 0, norms, 1.0)).astype(np.float32) @ counts


def _truncate(text: str, max_tokens: int) -> str:
    if count_tokens(text) <= max_tokens:
        return text
    words: list[str] = []
    spent = 0
    for word in text.split(" "):
        spent += count_tokens(word)
        if spent > max_tokens and words:
            break
        words.append(word)
    return " ".join(words)


def _silent(done: int, total: int) -> None:
    """For who wants no progress."""
