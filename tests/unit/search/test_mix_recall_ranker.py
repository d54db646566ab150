"""Mix recall of MSRAG: votes, switches."""

import json
import re
from itertools import pairwise

import pytest
from long_tide import FAMILY as CORPUS

from sire_core import Document, Index
from sire_core.errors import ConfigurationError
from sire_core.extraction.record import RecordedExtractor
from sire_core.models.sync import run_sync
from sire_core.recipes import msrag
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.indexes import indexed

QUESTION = "Who directed The Long Tide?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("msrag") / "i"
    indexed(CORPUS, path, recipe=msrag(), embedder=HashEmbedder()).close()
    return path


def opened(folder, model=None, **settings):
    return Index(folder, recipe=msrag(**settings), embedder=HashEmbedder(), language_model=model)


def order(index, k=24, **more):
    return [hit.doc_ids[0] for hit in index.search(QUESTION, k, **more)]


def test_neighbours_bring_passages_that_the_question_does_not_resemble(folder):
    alone = {"entities": 1, "relations": 0, "chunks": 0, "vote": "count"}
    with opened(folder, **alone, entity_hops=0) as index:
        assert order(index, 4)[0] == "film"
    with opened(folder, **alone, entity_hops=3, hop_decay=0.5) as index:
        assert set(order(index, 3)) >= {"film", "vale"}


def test_paths_list_the_votes(folder):
    with opened(folder) as index:
        hit = index.search(QUESTION, 1)[0]
    steps = [step.step for step in hit.path]
    assert "vote:entity" in steps
    assert "vote:chunk" in steps
    assert steps[-1] == "vector:chunk"
    assert any("'The Long Tide'" in step.note for step in hit.path)


def test_oracle_M1_votes(folder):
    """Everything that is recalled and read from a passage counts as one vote for it."""
    index = opened(folder, vote="count", hop_decay=1.0, link=False)
    hits = index.search(QUESTION, 24)
    votes = [sum(step.step.startswith("vote:") for step in hit.path) for hit in hits]
    assert [round(hit.score) for hit in hits] == votes == sorted(votes, reverse=True)
    assert {hit.doc_ids[0]: count for hit, count in zip(hits, votes, strict=True)}["anna"] == 1
    assert votes[0] > 2


def chain_index(tmp_path, **settings):
    """Ada - Bo - Cy - Di - Ed, a passage for each pair, and Xu - Yo apart."""
    names = ["Ada", "Bo", "Cy", "Di", "Ed"]
    pairs = [*pairwise(names), ("Xu", "Yo")]
    rows = [
        {"id": f"p{i}", "entities": list(ends), "triples": [[ends[0], "knows", ends[1]]]}
        for i, ends in enumerate(pairs, 1)
    ]
    file = tmp_path / "recorded.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fixed = {"entities": 1, "relations": 0, "chunks": 1, "vote": "count", "link": False, "rerank": "none"}
    index = Index(recipe=msrag(**fixed | settings), embedder=HashEmbedder(), extractor=RecordedExtractor(file))
    index.build([Document(f"p{i}", f"{head} knows {tail}.") for i, (head, tail) in enumerate(pairs, 1)])
    return index


def test_oracle_M6_pagerank_replaces_the_expansion_only(tmp_path):
    # By hand: PageRank from Ada falls along the path, so that the two best are Bo and Cy, and the relations Ada-Bo and
    # Bo-Cy. Votes at .5 for what was reached: p1 = Ada 1 + Bo .5 + Ada-Bo .5 + the passage itself 1; p2 = Bo, Cy, Bo-Cy;
    # p3 = Cy.
    index = chain_index(tmp_path, expand="ppr", fanout=2)
    found = {hit.doc_ids[0]: hit.score for hit in index.search("Ada", 5) if hit.score > 0}
    assert found == pytest.approx({"p1": 3.0, "p2": 1.5, "p3": 0.5}, abs=1e-3)
    without = chain_index(tmp_path, expand="ppr", fanout=2, chunks=0)
    assert without.search("Ada", 1)[0].score == pytest.approx(2.0, abs=1e-3)


def test_pagerank_does_not_walk_through_what_a_filter_forbids(folder):
    with opened(folder, expand="ppr", entities=1) as index:
        found = order(index, filter={"tenant": "b"})
        assert found == ["anna"] * len(found)


def test_what_the_question_names_is_recalled_though_nothing_else_is_similar(folder):
    alone = {"entities": 1, "relations": 0, "chunks": 0, "expand": "none", "vote": "count", "rerank": "none"}
    asked = "Did anybody see Port Amber or The Long Tide?"
    with opened(folder, **alone) as index:
        found = [hit.doc_ids[0] for hit in index.search(asked, 3)]
        assert {"port", "film", "vale"} == set(found)
        inside = [hit.doc_ids[0] for hit in index.search(asked, 24, filter={"tenant": "b"})]
        assert set(inside) == {"anna"}
    with opened(folder, **alone, link=False) as index:
        assert {"port", "film", "vale"} != {hit.doc_ids[0] for hit in index.search(asked, 3)}


def test_a_model_names_what_is_recalled(folder):
    model = ScriptedModel(lambda call: '{"entities": ["Port Amber", " "], "relations": []}')
    settings = {"entities": 1, "relations": 0, "chunks": 0, "expand": "none", "rerank": "none", "extraction": "llm"}
    with opened(folder, model, **settings) as index:
        assert set(order(index, 2)) <= {"port", "vale"}
        assert len(model.log) == 1
        assert "Who directed" not in model.log[0].instructions
    with opened(folder, None, **settings) as without:
        assert order(without, 1) == ["film"]  # the question's own vector decides


def test_a_model_that_answers_garbage_leaves_it_to_the_vectors_and_says_so(folder, caplog):
    model = ScriptedModel(lambda call: "no idea")
    with opened(folder, model, extraction="llm", rerank="none") as one, opened(folder, rerank="none") as other:
        assert order(one) == order(other)
        [hit] = one.search(QUESTION, 1)
    assert hit.path[-1].step == "question"
    assert "the model failed" in hit.path[-1].note
    assert "QuestionItems" in caplog.text


def test_what_the_question_names_is_worth_more_but_its_cosine_is_said_as_it_is(folder):
    with opened(folder, rerank="none") as index:
        view = index.view()
        for hit in index.search(QUESTION, 3):
            for step in hit.path:
                said = re.search(r"cosine (-?[\d.]+) with the question", step.note)
                if said and len(step.ids) == 1:
                    true = float(view.vectors(step.ids)[0] @ run_sync(view.embed_query(QUESTION)))
                    assert float(said[1]) == pytest.approx(true, abs=6e-4)


def test_names_that_are_alike_are_merged_when_asked():
    corpus = [
        Document("a", "Harbor Light Company was founded in Elmford. Harbor Light Company built ships."),
        Document("b", "Harbor Light Companys was sold to Mira Vale."),
    ]

    class Alike(HashEmbedder):
        async def embed(self, texts, kind="document"):
            return await super().embed([text.replace("Companys", "Company") for text in texts], kind)

    merged = {}
    for threshold in (None, 0.92):
        index = indexed(corpus, recipe=msrag(similar_names=threshold), embedder=Alike())
        entities = [unit for unit in index.view().units(range(index.view().size)) if unit.kind.value == "entity"]
        merged[threshold] = [unit.text for unit in entities if "Harbor" in unit.text]
    assert len(merged[None]) == 2
    assert len(merged[0.92]) == 1


def test_a_cross_encoder_that_is_not_there_is_named(folder, tmp_path):
    with (
        opened(folder, rerank="cross_encoder", cross_encoder=str(tmp_path / "none")) as index,
        pytest.raises(ConfigurationError, match=f"no model folder at {tmp_path}"),
    ):
        index.search(QUESTION)


def test_by_priority_passages_of_what_was_recalled_precede_those_that_pagerank_reached(tmp_path):
    index = chain_index(tmp_path, expand="ppr", fusion="priority", vote="similarity", chunks=0)
    assert [hit.doc_ids[0] for hit in index.search("Ed", 2)] == ["p4", "p3"]
    index.close()
