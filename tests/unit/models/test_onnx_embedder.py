"""Embedders in the ONNX format: a tiny graph that is made here, and a real model where there is one."""

import asyncio
import json
import logging
import os
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from sire_core import Index
from sire_core.errors import ConfigurationError
from sire_core.models.embedders import resolve_embedder
from sire_core.models.onnx_embedder import OnnxEmbedder, semantic_choice
from sire_core.settings import UntrustedText
from support.command import run
from support.tiny_onnx import write_tiny_cross_encoder, write_tiny_embedder

WORDS = {"cat": [3.0, 0.0, 0.5], "kitten": [2.5, 0.0, 0.6], "rock": [0.0, 3.0, 0.1], "query": [0.0, 0.0, 9.0]}
SPECIAL = [1.0, 1.0, 1.0]


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    return write_tiny_embedder(tmp_path / "models" / "tiny", WORDS, max_length=8)


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A machine without models but those of the test."""
    monkeypatch.setenv("SIRE_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def embedded(embedder, texts, kind="document"):
    return asyncio.run(embedder.embed(texts, kind))


def expected(rows, pooling="mean"):
    """What the graph answers for the vectors of tokens, pooled."""
    tokens = np.tanh(2 * np.array(rows))
    found = {"mean": tokens.mean(0), "cls": tokens[0], "last": tokens[-1], "max": tokens.max(0)}[pooling]
    return found / np.linalg.norm(found)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_vectors_are_the_pooled_answers_of_the_graph(folder, pooling):
    embedder = resolve_embedder(f"onnx:{folder}?pooling={pooling}")
    found = embedded(embedder, ["cat rock", "Kitten", ""])
    rows = [[SPECIAL, WORDS["cat"], WORDS["rock"], SPECIAL], [SPECIAL, WORDS["kitten"], SPECIAL], [SPECIAL, SPECIAL]]
    assert found == pytest.approx(np.array([expected(row, pooling) for row in rows]), abs=1e-6)
    assert found.dtype == np.float32
    assert embedder.dimension == 3
    assert embedded(embedder, []).shape == (0, 3)


def test_the_end_of_a_text_is_cut_off(folder):
    embedder = OnnxEmbedder(folder)
    cut, whole = embedded(embedder, ["cat " * 6 + "rock", "cat " * 6])
    assert cut.tolist() == whole.tolist()
    assert embedded(embedder, ["cat " * 5 + "rock"])[0].tolist() != whole.tolist()
    assert (
        embedded(OnnxEmbedder(folder, max_length=3), ["kitten rock"]).tolist()
        == embedded(embedder, ["kitten"]).tolist()
    )


def test_a_model_s_files_state_pooling_and_what_comes_before_questions(folder):
    plain = embedded(OnnxEmbedder(folder), ["cat"])
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
    )
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query "}}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 4}')
    stated = OnnxEmbedder(folder, pooling="mean")
    assert embedded(stated, ["cat"]).tolist() == plain.tolist()
    assert embedded(stated, ["cat"], "query").tolist() == embedded(stated, ["query cat"]).tolist() != plain.tolist()
    assert embedded(stated, ["cat cat rock"]).tolist() == embedded(stated, ["cat cat"]).tolist()
    assert embedded(OnnxEmbedder(folder), ["cat"])[0] == pytest.approx(expected([SPECIAL]), abs=1e-6)
    own = OnnxEmbedder(folder, pooling="mean", query_prompt="rock ")
    assert embedded(own, ["cat"], "query").tolist() == embedded(stated, ["rock cat"]).tolist()


@pytest.mark.parametrize(
    ("name", "pooling", "query", "document"),
    [
        ("bge_small_en", "cls", "Represent this sentence for searching relevant passages: ", ""),
        ("multilingual-e5-small", "mean", "query: ", "passage: "),
        ("multilingual-e5-large-instruct", "mean", "", ""),
        ("all-MiniLM-L6-v2", "mean", "", ""),
        ("bge-m3", "cls", "", ""),
    ],
)
def test_families_are_known_by_name(tmp_path, name, pooling, query, document):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    words = {word: list(np.eye(8)[i]) for i, word in enumerate("represent query passage this sentence :".split())}
    given = write_tiny_embedder(tmp_path / name, words)
    same = shutil.copytree(given, tmp_path / "other")
    plain = OnnxEmbedder(same, pooling=pooling)
    for kind, before in (("query", query), ("document", document)):
        assert embedded(OnnxEmbedder(given), ["x this"], kind).tolist() == embedded(plain, [f"{before}x this"]).tolist()
    (same / "config.json").write_text(json.dumps({"hidden_size": 8, "_name_or_path": f"org/{name}"}))
    assert (
        embedded(OnnxEmbedder(same), ["x this"], "query").tolist()
        == embedded(OnnxEmbedder(given), ["x this"], "query").tolist()
    )


def test_a_vector_depends_on_no_other_text_and_on_no_thread(folder):
    texts = [" ".join(["cat", "rock", "x", "kitten"][i % 3 :] * (1 + i % 2)) for i in range(50)]
    one, four = OnnxEmbedder(folder, threads=1), OnnxEmbedder(folder, threads=4)
    alone = np.vstack([embedded(one, [text]) for text in texts]).tolist()
    assert embedded(one, texts).tolist() == embedded(four, texts).tolist() == alone
    assert embedded(pickle.loads(pickle.dumps(four)), texts).tolist() == alone


def test_vectors_of_tokens(folder):
    found = asyncio.run(OnnxEmbedder(folder).embed_tokens(["cat", "cat rock"]))
    assert [len(tokens) for tokens in found] == [3, 4]
    assert found[0][1] == pytest.approx(expected([WORDS["cat"]]), abs=1e-6)


def test_the_spec_makes_it_again_and_the_fingerprint_knows_the_model_but_not_its_place(folder, tmp_path):
    embedder = OnnxEmbedder(folder, pooling="max", query_prompt="Frage? 50% & mehr: ", max_length=5)
    again = resolve_embedder(embedder.spec)
    assert (again.spec, again.fingerprint) == (embedder.spec, embedder.fingerprint)
    assert embedder.fingerprint != OnnxEmbedder(folder).fingerprint
    moved = OnnxEmbedder(shutil.copytree(folder, tmp_path / "elsewhere" / "tiny"))
    assert moved.fingerprint == OnnxEmbedder(folder).fingerprint
    changed = write_tiny_embedder(tmp_path / "changed" / "tiny", {**WORDS, "cat": [2.0, 0.0, 0.5]}, max_length=8)
    assert OnnxEmbedder(changed).fingerprint != moved.fingerprint


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("onnx:/nowhere/at/all", "no model folder at /nowhere/at/all"),
        (
            "onnx:org/model?pool=mean",
            "only pooling=..., query_prompt=..., document_prompt=..., max_length=... may follow",
        ),
        ("onnx:org/model?pooling=sum", "pooling must be one of cls, mean, max, last, not 'sum'"),
        ("onnx:", "unknown embedder"),
    ],
)
def test_a_spec_without_meaning_is_refused(spec, message):
    with pytest.raises(ConfigurationError, match=message.replace("...", "[.]{3}")):
        resolve_embedder(spec)


def test_a_cross_encoder_is_no_embedder(folder, tmp_path):
    other = write_tiny_cross_encoder(tmp_path / "judge", {"cat": 1.0})
    with pytest.raises(ConfigurationError, match=r"no vector.*cross_encoder=onnx:NAME"):
        embedded(OnnxEmbedder(other), ["x"])


def test_semantic_takes_an_embedder_of_this_machine_and_says_which(alone, folder, tmp_path, caplog):
    models = tmp_path / "models"
    assert semantic_choice() is None  # of the only model nothing tells what it is
    shutil.copytree(folder, models / "all-MiniLM-L6-v2")
    shutil.copytree(folder, models / "bge-reranker-base")
    (models / "bge-large-en").mkdir()  # holds no model
    assert semantic_choice()[0] == f"onnx:{models / 'all-MiniLM-L6-v2'}"
    shutil.copytree(folder, models / "bge_small_en")
    with caplog.at_level(logging.INFO, "sire_core"):
        embedder = resolve_embedder("semantic")
    assert embedder.spec == f"onnx:{models / 'bge_small_en'}"
    assert f"found in SIRE_MODELS={models}, preferred to 1 other" in caplog.text
    assert embedded(embedder, ["cat"])[0] == pytest.approx(expected([SPECIAL]), abs=1e-6)


def test_semantic_reads_the_cache_of_the_hub(alone, folder, tmp_path):
    cached = tmp_path / "hub" / "models--org--bge-small-en"
    shutil.copytree(folder, cached / "snapshots" / "abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    embedder = resolve_embedder("semantic")
    assert (embedder.spec, embedder.fingerprint) == ("onnx:org/bge-small-en", "onnx:org/bge-small-en")
    assert embedded(embedder, ["cat"])[0] == pytest.approx(expected([SPECIAL]), abs=1e-6)
    assert embedded(resolve_embedder(UntrustedText(embedder.spec)), ["cat"]).shape == (1, 3)


def test_semantic_without_a_model_says_where_to_get_one(alone):
    pytest.importorskip("onnxruntime")
    with pytest.raises(ConfigurationError, match=r"none in the folders of SIRE_MODELS.*onnx:Xenova/bge-small-en-v1.5"):
        resolve_embedder("semantic")


def test_a_real_model_knows_what_belongs_together():
    pytest.importorskip("onnxruntime")
    folder = Path(os.environ.get("SIRE_MODELS", "/nowhere")) / "bge_small_en"
    if not folder.is_dir():
        pytest.skip("SIRE_MODELS names no folder with bge-small-en-v1.5 as bge_small_en")
    embedder = OnnxEmbedder(folder)
    passages = ["Berlin has 3.5 million inhabitants.", "The cat sat on the mat."]
    question = embedded(embedder, ["How many people live in the German capital?"], "query")[0]
    near, far = embedded(embedder, passages) @ question
    assert near > far + 0.2
    assert embedded(embedder, [passages[0]])[0].tolist() == embedded(embedder, passages)[0].tolist()


def test_a_first_build_without_a_model_says_what_one_would_find_and_how_to_get_it(alone, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "cat.md").write_text("# Cat\n\nThe cat sleeps.\n")
    first, second = (run("index", tmp_path / "cat.md", "--to", tmp_path / "ix") for _ in range(2))
    said = " ".join(first.stderr.split())
    assert "finds 10 to 20 points more, on questions with the words of the text about as much: pip install" in said
    assert f"sire reembed {tmp_path / 'ix'} --embedder onnx:Xenova/bge-small-en-v1.5" in said
    assert "Embedder" not in second.stderr
    assert (
        "Embedder" not in run("index", tmp_path / "cat.md", "--to", tmp_path / "other", "--embedder", "lexical").stderr
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--embedder", "semantic"), "Embedder onnx:{model}: the embedding model found in SIRE_MODELS={models}."),
        ((), "Embedder onnx:{model}: the embedding model found in SIRE_MODELS={models}. `--embedder lexical` indexes"),
        (("--embedder", "lexical"), ""),
    ],
)
def test_a_first_build_says_which_embedder_it_takes_and_why(alone, folder, tmp_path, options, said):
    models = tmp_path / "models"
    model = folder.rename(models / "bge-small-en")
    (tmp_path / "cat.md").write_text("# Cat\n\nThe cat sleeps.\n")
    first, second = (run("index", tmp_path / "cat.md", "--to", tmp_path / "ix", *options) for _ in range(2))
    assert said.format(model=model, models=models) in " ".join(first.stderr.split()).replace("/ ", "/")
    assert first.stderr.startswith("Embedder") == bool(said)  # before the model is at work
    assert "Embedder" not in second.stderr
    embedder = Index(tmp_path / "ix").stats()["embedder"]
    assert embedder.startswith("lexical" if "lexical" in options else "onnx:bge-small-en:")


def test_what_only_an_index_names_is_not_downloaded(monkeypatch, tmp_path):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"not on this machine.*--embedder onnx:NAME"):
        embedded(resolve_embedder(UntrustedText("onnx:org/model")), ["x"])
    with pytest.raises(ConfigurationError, match="on another machine"):
        resolve_embedder(UntrustedText("onnx:\\\\host\\share"))
