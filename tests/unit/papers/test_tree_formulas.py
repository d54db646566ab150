"""RAPTOR, SiReRAG, IndexRAG and IIER as published, computed again from texts and vectors in plain numpy."""

import asyncio
import json
import sys
import types
from collections import Counter, defaultdict
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from sire_core import Document, Index, Passage
from sire_core.extend import ExtractionRecord
from sire_core.extraction.record import RecordedExtractor
from sire_core.papers.trees.clustering import soft_clusters
from sire_core.recipes import recipe_by_name
from sire_core.testing.doubles import HashEmbedder
from support.stated_triples import DistinctVectors


def projected(vectors, dimensions):
    """Coordinates along the main directions: in place of UMAP, which takes seconds and is not always installed."""
    centered = vectors - vectors.mean(axis=0)
    turned = centered @ np.linalg.svd(centered, full_matrices=False)[2].T
    return np.pad(turned, ((0, 0), (0, max(0, dimensions - turned.shape[1]))))[:, :dimensions].astype(float)


class FakeUMAP:
    asked: ClassVar[list] = []

    def __init__(self, *, n_components, n_neighbors, metric, random_state, n_jobs):
        assert metric == "cosine"
        self.asked.append((n_neighbors, n_components))
        self.dimensions = n_components

    def fit_transform(self, vectors):
        return projected(vectors, self.dimensions)


@pytest.fixture
def umap(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=FakeUMAP))
    FakeUMAP.asked.clear()
    return FakeUMAP


def mixture_members(points):
    from sklearn.mixture import GaussianMixture  # takes seconds, which only this file needs

    fits = {c: GaussianMixture(c, random_state=224).fit(points) for c in range(1, max(2, min(50, len(points))))}
    count = min(fits, key=lambda c: fits[c].bic(points))
    shares = GaussianMixture(count, random_state=0).fit(points).predict_proba(points)
    return [rows for column in shares.T if len(rows := np.flatnonzero(column > 0.1))]


@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_those_of_the_procedure(umap, seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(15, 48))
    centers = rng.standard_normal((4, 12))
    vectors = (centers[rng.integers(4, size=size)] + 0.25 * rng.standard_normal((size, 12))).astype(np.float32)
    vectors[:2] = 8 * rng.standard_normal((2, 12))  # far from all others
    expected = set()
    for group in mixture_members(projected(vectors, 10)):
        parts = [np.arange(len(group))] if len(group) <= 11 else mixture_members(projected(vectors[group], 10))
        expected |= {tuple(group[part].tolist()) for part in parts}
    found = {tuple(part.tolist()) for part in soft_clusters(vectors, rng=np.random.default_rng(0), method="paper")}
    assert found == expected
    assert umap.asked[0] == (int((size - 1) ** 0.5), 10)
    assert all(neighbors in (10, size - 1) for neighbors, _ in umap.asked[1:])


def test_a_cluster_of_a_single_text_is_kept_and_summarised(umap):
    rng = np.random.default_rng(3)
    vectors = np.vstack([rng.standard_normal((20, 6)) * 0.05 + 1, 40 * np.eye(6)[:1]]).astype(np.float32)
    assert [20] in [part.tolist() for part in soft_clusters(vectors, rng=rng, method="paper")]


def spoken(seed):
    """Documents of sentences "A met B." with their listed names, some spelled in capitals, some said twice."""
    rng = np.random.default_rng(seed)
    names = [f"{first} {last}" for first in ("Ansel", "Brida", "Corin") for last in ("Marsh", "Tarn", "Voss")]
    pairs = dict.fromkeys(tuple(names[i] for i in rng.choice(9, 2, replace=False)) for _ in range(12))
    pool = [(f"{one} met {other}.", one, other) for one, other in pairs]
    rows = []
    for number in range(16):
        said = [pool[i] for i in rng.choice(len(pool), int(rng.integers(1, 4)), replace=False)]
        if number % 4 == 0:
            said = [(f"{one.upper()} met {other}.", one.upper(), other) for _, one, other in said]
        listed = dict.fromkeys(name for _, *both in said for name in both)
        if len({name.lower() for name in listed}) == len(listed):
            rows.append((f"d{number}", [text for text, *_ in said], list(listed)))
    return list({frozenset(row[1]): row for row in rows}.values())  # equal passages are one


def aggregates(rows, *, key, code):
    """Texts of the aggregates: facts of an entity in order; the released code drops what others have."""
    lines, links = defaultdict(list), Counter()
    for _, sentences, listed in rows:
        for text in sentences:
            for name in listed:
                if name in text:
                    lines[key(name)].append(text)
                    links[text] += 1
    kept = [texts for texts in lines.values() if not (code and len(texts) == 1 and links[texts[0]] > 1)]
    return sorted({"\n".join(texts) for texts in kept})


@pytest.mark.parametrize("preset", ["published", "code"])
@pytest.mark.parametrize("seed", range(5))
def test_aggregates_are_those_of_the_paper_and_of_the_code(tmp_path, preset, seed):
    rows = spoken(seed)
    file = tmp_path / "recorded.jsonl"
    records = [{"id": i, "entities": names, "triples": []} for i, _, names in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    recipe = recipe_by_name("sirerag", preset=preset, clustering="leiden", depth=0)
    extractor = RecordedExtractor(file, link_titles=False)
    with Index(recipe=recipe, embedder=HashEmbedder(32), extractor=extractor) as index:
        index.build([Document(i, " ".join(texts)) for i, texts, _ in rows])
        units = index.view().units(range(index.view().size))
    found = sorted(unit.text for unit in units if str(unit.kind) == "aggregate")
    is_code = preset == "code"
    assert found == aggregates(rows, key=str.lower if is_code else str, code=is_code)


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """A function that opens a recipe over recorded sentences."""
    rows = spoken(7)
    file = tmp_path_factory.mktemp("spread") / "recorded.jsonl"
    records = [{"id": i, "entities": names, "triples": []} for i, _, names in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")

    def opened(name, **settings):
        recipe = recipe_by_name(name, **settings)
        index = Index(recipe=recipe, embedder=HashEmbedder(64), extractor=RecordedExtractor(file, link_titles=False))
        index.build([Document(i, " ".join(texts)) for i, texts, _ in rows])
        return index

    return rows, opened


QUESTIONS = [
    f"Did {first} meet {last}?"
    for first in ("Ansel Marsh", "Brida Voss", "CORIN TARN")
    for last in ("Corin Voss", "Ansel Tarn")
]


def by_cosine(index, question):
    view = index.view()
    cosines = view.matrix @ asyncio.run(view.embed_query(question))
    order = np.lexsort((np.arange(len(cosines)), -cosines.round(6)))
    return view.units(order), cosines[order]


def test_the_collapsed_tree_ranks_all_nodes_by_cosine(spread):
    _, opened = spread
    with opened("raptor", preset="published", clustering="leiden") as index:
        for question in QUESTIONS:
            units, cosines = by_cosine(index, question)
            hits = index.search(question, len(units), returns="units")
            assert [hit.score for hit in hits] == pytest.approx(cosines.tolist(), abs=1e-5)
            assert len({str(unit.kind) for unit in units}) == 2


def test_traversal_keeps_the_best_nodes_of_every_layer(spread):
    _, opened = spread
    with opened("raptor", preset="published", clustering="leiden", stop_rule="default", traversal=3) as index:
        view = index.view()
        children = defaultdict(set)
        for edge in view.edges():
            children[edge.source].add(edge.target)
        for question in QUESTIONS:
            units, _ = by_cosine(index, question)
            level = max(unit.level for unit in units)
            rank = {unit.id: number for number, unit in enumerate(units)}
            allowed = {unit.id for unit in units if unit.level == level}
            kept = set()
            while allowed:
                best = sorted(allowed, key=rank.get)[:3]
                kept |= set(best)
                level -= 1
                below = {unit.id for unit in units if unit.level == level}
                orphans = below - set().union(*children.values())
                allowed = ({child for node in best for child in children[node]} & below) | orphans
            hits = index.search(question, len(kept), returns="units")
            assert {hit.unit.id for hit in hits} == kept


def test_algorithm_1_takes_from_the_first_twenty_at_most_three_bridges(spread):
    _, opened = spread
    with opened("indexrag", preset="published") as index:
        sizes = []
        for k, question in zip((5, *[19] * 5), QUESTIONS, strict=True):
            units, _ = by_cosine(index, question)
            store = [unit for unit in units if str(unit.kind) != "chunk"]
            context, bridges = [], 0
            for unit in store[:20]:
                is_bridge = str(unit.kind) == "bridge"
                if len(context) < k and not (is_bridge and bridges == 3):
                    context.append(unit.id)
                    bridges += is_bridge
            hits = [hit.unit.id for hit in index.search(question, k, returns="units")]
            assert hits == context
            sizes.append(len(hits))
        assert sizes[0] == 5
        assert min(sizes[1:]) < 19  # what the algorithm leaves empty stays empty


class KeywordExtractor:
    """Gives passages the keywords that a table has for them."""

    fingerprint = "keywords-of-a-table"
    links_titles = False

    def __init__(self, keywords):
        self._keywords = keywords

    async def extract(self, chunks):
        yield [
            ExtractionRecord(item.chunk.hash, self.fingerprint, "1", keywords=self._keywords[item.chunk.text])
            for item in chunks
        ]


def linked_passages(seed):
    """Documents of three passages each, and the keywords of every passage by its text."""
    rng = np.random.default_rng(seed)
    words = [
        f"{first} {last}" for first in ("salt", "iron", "clay", "wool") for last in ("mill", "pier", "barn", "ford")
    ]
    documents, keywords = [], {}
    for number in range(9):
        texts = []
        for _ in range(3):
            own = tuple(words[i] for i in sorted(rng.choice(16, 8, replace=False)))
            texts.append(f"Near the {', the '.join(own)} stands house {len(keywords)} of {rng.choice(words)}.")
            keywords[texts[-1]] = own
        documents.append(Document(f"d{number}", chunks=tuple(map(Passage, texts))))
    return words, documents, keywords


def next_score(chain, node, edge, vectors, similar, asked, own):
    """The heuristic scorer's value of a passage behind a chain."""
    structural, semantic, shared = edge
    mean = vectors[chain].sum(axis=0)
    still = set(asked).difference(*(own[i] for i in chain))
    near = 0.5 * similar[node] + 0.2 * vectors[node] @ mean / np.linalg.norm(mean)
    new = len(still & own[node]) / max(1, len(still))
    return near + 0.2 * new + 0.05 * structural + 0.05 * semantic + 0.4 * min(shared, 5)


@pytest.mark.parametrize("seed", range(4))
def test_iier_chains_are_those_of_the_definition(seed):
    words, documents, keywords = linked_passages(seed)
    rng = np.random.default_rng(50 + seed)
    embedder = DistinctVectors(96)
    with Index(
        recipe=recipe_by_name("iier", preset="workable"), embedder=embedder, extractor=KeywordExtractor(keywords)
    ) as index:
        index.build(documents)
        texts, own = list(keywords), [set(words) for words in keywords.values()]
        vectors = asyncio.run(embedder.embed(texts)).astype(np.float64)
        cosines = vectors @ vectors.T
        edges = {}
        for one, other in combinations(range(len(texts)), 2):
            shared = len(own[one] & own[other])
            near = [sum(cosines[i] > cosines[i, j]) - 1 < 5 for i, j in ((one, other), (other, one))]
            edge = (
                one // 3 == other // 3 and other - one == 1,
                max(near) * max(0, cosines[one, other]),
                shared * (shared > 2),
            )
            if any(edge):
                edges[one, other] = edges[other, one] = edge
        for _ in range(6):
            asked = [words[i] for i in rng.choice(16, 4, replace=False)]
            question = f"What joins the {', the '.join(asked)}?"
            similar = vectors @ asyncio.run(embedder.embed([question]))[0]
            left, seeds, chains = set(asked), [], []
            while left & set().union(*own):
                best = max(range(len(texts)), key=lambda i: (len(left & own[i]), similar[i]))
                seeds.append(best)
                left -= own[best]
            for first in seeds:
                chain = [first]
                while len(chain) < 5:
                    scores = {
                        node: next_score(chain, node, edge, vectors, similar, asked, own)
                        for (last, node), edge in edges.items()
                        if last == chain[-1] and node not in chain
                    }
                    if not scores:
                        break
                    chain.append(max(scores, key=scores.get))
                chains += chain
            assert [texts.index(hit.unit.text) for hit in index.search(question, 27)] == list(dict.fromkeys(chains))
