"""Metadata filters of LlamaIndex mean the same in our index."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters, utils

from llama_index_sire.filters import both_filters, to_filter
from sire_core.errors import ConfigurationError
from sire_core.filters import Condition

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
)


@pytest.mark.skipif(not hasattr(utils, "build_metadata_filter_fn"), reason="older LlamaIndex: only inside its store")
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # other processes may have the machine
@given(
    st.lists(_filters, max_size=3),
    st.sampled_from(list(FilterCondition)),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 3)),
)
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
    assert _passes(MetadataFilters(filters=[MetadataFilters(filters=[])]), {})


@pytest.mark.parametrize(
    "operator",
    [
        FilterOperator.ANY,
        FilterOperator.ALL,
        FilterOperator.CONTAINS,
        FilterOperator.TEXT_MATCH,
        FilterOperator.TEXT_MATCH_INSENSITIVE,
        FilterOperator.IS_EMPTY,
    ],
)
def test_an_operator_without_a_counterpart_is_named(operator):
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="x", operator=operator)])
    with pytest.raises(ConfigurationError, match=f"{operator.value!r} on 'tenant' is not supported; use =="):
        to_filter(filters)


def test_in_wants_a_list():
    with pytest.raises(ConfigurationError, match="takes a list"):
        to_filter(MetadataFilters(filters=[MetadataFilter(key="a", value=1, operator=FilterOperator.IN)]))


def test_what_the_core_reads_is_read_too():
    assert to_filter("year>1990") == Condition("year", "gt", 1990)
    assert to_filter(None) is None


def test_a_second_filter_only_narrows():
    narrowed = both_filters(MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]), "tenant=b")
    assert narrowed is not None
    assert not narrowed.matches({"tenant": "b"})
    assert not narrowed.matches({"tenant": "a"})
    assert both_filters(None, None) is None
