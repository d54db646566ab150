"""The embedder that needs no download."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sire_core.errors import ConfigurationError
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.protocols import Embedder, Fittable

DATA = Path(os.environ.get("SIRE_DATA", Path(__file__).parents[3] / ".." / "shared" / "data"))
TEXTS = [
    "The lighthouse of Arnholm was built by Greta Voss in 1871.",
    "Greta Voss studied optics in Leiden and painted seascapes.",
    "The harbour of Arnholm freezes in most winters.",
    "Leiden has the oldest university of the Netherlands.",
    "The university library keeps maps of the harbour.",
]


async def test_a_question_finds_the_passage_that_shares_its_rare_words():
    embedder = LexicalEmbedder().fit(TEXTS)
    scores = (await embedder.embed(["Who built the Arnholm lighthouse?"], "query")) @ (await embedder.embed(TEXTS)).T
    assert scores.argmax() == 0


async def test_words_never_seen_before_and_inflections_still_match():
    embedder = LexicalEmbedder().fit(TEXTS)
    passages = await embedder.embed(["Quibblewick met the envoy.", "The sailors met the envoy."])
    query = (await embedder.embed(["Where was Quibblewick's town?"], "query"))[0]
    assert passages[0] @ query > passages[1] @ query + 0.1
    finnish = await embedder.embed(["lentokoneessa", "lentokoneeseen", "kirkolle"])
    assert finnish[0] @ finnish[1] > finnish[0] @ finnish[2] + 0.1


async def test_words_of_one_meaning_meet():
    embedder = LexicalEmbedder().fit(TEXTS)
    question, near, far = await embedder.embed(["How is a file erased?", "Deleting documents.", "Painting seascapes."])
    assert question @ near > question @ far + 0.05


GERMAN = (
    "Der Leuchtturm von Arnholm wurde 1871 von Greta Voss erbaut.",
    "Greta Voss studierte Optik und malte Seestücke.",
    "Der Hafen von Arnholm friert in den meisten Wintern zu; ein Leuchtturm warnt die Schiffe.",
)


async def test_texts_that_are_not_english_have_topics_of_their_own():
    embedder = LexicalEmbedder().fit(GERMAN)
    assert embedder.state()["topics"].any()
    assert np.array_equal(
        await LexicalEmbedder().from_state(embedder.state()).embed(GERMAN), await embedder.embed(GERMAN)
    )


async def test_question_and_document_are_treated_alike():
    embedder = LexicalEmbedder().fit(TEXTS)
    assert np.array_equal(await embedder.embed(TEXTS, "query"), await embedder.embed(TEXTS, "document"))


async def test_text_without_words_is_the_zero_vector():
    vectors = await LexicalEmbedder().fit(TEXTS).embed(["", " \n", "?!", "\u2014"])
    assert not vectors.any()
    assert (await LexicalEmbedder().fit([""]).embed(["", "word"])).any(axis=1).tolist() == [False, True]


async def test_no_texts():
    embedder = LexicalEmbedder().fit(TEXTS)
    assert (await embedder.embed([])).shape == (0, embedder.dimension)
    with pytest.raises(ConfigurationError, match="at least one text"):
        LexicalEmbedder().fit([])


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


def test_state_holds_numbers_only():
    """A deleted document must leave no word behind: keys are hashes."""
    for array in LexicalEmbedder().fit(TEXTS).state().values():
        assert array.dtype.kind in "iuf"
        assert b"Arnholm" not in array.tobytes()
        assert b"arnholm" not in array.tobytes()


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
        run = subprocess.run(
            [sys.executable, "-c", script],
            input=json.dumps(texts),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
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


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="needs SIRE_DATA")
async def test_recall_on_musique_is_near_a_small_neural_embedder():
    folder = DATA / "musique"
    corpus, questions = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").split("\n") if line]
        for name in ("corpus.jsonl", "questions.jsonl")
    )
    texts = [f"{row['title']}\n{row['text']}" for row in corpus]
    embedder = LexicalEmbedder().fit(texts)
    scores = (await embedder.embed([row["question"] for row in questions], "query")) @ (await embedder.embed(texts)).T
    ids = np.array([row["id"] for row in corpus])
    found = [
        len(set(ids[np.argsort(-row, kind="stable")[:5]]) & set(question["supporting"])) / len(question["supporting"])
        for row, question in zip(scores, questions, strict=True)
    ]
    assert 100 * np.mean(found) > 53  # BM25 49.8, MiniLM 62.2; 55.5 when written
    assert sum(array.nbytes for array in embedder.state().values()) < 5e6
