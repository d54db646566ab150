"""Embedders: lexical, precomputed, by name."""

from __future__ import annotations

import itertools
import json
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, EmbedderMismatchError, ModelError
from sire_core.models.embedders import answer_text, resolve_embedder, same_model
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.models.precomputed import PrecomputedEmbedder, write_precomputed
from sire_core.models.sentence_transformer import SentenceTransformerEmbedder
from sire_core.protocols import Embedder, Fittable
from sire_core.reason import ircot
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.command import run_python

TEXTS = [
    "The lighthouse of Arnholm was built by Greta Voss in 1871.",
    "Greta Voss studied optics in Leiden and painted seascapes.",
    "The harbour of Arnholm freezes in most winters.",
    "Leiden has the oldest university of the Netherlands.",
    "The university library keeps maps of the harbour.",
]


async def test_words_never_seen_before_and_inflections_still_match():
    embedder = LexicalEmbedder().fit(TEXTS)
    passages = await embedder.embed(["Quibblewick met the envoy.", "The sailors met the envoy."])
    query = (await embedder.embed(["Where was Quibblewick's town?"], "query"))[0]
    assert passages[0] @ query > passages[1] @ query + 0.1
    finnish = await embedder.embed(["lentokoneessa", "lentokoneeseen", "kirkolle"])
    assert finnish[0] @ finnish[1] > finnish[0] @ finnish[2] + 0.1


GERMAN = (
    "Der Leuchtturm von Arnholm wurde 1871 von Greta Voss erbaut.",
    "Greta Voss studierte Optik und malte Seestücke.",
    "Der Hafen von Arnholm friert in den meisten Wintern zu; ein Leuchtturm warnt die Schiffe.",
)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_one_word_of_megabytes_takes_no_memory_by_its_letters():
    script = """
        import asyncio, resource
        from sire_core.models.lexical_embedder import LexicalEmbedder
        embedder = LexicalEmbedder().fit(["The harbour of Arnholm freezes in most winters."])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        [vector] = asyncio.run(embedder.embed(["QUJD" * 500_000]))
        print(round(float(vector @ vector), 3), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    length, kilobytes = run_python(script).stdout.split()
    assert float(length) == pytest.approx(1.0)
    assert int(kilobytes) < 200_000


async def test_texts_that_are_not_english_have_topics_of_their_own():
    embedder = LexicalEmbedder().fit(GERMAN)
    assert embedder.state()["topics"].any()
    assert np.array_equal(
        await LexicalEmbedder().from_state(embedder.state()).embed(GERMAN), await embedder.embed(GERMAN)
    )


async def test_unfitted_embedder_says_so_and_knows_its_dimension():
    embedder = LexicalEmbedder()
    assert not embedder.fitted
    assert embedder.fitted_on == 0
    assert embedder.fingerprint == "lexical-svd/1"
    assert embedder.dimension == embedder.fit(TEXTS).dimension
    with pytest.raises(ConfigurationError, match="not fitted"):
        await embedder.embed(["x"])
    with pytest.raises(ConfigurationError, match="not fitted"):
        embedder.state()
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, Fittable)


async def test_fit_returns_a_copy_and_state_restores_it_bit_by_bit(tmp_path):
    blank = LexicalEmbedder()
    embedder = blank.fit(TEXTS)
    assert not blank.fitted
    np.savez(tmp_path / "state.npz", **embedder.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        again = LexicalEmbedder().from_state(dict(state))
    assert again.fingerprint == embedder.fingerprint != LexicalEmbedder().fit(TEXTS[:4]).fingerprint
    assert embedder.fingerprint.startswith("lexical-svd/1:")
    assert again.fitted_on == 5
    assert np.array_equal(await again.embed(TEXTS), await embedder.embed(TEXTS))


def test_foreign_state_is_refused():
    state = dict(LexicalEmbedder().fit(TEXTS).state())
    with pytest.raises(ConfigurationError, match="fit it again"):
        LexicalEmbedder().from_state({"keys": state["keys"]})
    with pytest.raises(ConfigurationError, match="fit it again"):
        LexicalEmbedder().from_state({**state, "topics": np.zeros((len(state["keys"]), 3), dtype=np.float16)})


def test_same_bits_in_another_process_with_another_number_of_threads():
    texts = [
        f"{a} {b} of {c}" for a, b, c in zip(TEXTS, TEXTS[1:] + TEXTS[:1], TEXTS[2:] + TEXTS[:2], strict=True)
    ] * 30
    script = (
        "import json, sys, hashlib, asyncio\n"
        "from sire_core.models.lexical_embedder import LexicalEmbedder\n"
        "texts = json.load(sys.stdin)\n"
        "e = LexicalEmbedder().fit(texts)\n"
        "print(e.fingerprint, hashlib.sha256(asyncio.run(e.embed(texts)).tobytes()).hexdigest())\n"
    )
    outcomes = set()
    for threads, seed in (("1", "1"), ("2", "2")):
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONHASHSEED": seed,
        }
        run = run_python(script, input=json.dumps(texts), env=environment)
        outcomes.add(run.stdout)
    assert len(outcomes) == 1


async def test_scripts_without_spaces_match():
    texts = ["東京大学は日本の国立大学である。", "大阪城は豊臣秀吉が築いた。", "京都には寺が多い。"]
    embedder = LexicalEmbedder().fit(texts)
    scores = (await embedder.embed(["豊臣秀吉の城はどこ"])) @ (await embedder.embed(texts)).T
    assert scores.argmax() == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.lists(st.text(max_size=40), max_size=4))
def test_any_text_gives_finite_rows_of_length_one_or_zero(corpus, others):
    from sire_core.models.lexical_embedder import embed_texts

    embedder = LexicalEmbedder().fit(corpus)
    vectors = embed_texts(embedder._fitted(), corpus + others)
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all(np.isclose(lengths, 1, atol=1e-4) | (lengths == 0))


REPEATED = ["one red fox", "two grey owls", "three herons", "one red fox"]


@pytest.fixture
async def path(tmp_path):
    maker = HashEmbedder(16)
    write_precomputed(tmp_path / "vectors.npz", REPEATED, await maker.embed(REPEATED), maker.fingerprint)
    return tmp_path / "vectors.npz"


async def test_stands_in_for_the_embedder_that_made_them(path):
    embedder = PrecomputedEmbedder(path)
    assert embedder.fingerprint == HashEmbedder(16).fingerprint
    assert embedder.dimension == 16
    wanted = [REPEATED[2], REPEATED[0], REPEATED[1]]
    assert np.array_equal(await embedder.embed(wanted), await HashEmbedder(16).embed(wanted))
    assert (await embedder.embed([])).shape == (0, 16)


async def test_missing_texts_are_counted_and_the_first_is_shown(path):
    with pytest.raises(ModelError, match="2 of 3 texts, the first being 'a new text'"):
        await PrecomputedEmbedder(path).embed(["a new text", REPEATED[0], "zzz"])


def test_no_file(tmp_path):
    with pytest.raises(ConfigurationError, match="write_precomputed"):
        PrecomputedEmbedder(tmp_path / "nothing.npz")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken"])
def test_damaged_file(tmp_path, content):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(ConfigurationError, match="make it again"):
        _ = PrecomputedEmbedder(tmp_path / "bad.npz").dimension


def test_other_arrays_unsorted_keys_and_objects_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    for arrays in (
        {"x": np.zeros(3)},
        {"keys": np.array([b"b", b"a"]), "vectors": np.zeros((2, 3), np.float32), "fingerprint": np.array("f")},
        {"keys": np.array([b"a"]), "vectors": np.zeros((2, 3), np.float32), "fingerprint": np.array("f")},
        {"keys": np.array([{}], dtype=object), "vectors": np.zeros((1, 3), np.float32), "fingerprint": np.array("f")},
    ):
        np.savez(path, **arrays)
        with pytest.raises(ConfigurationError, match="make it again"):
            _ = PrecomputedEmbedder(path).dimension


def test_writing_checks_its_input_and_leaves_no_part_behind(tmp_path):
    with pytest.raises(ConfigurationError, match="shape"):
        write_precomputed(tmp_path / "v.npz", ["a"], np.zeros((2, 3), np.float32), "f")
    with pytest.raises(ConfigurationError, match="NaN"):
        write_precomputed(tmp_path / "v.npz", ["a"], np.full((1, 3), np.nan, np.float32), "f")
    assert list(tmp_path.iterdir()) == []
    write_precomputed(tmp_path / "v.npz", ["a"], np.ones((1, 3), np.float32), "f")
    assert [p.name for p in tmp_path.iterdir()] == ["v.npz"]


@pytest.fixture
def model_folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text("{}")
    return tmp_path / "tiny"


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
    run = run_python(script)
    assert run.stdout.strip() == "[]"


def test_an_addition_of_many_words_loads_no_scipy(tmp_path):
    with Index(tmp_path, recipe="sire", embedder=HashEmbedder()) as index:
        index.build([Document("a", "Erasmus wrote in Basel.")])
    script = (
        "import sys\nfrom sire_core import Document, Index\nfrom sire_core.testing.doubles import HashEmbedder\n"
        f"with Index({str(tmp_path)!r}, embedder=HashEmbedder()) as index:\n"
        "    index.add([Document('b', ' '.join(f'stone{number}' for number in range(2000)))])\n"
        "    index.search('stone7')\nprint('scipy' in sys.modules)"
    )
    assert run_python(script).stdout.strip() == "False"


class Narrower(HashEmbedder):
    """Says that it is the same embedder, and is not."""

    async def embed(self, texts, kind="document"):
        return (await super().embed(texts, kind))[:, :-1]


@pytest.mark.parametrize("recipe", ["flat", "sirerag"])
def test_a_change_with_vectors_of_another_length_leaves_the_index_as_it_was(tmp_path, recipe):
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder()) as index:
        index.build([Document("a", "Ann met Bob."), Document("b", "Bob met Cid.")])
    before = read_contents(tmp_path / "ix")
    other = Index(tmp_path / "ix", recipe=recipe, embedder=Narrower())
    with other as index, pytest.raises(EmbedderMismatchError, match="another length"):
        index.add([Document("c", "Cid met Dan.")])
    assert read_contents(tmp_path / "ix") == before
    with Index(tmp_path / "ix", recipe=recipe, embedder=HashEmbedder()) as index:
        index.add([Document("c", "Cid met Dan.")])
        assert index.search("Who met Dan?", 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ScriptedModel, r"ScriptedModel is a class \(pass an object: ScriptedModel\(...\)\).*OpenAIChat"),
        (5, "int is no language model; .*OpenAIChat"),
        ("gpt-4o", "str is no language model; .*OpenAIChat"),
    ],
)
def test_what_is_no_language_model_is_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        Index(language_model=given)
    with Index(recipe="flat") as index, pytest.raises(ConfigurationError, match=message):
        ircot(index, "Who?", model=given)


@pytest.mark.parametrize(("given", "message"), [(int, "int is a class.*is no recipe; pass"), (5, "int is no recipe")])
def test_what_is_no_recipe_is_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        Index(recipe=given)


def fingerprint(vector):
    return f"theirs:Model:{answer_text('Model', lambda text: vector.tolist())}"


@pytest.mark.parametrize("size", [4, 32, 1536])
def test_noise_makes_no_other_model_and_other_models_are_told_apart(size):
    random = np.random.default_rng(size)
    vectors = random.normal(size=(1500, size)) * random.uniform(0.01, 10, size=(1500, 1))
    noise = random.normal(size=vectors.shape) * 1e-3 * np.abs(vectors).mean(axis=1, keepdims=True)
    before, after = ([fingerprint(vector) for vector in found] for found in (vectors, vectors + noise))
    assert any(one != other for one, other in zip(before, after, strict=True))
    assert all(same_model(one, other) for one, other in zip(before, after, strict=True))
    assert not any(same_model(one, other) for one, other in itertools.pairwise(before))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("theirs:Model:small", "theirs:Model:small", True),
        ("theirs:Model:7-12", "theirs:Model:7-13", False),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-2-8181", True),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-2-8280", False),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-3-8080", False),
        ("theirs:Model:answers-2-8080", "theirs:Model:answers-2-80", False),
        ("theirs:Model:answers-2-8080", "others:Model:answers-2-8080", False),
    ],
)
def test_only_what_was_answered_may_differ_a_little(one, other, expected):
    assert same_model(one, other) is same_model(other, one) is expected
