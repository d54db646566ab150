"""Quotas: IndexRAG's balanced selection and its generalisation."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.recipes.indexrag.select import Quota, QuotaRange, choose
from sire_core.search.ranking import ScoredRanking
from sire_core.types import PathStep, Unit, UnitKind

RANKED = ["B1", "A1", "B2", "B3", "B4", "A2", "B5", "A3", "A4"]
NAMES = [kind.value for kind in UnitKind]


def chosen(k, ranges, lengths=None):
    groups = [name[0] for name in RANKED]
    return [RANKED[i] for i in choose(groups, k, ranges, (lengths or (lambda _: 0)))]


@pytest.mark.parametrize(
    ("k", "k_b", "expected"),
    [
        (5, 2, "B1 A1 B2 A2 A3"),
        (5, 3, "B1 A1 B2 B3 A2"),
        (5, 0, "A1 A2 A3 A4"),
        (5, 5, "B1 A1 B2 B3 B4"),
        (8, 1, "B1 A1 A2 A3 A4"),
    ],
)
def test_oracle_X1_balanced_selection(k, k_b, expected):
    assert chosen(k, {"B": QuotaRange(high=k_b)}) == expected.split()


def test_oracle_quota_with_lower_bound():
    assert chosen(5, {"A": QuotaRange(low=3), "B": QuotaRange(high=3)}) == ["B1", "A1", "B2", "A2", "A3"]


def test_token_quota_skips_what_does_not_fit():
    lengths = {"B1": 5, "B2": 9, "B3": 4, "B4": 1}
    found = chosen(5, {"B": QuotaRange(max_tokens=10)}, lambda i: lengths.get(RANKED[i], 100))
    assert found == ["B1", "A1", "B3", "B4", "A2"]


BANDS = st.dictionaries(
    st.sampled_from("ABC"),
    st.builds(
        lambda low, more: QuotaRange(low, None if more is None else low + more),
        st.integers(0, 3),
        st.none() | st.integers(0, 4),
    ),
)


@given(st.lists(st.sampled_from("ABCD")), st.integers(1, 12), BANDS)
def test_choice_keeps_every_band_and_the_order(groups, k, ranges):
    found = choose(groups, k, ranges)
    assert found == sorted(set(found))
    assert len(found) <= k
    fits = sum(band.low for band in ranges.values()) <= k
    for group in set(groups):
        band, taken = ranges.get(group, QuotaRange()), sum(groups[i] == group for i in found)
        assert band.high is None or taken <= band.high
        if fits:
            assert taken >= min(band.low, groups.count(group))
    if all(band.low == 0 for band in ranges.values()):
        room = sum(
            min(groups.count(g), k if g not in ranges or ranges[g].high is None else ranges[g].high)
            for g in set(groups)
        )
        assert len(found) == min(k, room)
        assert choose(groups, k + 3, ranges)[: len(found)] == found


class Pool:
    """A view of a few units whose scores fall with their position."""

    def __init__(self, kinds, documents=None):
        self.chunk_documents = np.array(documents or range(len(kinds)))
        self.chunk_pointers = np.arange(len(kinds) + 1), np.arange(len(kinds))
        self.kinds = np.array([NAMES.index(kind) for kind in kinds], dtype=np.uint8)
        self.kind_names = NAMES
        self.read = 0

    def units(self, positions):
        return [Unit(f"u{p}", UnitKind(NAMES[self.kinds[p]]), "word " * (p + 1), ("c",)) for p in positions]

    def ranking(self):
        scores = np.linspace(1, 0.1, len(self.kinds), dtype=np.float32)
        inner, pool = ScoredRanking(scores, None, lambda p: (PathStep("rank", (), str(p)),)), self

        async def top(n):
            pool.read = max(pool.read, n)
            return await inner.top(n)

        return SimpleNamespace(top=top, scores_at=inner.scores_at, path=inner.path)


def select(kinds, k, quota, n=None, documents=None):
    pool = Pool(kinds, documents)

    async def run():
        ranking = await quota.select("?", pool.ranking(), k, pool)
        positions, scores = await ranking.top(n or k)
        return positions.tolist(), scores, ranking

    positions, scores, ranking = asyncio.run(run())
    assert scores.tolist() == ranking.scores_at(np.array(positions, dtype=np.int64)).tolist()
    return positions, ranking, pool


MANY = ["bridge"] * 30 + ["aku"] * 4


def test_depth_limits_the_candidates_and_short_contexts_are_filled_up_within_the_bands():
    quota = Quota((("bridge", QuotaRange(high=2)),), depth=20)
    assert select(MANY, 5, Quota(quota.ranges, 20, top_up=False))[0] == [0, 1]
    positions, ranking, _ = select(MANY, 5, quota)
    assert positions == [0, 1, 30, 31, 32]
    assert [step.step for step in ranking.path(30)] == ["rank", "below_depth"]
    assert select(MANY, 7, quota)[0] == [0, 1, 30, 31, 32, 33, 2]  # nothing else is left


def test_oracle_X6_depth_counts_the_entries_of_the_store():
    # By hand: passages are not in IndexRAG's store, a document is one entry. Of P B1 P D1 B2 D1' B3 P D2 the first four
    # entries are B1 D1 B2 B3; with at most two bridging facts the context is B1 D1 B2, and D2 only fills it up.
    kinds = ["chunk", "bridge", "chunk", "aku", "bridge", "aku", "bridge", "chunk", "aku"]
    documents = [7, None, 8, 1, None, 1, None, 9, 2]
    quota = Quota((("bridge", QuotaRange(high=2)),), 4, top_up=False, outside=("chunk",), parts=("aku",))
    assert select(kinds, 4, quota, documents=documents)[0] == [1, 3, 4]
    assert select(kinds, 4, replace(quota, top_up=True), documents=documents)[0] == [1, 3, 4, 8]


def algorithm_1(ranked, k, k_b):
    """Algorithm 1 of IndexRAG, line by line, over (document or None for a bridging fact) best first."""
    context, bridges = [], 0
    for place, document in ranked:
        if len(context) == k:
            break
        if document is not None or bridges < k_b:
            context.append(place)
            bridges += document is None
    return context


@given(
    st.lists(st.tuples(st.sampled_from(["aku", "aku", "bridge", "chunk"]), st.integers(0, 6)), max_size=60),
    st.integers(1, 8),
    st.integers(0, 4),
    st.none() | st.integers(1, 25),
)
def test_passages_and_further_parts_of_a_document_are_no_candidates_of_algorithm_1(pool, k, k_b, depth):
    kinds, documents = [kind for kind, _ in pool], [document for _, document in pool]
    store, seen = [], set()
    for place, (kind, document) in enumerate(pool):  # one entry per document, at the place of its best part
        if kind == "bridge" or (kind == "aku" and document not in seen):
            store.append((place, None if kind == "bridge" else document))
            seen.update([document] if kind == "aku" else [])
    quota = Quota((("bridge", QuotaRange(high=k_b)),), depth, top_up=False, outside=("chunk",), parts=("aku",))
    wanted = algorithm_1(store[:depth], k, k_b)
    assert select(kinds, k, quota, documents=documents)[0] == wanted
    filled = select(kinds, k, replace(quota, top_up=True), documents=documents)[0]
    assert filled[: len(wanted)] == wanted
    assert len(filled) == len(set(filled)) == min(k, len(pool))
    assert sum(kinds[place] == "bridge" for place in filled) <= k_b or len(seen) < k


def test_kinds_left_out_come_last_and_nothing_is_lost():
    quota = Quota((("chunk", QuotaRange(high=0)), ("bridge", QuotaRange(high=1))))
    kinds = ["chunk", "bridge", "bridge", "aku", "chunk", "aku"]
    positions, ranking, _ = select(kinds, 50, quota)
    assert positions == [1, 3, 5, 0, 2, 4]
    assert [step.step for step in ranking.path(0)] == ["rank", "top_up"]
    for k in range(1, 7):
        assert select(kinds, k, quota)[0] == positions[:k]
        assert select(kinds, 2, quota, n=k)[0] == positions[:k]


@pytest.mark.parametrize(
    "settings",
    [
        {"ranges": (("bridges", QuotaRange()),)},
        {"ranges": (("aku", QuotaRange()), ("aku", QuotaRange()))},
        {"ranges": (("aku", QuotaRange(low=2, high=1)),)},
        {"ranges": (("aku", QuotaRange(low=-1)),)},
        {"ranges": (("aku", QuotaRange(max_tokens=-1)),)},
        {"ranges": (), "depth": 0},
        {"ranges": (), "parts": ("akus",)},
    ],
)
def test_impossible_quotas_are_refused(settings):
    with pytest.raises(ConfigurationError):
        Quota(**settings)
