"""Chains as users see them: seeds, paths, orders, context, filters, models."""

import asyncio
import json

import pytest

from sire_core import Document, Index
from sire_core.errors import RefusalError
from sire_core.filters import parse_filter
from sire_core.recipes import iier
from sire_core.recipes.iier.rank import EvidenceChains
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from sire_core.types import Passage

CORPUS = [
    Document("film", "The Long Tide is a film directed by Mira Vale.", "The Long Tide (film)", {"tenant": "a"}),
    Document("vale", "Mira Vale was a director, the daughter of Anna Vale.", "Mira Vale", {"tenant": "b"}),
    Document("anna", "Anna Vale was a painter in Port Amber.", "Anna Vale", {"tenant": "a"}),
    *(
        Document(f"o{i}", f"Bridge number {i} spans the river Elm near mill {i}.", f"Bridge {i}", {"tenant": "a"})
        for i in range(30)
    ),
]
GRAPH = {"use_sim": False}  # the vectors of the tests' embedder say little
QUESTION = "Who was the mother of the director of The Long Tide?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("iier") / "i"
    with Index(path, recipe=iier(**GRAPH), embedder=HashEmbedder()) as index:
        index.build(CORPUS)
    return path


def opened(folder, model=None, **settings):
    return Index(folder, recipe=iier(**GRAPH, **settings), embedder=HashEmbedder(), language_model=model)


def names(hits):
    return [hit.doc_ids[0] for hit in hits]


def chains_of(index, question=QUESTION, where=None, **settings):
    view = index.view()
    found = asyncio.run(EvidenceChains(**settings).chains(question, view, parse_filter(where)))
    names = dict(zip(view.ids.astype(str).tolist(), range(view.size), strict=True))
    return [[CORPUS[names[chunk]].id for chunk in chain.chunk_ids] for chain in found]


def test_a_chain_leads_to_what_shares_no_word_with_the_question(folder):
    with opened(folder, similar_seeds=0, step_lift=0.5, decay=1.0) as index:
        assert names(index.search(QUESTION, 3)) == ["vale", "film", "anna"]
        assert chains_of(index, similar_seeds=0, max_length=3) == [["film", "vale", "anna"]]


def test_a_path_has_one_step_per_passage_of_the_chain(folder):
    with opened(folder, similar_seeds=0) as index:
        hits = {hit.doc_ids[0]: hit for hit in index.search(QUESTION, 40)}
    anna = hits["anna"].path
    assert [step.step for step in anna] == ["seed", "chain", "chain"]
    assert [step.ids for step in anna] == [(hits[name].unit.id,) for name in ("film", "vale", "anna")]
    assert anna[0].note.startswith("holds 'The Long Tide' of the question, cosine ")
    assert "shares 'mira vale'" in anna[1].note
    outside = [hit for hit in hits.values() if hit.path[0].step == "vector:chunk"]
    assert outside


def test_orders_of_the_paper(folder):
    question = "Did The Long Tide or Bridge 7 come first?"
    with opened(folder) as index:
        chains = chains_of(index, question, similar_seeds=0, max_length=3)
    assert [chain[0] for chain in chains] in (["film", "o7"], ["o7", "film"])
    flat = [name for chain in chains for name in chain]
    expected = {
        "chain": list(dict.fromkeys(flat)),
        "iterative": list(dict.fromkeys(name for step in zip(*chains, strict=True) for name in step)),
    }
    for order, wanted in expected.items():
        with opened(folder, order=order, similar_seeds=0, max_length=3) as index:
            everything = names(index.search(question, 33))
            assert everything[: len(wanted)] == wanted
            assert sorted(everything) == sorted(document.id for document in CORPUS)
    shuffled = []
    for seed in range(4):
        with opened(folder, order="shuffle", similar_seeds=0, max_length=3, seed=seed) as index:
            shuffled.append(tuple(names(index.search(question, len(set(flat))))))
    assert {frozenset(found) for found in shuffled} == {frozenset(flat)}
    assert len(set(shuffled)) > 1


def test_filters_restrict_seeds_and_walk(folder):
    with opened(folder) as index:
        hits = index.search(QUESTION, 40, filter={"tenant": "a"})
        assert chains_of(index, where={"tenant": "b"}) == [["vale"]]
        assert "vale" not in names(hits)
        assert not any("Mira Vale" in repr(hit.path) for hit in hits)


def test_without_any_keyword_similarity_chooses_the_seeds(folder):
    with opened(folder) as index:
        chains = chains_of(index, "what is near it", fallback_seeds=4, max_length=2)
        (first, *_) = index.search("what is near it", 1)
    assert len(chains) == 4
    assert all(chain[0].startswith("o") for chain in chains)
    assert first.path[0].note.startswith("among the passages most similar to the question")


def test_a_model_finds_the_keywords_of_a_question(folder):
    model = ScriptedModel([json.dumps({"keywords": ["Anna  Vale", " ", "Bridge 7"]})])
    with opened(folder, model) as index:
        hits = index.search("Who painted?", 40)
    seeds = [hit.path[0].note for hit in hits if hit.path[0].step == "seed" and len(hit.path) == 1]
    assert any(note.startswith("holds 'Anna Vale'") for note in seeds)
    assert any(note.startswith("holds 'Bridge 7'") for note in seeds)
    assert len(model.log) == 1


def test_rules_find_them_when_the_model_declines(folder):
    with opened(folder) as index:
        expected = names(index.search(QUESTION, 5))
    with opened(folder, ScriptedModel([RefusalError("no")])) as index:
        assert names(index.search(QUESTION, 5)) == expected
    with opened(folder, ScriptedModel([]), keywords="rules") as index:
        assert names(index.search(QUESTION, 5)) == expected


def test_a_model_scores_the_steps(folder):
    def choose(call):
        return str(call.fields["passages"][-1]["number"])

    model = ScriptedModel(choose)
    settings = {"scorer": "llm", "keywords": "rules", "similar_seeds": 0, "max_length": 2}
    with opened(folder, model, **settings) as index:
        hits = index.search("Anna Vale or Bridge 7?", 40)
    assert len(model.log) == 2  # one call per chain and step
    assert all(len(call.fields["chain"]) == 1 for call in model.log)
    taken = [hit for hit in hits if len(hit.path) == 2]
    assert len(taken) == 2
    with opened(folder, None, **settings) as index:
        heuristic = index.search("Anna Vale or Bridge 7?", 40)
    assert {hit.unit.id for hit in taken} != {hit.unit.id for hit in heuristic if len(hit.path) == 2}


def test_a_pool_without_the_graph_is_ranked_by_its_seeds_and_similarity():
    with Index(recipe="flat", embedder=HashEmbedder()) as index:
        index.build(CORPUS)
        view = index.view()
        chains = asyncio.run(EvidenceChains().chains(QUESTION, view))
    assert chains
    assert all(len(chain.chunk_ids) == 1 for chain in chains)


def test_contexts_as_published_are_chains_alone_and_told_apart(folder):
    from sire_core.reason import collect, reason

    alone = {"keywords": "rules", "fill": False}
    with opened(folder, similar_seeds=0, order="chain", max_length=1, **alone) as index:
        assert names(index.search(QUESTION, 20)) == ["film"]  # length 1 is the seeds, and nothing beside them
    found = {}
    for order in ("chain", "iterative", "shuffle"):
        seen = []
        model = ScriptedModel(lambda call, seen=seen: seen.append(call.fields.get("background")) or "Anna Vale")
        with opened(folder, model, order=order, max_length=2, **alone) as index:
            found[order] = names(index.search(QUESTION, 20))
            answer = asyncio.run(collect(reason("single", index, QUESTION, k=20))).answer
            background = seen[-1]
            assert [hit.doc_ids[0] for hit in answer.hits] == found[order]
        if order == "chain":
            # Two seeds, two passages each: a passage of both chains stands in both.
            assert found[order] == ["film", "vale"]
            assert background == ["chain of evidence 1: passages 1, 2", "chain of evidence 2: passages 2, 1"]
        else:
            assert background is None
    assert len(set(map(frozenset, found.values()))) == 1
    assert 2 <= len(found["chain"]) <= 4
    with opened(folder, similar_seeds=0, **alone) as index:
        assert len(index.search(QUESTION, 20, filter="tenant=a")) < 20


@pytest.mark.parametrize("preset", ["ours", "published"])
def test_structural_links_lead_to_the_passage_beside_it_in_a_document_of_several(preset):
    report = ("The Glass Orchard opened in Port Ansel.", "Its maker was born at sea.", "Nobody liked the ending.")
    town = ("Port Ansel has a harbour.", "Boats leave at noon.")
    documents = [
        Document("report", title="Report", chunks=tuple(map(Passage, report))),
        Document("town", title="Town", chunks=tuple(map(Passage, town))),
    ]
    settings = {"preset": preset, "max_length": 2, "use_sim": False, "use_kw": False, "scorer": "heuristic"}
    found = {}
    for structural in (True, False):
        with Index(recipe=iier(use_struc=structural, **settings), embedder=HashEmbedder()) as index:
            index.build(documents)
            assert index.stats()["interactions"]["structural"] == 3 * structural
            found[structural] = index.search("Where was the maker of The Glass Orchard born?", 5)
    walked = [[hit.unit.text for hit in hits if any(s.step == "chain" for s in hit.path)] for hits in found.values()]
    assert walked == [[report[1]], []]
    (hit,) = (hit for hit in found[True] if hit.unit.text == report[1])
    assert any("beside it in the document" in step.note for step in hit.path)
