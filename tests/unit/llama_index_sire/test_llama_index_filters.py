"""Metadata filters of LlamaIndex mean the same in our index."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters, utils

from llama_index_sire import SireRetriever
from llama_index_sire.filters import to_filter
from sire_core import Index
from sire_core.errors import ConfigurationError

_ORDERED = [FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE]


def _passes(filters, metadata):
    found = to_filter(filters)
    return found is None or found.matches(metadata)


_filters = st.one_of(
    st.builds(MetadataFilter, key=st.sampled_from("ab"), value=st.integers(0, 3), operator=st.sampled_from(_ORDERED)),
    st.builds(
        MetadataFilter,
        key=st.sampled_from("ab"),
        value=st.integers(0, 3),
        operator=st.sampled_from([FilterOperator.EQ, FilterOperator.NE]),
    ),
    st.builds(
        MetadataFilter,
        key=st.sampled_from("ab"),
        value=st.lists(st.integers(0, 3), max_size=3),
        operator=st.sampled_from([FilterOperator.IN, FilterOperator.NIN]),
    ),
    st.builds(MetadataFilter, key=st.just("tags"), value=st.integers(0, 3), operator=st.just(FilterOperator.CONTAINS)),
    st.builds(
        MetadataFilter,
        key=st.just("tags"),
        value=st.lists(st.integers(0, 3), min_size=1, max_size=3),
        operator=st.sampled_from([FilterOperator.ANY, FilterOperator.ALL]),
    ),
    st.builds(
        MetadataFilter,
        key=st.just("title"),
        value=st.sampled_from(["road", "Road", ""]),
        operator=st.sampled_from([FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE]),
    ),
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["a", "tags", "title", "none"]),
        value=st.none(),
        operator=st.just(FilterOperator.IS_EMPTY),
    ),
)
_metadata = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(0, 3),
        "b": st.integers(0, 3),
        "tags": st.lists(st.integers(0, 3), max_size=3),
        "title": st.sampled_from(["", "The road", "the Road"]),
    },
)


@pytest.mark.skipif(not hasattr(utils, "build_metadata_filter_fn"), reason="older LlamaIndex: only inside its store")
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # other processes may have the machine
@given(st.lists(_filters, min_size=1, max_size=3), st.sampled_from(list(FilterCondition)), _metadata)
def test_filters_mean_what_they_mean_in_llama_index(filters, condition, metadata):
    given_filters = MetadataFilters(filters=filters, condition=condition)
    theirs = utils.build_metadata_filter_fn(lambda _: metadata, given_filters)
    assert _passes(given_filters, metadata) == theirs("x")


def test_nested_filters():
    either = MetadataFilters(
        filters=[MetadataFilter(key="a", value=1), MetadataFilter(key="a", value=2)], condition=FilterCondition.OR
    )
    both = MetadataFilters(filters=[either, MetadataFilter(key="b", value="x")])
    assert _passes(both, {"a": 2, "b": "x"})
    assert not _passes(both, {"a": 3, "b": "x"})
    assert not _passes(both, {"a": 2, "b": "y"})


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (MetadataFilters(filters=[]), "without a filter"),
        (MetadataFilters(filters=[MetadataFilters(filters=[])]), "without a filter"),
        ({}, "is empty"),
        ("", "is empty"),
        (MetadataFilters(filters=[MetadataFilter(key="a", value=1, operator=FilterOperator.IN)]), "takes a list"),
    ],
)
def test_filters_without_meaning_are_refused(filters, words):
    with pytest.raises(ConfigurationError, match=words):
        SireRetriever(Index(), filters=filters)


def test_keys_are_keys_whatever_they_are_called():
    assert _passes(MetadataFilters(filters=[MetadataFilter(key="and", value=1)]), {"and": 1})
    assert not _passes(MetadataFilters(filters=[MetadataFilter(key="$or", value=1)]), {"$or": 2})
