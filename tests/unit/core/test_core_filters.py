"""Filters: what is accepted, what it means, what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.filters import Condition, Group, parse_filter

KEYS = st.sampled_from(["tenant", "year", "lang", "draft"])
SCALARS = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", "en", ""]), st.booleans(), st.none())
METADATA = st.dictionaries(KEYS, SCALARS, max_size=4)
CONDITIONS = st.one_of(
    st.builds(Condition, KEYS, st.sampled_from(["eq", "ne", "lt", "gt"]), SCALARS),
    st.builds(Condition, KEYS, st.just("in"), st.lists(SCALARS, max_size=3).map(tuple)),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds(Group, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Group, st.just("not"), st.tuples(inner)),
    ),
    max_leaves=6,
)


def as_mapping(given):
    """A filter as people would write it in JSON."""
    if isinstance(given, Condition):
        return {given.key: {given.operator: list(given.value) if given.operator == "in" else given.value}}
    return {given.operator: [as_mapping(part) for part in given.parts]}


@given(FILTERS, METADATA)
def test_all_ways_to_write_a_filter_mean_the_same(where, metadata):
    written = as_mapping(where)
    passes = where.matches(metadata)
    assert parse_filter(where) is where
    assert parse_filter(written).matches(metadata) == passes
    assert parse_filter(json.dumps(written)).matches(metadata) == passes


@given(FILTERS, FILTERS, METADATA)
def test_logic(one, other, metadata):
    a, b = one.matches(metadata), other.matches(metadata)
    assert Group("and", (one, other)).matches(metadata) == (a and b)
    assert Group("or", (one, other)).matches(metadata) == (a or b)
    assert Group("not", (one,)).matches(metadata) == (not a)
    assert parse_filter({"not": {"not": as_mapping(one)}}).matches(metadata) == a


@given(KEYS, SCALARS, METADATA)
def test_conditions(key, value, metadata):
    def matches(operator, operand=value):
        return Condition(key, operator, operand).matches(metadata)

    assert matches("eq") == (key in metadata and metadata[key] == value)
    assert matches("ne") != matches("eq")
    assert matches("in", (value,)) == matches("eq")
    assert not (matches("lt") and matches("gt"))
    if key not in metadata:
        assert not any(matches(operator) for operator in ("eq", "lt", "gt"))


@pytest.mark.parametrize(
    ("text", "metadata", "passes"),
    [
        ("tenant=a", {"tenant": "a"}, True),
        ("tenant==a", {"tenant": "a"}, True),
        (" tenant = a , year > 1990 ", {"tenant": "a", "year": 1991}, True),
        ("tenant=a,year>1990", {"tenant": "a", "year": 1990}, False),
        ("year<2000", {"year": "old"}, False),
        ("lang!=de", {}, True),
        ("draft=true", {"draft": True}, True),
        ('name="1990"', {"name": "1990"}, True),
        ("year=1990", {"year": "1990"}, False),
        ("title=A b c", {"title": "A b c"}, True),
        ('{"or": [{"a": 1}, {"b": {"in": [1, 2]}}]}', {"b": 2}, True),
    ],
)
def test_texts(text, metadata, passes):
    assert parse_filter(text).matches(metadata) is passes


@pytest.mark.parametrize("nothing", [None, "", "  ", {}, "{}"])
def test_no_filter(nothing):
    assert parse_filter(nothing) is None


@pytest.mark.parametrize(
    "wrong",
    [
        "tenant",
        "=a",
        "a=1,b",
        "{",
        '{"a": 1',
        5,
        ["a"],
        {"a": {"like": "x"}},
        {"a": {"in": "abc"}},
        {"a": {"in": 5}},
        {"and": []},
        {"and": "a=1"},
        {"or": [{}]},
        {"not": [{"a": 1}, {"b": 2}]},
        {"not": 5},
        '{"not":' * 5000,
    ],
)
def test_what_cannot_be_read_is_refused(wrong):
    with pytest.raises(ConfigurationError):
        parse_filter(wrong)


@pytest.mark.parametrize(
    ("operator", "value"),
    [("like", "x"), ("EQ", 1), ("in", "abc"), ("in", 5)],
)
def test_conditions_made_by_hand_are_checked_too(operator, value):
    with pytest.raises(ConfigurationError):
        Condition("key", operator, value)


@pytest.mark.parametrize(("operator", "parts"), [("xor", 2), ("not", 2), ("not", 0), ("and", 0), ("or", 0)])
def test_groups_made_by_hand_are_checked_too(operator, parts):
    with pytest.raises(ConfigurationError):
        Group(operator, (Condition("a", "eq", 1),) * parts)
