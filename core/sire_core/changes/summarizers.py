"""Summaries of clusters: the sources' own sentences, or a language model's text."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sire_core.documents.blocks import FURNITURE, HEADING
from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.base import with_sources
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import IntArray, LanguageModel, Prompt
from sire_core.text.pluralize import count
from sire_core.text.words import count_tokens, packed, split_sentences, tokenize
from sire_core.types import Failure, Unit, UnitKind
from sire_core.worker_pool import map_all


@dataclass(frozen=True, slots=True)
class ExtractiveSummarizer:
    """Picks the sentences that are closest to the cluster's centroid and different from each other.

    Sentences are compared by TF-IDF over all sentences of the level, chosen by maximal marginal relevance under the
    token budget, and printed verbatim in source order. A passage's sentences carry its title, since many say only "he"
    or "the film".
    """

    max_tokens: int = 200  # maximum tokens of a summary
    diversity: float = 0.4  # weight of being different from what is chosen already, in [0, 1]
    progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)

    async def summarize(self, clusters: Sequence[Sequence[Unit]]) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Summarise each cluster; see `Summarizer`."""
        progress = self.progress or (lambda *_: None)
        progress(0, len(clusters))
        summaries = await asyncio.to_thread(self._summarize, clusters)
        progress(len(clusters), len(clusters))
        return summaries

    def _summarize(self, clusters: Sequence[Sequence[Unit]]) -> list[tuple[str, tuple[str, ...]]]:
        members = {unit.id: unit for cluster in clusters for unit in cluster}
        sentences: list[str] = []
        rows_of: dict[str, range] = {}
        for unit in members.values():
            unit_sentences = _sentences(unit)
            rows_of[unit.id] = range(len(sentences), len(sentences) + len(unit_sentences))
            sentences += unit_sentences
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
        lengths: IntArray,
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


def select_sentences(vectors: Any, lengths: IntArray, budget: int, diversity: float) -> list[int]:
    """Choose sentences by maximal marginal relevance to their centroid under a token budget.

    Vectors are sparse rows of length one, `[n, vocabulary]`; `diversity` 0 uses relevance only, 1 novelty only.
    """
    # A row's mean similarity with all rows is, up to a common factor, its cosine with their centroid. Similarities
    # themselves are worked out for chosen rows only: those of all pairs do not fit into memory for a whole book.
    width = vectors.shape[1]
    centroid = np.bincount(vectors.indices, weights=vectors.data, minlength=width) / max(1, len(lengths))
    relevance = vectors @ centroid
    relevance = relevance / max(float(relevance.max()), 1e-9)
    redundancy = np.zeros(len(lengths), dtype=np.float32)
    row = np.zeros(width, dtype=np.float32)
    is_open = np.ones(len(lengths), dtype=bool)
    chosen: list[int] = []
    budget_left = budget
    while True:
        if chosen:
            is_open &= lengths <= budget_left
        if not is_open.any():
            return chosen
        value = np.where(is_open, (1 - diversity) * relevance - diversity * redundancy, -np.inf)
        # Rounded, so that the last bits of a sum do not decide between equals.
        best = int(np.argmax(np.round(value, 5)))
        chosen.append(best)
        is_open[best] = False
        budget_left -= int(lengths[best])
        chosen_words = slice(vectors.indptr[best], vectors.indptr[best + 1])
        row[vectors.indices[chosen_words]] = vectors.data[chosen_words]
        redundancy = np.maximum(redundancy, vectors @ row)
        row[vectors.indices[chosen_words]] = 0


def _sentences(unit: Unit) -> list[str]:
    lines = [line for line in unit.text.splitlines() if line.strip()]
    if unit.kind is not UnitKind.CHUNK:
        # Derived texts hold one self-contained statement a line.
        return lines if len(lines) > 1 else split_sentences(unit.text)
    texts = (unit.text[block.start : block.end] for block in unit.blocks if block.kind not in (HEADING, FURNITURE))
    statements = [line for text in texts for line in text.splitlines() if line.strip("|:- \t")]
    sentences = [sentence for line in statements or lines for sentence in split_sentences(line)]
    title = unit.title
    return [s if not title or title.casefold() in s.casefold() else f"{title}: {s}" for s in sentences]


def _tfidf(sentences: Sequence[str]) -> Any:
    """Return TF-IDF rows of length one (1 + log tf, smoothed idf), sparse `[n, vocabulary]`."""
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


_SUMMARY_INSTRUCTIONS = """\
Summarize the texts of the input together in at most {words} words. Keep as many key details as fit: names, dates, \
numbers, and who did what to whom. State things directly, do not speak about the texts. Use their language. Answer \
with the summary only."""
_WORDS_PER_TOKEN = 0.7
# The model is told a length in words; the hard bound leaves room to end the sentence.
_ANSWER_SLACK = 1.5
_MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class ModelSummarizer:
    """A `Summarizer` over a language model (RAPTOR and SiReRAG, appendix G).

    The children's texts, joined by blank lines in child order, are summarised with as many key details as fit. Over the
    context limit they are summarised part by part, then the parts' summaries. Clusters of a level run concurrently.
    A cluster that fails gets no text: `on_failure` is called, and the next build asks again.
    """

    language_model: LanguageModel
    max_tokens: int = 200  # maximum tokens of a summary
    context_tokens: int = 6_000  # maximum tokens of the texts in a prompt
    concurrency: int = 8  # clusters that are summarised at once
    on_failure: Callable[[Failure], None] | None = None
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        if min(self.max_tokens, self.concurrency) < 1 or self.context_tokens < 3 * self.max_tokens:
            raise ConfigurationError(
                "max_tokens and concurrency must be at least 1, and context_tokens at least three times max_tokens, "
                "so that summaries of parts can be summarised again"
            )

    async def summarize(self, clusters: Sequence[Sequence[Unit]]) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Summarise each cluster; see `Summarizer.summarize`."""
        return await map_all(self._one, clusters, self.concurrency, self.progress)

    async def _one(self, cluster: Sequence[Unit]) -> tuple[str, tuple[str, ...]]:
        members = [unit for unit in cluster if unit.text.strip()]
        if not members:
            return "", ()
        chunk_ids = list(dict.fromkeys(name for unit in members for name in unit.chunk_ids))
        model = with_sources(self.language_model, chunk_ids)
        try:
            text = await self._reduce(model, [unit.index_text for unit in members])
        except ModelError as error:
            if self.on_failure is not None:
                subject = f"summary of {count(len(members), 'unit')}, first {members[0].id}"
                self.on_failure(Failure(subject, f"{type(error).__name__}: {error}"[:500]))
            return "", ()
        return text, _by_overlap(text, members)

    async def _reduce(self, model: LanguageModel, texts: Sequence[str]) -> str:
        """Summarise; over the context limit first the parts, then their summaries."""
        for _ in range(_MAX_ROUNDS):
            parts = pack_texts(texts, self.context_tokens)
            # One after the other: the clusters beside this one keep the model busy.
            texts = [await self._ask(model, part) for part in parts]
            if len(texts) == 1:
                return texts[0]
        raise ModelError("the summaries of the parts do not get shorter; use a larger context_tokens")

    async def _ask(self, model: LanguageModel, data: str) -> str:
        words = max(1, round(self.max_tokens * _WORDS_PER_TOKEN))
        answer = await model.complete(
            Prompt(_SUMMARY_INSTRUCTIONS.format(words=words), data),
            max_tokens=round(self.max_tokens * _ANSWER_SLACK) + 20,
        )
        return answer.text.strip()


def pack_texts(texts: Sequence[str], limit: int) -> list[str]:
    """Join texts, in order, into as few parts as possible of at most `limit` tokens each (estimated)."""
    pieces = (piece for text in texts for piece in _pieces(text, limit))
    return ["\n\n".join(part) for part in packed(pieces, lambda piece: estimate_tokens(piece) + 1, limit)]


def _pieces(text: str, limit: int) -> list[str]:
    if estimate_tokens(text) < limit:
        return [text]
    pieces: list[str] = []
    for sentence in split_sentences(text):
        # A token is rarely shorter than one letter, so that this many letters always fit.
        whole = estimate_tokens(sentence) < limit
        cut = [sentence] if whole else [sentence[at : at + limit - 2] for at in range(0, len(sentence), limit - 2)]
        for piece in cut:
            joined = f"{pieces[-1]} {piece}" if pieces else piece
            if pieces and estimate_tokens(joined) < limit:
                pieces[-1] = joined
            else:
                pieces.append(piece)
    return pieces


def _by_overlap(summary: str, members: Sequence[Unit]) -> tuple[str, ...]:
    words = set(tokenize(summary))
    overlap = [len(words.intersection(tokenize(unit.index_text))) for unit in members]
    order = sorted(range(len(members)), key=lambda at: (-overlap[at], at))
    return tuple(members[at].id for at in order)
