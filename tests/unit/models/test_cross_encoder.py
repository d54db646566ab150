"""Cross-encoders in the ONNX format: a tiny graph that is made here, and a real model where there is one."""

import asyncio
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.models.cross_encoder import OnnxCrossEncoder, load_cross_encoder
from sire_core.recipes import recipe_by_name
from sire_core.testing.doubles import HashEmbedder
from support.tiny_onnx import write_tiny_cross_encoder, write_tiny_embedder

QUESTION = "Who directed The Long Tide?"
WORTH = {"film": 4.0, "painter": 2.0, "harbor": 1.0}
CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide"),
    Document("anna", "Anna Vale was a painter.", "Anna Vale"),
    Document("port", "Port Amber is a harbor.", "Port Amber"),
    *(Document(f"o{i}", f"Bridge number {i} spans the river Elm near mill {i}.", f"Bridge {i}") for i in range(20)),
]


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    return write_tiny_cross_encoder(tmp_path / "tiny", WORTH, max_length=16)


def test_a_score_is_the_graph_s_answer_for_the_pair(folder):
    encoder = load_cross_encoder(f"onnx:{folder}")
    texts = ["a film", "a painter and a harbor", "", "film film"]
    assert encoder.scores("a harbor", texts).tolist() == [5.0, 4.0, 1.0, 9.0]
    assert encoder.scores("", []).shape == (0,)


def test_the_end_of_a_text_is_cut_off_and_half_of_the_room_is_the_question_s(folder):
    encoder = OnnxCrossEncoder(folder, max_length=11)
    # [CLS] + 5 of the question + [SEP] + 3 of the text + [SEP]
    assert encoder.scores("film " * 9, ["painter " * 9]).tolist() == [5 * 4.0 + 3 * 2.0]
    assert encoder.scores("x " * 9 + "film", ["x x x painter"]).tolist() == [0.0]
    assert encoder.scores("film", ["x " * 6 + "painter", "x " * 7 + "painter"]).tolist() == [6.0, 4.0]


def test_a_score_depends_on_no_other_text_and_on_no_thread(folder):
    texts = [" ".join(["film", "harbor", "x"][: 1 + i % 3] * (1 + i % 4)) for i in range(40)]
    encoders = [OnnxCrossEncoder(folder, threads=threads) for threads in (1, 4)]
    alone = [float(encoders[0].scores(QUESTION, [text])[0]) for text in texts]
    for encoder in (*encoders, pickle.loads(pickle.dumps(encoders[1]))):
        assert encoder.scores(QUESTION, texts).tolist() == alone

    async def at_once():
        return await asyncio.gather(*(asyncio.to_thread(encoders[1].scores, QUESTION, texts) for _ in range(6)))

    assert all(found.tolist() == alone for found in asyncio.run(at_once()))


def test_a_budget_is_kept_and_reads_the_first(folder):
    encoder = OnnxCrossEncoder(folder, threads=1)
    texts = [f"film {i}" for i in range(5000)]
    begin = time.perf_counter()
    found = encoder.scores_within("", texts, 20)
    assert time.perf_counter() - begin < 2
    assert 1 <= len(found) < len(texts)
    assert set(found.tolist()) == {4.0}
    assert len(encoder.scores_within("", texts[:3], 0)) == 1
    assert len(encoder.scores_within("", texts[:3], 60_000)) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_it_works_in_a_forked_process(folder):
    encoder = OnnxCrossEncoder(folder, threads=2)
    before = encoder.scores("film", ["film", "harbor", "x"]).tolist()
    with encoder._model._lock:  # a thread of the parent holds it
        child = os.fork()
        if not child:
            os._exit(0 if encoder.scores("film", ["film", "harbor", "x"]).tolist() == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("recipe", ["msrag", "sire"])
def test_as_a_rerank_of_a_search(folder, tmp_path, recipe):
    def opened(**settings):
        return Index(tmp_path / "i", recipe=recipe_by_name(recipe, **settings), embedder=HashEmbedder(), chunker=None)

    with opened(rerank="none") as index:
        index.build(CORPUS)
        before = index.search(QUESTION, 20)
    worth = [sum(hit.unit.index_text.lower().count(word) * value for word, value in WORTH.items()) for hit in before]
    scores = np.array([[hit.score for hit in before], worth], dtype=float)
    own, read = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    for weight in (1000.0, 0.5):
        rerank = {"rerank": "cross_encoder", "cross_encoder": f"onnx:{folder}", "rerank_pool": 20}
        with opened(**rerank, **({"rerank_weight": weight} if weight != 0.5 else {})) as index:
            after = index.search(QUESTION, 20)
        order = np.argsort(-(own + weight * read), kind="stable")
        assert [hit.unit.id for hit in after] == [before[i].unit.id for i in order]
    assert after[0].path[-1].note == "place 1 after the cross-encoder looked"
    with opened(rerank="cross_encoder", cross_encoder=f"onnx:{folder}", rerank_pool=20, rerank_ms=1) as index:
        some = index.search(QUESTION, 20)
    assert {hit.unit.id for hit in some} == {hit.unit.id for hit in before}
    if "read" in some[0].path[-1].note:  # on a fast machine all fit
        assert "of 20 hits in 1 ms" in some[0].path[-1].note


def test_late_interaction_finds_for_every_token_of_the_question_the_nearest_of_the_text(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    words = {"film": [1.0, 0.0], "tide": [0.0, 1.0], "sea": [0.6, 0.8]}
    encoder = load_cross_encoder(f"colbert:{write_tiny_embedder(tmp_path / 'plain', words)}")
    sea = np.tanh([1.2, 1.6])
    nearest = sea[1] / np.linalg.norm(sea)  # of tide; the tokens before and behind a text are alike
    assert encoder.scores("film tide", ["film sea", "film tide"]) == pytest.approx([(3 + nearest) / 4, 1.0], abs=1e-6)
    marks = {"[unused0]": [-1.0, 0.0], "[unused1]": [-1.0, 0.0]}
    marked = load_cross_encoder(f"colbert:{write_tiny_embedder(tmp_path / 'marked', words | marks)}")
    assert marked.scores("film tide", ["film sea"]) == pytest.approx([(4 + nearest) / 5], abs=1e-6)
    assert marked.fingerprint.startswith("colbert:marked:")
    full = load_cross_encoder(f"colbert:{tmp_path / 'marked'}?max_length=6")
    assert full.scores("film", ["tide tide tide sea"]) == full.scores("film", ["tide tide tide"])
    pair = write_tiny_cross_encoder(tmp_path / "pair", WORTH)
    with pytest.raises(ConfigurationError, match="answers no vectors of tokens"):
        load_cross_encoder(f"colbert:{pair}").scores("film", ["film"])


def test_the_sentences_that_answer_are_read_not_the_beginning(folder):
    filler = " ".join(f"Mill {i} grinds corn for the village beside it." for i in range(30))
    corpus = [Document("long", f"{filler} The painter of the harbor mural was Mira Vale. {filler}"), *CORPUS[1:]]
    rerank = {"rerank": "cross_encoder", "cross_encoder": f"onnx:{folder}", "rerank_weight": 1000.0}
    for characters, first in ((60, "long"), (0, "anna")):
        with Index(
            recipe=recipe_by_name("flat", ranker="bm25", **rerank, rerank_characters=characters),
            embedder=HashEmbedder(),
            chunker=None,
        ) as index:
            index.build(corpus)
            assert index.search("the painter of the harbor mural", 5)[0].doc_ids == (first,)


def test_what_a_sentence_leads_to_is_read_with_it(folder):
    corpus = [
        Document("film", "The painter of The Long Tide is Mira Vale.", "The Long Tide"),
        Document("mira", "She was born in Elmstead.", "Mira Vale"),
        *CORPUS[2:],
    ]
    rerank = {"rerank": "cross_encoder", "cross_encoder": f"onnx:{folder}", "rerank_weight": 1000.0}
    with Index(recipe=recipe_by_name("sire", **rerank), embedder=HashEmbedder(), chunker=None) as index:
        index.build(corpus)
        hits = index.search("Where was the painter of The Long Tide born?", 3)
    assert {hit.doc_ids for hit in hits[:2]} == {("film",), ("mira",)}  # "painter" is worth more than "harbor"


@pytest.mark.parametrize(
    "settings", [{"rerank_ms": 5}, {"rerank_characters": 5}, {"rerank": "model", "rerank_ms": 5}, {"rerank_ms": -1}]
)
def test_a_budget_that_has_no_effect_is_refused(settings):
    with pytest.raises(ConfigurationError):
        recipe_by_name("sire", **settings)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "Name the cross-encoder"),
        ("onnx:/nowhere/at/all", "no model folder at /nowhere/at/all"),
        ("onnx:org/model?max_len=3", r"only max_length=\.\.\. may follow"),
        ("onnx:org/model?max_length=x", r"only max_length=\.\.\. may follow"),
        ("onnx:org/model?max_length=-1", "must not be negative"),
    ],
)
def test_a_spec_without_meaning_is_refused(spec, message):
    with pytest.raises(ConfigurationError, match=message):
        load_cross_encoder(spec)


def test_folders_that_hold_no_model_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match=r"has no [.]onnx file"):
        OnnxCrossEncoder(tmp_path / "empty")
    (folder / "model.onnx").rename(folder / "model_O1.onnx")
    assert OnnxCrossEncoder(folder).scores("film", [""]).tolist() == [4.0]
    (folder / "other.onnx").write_bytes(b"")
    with pytest.raises(
        ConfigurationError, match=r"several .onnx files and none is called model.onnx: model_O1.onnx, o"
    ):
        OnnxCrossEncoder(folder)
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        OnnxCrossEncoder(folder).scores("film", [""])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match=r"no tokenizer.json"):
        OnnxCrossEncoder(folder)


def test_eight_bit_files_are_preferred(folder):
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    (folder / "model.onnx").write_bytes(b"no graph")
    assert OnnxCrossEncoder(folder).scores("film", [""]).tolist() == [4.0]


@pytest.mark.parametrize(
    ("spec", "name", "worth"), [("onnx", "reranker_en", [9.22, -11.1]), ("colbert", "colbert", [0.910, 0.745])]
)
def test_a_real_model_knows_what_answers(spec, name, worth):
    """The scores that the cross-encoder's card states, and those of answerai-colbert-small-v1, with 8-bit weights."""
    pytest.importorskip("onnxruntime")
    folder = Path(os.environ.get("SIRE_MODELS", "/nowhere")) / name
    if not folder.is_dir():
        pytest.skip(f"SIRE_MODELS names no folder with a model as {name}")
    texts = [
        "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
        "New York City is famous for the Metropolitan Museum of Art.",
    ]
    found = load_cross_encoder(f"{spec}:{folder}").scores("How many people live in Berlin?", texts)
    assert found == pytest.approx(worth, rel=0.04)
