"""`ReportSelector` over trees made by hand."""

import asyncio

import numpy as np
import pytest
from report_edges import trees_from_edges

from sire_core.errors import ConfigurationError, QueryError
from sire_core.knowledge import MENTIONS
from sire_core.recipes.smart.select import ReportSelector, ReportTrees
from sire_core.search.ranking import ScoredRanking
from sire_core.types import Edge, PathStep, Unit, UnitKind

KINDS = [kind.value for kind in UnitKind]


class View:
    """A pool of passages p0.. that name entities, and of reports in trees."""

    def __init__(self, passages, reports, edges, cosines=None):
        self.passages = passages
        self.units_by_position = [
            Unit(f"p{i}", UnitKind.CHUNK, f"passage {i}", (f"c{i}",)) for i in range(len(passages))
        ] + [Unit(name, UnitKind.REPORT, f"text of {text}", ("c0",), tree=tree) for name, tree, text in reports]
        self.ids = np.array([unit.id.encode() for unit in self.units_by_position])
        self.size = len(self.ids)
        self.kind_names = KINDS
        self.kinds = np.array([KINDS.index(unit.kind.value) for unit in self.units_by_position], dtype=np.uint8)
        self.matrix = np.array([[cosine] for cosine in cosines or [0.5] * self.size], dtype=np.float32)
        self._edges = [Edge(MENTIONS, f"p{i}", e) for i, named in enumerate(passages) for e in named] + list(edges)
        self._derived = {}

    async def embed_query(self, _):
        return np.ones(1, dtype=np.float32)

    def edges(self):
        return self._edges

    def units(self, positions):
        return [self.units_by_position[int(i)] for i in positions]

    def derived(self, name, _):
        assert name == "report trees"
        return self._derived.setdefault(name, trees_from_edges(self))


def select(view, k, cap="third", hidden=()):
    scores = np.linspace(1, 0, view.size).astype(np.float32)
    allowed = np.array([unit.id not in hidden for unit in view.units_by_position])
    ranking = ScoredRanking(scores, allowed, lambda _: (PathStep("base"),))

    async def run():
        selected = await ReportSelector(cap).select("q", ranking, k, view)
        return selected, await selected.top(k)

    selected, (positions, values) = asyncio.run(run())
    return [view.units_by_position[i].id for i in positions.tolist()], values.tolist(), selected, positions.tolist()


def names(view, k, cap="third", hidden=()):
    return select(view, k, cap, hidden)[0]


def reports_in(found):
    return [name for name in found if not name.startswith("p")]


def trees(passages, kappa=3, **settings):
    """Entity i stands under report `t.i`, and all of these under `t.top`, in each of `kappa` trees."""
    entities = sorted({e for named in passages for e in named})
    reports, edges = [], []
    for t in range(kappa):
        reports += [(f"{t}.{e}", str(t), f"{t}.{e}") for e in entities] + [(f"{t}.top", str(t), f"{t}.top")]
        edges += [Edge(MENTIONS, f"{t}.{e}", e) for e in entities]
        edges += [Edge("child", f"{t}.top", f"{t}.{e}") for e in entities]
    return View(passages, reports, edges, **settings)


def oracle_view():
    reports = [("a1", "1", "a1"), ("a2", "1", "a2"), ("r1", "1", "r1")]
    reports += [("b1", "2", "b1"), ("b2", "2", "b2"), ("r2", "2", "r2")]
    below = [("a1", "v1"), ("a1", "v2"), ("a2", "v3"), ("b1", "v1"), ("b2", "v2"), ("b2", "v3")]
    above = [("r1", "a1"), ("r1", "a2"), ("r2", "b1"), ("r2", "b2")]
    edges = [Edge(MENTIONS, *pair) for pair in below] + [Edge("child", *pair) for pair in above]
    return View([("v1", "v2"), ("v3",)], reports, edges)


def test_oracle_E9_reports_above_the_entities_of_the_hits():
    view = oracle_view()
    found = ReportTrees.of(view)
    entities = [found.ids.tolist().index(name) for name in (b"v1", b"v2")]
    counts = found.counts(entities)
    assert {view.units([at])[0].id for at in counts} == {"a1", "r1", "b1", "b2", "r2"}
    assert sum(len(found.above(entity)) for entity in entities) == 8
    assert {view.units([at])[0].id: n for at, n in counts.items()} == {"a1": 2, "r1": 2, "b1": 1, "b2": 1, "r2": 2}
    # The letter of eq. (12): the first hit and every report above its entities.
    assert set(names(view, 1, cap=None)) == {"p0", "a1", "r1", "b1", "b2", "r2"}


@pytest.mark.parametrize("k", range(1, 40))
def test_at_most_every_third_of_the_first_k_is_a_report_whatever_k_is(k):
    view = trees([(f"e{i}", f"e{i + 1}") for i in range(60)])
    found = names(view, k)
    reports = [name for name in found if not name.startswith("p")]
    assert len(found) == k
    assert len(reports) <= k // 3
    assert found == names(view, 60)[:k]
    if k in (6, 24):
        assert len(reports) == k // 3
    if k == 4:  # what LangChain asks for
        assert len(reports) == 1
    assert [name for name in found if name.startswith("p")] == [f"p{i}" for i in range(k - len(reports))]


def test_reports_are_shared_out_over_the_trees():
    view = trees([("e0", "e1"), ("e1", "e2"), ("e2",), ("e3",), ("e4",)] * 4, kappa=3)
    found = [name.split(".")[0] for name in reports_in(names(view, 6))]
    assert len(set(found)) == 2
    found = [name.split(".")[0] for name in names(view, 24) if not name.startswith("p")]
    assert max(map(found.count, "012")) == 3


def test_the_cosine_and_the_share_of_entities_decide():
    passages = [("e0",)] + [("e0", "e1")] + [()] * 10
    near = trees(passages, kappa=1, cosines=[0.5] * 12 + [0.5, 0.6, 0.5])
    # Overlap: the top stands above both entities, 0.2 against 0.1 + 0.1 for the other: equal, so by position.
    assert reports_in(names(near, 6)) == ["0.e1", "0.top"]
    assert reports_in(names(trees(passages, kappa=1, cosines=[0.5] * 12 + [0.5, 0.55, 0.5]), 6)) == ["0.top", "0.e1"]


def test_what_a_better_report_says_is_not_said_again():
    view = trees([("e0", "e1")] * 24, kappa=2)
    for at in (-1, -2, -3):  # the second tree says what the first says
        unit = view.units_by_position[at]
        view.units_by_position[at] = Unit(unit.id, unit.kind, unit.text.replace("1.", "0."), ("c0",), tree=unit.tree)
    # Six reports, three texts; what is left out comes behind all hits.
    found = [name for name in names(view, 24) if not name.startswith("p")]
    texts = [view.units_by_position[view.ids.tolist().index(name.encode())].text for name in found]
    assert len(texts) == len(set(texts)) == 3


def test_hidden_reports_stay_hidden_and_the_places_go_to_hits():
    view = trees([("e0",)] * 12, kappa=1)
    found = names(view, 14, hidden={"0.e0"})
    assert "0.e0" not in found
    assert len(found) == 13


def test_paths_do_not_name_entities_that_a_filter_hides():
    reports = [("0.top", "0", "top"), ("e0", "", ""), ("e1", "", "")]
    edges = [Edge(MENTIONS, "0.top", entity) for entity in ("e0", "e1")]
    view = View([("e0", "e1")] * 4, reports, edges)
    view.kinds[-2:] = KINDS.index(UnitKind.ENTITY.value)  # entities that are units of their own
    for hidden, shown in (((), ("e0", "e1")), (("e1",), ("e0",)), (("e0", "e1"), ())):
        ids, _, selected, positions = select(view, 7, hidden=hidden)
        assert selected.path(positions[ids.index("0.top")])[0].ids == shown


def test_scores_fall_and_paths_say_why():
    view = trees([("e0", "e1")] * 8, kappa=2)
    ids, scores, selected, positions = select(view, 14)
    given = [name for name in ids if not name.startswith("p")]
    assert given
    split = [any(step.step == "top_up" for step in selected.path(at)) for at in positions]
    assert split == sorted(split)
    kept = [score for score, extra in zip(scores, split, strict=True) if not extra]
    assert kept == sorted(kept, reverse=True)
    path = selected.path(positions[ids.index(given[0])])
    assert path[0].step == "perspective"
    assert "above 2 of the 2 entities" in path[0].note
    assert path[0].ids == ("e0", "e1")


def test_a_number_caps_and_impossible_caps_are_refused():
    view = trees([("e0", "e1", "e2")] * 20, kappa=3)
    assert len([name for name in names(view, 20, cap=1) if not name.startswith("p")]) == 1
    assert [name for name in names(view, 20, cap=0) if not name.startswith("p")] == []
    for cap in (-1, "all", True, 1.5):
        with pytest.raises(ConfigurationError, match="cap is"):
            ReportSelector(cap)


def test_tokens_bound_the_reports_and_what_does_not_fit_is_passed_over():
    view = trees([("e0", "e1")] * 24, kappa=1)
    long = view.units_by_position[-1]
    view.units_by_position[-1] = Unit(long.id, long.kind, "text " * 50, ("c0",), tree=long.tree)

    def told(tokens):
        ranking = ScoredRanking(np.linspace(1, 0, view.size).astype(np.float32), None, lambda _: ())
        found = asyncio.run(ReportSelector(cap_tokens=tokens).select("q", ranking, 24, view))
        positions, _ = asyncio.run(found.top(24))
        steps = {at: found.path(at) for at in positions.tolist()}
        return sorted(
            view.units_by_position[at].id for at, path in steps.items() if path and path[0].step == "perspective"
        )

    assert told(None) == ["0.e0", "0.e1", "0.top"]
    assert told(20) == ["0.e0", "0.e1"]
    assert len(told(6)) == 1


def test_a_search_may_name_a_perspective():
    view = trees([("e0", "e1")] * 24, kappa=2)
    ranking = ScoredRanking(np.linspace(1, 0, view.size).astype(np.float32), None, lambda _: ())
    for name in ("1", "0"):
        found = asyncio.run(ReportSelector(perspective=name).select("q", ranking, 12, view))
        positions, _ = asyncio.run(found.top(12))
        told = [
            view.units_by_position[at]
            for at in positions.tolist()
            if found.path(at) and found.path(at)[0].step == "perspective"
        ]
        assert told
        assert {unit.tree for unit in told} == {name}
    with pytest.raises(QueryError, match="no perspective 'roles'"):
        asyncio.run(ReportSelector(perspective="roles").select("q", ranking, 12, view))
