"""Checkpoints of chain scorers: what is read back, what is refused, and how the recipe walks with one."""

import asyncio
import json

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, EmbedderMismatchError, StorageError
from sire_core.extend import KnownSimilarities
from sire_core.papers.iier.chain_graph import ChainGraph
from sire_core.papers.iier.neural import (
    EDGE_FEATURES,
    FORMAT,
    PAIR_FEATURES,
    load_chain_scorer,
    read_checkpoint,
    write_checkpoint,
)
from sire_core.papers.iier.rank import frontier
from sire_core.papers.iier.scorers import ChainQuestion
from sire_core.recipes import iier
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed

safetensors = pytest.importorskip("safetensors.numpy", reason="the torch extra is missing")

DOCUMENTS = [
    Document("a", "Ada Holm founded Brackwater Press in Lindle.", "Ada Holm"),
    Document("b", "Brackwater Press stood in Lindle and burnt down.", "Brackwater Press"),
    Document("c", "Lindle lies on the Marl, below the hills.", "Lindle"),
    Document("d", "The Marl is a river of many mills.", "Marl"),
]


def weights(seed=0, inner=3, hidden=4):
    rng = np.random.default_rng(seed)
    pairs, edges = len(PAIR_FEATURES), len(EDGE_FEATURES)
    shapes = {
        "edge.0.weight": (inner, edges),
        "edge.0.bias": (inner,),
        "edge.2.weight": (inner, inner),
        "edge.2.bias": (inner,),
        "score.0.weight": (hidden, pairs + inner),
        "score.0.bias": (hidden,),
        "score.2.weight": (1, hidden),
        "score.2.bias": (1,),
        "direct.weight": (1, pairs + edges),
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def card(**more):
    return {
        "kind": "light",
        "pair_features": list(PAIR_FEATURES),
        "edge_features": list(EDGE_FEATURES),
        "embedder": "hash/1:64",
        "dimension": 64,
        **more,
    }


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "chains.safetensors"
    write_checkpoint(path, weights(), card())
    return path


@pytest.fixture(scope="module")
def view():
    with indexed(DOCUMENTS, recipe=iier(), embedder=HashEmbedder(), chunker=None) as index:
        yield index.view()


def state_of(view):
    graph = ChainGraph.of(view)
    vector = asyncio.run(view.embed_query("Who founded the press?"))
    coverage = np.zeros(graph.size, dtype=np.uint64)
    question = ChainQuestion("q", vector, KnownSimilarities(graph.vectors @ vector), (), coverage)
    return frontier(graph, question, np.array([[0]], dtype=np.int64))[0], graph


def test_what_is_written_is_read_back_and_the_file_is_the_same_again(tmp_path, checkpoint):
    found, about = read_checkpoint(checkpoint)
    assert about["format"] == FORMAT
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in weights().items()}
    again = tmp_path / "again.safetensors"
    assert write_checkpoint(again, weights(), card()) == dict(about)
    assert again.read_bytes() == checkpoint.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_checkpoint_without_its_scorer_is_a_mistake(checkpoint):
    with pytest.raises(ConfigurationError, match="scorer='neural'"):
        iier(checkpoint=str(checkpoint))


def test_the_recipe_walks_with_a_checkpoint(checkpoint):
    recipe = iier(scorer="neural", checkpoint=str(checkpoint))
    assert recipe.ranker.scorer.fingerprint == f"neural/1:{read_checkpoint(checkpoint)[1]['digest']}"
    with indexed(DOCUMENTS, recipe=recipe, embedder=HashEmbedder(), chunker=None) as index:
        hits = index.search("Where did Ada Holm found a press?", 4)
    assert hits[0].doc_ids == ("a",)
    assert len(hits) == 4


def test_scores_are_those_of_the_formula(view, checkpoint):
    scorer = load_chain_scorer(checkpoint)
    state, graph = state_of(view)
    scores = asyncio.run(scorer.score(state, graph, view))
    assert scores.shape == state.candidates.shape
    assert np.isfinite(scores).all()
    # With all weights but one at zero a score is that feature.
    plain = {name: np.zeros_like(array) for name, array in weights().items()}
    plain["direct.weight"][0, PAIR_FEATURES.index("question")] = 1.0
    only = type(scorer)(plain, card())
    assert np.allclose(asyncio.run(only.score(state, graph, view)), state.question.cosines.at(state.candidates))


def test_a_scorer_of_another_embedder_is_refused_before_anything_is_embedded_and_when_the_index_is_opened(tmp_path):
    path, folder = tmp_path / "chains.safetensors", tmp_path / "ix"
    write_checkpoint(path, weights(), card(embedder="st:other:2"))
    recipe = iier(scorer="neural", checkpoint=str(path))
    refused = Index(folder, recipe=recipe, embedder=HashEmbedder(), chunker=None)
    with pytest.raises(EmbedderMismatchError, match="st:other:2"):
        refused.build(DOCUMENTS)
    indexed(DOCUMENTS, folder, recipe=iier(), embedder=HashEmbedder(), chunker=None).close()
    with (
        Index(folder, recipe=recipe, embedder=HashEmbedder()) as opened,
        pytest.raises(EmbedderMismatchError, match="st:other:2"),
    ):
        opened.view()


def test_the_default_embedder_fitted_to_another_corpus_is_no_other_embedder(tmp_path):
    path = tmp_path / "lexical.safetensors"
    with indexed(DOCUMENTS, recipe=iier(), chunker=None) as index:
        size = index.stats()["dimension"]
    write_checkpoint(path, weights(), card(embedder="lexical-svd/1:elsewhere", dimension=size))
    with indexed(DOCUMENTS, recipe=iier(scorer="neural", checkpoint=str(path)), chunker=None) as index:
        assert index.search("Where did Ada Holm found a press?", 1)[0].doc_ids == ("a",)


def foreign(path, **metadata):
    safetensors.save_file({"x": np.zeros(2, np.float32)}, str(path), metadata=metadata or None)


def cut(path, end=b"", size=20):
    write_checkpoint(path, weights(), card())
    path.write_bytes(path.read_bytes()[:-size] + end)


BROKEN = {
    "no checkpoint": lambda path: None,
    "damaged or not a checkpoint": lambda path: path.write_bytes(b"no such thing at all"),
    "damaged or not": lambda path: path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{}{}{}{}{}{}{}{}"),
    "damaged": cut,
    "not those that its card was written for": lambda path: cut(path, b"?", 1),
    "no card": foreign,
    "format": lambda path: foreign(path, card=json.dumps([1])),
    "does not hold the weights": lambda path: write_checkpoint(
        path, {**weights(), "score.2.weight": np.zeros((1, 7), np.float32)}, card()
    ),
    "other features": lambda path: write_checkpoint(path, weights(), card(pair_features=["question"])),
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_file_that_is_no_checkpoint_of_ours_is_refused_with_the_reason(tmp_path, words):
    path = tmp_path / "chains.safetensors"
    BROKEN[words](path)
    with pytest.raises(StorageError, match=words):
        iier(scorer="neural", checkpoint=str(path))


def test_without_safetensors_it_says_what_to_install(checkpoint, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ConfigurationError, match="pip install safetensors"):
        load_chain_scorer(checkpoint)


def test_searching_needs_no_torch(checkpoint, monkeypatch, view):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    state, graph = state_of(view)
    assert len(asyncio.run(load_chain_scorer(checkpoint).score(state, graph, view)))


@pytest.mark.parametrize("missing", ["embedder", "dimension"])
def test_a_checkpoint_that_names_no_embedder_is_refused_with_the_recipe(tmp_path, missing):
    path = tmp_path / "chains.safetensors"
    write_checkpoint(path, weights(), {name: value for name, value in card().items() if name != missing})
    with pytest.raises(StorageError, match=r"chains\.safetensors does not name the embedder") as raised:
        iier(scorer="neural", checkpoint=str(path))
    assert "sire train-chains" in str(raised.value)
