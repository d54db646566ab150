"""Rankings by the user's vector store."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.filters import Condition, FilterGroup, parse_filter
from sire_core.recipes import REGISTRY
from sire_core.search.vectors.vector_store import VectorStoreRanker
from sire_core.storage.pool import differing_metadata, shared_metadata
from sire_core.stores.facts import Has, Joined, facts_of, narrow, numbers_of
from sire_core.testing.doubles import HashEmbedder

KEYS = st.sampled_from(["a", "b", "a=b"])
PLAIN = st.one_of(
    *(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.5, 1.0, 1e300, 2**60, 2**60 + 1])),
    st.sampled_from(["", "1", "a", "ab", "true", "null", "x\0y", "\ud800", "z" * 300]),
)
METADATA = st.dictionaries(KEYS, st.one_of(PLAIN, st.lists(PLAIN, max_size=2), st.just({"c": 1})), max_size=3)
CONDITIONS = st.one_of(
    st.builds(Condition, KEYS, st.sampled_from(["eq", "ne", "contains"]), PLAIN),
    st.builds(Condition, KEYS, st.sampled_from(["in", "nin"]), st.lists(PLAIN, max_size=2)),
    st.builds(Condition, KEYS, st.just("exists"), st.booleans()),
    st.builds(Condition, KEYS, st.sampled_from(["lt", "lte", "gt", "gte"]), st.sampled_from([0, 0.5, 2**60, "a"])),
    st.builds(Condition, KEYS, st.sampled_from(["text_match", "text_match_insensitive"]), st.sampled_from(["a", "A"])),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda parts: st.one_of(
        st.builds(lambda one: FilterGroup("not", (one,)), parts),
        st.builds(
            lambda join, some: FilterGroup(join, tuple(some)),
            st.sampled_from(["and", "or"]),
            st.lists(parts, min_size=1, max_size=3),
        ),
    ),
    max_leaves=5,
)


def passes(test, facts, numbers):
    """What a database makes of a test."""
    if test is None:
        return True
    if isinstance(test, Joined):
        found = (passes(part, facts, numbers) for part in test.parts)
        return all(found) if test.operator == "and" else any(found)
    if isinstance(test, Has):
        return (not facts.isdisjoint(test.facts)) is test.wanted
    value = numbers.get(test.key)
    held = {"lt": float.__lt__, "lte": float.__le__, "gt": float.__gt__, "gte": float.__ge__}[test.operator]
    return (value is not None and held(value, test.value)) is test.wanted


@given(FILTERS, st.lists(METADATA, min_size=1, max_size=3))
@example(parse_filter("not a=1"), [{"a": 1}, {"a": True}])
@example(parse_filter("a>0"), [{"a": 1e300}])
@example(parse_filter("not a<0"), [{"a": 2**60}])
def test_whatever_passes_a_filter_passes_what_the_database_is_told(where, sources):
    shared = shared_metadata(sources)
    facts = set(facts_of(shared, tuple(differing_metadata(sources))))
    if all(where.matches(source) for source in sources):
        assert passes(narrow(where), facts, numbers_of(shared))
    assert all(len(fact) <= 200 and "\0" not in fact for fact in facts)
    assert all(fact.encode() for fact in facts)


@given(METADATA, METADATA, KEYS, PLAIN)
def test_what_is_equal_is_decided_by_the_database(one, other, key, value):
    for metadata in (one, other):
        for name in ("eq", "ne"):
            where = Condition(key, name, value)
            assert passes(narrow(where), set(facts_of(metadata)), numbers_of(metadata)) is where.matches(metadata)


DOCUMENTS = [Document(str(number), f"Text {number}.", metadata={"year": number}) for number in range(4)]


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
