"""From a setting to an embedder."""

import subprocess
import sys

import numpy as np
import pytest

from sire_core.errors import ConfigurationError
from sire_core.models.embedders import resolve_embedder
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.models.precomputed import PrecomputedEmbedder, write_precomputed
from sire_core.models.sentence_transformer import SentenceTransformerEmbedder
from sire_core.testing.doubles import HashEmbedder


@pytest.fixture
def model_folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text("{}")
    return tmp_path / "tiny"


@pytest.mark.parametrize("spec", [None, "lexical"])
def test_default_needs_nothing(spec):
    embedder = resolve_embedder(spec)
    assert isinstance(embedder, LexicalEmbedder)
    assert embedder.spec == "lexical"


def test_an_embedder_is_returned_as_it_is_without_asking_it_anything():
    class Costly:
        fingerprint = "costly"

        @property
        def dimension(self):
            raise AssertionError("would load a model")

        async def embed(self, texts, kind="document"):
            return np.zeros((len(texts), 1), np.float32)

    for embedder in (HashEmbedder(), Costly()):
        assert resolve_embedder(embedder) is embedder


def test_specs_lead_back_to_the_same_embedder(tmp_path, model_folder):
    write_precomputed(tmp_path / "v.npz", ["a"], np.ones((1, 3), np.float32), "f")
    for spec, kind in (
        (f"st:{model_folder}", SentenceTransformerEmbedder),
        (str(model_folder), SentenceTransformerEmbedder),
        ("st:org/name", SentenceTransformerEmbedder),
        (f"file:{tmp_path / 'v.npz'}", PrecomputedEmbedder),
    ):
        embedder = resolve_embedder(spec)
        assert isinstance(embedder, kind)
        again = resolve_embedder(embedder.spec)
        assert again.spec == embedder.spec
        assert again.fingerprint == embedder.fingerprint


def test_a_query_prompt_survives_the_spec(model_folder):
    embedder = SentenceTransformerEmbedder(model_folder, query_prompt="Frage? 50% & mehr: ")
    again = resolve_embedder(embedder.spec)
    assert again.fingerprint == embedder.fingerprint != SentenceTransformerEmbedder(model_folder).fingerprint


def test_openai_form():
    pytest.importorskip("sire_core.models.openai.embedder")
    embedder = resolve_embedder("openai:text-embedding-3-small")
    assert embedder.spec == "openai:text-embedding-3-small"


@pytest.mark.parametrize("spec", ["", "bert", "st:", "ftp:x", "file:", 3, object()])
def test_unknown_forms_are_answered_with_the_known_ones(spec):
    with pytest.raises(ConfigurationError, match=r"lexical.*st:NAME_OR_FOLDER.*openai:MODEL.*file:PATH"):
        resolve_embedder(spec)


def test_resolving_loads_no_library():
    script = (
        "import sys\nfrom sire_core.models.embedders import resolve_embedder\n"
        "resolve_embedder(None); resolve_embedder('st:org/name')\n"
        "print([m for m in ('torch', 'sklearn', 'scipy', 'sentence_transformers', 'Stemmer') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
