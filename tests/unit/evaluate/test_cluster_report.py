"""Coverage and overlap of clusters, without answers."""

import pytest

from sire_core.errors import ConfigurationError, ModelError
from sire_core.evaluate.clusters import compare_clusters, evaluate_clusters, model_topics, tfidf_topics
from sire_core.evaluate.datasets import DataSet, Question
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.types import Document


def test_oracle_S2_as_a_report():
    gold = [[1, 2, 3], [3, 5]]
    report = compare_clusters([[1, 2], [3, 5, 6], [2, 3]], [[2, 3], [5, 6]], gold, [], 7, "toy")
    assert report.supporting == (75.0, 25.0)
    assert report.overlap == (pytest.approx(100 / 3), 100.0)
    assert report.candidates == (None, None)
    assert report.placed == (pytest.approx(500 / 21), pytest.approx(200 / 21))
    assert report.as_json()["overlap"] == {"similarity": 33.33, "relatedness": 100.0}
    repeated = compare_clusters([[1, 2], [3, 5, 6], [2, 3], [1, 2]], [[2, 3], [5, 6]], gold, gold, 7)
    assert (repeated.supporting, repeated.overlap, repeated.placed) == (
        report.supporting,
        report.overlap,
        report.placed,
    )
    assert repeated.candidates == report.supporting


THEMES = (
    "bridge river steel span",
    "violin concerto sonata strings",
    "volcano lava crater ash",
    "wheat barley harvest",
)
DOCUMENTS = tuple(
    Document(f"d{i}", title=f"Title {i}", text=f"{' '.join(words.split()[::-1] * 2)} and the {words} {i}")
    for i in range(16)
    for words in [THEMES[i % 4]]
)
QUESTIONS = (
    Question("q1", "?", ("a",), ("d0", "d4"), metadata={"candidates": ["d0", "d4", "d1", "unknown"]}),
    Question("q2", "?", ("a",), ("d1", "d5")),
    Question("q3", "?", ("a",), ("d2", "d3")),
)
DATASET = DataSet("themes", DOCUMENTS, QUESTIONS)


async def test_passages_are_clustered_by_text_and_by_topic():
    report = await evaluate_clusters(DATASET, LexicalEmbedder())
    assert report.supporting == (pytest.approx(200 / 3), pytest.approx(200 / 3))
    assert report.candidates == (pytest.approx(100 / 3), pytest.approx(100 / 3))
    assert report == await evaluate_clusters(DATASET, LexicalEmbedder())


async def test_refusals():
    with pytest.raises(ConfigurationError, match="two gold passages"):
        await evaluate_clusters(DataSet("x", DOCUMENTS, (Question("q", "?", ("a",), ("d0",)),)), HashEmbedder())
    with pytest.raises(ConfigurationError, match="16 passages and 1 topics"):
        await evaluate_clusters(DATASET, HashEmbedder(), topics=["one"])


def test_topics_are_the_words_that_tell_texts_apart():
    texts = ["The old lighthouse stood by the sea.", "The old mill stood by the stream. The mill!", "", "1984 42"]
    first, second, *rest = tfidf_topics(texts, words=2)
    assert first.split() == ["lighthouse", "sea"]
    assert second.split()[0] == "mill"
    assert rest == ["", ""]
    assert tfidf_topics(["the", "of"]) == ["", ""]


async def test_topics_come_from_a_model_and_clusters_from_the_paper():
    def script(call):
        return "water" if "river" in call.data or "harvest" in call.data else "sky"

    model = ScriptedModel(script)
    topics = await model_topics(DATASET, model)
    assert set(topics) <= {"water", "sky"}
    assert len(model.log) == len(DOCUMENTS)
    report = await evaluate_clusters(DATASET, LexicalEmbedder(), topics=topics)
    assert report.clusters[1] <= 4
    broken = ScriptedModel([ModelError("no")] * len(DOCUMENTS))
    assert await model_topics(DATASET, broken) == [""] * len(DOCUMENTS)
