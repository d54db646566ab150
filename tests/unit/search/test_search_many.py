"""Several questions at once: the hits of each asked alone, one request to the embedder, nothing shared afterwards."""

import numpy as np
import pytest

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.errors import QueryError
from sire_core.testing.doubles import HashEmbedder

QUESTIONS = [
    "Who was the mother of the captain of the Northern Wren?",
    "In which year did the author of the novel The Weather Clerk die?",
    "Who directed the film?",
]


class Counting(HashEmbedder):
    """Counts requests for questions."""

    def __init__(self):
        super().__init__(64)
        self.asked = []

    async def embed(self, texts, kind="document"):
        if kind == "query":
            self.asked.append(list(texts))
        return await super().embed(texts, kind)


@pytest.mark.parametrize("recipe", ["flat", "pagerank", "sire", "iier"])
def test_search_many_finds_what_search_finds(recipe):
    embedder = Counting()
    with Index(recipe=recipe, embedder=embedder) as index:
        index.build(demo_documents())
        alone = [index.search(question, 5) for question in QUESTIONS]
        embedder.asked.clear()
        together = index.search_many([*QUESTIONS, QUESTIONS[0]], 5)
        assert embedder.asked == [QUESTIONS]
    assert [[hit.unit.id for hit in hits] for hits in together] == [
        [hit.unit.id for hit in hits] for hits in (*alone, alone[0])
    ]
    for hits, others in zip(together, alone, strict=False):
        assert np.allclose([hit.score for hit in hits], [hit.score for hit in others], atol=1e-5)


def test_search_many_filters_and_refuses():
    with Index(recipe="flat", embedder=HashEmbedder(64)) as index:
        index.build(demo_documents())
        assert index.search_many([]) == []
        with pytest.raises(QueryError):
            index.search_many(["", "Who?"])
        with pytest.raises(QueryError, match="list of questions"):
            index.search_many("Bob?")
        kept = index.search_many(QUESTIONS, 3, filter={"nobody": "has"})
        assert kept == [[], [], []]
