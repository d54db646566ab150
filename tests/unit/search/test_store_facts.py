"""Filters as databases are told them: nothing that passes is kept out, and values keep their types."""

from hypothesis import example, given
from hypothesis import strategies as st

from sire_core.filters import Condition, FilterGroup, parse_filter
from sire_core.storage.pool import differing_metadata, shared_metadata
from sire_core.stores.facts import Has, Joined, facts_of, narrow, numbers_of

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
