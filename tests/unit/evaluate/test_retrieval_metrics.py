"""Metrics of rankings."""

import pytest

from sire_core.evaluate.retrieval import (
    all_at_k,
    literal_ranking,
    provenance_ranking,
    recall_at_k,
    reciprocal_rank,
)
from sire_core.types import Hit, Unit, UnitKind


def hit(kind, *doc_ids):
    return Hit(Unit(f"{kind}-{doc_ids}", UnitKind(kind), "text", tuple(f"c-{d}" for d in doc_ids)), 1.0, doc_ids)


def test_oracle_T4_ranking_metrics():
    ranking, gold = ["p3", "p1", "p9", "p4", "p2"], ["p1", "p2", "p7"]
    assert recall_at_k(ranking, gold, 2) == pytest.approx(0.3333, abs=5e-5)
    assert recall_at_k(ranking, gold, 5) == pytest.approx(0.6667, abs=5e-5)
    assert reciprocal_rank(ranking, gold) == 0.5
    assert all_at_k(ranking, gold, 5) == 0
    assert all_at_k(ranking, ["p1", "p2"], 5) == 1
    assert all_at_k(ranking, ["p1", "p2"], 4) == 0


HITS = [hit("bridge", "d2", "d1"), hit("chunk", "d1"), hit("aku", "d4"), hit("chunk", "d3"), hit("chunk", "d1")]


def test_provenance_expands_in_order_and_removes_duplicates():
    assert provenance_ranking(HITS) == ["d2", "d1", "d4", "d3"]
    assert recall_at_k(provenance_ranking(HITS), ["d1", "d3"], 2) == 0.5
    assert recall_at_k(provenance_ranking(HITS), ["d1", "d3"], 4) == 1


def test_literal_keeps_slots_of_units_from_several_documents_and_credits_them_nothing():
    assert literal_ranking(HITS) == [None, "d1", "d4", "d3"]
    assert recall_at_k(literal_ranking(HITS), ["d2"], 5) == 0
    assert recall_at_k(literal_ranking(HITS), ["d1", "d3"], 2) == 0.5
    assert recall_at_k(literal_ranking(HITS), ["d1", "d3"], 3) == 0.5
    assert recall_at_k(literal_ranking(HITS), ["d1", "d3"], 4) == 1


def test_oracle_X7_bridging_facts_cost_recall_and_knowledge_units_have_theirs():
    # Table 9 by hand. Gold d1 and d2: with bridging facts the first three slots hold one of them, without them two.
    ranked = [
        hit("bridge", "d1", "d2"),
        hit("aku", "d1"),
        hit("bridge", "d2", "d3"),
        hit("aku", "d2"),
        hit("aku", "d1"),
    ]
    assert [recall_at_k(literal_ranking(ranked), ["d1", "d2"], k) for k in (1, 2, 3, 4)] == [0, 0.5, 0.5, 1]
    without = [found for found in ranked if found.unit.kind == "aku"]
    assert [recall_at_k(literal_ranking(without), ["d1", "d2"], k) for k in (1, 2, 3)] == [0.5, 1, 1]


def test_nothing_found_and_nothing_wanted():
    assert recall_at_k(provenance_ranking([]), ["d1"], 5) == reciprocal_rank([], ["d1"]) == all_at_k([], ["d1"], 5) == 0
    for metric in (
        lambda: recall_at_k(["a"], [], 5),
        lambda: all_at_k(["a"], [], 5),
        lambda: reciprocal_rank(["a"], []),
    ):
        with pytest.raises(ValueError, match="leave it out"):
            metric()
