"""Evaluation of clusters of passages by pairs of gold passages (SiReRAG section 3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.base import concurrency_of
from sire_core.protocols import Prompt
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.words import count_tokens
from sire_core.worker_pool import map_all

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.evaluate.datasets import DataSet
    from sire_core.protocols import Embedder, LanguageModel, Progress

    Clusters = Sequence[Sequence[int] | NDArray[np.int64]]

_logger = logging.getLogger(__name__)

_TOPIC = "Name the topic that the passage of the data belongs to, in as few words as possible. Answer with these alone."
_TOKEN_LIMIT = 3500
_TFIDF_WORD = r"\b[^\W\d]\w+\b"


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """Table 1 of the paper. Shares are 0..100; None where there are no gold pairs."""

    dataset: str  # Name of the data set
    clusters: tuple[int, int]  # Number of clusters by similarity and by relatedness
    # Share of all pairs of passages that are together in some cluster: what the coverage costs
    placed: tuple[float, float]
    # Share of the pairs of passages that support one question, by similarity and by relatedness
    supporting: tuple[float | None, float | None]
    candidates: tuple[float | None, float | None]  # The same for all candidate passages of one question
    # Of the supporting pairs found by similarity, and of those found by relatedness, the share that both found
    overlap: tuple[float | None, float | None]

    def as_json(self) -> dict[str, Any]:
        """As `sire eval --clusters --json` writes it."""
        return {
            "dataset": self.dataset,
            **{
                key: {
                    name: None if value is None else round(value, 2)
                    for name, value in zip(_NAMES, getattr(self, key), strict=True)
                }
                for key in ("clusters", "placed", "supporting", "candidates", "overlap")
            },
        }

    def table(self) -> str:
        """For people, with the paper's figures on MuSiQue (GPT-4o topics, Gaussian mixtures)."""
        from sire_core.evaluate.report import markdown_table

        rows = [
            (name, f"{size:,}", *("-" if share is None else f"{share:.2f}" for share in shares), f"{placed:.3f}")
            for name, size, *shares, placed in zip(
                _NAMES, self.clusters, self.supporting, self.candidates, self.overlap, self.placed, strict=True
            )
        ]
        lines = [dict(zip(_COLUMNS, row, strict=True)) for row in (*rows, *_PAPER)]
        return "\n".join(
            [f"**{self.dataset}**: clusters of passages, shares in percent", "", *markdown_table(lines, 1)]
        )


_NAMES = ("similarity", "relatedness")
_COLUMNS = ("by", "clusters", "supporting pairs", "candidate pairs", "overlap", "of all pairs")
_PAPER = (
    ("paper, MuSiQue similarity", "-", "19.14", "10.70", "50.15", "-"),
    ("paper, MuSiQue relatedness", "-", "13.94", "8.51", "68.85", "-"),
)


def compare_clusters(
    similarity: Clusters,
    relatedness: Clusters,
    supporting: Clusters,
    candidates: Clusters,
    passages: int,
    name: str = "",
) -> ClusterReport:
    """Compare any two clusterings by the pairs they bring together."""
    from sire_core.arrays.grouping import coverage, overlap, pairs

    similar, related, gold, every = (pairs(group) for group in (similarity, relatedness, supporting, candidates))
    total = max(1, passages * (passages - 1) // 2)
    coverages = [coverage(codes, gold) for codes in (similar, related)]
    shared = (overlap(similar, related, gold), overlap(related, similar, gold))
    return ClusterReport(
        dataset=name,
        clusters=(len(similarity), len(relatedness)),
        placed=(100 * len(similar) / total, 100 * len(related) / total),
        supporting=_both(coverages, known=len(gold) > 0),
        candidates=_both([coverage(codes, every) for codes in (similar, related)], known=len(every) > 0),
        overlap=(100 * shared[0] if coverages[0] else None, 100 * shared[1] if coverages[1] else None),
    )


async def evaluate_clusters(
    dataset: DataSet,
    embedder: Embedder,
    *,
    topics: Sequence[str] | None = None,
    method: str = "leiden",
) -> ClusterReport:
    """Cluster passages by their vectors, and by the vectors of their topics, as the trees do."""
    row = {document.id: i for i, document in enumerate(dataset.documents)}
    supporting = [[row[doc_id] for doc_id in question.supporting] for question in dataset.questions]
    if not any(len(set(group)) > 1 for group in supporting):
        raise ConfigurationError(f"No question of {dataset.name} has two gold passages ('supporting').")
    candidates = [
        [row[doc_id] for doc_id in question.metadata.get("candidates", ()) if doc_id in row]
        for question in dataset.questions
    ]
    texts = list(dataset.texts.values())
    topics = tfidf_topics(texts) if topics is None else topics
    if len(topics) != len(texts):
        raise ConfigurationError(f"There are {len(texts)} passages and {len(topics)} topics; give one for each.")
    titled = [f"{d.title}\n{text}" if d.title else text for d, text in zip(dataset.documents, texts, strict=True)]
    if hasattr(embedder, "from_state") and not getattr(embedder, "fitted", True):
        embedder = await asyncio.to_thread(embedder.fit, titled)  # type: ignore[attr-defined]  # it is a Fittable
    groups = [await _clustered(embedder, texts_to_cluster, texts, method) for texts_to_cluster in (titled, topics)]
    return compare_clusters(groups[0], groups[1], supporting, candidates, len(texts), dataset.name)


def tfidf_topics(texts: Sequence[str], words: int = 5) -> list[str]:
    """The words that tell a text from the others, best first, without any model: stands in for a model's topic."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    # The library's own list takes "mill", "fire" and "system" for function words.
    stop = sorted(word for word in FUNCTION_WORDS if word.isalpha() and len(word) > 1)
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words=stop, token_pattern=_TFIDF_WORD)
    try:
        weights = vectorizer.fit_transform(texts).tocsr()
    except ValueError:  # no text has a word that is not a stop word
        return ["" for _ in texts]
    names = vectorizer.get_feature_names_out()
    topics = []
    for start, end in zip(weights.indptr[:-1], weights.indptr[1:], strict=True):
        columns, values = weights.indices[start:end], weights.data[start:end]
        best = np.lexsort((columns, -values))[:words]
        topics.append(" ".join(names[columns[best]]))
    return topics


async def model_topics(dataset: DataSet, model: LanguageModel, progress: Progress | None = None) -> list[str]:
    """The topic of every passage in a model's words, one call each; empty where it fails, with a warning."""
    texts = list(dataset.texts.values())

    async def one(number: int) -> str:
        try:
            return (await model.complete(Prompt(_TOPIC, texts[number]), max_tokens=40)).text.strip()
        except ModelError as error:
            _logger.warning("Passage %d has no topic: %s", number, error)
            return ""

    workers = concurrency_of(model)
    return await map_all(one, range(len(texts)), workers, progress and partial(progress, "topics"))


async def _clustered(embedder: Embedder, texts: Sequence[str], passages: Sequence[str], method: str) -> Clusters:
    """Clusters of passages by the vectors of what is given for them; the token limit counts the passages."""
    import numpy as np

    from sire_core.arrays.nearest_neighbors import unit_rows
    from sire_core.papers.trees.clustering import clusters_within_limit

    vectors = unit_rows(np.asarray(await embedder.embed(texts, "document"), dtype=np.float32))
    tokens = [count_tokens(text) for text in passages]
    rng = np.random.default_rng(0)
    return await asyncio.to_thread(clusters_within_limit, vectors, tokens, _TOKEN_LIMIT, rng=rng, method=method)


def _both(shares: Sequence[float], *, known: bool) -> tuple[float | None, float | None]:
    return (100 * shares[0], 100 * shares[1]) if known else (None, None)
