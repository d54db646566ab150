from dataclasses import replace

import pytest

from sire_core import Document, Index, Passage
from sire_core.corpus.benchmarks import Question
from sire_core.evaluate.datasets import DataSet
from sire_core.evaluate.retrieval import evidence_match
from sire_core.recipes import iier
from sire_core.recipes.iier.training import known_questions
from sire_core.testing.doubles import HashEmbedder

DOCUMENTS = (
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide"),
    Document("vale", "Mira Vale was a painter in Port Amber.", "Mira Vale"),
    Document("copy", "Mira Vale was a painter in Port Amber.", "Mira Vale"),
    Document("bridge", "The bridge spans the river Elm.", "Elm Bridge"),
)


def ask(*gold):
    return Question(id="-".join(gold), question="Who directed The Long Tide?", answers=(), supporting=gold)


async def rate(*questions, **settings):
    recipe = iier(use_sim=False, similar_seeds=0, **settings)
    with Index(recipe=recipe, embedder=HashEmbedder()) as index:
        await index.abuild(DOCUMENTS)
        return await evidence_match(index, DataSet("d", DOCUMENTS, questions))


async def test_the_share_of_gold_passages_on_chains_is_averaged_over_questions():
    assert await rate(ask("film", "vale")) == 100.0
    assert await rate(ask("film", "copy")) == 100.0  # copies are one passage
    assert await rate(ask("film", "bridge")) == 50.0
    assert await rate(ask("film", "bridge"), ask("bridge"), ask()) == pytest.approx(25.0)
    assert await rate(ask("film", "vale"), max_length=1) == 50.0


async def test_there_is_none_without_gold_or_without_chains():
    assert await rate(ask()) is None
    with Index(recipe="flat", embedder=HashEmbedder()) as index:
        await index.abuild(DOCUMENTS)
        assert await evidence_match(index, DataSet("d", DOCUMENTS, (ask("film"),))) is None


async def test_a_passage_that_the_data_set_names_is_the_evidence_not_its_page():
    page = Document(
        "vale",
        title="Mira Vale",
        chunks=(Passage("She kept bees on the roof.", title="Roof"), Passage("Mira Vale painted.", title="Mira Vale")),
    )
    documents = (DOCUMENTS[0], page)
    known = [replace(ask("vale"), metadata={"evidence": {"vale": [passage.text]}}) for passage in page.passages]
    with Index(recipe=iier(use_sim=False, use_struc=False, similar_seeds=0), embedder=HashEmbedder()) as index:
        await index.abuild(documents)
        rates = [
            await evidence_match(index, DataSet("d", documents, (question,))) for question in (*known, ask("vale"))
        ]
        snapshot = await index.asnapshot()
        trained = await known_questions(snapshot.view, known, snapshot.recipe.ranker)
    assert rates == [0.0, 100.0, 100.0]
    texts = [snapshot.view.pool.unit(question.evidence[0])[0].text for question in trained]
    assert texts == [passage.text for passage in page.passages]
