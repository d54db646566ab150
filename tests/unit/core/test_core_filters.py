"""Filters: what is accepted, what it means, what is refused, and how long reading one takes."""

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.filters import Condition, FilterGroup, both, filter_text, parse_filter

KEYS = st.sampled_from(["tenant", "year", "lang", "draft"])
SCALARS = st.one_of(
    st.integers(-3, 3), st.sampled_from(["a", "b", "en", "", "a and b", 'x "y"', "it's"]), st.booleans(), st.none()
)
LISTS = st.lists(SCALARS, max_size=3)
METADATA = st.dictionaries(KEYS, st.one_of(SCALARS, LISTS), max_size=4)
ORDERABLE = st.one_of(st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(["a", "b", "c d"]))
CONDITIONS = st.one_of(
    st.builds(Condition, KEYS, st.sampled_from(["eq", "ne", "contains"]), SCALARS),
    st.builds(Condition, KEYS, st.sampled_from(["lt", "lte", "gt", "gte"]), ORDERABLE),
    st.builds(Condition, KEYS, st.sampled_from(["in", "nin"]), LISTS.map(tuple)),
    st.builds(Condition, KEYS, st.just("exists"), st.booleans()),
    st.builds(Condition, KEYS, st.just("text_match"), st.sampled_from(["a", "", "and"])),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds(FilterGroup, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(FilterGroup, st.just("not"), st.tuples(inner)),
    ),
    max_leaves=6,
)
SIGNS = {"eq": "=", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


def as_mapping(given, prefix=""):
    """A filter as people would write it in JSON."""
    if isinstance(given, Condition):
        value = list(given.value) if given.operator in ("in", "nin") else given.value
        return {given.key: {prefix + given.operator: value}}
    return {prefix + given.operator: [as_mapping(part, prefix) for part in given.parts]}


def as_text(given):
    """A filter as people would write it in one line."""
    if isinstance(given, FilterGroup):
        parts = [as_text(part) for part in given.parts]
        return f"not ({parts[0]})" if given.operator == "not" else f"({f' {given.operator} '.join(parts)})"
    if given.operator == "exists":
        return f"{given.key} exists" if given.value else f"not {given.key} exists"
    value = json.dumps(list(given.value) if given.operator in ("in", "nin") else given.value)
    return f"{given.key} {SIGNS.get(given.operator, given.operator)} {value}"


@given(FILTERS, METADATA)
def test_all_ways_to_write_a_filter_mean_the_same(where, metadata):
    passes = where.matches(metadata)
    assert parse_filter(where) is where
    for written in (as_mapping(where), as_mapping(where, "$"), json.dumps(as_mapping(where)), as_text(where)):
        assert parse_filter(written).matches(metadata) == passes, written
    assert pickle.loads(pickle.dumps(where)).matches(metadata) == passes


@given(FILTERS, FILTERS, METADATA)
def test_logic(one, other, metadata):
    a, b = one.matches(metadata), other.matches(metadata)
    assert FilterGroup("and", (one, other)).matches(metadata) == (a and b)
    assert FilterGroup("or", (one, other)).matches(metadata) == (a or b)
    assert FilterGroup("not", (one,)).matches(metadata) == (not a)
    assert parse_filter({"not": {"not": as_mapping(one)}}).matches(metadata) == a
    assert both(one, other).matches(metadata) == (a and b)
    assert both(one, None) is one
    assert both(None, other) is other
    assert both(None, None) is parse_filter(None) is None


def same(one, other):
    """An independent definition of equality without coercion."""
    return json.dumps(one) == json.dumps(other)


@given(KEYS, SCALARS, METADATA)
def test_conditions(key, value, metadata):
    def matches(operator, operand=value):
        return Condition(key, operator, operand).matches(metadata)

    assert matches("eq") == (key in metadata and same(metadata[key], value))
    assert matches("ne") != matches("eq")
    assert matches("in", (value,)) == matches("eq")
    assert matches("nin", (value,)) != matches("eq")
    assert matches("exists", operand=True) == (key in metadata)
    found = metadata.get(key)
    if isinstance(found, list):
        assert matches("contains") == any(same(item, value) for item in found)


@given(KEYS, ORDERABLE, METADATA)
def test_order(key, value, metadata):
    def matches(operator):
        return Condition(key, operator, value).matches(metadata)

    assert not (matches("lt") and matches("gt"))
    equal = Condition(key, "eq", value).matches(metadata)
    assert matches("lte") == (matches("lt") or equal)
    assert matches("gte") == (matches("gt") or equal)
    found = metadata.get(key)
    comparable = type(found) is str if isinstance(value, str) else type(found) in (int, float)
    assert (matches("lt") or matches("gte")) == comparable


@pytest.mark.parametrize(
    ("text", "metadata", "passes"),
    [
        ("tenant==a", {"tenant": "a"}, True),
        (" tenant = a , year > 1990 ", {"tenant": "a", "year": 1991}, True),
        ("tenant=a,year>1990", {"tenant": "a", "year": 1990}, False),
        ("draft=True", {"draft": True}, True),
        ("year=1990", {"year": 1990.0}, True),
        ('name="1990"', {"name": "1990"}, True),
        ("name=007", {"name": "007"}, True),
        ("title=A b c", {"title": "A b c"}, True),
        ("name=O'Brien", {"name": "O'Brien"}, True),
        ("name='it''s'", {"name": "it's"}, True),
        ("url=https://x.org/a-b?c", {"url": "https://x.org/a-b?c"}, True),
        ("title='War and Peace'", {"title": "War and Peace"}, True),
        ("a=1 and b=2", {"a": 1, "b": 2}, True),
        ("a=1 AND b=2 OR c=3", {"c": 3}, True),
        ("a=1 or b=2 and c=3", {"a": 1}, True),
        ("(a=1 or b=2) and c=3", {"a": 1}, False),
        ("(a=1 or b=2), c=3", {"b": 2, "c": 3}, True),
        ("not a=1 and b=2", {"a": 2, "b": 2}, True),
        ("page in (1, 2)", {"page": 3}, False),
        ("page not in [1, 2]", {"page": 3}, True),
        ("page=[1, 2]", {"page": 1}, True),
        ('lang in [en, "de"]', {"lang": "de"}, True),
        ("tags contains x", {"tags": "text"}, True),
        ("title text_match_insensitive 'ROAD'", {"title": "The road"}, True),
        ('"first name"=x', {"first name": "x"}, True),
        ('{"or": [{"a": 1}, {"b": {"in": [1, 2]}}]}', {"b": 2}, True),
    ],
)
def test_texts(text, metadata, passes):
    assert parse_filter(text).matches(metadata) is passes


@pytest.mark.parametrize(
    ("written", "metadata", "passes"),
    [
        ({"page": {"$gte": 4, "$lt": 6}}, {"page": 6}, False),
        ({"page": {">=": 4}}, {"page": 3}, False),
        ({"page": [1, 2]}, {"page": 2}, True),
        ({"page": [1, 2]}, {"page": 3}, False),
        ({"tenant": {"$in": []}}, {"tenant": "b"}, False),
        ({"tags": {"any": ["x", "y"]}}, {"tags": ["y"]}, True),
        ({"tags": {"all": ["x", "y"]}}, {"tags": ["y"]}, False),
        ({"tags": {"eq": ["x", "y"]}}, {"tags": ["x", "y"]}, True),
        ({"note": {"is_empty": True}}, {}, True),
        ({"note": {"is_empty": True}}, {"note": []}, True),
        ({"note": {"is_empty": True}}, {"note": 0}, False),
        ({"note": {"is_empty": False}}, {"note": ""}, False),
        ({"note": {"is_empty": False}}, {"note": "x"}, True),
        ({"flag": 1}, {"flag": True}, False),
        ({"flag": True}, {"flag": 1}, False),
        ({"flags": {"eq": [1]}}, {"flags": [True]}, False),
        ({"flag": {"gt": 0}}, {"flag": True}, False),
    ],
)
def test_mappings(written, metadata, passes):
    assert parse_filter(written).matches(metadata) is passes


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "  ",
        "{}",
        {},
        {"tenant": {}},
        '{"tenant": {}}',
        {"and": [{}]},
        "tenant",
        "=a",
        "a=",
        "a=1,",
        "a=1,b",
        "a=1 b=2",
        "a=1 && b=2",
        "a=>4",
        "a<>4",
        "a!4",
        "a=1 and",
        "and a=1",
        "a=1 or b=2, c=3",
        "(a=1",
        "a=1)",
        "title=War and Peace",
        "a in 5",
        "a in [1, 2",
        "a in [1 2=]",
        "a not contains 5",
        "a='open",
        'a="\\u12"',
        "year>2024-05-31=",
        "not",
        "$x=1",
        "{",
        '{"a": 1',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e999}',
        "a=1e999",
        '{"a": ' + "1" * 6000 + "}",
        5,
        True,
        ["a"],
        [("a", 1)],
        {5: 1},
        {"a": {"like": "x"}},
        {"a": {"$where": "x"}},
        {"$where": "x"},
        {"$in": [1]},
        {"a": {"in": "abc"}},
        {"a": {"in": 5}},
        {"a": {"any": []}},
        {"a": {"exists": 1}},
        {"a": {"gte": True}},
        {"a": {"gte": None}},
        {"a": {"text_match": 5}},
        {"a": [{"key": "b"}]},
        {"a": {"eq": {"b": 1}}},
        {"a": math.nan},
        {"a": b"x"},
        {"and": []},
        {"and": "a=1"},
        {"or": [{}]},
        {"or": [None]},
        {"not": [{"a": 1}, {"b": 2}]},
        {"not": 5},
        '{"not":' * 5000,
        "(" * 5000 + "a=1" + ")" * 5000,
        "not " * 5000 + "a=1",
        " or ".join(["a=1"] * 501),
    ],
)
def test_what_cannot_be_read_is_refused(wrong):
    with pytest.raises(ConfigurationError) as refused:
        parse_filter(wrong)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("operator", "value"), [("like", "x"), ("EQ", 1), ("in", "abc"), ("in", 5), ("lt", None), ("eq", object())]
)
def test_conditions_made_by_hand_are_checked_too(operator, value):
    with pytest.raises(ConfigurationError):
        Condition("key", operator, value)


@pytest.mark.parametrize(
    ("operator", "parts"), [("xor", 2), ("not", 2), ("not", 0), ("and", 0), ("or", 0), ("or", 501)]
)
def test_groups_made_by_hand_are_checked_too(operator, parts):
    with pytest.raises(ConfigurationError):
        FilterGroup(operator, (Condition("a", "eq", 1),) * parts)


@given(st.text(st.sampled_from(list("ab=<>!,()[]{}\"' \\1$.:andorti")), max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        parsed = parse_filter(text)
    except ConfigurationError:
        return
    assert isinstance(parsed.matches({"a": 1}), bool)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("year>1990, lang!=de", "year>1990 and lang!=de"),
        ("a=1 and (b=2 or not c=3)", "a=1 and (b=2 or (not c=3))"),
        ("lang in [en, 'd e']", 'lang in [en, "d e"]'),
        ("source contains team/", "source contains team/"),
        ("not year exists", "not year exists"),
        ("a='1' and b=true and c='true'", 'a="1" and b=true and c="true"'),
        ("source=team/*", "source=team/*"),
    ],
)
def test_a_filter_is_written_as_it_is_read(text, written):
    assert filter_text(parse_filter(text)) == written
    assert filter_text(parse_filter(written)) == written
