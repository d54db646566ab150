"""How far `sire` trusts vectors: those of an index as a whole, and for a question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from sire_core import Document
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.question import OWN
from sire_core.recipes.sire.trust import GATES, Trust, vector_reliability
from sire_core.recipes.sire.weights import Weights, weights_for
from support.indexes import indexed

TOPICS = (
    "heart valve surgery",
    "maple syrup harvest",
    "tram line signals",
    "glacier lake survey",
    "violin varnish recipe",
)
ASPECTS = ("cost", "risk", "duration", "tools", "training", "history", "noise", "weather", "licence", "repair")


def pages() -> list[Document]:
    return [
        Document(
            f"{topic}-{aspect}", f"About {topic}: its {aspect} matters, and {aspect} of {topic} is described here."
        )
        for topic in TOPICS
        for aspect in ASPECTS
    ]


def hashed(texts: list[str]) -> np.ndarray:
    """Vectors that know nothing of their texts."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") for text in texts]
    return np.array([np.random.default_rng(seed).normal(size=48) for seed in seeds])


def knowing(texts: list[str]) -> np.ndarray:
    """Vectors of the topic and the aspect of a text, with a little noise."""
    known = np.array([[word in text.lower() for word in (*TOPICS, *ASPECTS)] for text in texts], dtype=float)
    return np.concatenate([known + 0.01, 0.05 * hashed(texts)], axis=1)


class RandomEmbedder:
    """An embedder that is worth nothing."""

    fingerprint = "random-48"
    dimension = 48

    async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        return hashed(list(texts)).astype(np.float32)


def test_a_poor_embedder_buries_nothing_that_words_find() -> None:
    questions = {f"What is the {aspect} of a {topic}?": f"{topic}-{aspect}" for topic in TOPICS for aspect in ASPECTS}
    ranked = []
    for embedder in (RandomEmbedder(), "lexical"):
        with indexed(pages(), recipe="sire", embedder=embedder) as index:
            ranked.append([[hit.doc_ids[0] for hit in index.search(question, 5)] for question in questions])
    assert ranked[0] == ranked[1], "it ranks with the default vectors"
    assert np.mean([hits[0] == answer for hits, answer in zip(ranked[0], questions.values(), strict=True)]) >= 0.95


def reliability(embed) -> float:
    with indexed(pages(), recipe="sire", embedder="lexical") as index:
        view = index.snapshot().view
        vectors = embed([unit.text for unit in view.units(list(range(view.size)))])
        return vector_reliability(EvidenceIndex.of(view), vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_vectors_that_know_what_passages_share_are_reliable() -> None:
    assert reliability(knowing) == 1.0


def test_random_vectors_are_not_reliable() -> None:
    assert reliability(hashed) == 0.0


def test_equal_vectors_are_not_reliable() -> None:
    assert reliability(lambda texts: np.ones((len(texts), 4))) == 0.0


@pytest.mark.parametrize("pages", [[], [Document("a", "One page about trams.")]])
def test_few_passages_say_nothing_about_an_embedder(pages) -> None:
    with indexed([*pages, Document("b", "Another page.")], recipe="sire", embedder="lexical") as index:
        view = index.snapshot().view
        assert vector_reliability(EvidenceIndex.of(view), view.matrix) == 1.0


class ConceptEmbedder:
    """An embedder whose vectors tell which of the sentences about paraphrases belong together, for a part of them."""

    fingerprint = "concepts"
    dimension = 64

    def __init__(self, share: float) -> None:
        self.share = share

    async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        rows = hashed(list(texts))
        vectors = np.concatenate([rows, np.zeros((len(texts), 16))], axis=1) / 50.0
        if len(texts) in (32, 64):
            for row in range(int(32 * self.share)):
                vectors[row] = np.random.default_rng(row).normal(size=64)
        return vectors.astype(np.float32)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.0), (0.5, 0.4, 0.9), (1.0, 1.0, 1.0)])
def test_vectors_are_trusted_as_far_as_their_embedder_knows_paraphrases(share, low, high) -> None:
    embedder = ConceptEmbedder(share)
    with indexed(pages(), recipe="sire", embedder=embedder) as index:
        view = index.snapshot().view
        trusted = Weights.of(view, EvidenceIndex.of(view)).vector_share
        assert low <= trusted <= high
        embedder.share = 0.0
        index.add([Document("new", "A page that came later.")])  # the embedder is not asked again
        assert Weights.of(index.snapshot().view, EvidenceIndex.of(index.snapshot().view)).vector_share == trusted


class OneTopicEmbedder(ConceptEmbedder):
    """Knows paraphrases, and takes every question for one about maple syrup."""

    async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        vectors = await super().embed(texts, kind)
        for row, text in enumerate(texts):
            if kind == "query" or "maple" in text:
                vectors[row, -1] = 0.15
        return vectors


def test_vectors_do_not_count_against_the_one_passage_that_has_every_word_of_a_question() -> None:
    with indexed(pages(), recipe="sire", embedder=OneTopicEmbedder(1.0)) as index:
        [first, *_] = index.search("What about noise of a Glacier Lake survey?", 5)
        assert first.doc_ids == ("glacier lake survey-noise",)
        [first, *_] = index.search("sounds near some frozen water", 5)
        assert "maple" in first.doc_ids[0]


def test_an_embedder_that_knows_only_its_own_texts_is_judged_by_its_vectors() -> None:
    """Vectors of a file, say."""

    class Stored(RandomEmbedder):
        async def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
            if kind == "query" or "About" not in texts[0]:
                raise KeyError(texts[0])
            return await super().embed(texts, kind)

    with indexed(pages(), recipe="sire", embedder=Stored()) as index:
        assert index.stats()["paraphrase_score"] is None
        view = index.snapshot().view
        assert Weights.of(view, EvidenceIndex.of(view)).vector_share == 0.0


def gates(length: int, shared: float, unsure: float) -> np.ndarray:
    return np.array([np.log1p(length), shared, unsure, 1.0])


def added(trust: Trust, at: np.ndarray, part_share: float = 0.0, *, cosine: float = 1.0, words: float = 0.0) -> float:
    return float(trust.added(at, np.array([cosine]), np.array([words]), part_share)[0])


def test_a_short_question_whose_words_many_passages_have_is_left_to_vectors() -> None:
    trust = weights_for(1.0).trust
    asked_in_own_words, written_with_the_page_open = gates(8, 0.8, 1.0), gates(35, 0.4, 1.0)
    assert added(trust, asked_in_own_words) > 1.0
    assert added(trust, written_with_the_page_open) == 0.0


def test_vectors_of_words_add_nothing_and_words_as_much_as_vectors_lack() -> None:
    at = gates(8, 0.8, 1.0)
    assert added(weights_for(0.0).trust, at) == 0.0
    whole, half = (added(weights_for(r).trust, at, cosine=0.0, words=1.0) for r in (0.0, 0.5))
    assert whole > 0
    assert half == pytest.approx(whole / 2)
    assert added(weights_for(1.0).trust, at, cosine=0.0, words=1.0) == 0.0


def test_vectors_have_a_voice_in_any_question_about_parts_of_documents() -> None:
    written_with_the_page_open = gates(35, 0.4, 1.0)
    whole, half = (added(weights_for(1.0).trust, written_with_the_page_open, share) for share in (1.0, 0.5))
    assert whole > 0
    assert half == pytest.approx(whole / 2)
    assert added(weights_for(0.0).trust, written_with_the_page_open, 1.0) == 0.0


def test_gates_are_as_many_as_their_weights() -> None:
    trust = weights_for(1.0).trust
    assert all(len(table) == len(GATES) for table in (trust.vectors, trust.words))


def test_meaning_counts_in_parts_of_documents_where_most_passages_are_english() -> None:
    texts = {
        "English": "The lamp of the lighthouse burns oil, and a keeper fills it every evening.",
        "German": "Die Lampe des Leuchtturms brennt mit Öl, und ein Wärter füllt sie jeden Abend.",
    }
    share = {}
    for name, text in texts.items():
        with indexed([Document(name, text)]) as index:
            view = index.snapshot().view
            share[name] = Weights.of(view, EvidenceIndex.of(view)).document
    meaning = OWN.index("meaning")
    assert share["English"].own[meaning] > 0
    assert share["German"].own.tolist() == weights_for(0.0).document.own.tolist()
    assert share["German"].own[meaning] == 0
