"""Scores of a ranking by the user's own store, for units that the store did not list."""

from dataclasses import replace

import numpy as np

from sire_core import Document, Index
from sire_core.filters import parse_filter
from sire_core.recipes import REGISTRY
from sire_core.search.source import Sourced

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
        ranking = await Sourced(Lists(listed)).rank("x", 4, view, parse_filter("year>0"))
        scores = ranking.scores_at(np.arange(4))
    years = [unit.metadata["year"] for unit, _ in map(view.pool.unit, range(4))]
    order = {year: float(score) for year, score in zip(years, scores, strict=True)}
    assert order.pop(years[1]) == 0.5
    assert order.pop(0) == -np.inf
    assert all(-np.inf < score < -1e30 for score in order.values())
    assert "not listed" in ranking.path(2)[0].note


class ListsNothing:
    async def rank(self, query, n, where=None):
        return []


async def test_a_store_that_holds_nothing_of_the_index_is_told_of(caplog):
    """Without a mirror nobody has filled it."""
    recipe = replace(REGISTRY["flat"](), ranker=Sourced(ListsNothing()))
    with Index(recipe=recipe) as index:
        await index.abuild(DOCUMENTS)
        assert await index.asearch("text", 3, filter="year>0") == []
        assert not caplog.records
        assert await index.asearch("text", 3) == []
    assert "none of the 4 units" in caplog.text
    assert "Index(mirrors=[...])" in caplog.text
