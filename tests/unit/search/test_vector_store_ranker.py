"""Scores of a ranking by the user's own store, for units that the store did not list."""

from dataclasses import replace

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents, demo_questions
from sire_core.errors import ConfigurationError
from sire_core.filters import parse_filter
from sire_core.recipes import REGISTRY
from sire_core.search.vectors.vector_store import Bytes, VectorStoreRanker
from sire_core.testing.doubles import HashEmbedder

DOCUMENTS = [Document(str(number), f"Text {number}.", metadata={"year": number}) for number in range(4)]


class Lists:
    """A store that knows one unit, and says so whatever is asked."""

    def __init__(self, unit_id):
        self.unit_id = unit_id

    async def rank(self, query, n, where=None):
        return [(self.unit_id, 0.5)]


async def test_unlisted_units_stand_behind_listed_ones_and_before_hidden_ones():
    with Index(recipe="flat") as index:
        await index.abuild(DOCUMENTS)
        view = index.view()
        listed = view.ids[1].decode()
        ranking = await VectorStoreRanker(Lists(listed)).rank("x", 4, view, parse_filter("year>0"))
        scores = ranking.scores_at(np.arange(4))
    years = [unit.metadata["year"] for unit, _ in map(view.pool.unit, range(4))]
    order = {year: float(score) for year, score in zip(years, scores, strict=True)}
    assert order.pop(years[1]) == 0.5
    assert order.pop(0) == -np.inf
    assert all(-1100 < score < -900 for score in order.values())
    assert len(set(order.values())) == len(order)
    assert "not listed" in ranking.path(2)[0].note


class ListsNothing:
    description = "nothing"

    async def top(self, query, vector, n, where=None):
        return []

    async def rank(self, query, n, where=None):
        return []


@pytest.mark.parametrize("recipe", ["flat", "pagerank", "msrag", "iier", "smart"])
async def test_a_store_that_holds_nothing_of_the_index_is_refused(recipe):
    """Without a mirror nobody has filled it."""
    made = REGISTRY[recipe]()
    store = ListsNothing()
    over = replace(made, vectors=store, ranker=VectorStoreRanker(store) if recipe == "flat" else made.ranker)
    with Index(recipe=over) as index:
        await index.abuild(DOCUMENTS)
        with pytest.raises(ConfigurationError, match=r"lists none of the .* units.*mirrors"):
            await index.asearch("text", 3)


class Exact:
    """A store that finds what our own scan finds, and says so in ids alone."""

    description = "a list"

    def __init__(self):
        self.asked, self.view = [], None

    async def top(self, query, vector, n, where=None):
        self.asked.append(n)
        return [self.view.ids[place].decode() for place in np.argsort(-(self.view.matrix @ vector), kind="stable")[:n]]


@pytest.mark.parametrize("recipe", [name for name in REGISTRY if name != "flat"])
@pytest.mark.parametrize("where", [None, {"kind": "person"}], ids=["all", "filtered"])
def test_every_recipe_finds_the_same_over_a_store_as_over_our_own_scan(recipe, where):
    store = Exact()
    with (
        Index(recipe=recipe, embedder=HashEmbedder()) as own,
        Index(recipe=replace(REGISTRY[recipe](), vectors=store), embedder=HashEmbedder()) as over,
    ):
        for index in (own, over):
            index.build(demo_documents())
        store.view = own.view()
        for question in demo_questions():
            expected = own.search(question.question, 10, filter=where)
            found = over.search(question.question, 10, filter=where)
            assert [hit.unit.id for hit in found] == [hit.unit.id for hit in expected]
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        assert store.asked
        assert own.stats()["vectors"] == "own scan"
        assert over.stats()["vectors"] == "a list"


def test_copies_of_one_byte_per_number_are_near_the_vectors(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    made = Bytes.of(rows)
    assert np.abs(made.products(rows[0]) - rows @ rows[0]).max() < 0.01
    made.save(tmp_path)
    assert np.array_equal(Bytes.load(tmp_path).products(rows[1]), made.products(rows[1]))


class Told:
    """A store that holds a pool, keeps to no filter, and writes down which it was told."""

    description = "told"

    def __init__(self, view):
        self._ids = [unit.decode() for unit in view.ids.tolist()]
        self._matrix = np.array(view.matrix)
        self.told = []

    async def top(self, query, vector, n, where=None):
        self.told.append(where)
        return [self._ids[place] for place in np.argsort(-(self._matrix @ vector), kind="stable")[:n]]


@pytest.mark.parametrize("recipe", sorted(REGISTRY))
async def test_what_is_allowed_and_asked_for_is_told_to_the_store(tmp_path, recipe):
    documents = [
        Document(f"{t}{i}", f"Alma Kovac {i} met Boris Veld in Ceuta.", f"Alma {i}", {"tenant": t, "year": i})
        for i in range(4)
        for t in "ab"
    ]
    with Index(tmp_path, recipe=REGISTRY[recipe](), embedder=HashEmbedder()) as index:
        await index.abuild(documents)
        store = Told(index.view())
    over = replace(REGISTRY[recipe](), vectors=store)
    with Index(tmp_path, recipe=over, embedder=HashEmbedder(), allow="tenant=a") as index:
        for where in (None, "year>0", "year>7"):
            expected = parse_filter("tenant=a") if where is None else parse_filter(f"tenant=a and {where}")
            store.told.clear()
            hits = await index.asearch("Who met Boris Veld?", 20, filter=where, returns="units")
            assert all(doc[0] == "a" for hit in hits for doc in hit.doc_ids)
            assert bool(hits) is (where != "year>7")
            assert set(store.told) == {expected}
