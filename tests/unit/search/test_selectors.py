"""Quotas, reports and reranking."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_tide import FAMILY as CORPUS
from report_edges import trees_from_edges

from sire_core import Index
from sire_core.errors import ConfigurationError, ModelError
from sire_core.extend import MENTIONS, ScoredRanking
from sire_core.papers.indexrag.select import Quota, QuotaRange, choose
from sire_core.papers.smart.select import ReportSelector, ReportTrees
from sire_core.recipes import recipe_by_name
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.types import Edge, PathStep, Unit, UnitKind
from support.scripted_server import ScriptedServer

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


def test_token_quota_skips_what_does_not_fit():
    lengths = {"B1": 5, "B2": 9, "B3": 4, "B4": 1}
    found = chosen(5, {"B": QuotaRange(max_tokens=10)}, lambda i: lengths.get(RANKED[i], 100))
    assert found == ["B1", "A1", "B3", "B4", "A2"]


BANDS = st.dictionaries(st.sampled_from("ABC"), st.builds(QuotaRange, st.none() | st.integers(0, 7)))


@given(st.lists(st.sampled_from("ABCD")), st.integers(1, 12), BANDS)
def test_choice_keeps_every_band_and_the_order(groups, k, ranges):
    found = choose(groups, k, ranges)
    assert found == sorted(set(found))
    assert len(found) <= k
    for group in set(groups):
        band, taken = ranges.get(group, QuotaRange()), sum(groups[i] == group for i in found)
        assert band.high is None or taken <= band.high
    room = sum(
        min(groups.count(g), k if g not in ranges or ranges[g].high is None else ranges[g].high) for g in set(groups)
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
        {"ranges": (("aku", QuotaRange(high=-1)),)},
        {"ranges": (("aku", QuotaRange(max_tokens=-1)),)},
        {"ranges": (), "depth": 0},
        {"ranges": (), "parts": ("akus",)},
    ],
)
def test_impossible_quotas_are_refused(settings):
    with pytest.raises(ConfigurationError):
        Quota(**settings)


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


def select_reports(view, k, hidden=(), **settings):
    """Ids and scores of the first k, the ranking, and their positions."""
    scores = np.linspace(1, 0, view.size).astype(np.float32)
    allowed = np.array([unit.id not in hidden for unit in view.units_by_position])
    ranking = ScoredRanking(scores, allowed, lambda _: (PathStep("base"),))

    async def run():
        selected = await ReportSelector(**settings).select("q", ranking, k, view)
        return selected, await selected.top(k)

    selected, (positions, values) = asyncio.run(run())
    return [view.units_by_position[i].id for i in positions.tolist()], values.tolist(), selected, positions.tolist()


def names(view, k, **settings):
    return select_reports(view, k, **settings)[0]


def added(view, k, **settings):
    """The reports among the first k that the selector put there."""
    _, _, selected, positions = select_reports(view, k, **settings)
    return [view.units_by_position[at] for at in positions if selected.path(at)[0].step == "perspective"]


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
        ids, _, selected, positions = select_reports(view, 7, hidden=hidden)
        assert selected.path(positions[ids.index("0.top")])[0].ids == shown


def test_a_number_caps_and_impossible_caps_are_refused():
    view = trees([("e0", "e1", "e2")] * 20, kappa=3)
    assert [len(added(view, 20, cap=cap)) for cap in (0, 1)] == [0, 1]
    for cap in (-1, "all", True, 1.5):
        with pytest.raises(ConfigurationError, match="cap is"):
            ReportSelector(cap)


def test_tokens_bound_the_reports_and_what_does_not_fit_is_passed_over():
    view = trees([("e0", "e1")] * 24, kappa=1)
    long = view.units_by_position[-1]
    view.units_by_position[-1] = Unit(long.id, long.kind, "text " * 50, ("c0",), tree=long.tree)
    assert sorted(unit.id for unit in added(view, 24)) == ["0.e0", "0.e1", "0.top"]
    assert sorted(unit.id for unit in added(view, 24, cap_tokens=20)) == ["0.e0", "0.e1"]
    assert len(added(view, 24, cap_tokens=6)) == 1


QUESTION = "Who directed The Long Tide?"
recipes = pytest.mark.parametrize("recipe", ["msrag", "sire"])


def opened(folder, recipe, model=None, **settings):
    new = not folder.exists()
    index = Index(
        folder, recipe=recipe_by_name(recipe, **settings), embedder=HashEmbedder(), chunker=None, language_model=model
    )
    if new:
        index.build(CORPUS)
    return index


def documents(index, k=24):
    return [hit.doc_ids[0] for hit in index.search(QUESTION, k)]


@recipes
def test_a_model_reorders_only_what_it_saw(tmp_path, recipe):
    with opened(tmp_path / "i", recipe, rerank="none") as index:
        before = documents(index)
    model = ScriptedModel(lambda call: "2#0" if "numbered passages" in call.instructions else "")
    with opened(tmp_path / "i", recipe, model, rerank="model", rerank_pool=4, rerank_named=3) as index:
        assert documents(index) == [before[2], before[0], before[1], before[3], *before[4:]]
        hit = index.search(QUESTION, 1)[0]
    assert hit.path[-1].note == "place 1 after the language model looked"
    assert len(model.log) == 2
    assert "Name the 3 passages" in model.log[0].instructions
    assert [passage["number"] for passage in model.log[0].fields["passages"]] == [0, 1, 2, 3]


@recipes
def test_a_rerank_that_fails_leaves_the_order_and_says_so(tmp_path, caplog, recipe):
    with opened(tmp_path / "i", recipe, rerank="none") as index:
        before = documents(index)
    model = ScriptedModel([ModelError("the server is down")] * 2)
    with opened(tmp_path / "i", recipe, model, rerank="model") as index:
        assert documents(index) == before
        hit = index.search(QUESTION, 1)[0]
    assert hit.path[-1].step == "rerank"
    assert "failed, the order stays: the server is down" in hit.path[-1].note
    assert "the server is down" in caplog.text


@recipes
def test_the_rerank_takes_a_model_of_its_own_and_no_other(tmp_path, recipe):
    index_model = ScriptedModel([])
    with opened(tmp_path / "i", recipe, index_model, rerank="none") as index:
        index_model.log.clear()
        before = documents(index, 4)
        assert not index_model.log
    with ScriptedServer(lambda call: "2#0") as server:
        settings = {"rerank": "model", "rerank_pool": 4, "rerank_model": f"small@{server.base_url}"}
        with opened(tmp_path / "i", recipe, index_model, **settings) as index:
            assert documents(index, 4) == [before[2], before[0], before[1], before[3]]
        assert len(server.log) == 1
    assert not index_model.log


def test_without_a_model_the_paper_s_default_changes_nothing_and_a_choice_is_an_error(tmp_path):
    with opened(tmp_path / "m", "msrag", rerank="none") as index:
        before = documents(index)
    with opened(tmp_path / "m", "msrag") as index:
        assert documents(index) == before
    with (
        opened(tmp_path / "s", "sire", rerank="model") as index,
        pytest.raises(ConfigurationError, match="needs a language model"),
    ):
        index.search(QUESTION, 3)


def test_sire_asks_no_model_unless_told(tmp_path):
    model = ScriptedModel([])
    with Index(tmp_path / "i", recipe="sire", embedder=HashEmbedder()) as index:
        index.build(CORPUS)
    with Index(tmp_path / "i", embedder=HashEmbedder(), language_model=model) as index:
        assert documents(index)
    assert not model.log
