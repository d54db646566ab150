"""Rankers by words, by tokens and by PageRank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from long_tide import CHAIN

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.extend import Lexical
from sire_core.recipes import REGISTRY, flat, pagerank
from sire_core.search.rankers.late_interaction import LateInteraction, max_similarity
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed


@pytest.mark.parametrize(
    ("language", "pages", "question"),
    [
        ("finnish", ("Juna ajaa Turkuun.", "Kirja on talossa."), "talot"),
        ("fi", ("Juna ajaa Turkuun.", "Kirja on talossa."), "talot"),
        ("romanian", ("Trenul pleac\u0103.", "O carte veche."), "c\u0103r\u021bi vechi"),
        ("german", ("Der Zug f\u00e4hrt.", "Das Haus der Mutter."), "der H\u00e4user"),
        ("english", ("Trains run.", "Old houses stand."), "housing"),
        ("auto", ("Der Zug f\u00e4hrt in der Nacht.", "Das Haus der Mutter ist alt."), "der H\u00e4user"),
    ],
)
def test_every_language_with_a_stemmer_is_searched(language: str, pages: tuple[str, str], question: str) -> None:
    with Index(recipe=replace(REGISTRY["flat"](), name="mine", ranker=Lexical(language=language))) as index:
        index.build([Document(str(n), text) for n, text in enumerate(pages)])
        first, second = index.search(question, 2)
    assert first.doc_ids == ("1",)
    assert first.score > second.score


@pytest.mark.parametrize("language", ["klingon", ""])
def test_other_languages_are_refused_with_those_there_are(language: str) -> None:
    with pytest.raises(ConfigurationError, match=r"leave it out.*english.*finnish"):
        Lexical(language=language)


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("\u5927\u962a\u57ce\u306f\u3069\u3053", "\u5927\u962a\u57ce\u306f\u5927\u962a\u5e02\u306b\u3042\u308b\u3002"),
        ("\u4f60\u559c\u6b22\u5e7f\u5dde\u5417", "\u5e7f\u5dde\u5728\u73e0\u6c5f\u8fb9\uff0c2023\u5e74\u3002"),
        ("\uff84\uff96\uff80\u306e\u672c\u793e", "\u30c8\u30e8\u30bf\u306f\u8eca\u3092\u4f5c\u308b\u3002"),
        ("\u732b", "An entry: \u732b, a cat"),
        (
            "\u0e0a\u0e49\u0e32\u0e07\u0e2d\u0e22\u0e39\u0e48\u0e17\u0e35\u0e48\u0e44\u0e2b\u0e19",
            "\u0e0a\u0e49\u0e32\u0e07\u0e01\u0e34\u0e19\u0e01\u0e25\u0e49\u0e27\u0e22",
        ),
    ],
    ids=["japanese", "chinese", "half-width", "one character", "thai"],
)
def test_scripts_without_spaces_are_searched(question: str, page: str) -> None:
    others = ["Zebras live in Africa.", "\u6771\u4eac\u30bf\u30ef\u30fc\u3067\u3059\u3002"]
    with indexed([Document(str(n), text) for n, text in enumerate([*others, page])], recipe="flat") as index:
        for ranker in ("bm25", "tfidf", "hybrid"):
            hits = replace(index.snapshot(), recipe=REGISTRY["flat"](ranker=ranker)).search(question, 3)
            assert hits[0].unit.text == page
            scores = [float(step.note.split()[1]) for hit in hits for step in hit.path if step.step == "words:chunk"]
            assert scores[0] > 0
            assert scores[1:] == [0, 0]


CORPUS = [
    Document("tide", "The Long Tide was directed by Mira Vale", metadata={"tenant": "a"}),
    Document("vale", "Mira Vale painted Port Amber", metadata={"tenant": "b"}),
    Document("port", "Port Amber is a harbor", metadata={"tenant": "a"}),
    *(Document(f"o{i}", f"Bridge {i} spans the river Elm", metadata={"tenant": "a"}) for i in range(12)),
]


class WordEmbedder(HashEmbedder):
    """One vector per word."""

    def __init__(self):
        super().__init__()
        self.texts = 0

    async def embed_tokens(self, texts, kind):
        self.texts += len(texts)
        return [await self.embed(text.split(), kind) for text in texts]


def built(embedder, **settings):
    return indexed(CORPUS, recipe=flat(ranker="late", **settings), embedder=embedder)


def test_max_similarity_is_the_mean_of_the_best_cosines():
    question = np.eye(3, dtype=np.float32)[:2]
    text = np.array([[1, 0, 0], [0.6, 0.8, 0]], dtype=np.float16)
    assert max_similarity(question, text) == pytest.approx((1.0 + 0.8) / 2, abs=1e-3)
    assert max_similarity(question[:0], text) == -1.0


def test_a_filter_holds():
    hits = built(WordEmbedder()).search("Mira Vale painted Port Amber", 15, filter={"tenant": "a"})
    assert "vale" not in {doc for hit in hits for doc in hit.doc_ids}
    assert len(hits) == len(CORPUS) - 1


def test_an_embedder_without_tokens_is_told():
    with pytest.raises(ConfigurationError, match="st:NAME_OR_FOLDER"):
        built(HashEmbedder()).search("Port Amber")
    with pytest.raises(ConfigurationError, match="at least 1, not 0"):
        LateInteraction(0)


@pytest.fixture(scope="module")
def index():
    with indexed(CHAIN, recipe=pagerank(), embedder=HashEmbedder()) as made:
        yield made


def test_the_walk_reaches_what_shares_no_word_with_the_question(index):
    hits = index.search("Who made the long tide?", 3)
    assert hits[0].doc_ids == ("film",)
    assert {hit.doc_ids[0] for hit in hits} == {"film", "vale", "anna"}


def test_paths_name_the_entities_and_the_steps(index):
    hits = {hit.doc_ids[0]: hit for hit in index.search("Who made The Long Tide?", 3)}
    film, vale = hits["film"], hits["vale"]
    assert [step.step for step in film.path] == ["question", "entity", "vector:chunk"]
    assert film.path[0].note == "the question names The Long Tide"
    assert [step.step for step in vale.path] == ["question", "passage", "entity", "vector:chunk"]
    assert vale.path[1].ids[0] == film.unit.id
    assert vale.path[2].note == "the passage names Mira Vale"
