"""IIER: chains of evidence, their paths and sources."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from long_tide import CHAIN as CORPUS

from sire_core import Document, Index, Passage
from sire_core.extend import KnownSimilarities
from sire_core.filters import parse_filter
from sire_core.papers.iier.rank import EvidenceChains
from sire_core.recipes import flat, iier
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.recipes.sire.question import QueryFeatures
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.indexes import indexed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import Recipe


GRAPH = {"use_sim": False}  # the vectors of the tests' embedder say little
QUESTION = "Who was the mother of the director of The Long Tide?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("iier") / "i"
    indexed(CORPUS, path, recipe=iier(**GRAPH), embedder=HashEmbedder()).close()
    return path


def opened(folder, model=None, **settings):
    return Index(folder, recipe=iier(**GRAPH, **settings), embedder=HashEmbedder(), language_model=model)


def names(hits):
    return [hit.doc_ids[0] for hit in hits]


def chains_of(index, question=QUESTION, where=None, **settings):
    view = index.view()
    found = asyncio.run(EvidenceChains(**settings).chains(question, view, parse_filter(where)))
    names = dict(zip(view.ids.astype(str).tolist(), range(view.size), strict=True))
    return [[CORPUS[names[step.ids[0]]].id for step in chain] for chain in found]


def test_a_chain_leads_to_what_shares_no_word_with_the_question(folder):
    with opened(folder, similar_seeds=0, step_lift=0.5, decay=1.0) as index:
        assert names(index.search(QUESTION, 3)) == ["vale", "film", "anna"]
        assert chains_of(index, similar_seeds=0, max_length=3) == [["film", "vale", "anna"]]


def test_a_path_has_one_step_per_passage_of_the_chain(folder):
    with opened(folder, similar_seeds=0) as index:
        hits = {hit.doc_ids[0]: hit for hit in index.search(QUESTION, 40)}
        shown = index.search(QUESTION, 40, filter={"tenant": "a"})
    anna = hits["anna"].path
    assert names(shown)[0] == "film"
    assert {name for hit in shown for step in hit.path for name in step.ids} == {hit.unit.id for hit in shown}
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


def test_a_model_finds_the_keywords_of_a_question(folder):
    model = ScriptedModel([json.dumps({"keywords": ["Anna  Vale", " ", "Bridge 7"]})])
    with opened(folder, model) as index:
        hits = index.search("Who painted?", 40)
    seeds = [hit.path[0].note for hit in hits if hit.path[0].step == "seed" and len(hit.path) == 1]
    assert any(note.startswith("holds 'Anna Vale'") for note in seeds)
    assert any(note.startswith("holds 'Bridge 7'") for note in seeds)
    assert len(model.log) == 1


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
    with indexed(CORPUS, recipe="flat", embedder=HashEmbedder()) as index:
        view = index.view()
        chains = asyncio.run(EvidenceChains().chains(QUESTION, view))
    assert chains
    assert all(len(chain) == 1 for chain in chains)


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
        with indexed(documents, recipe=iier(use_struc=structural, **settings), embedder=HashEmbedder()) as index:
            assert index.stats()["interactions"]["structural"] == 3 * structural
            found[structural] = index.search("Where was the maker of The Glass Orchard born?", 5)
    walked = [[hit.unit.text for hit in hits if any(s.step == "chain" for s in hit.path)] for hits in found.values()]
    assert walked == [[report[1]], []]
    (hit,) = (hit for hit in found[True] if hit.unit.text == report[1])
    assert any("beside it in the document" in step.note for step in hit.path)


SPOUSE = "When was the spouse of Orla Venn born?"
PAGES = (
    Document("orla", "Orla Venn was a painter of harbours. In 1931 she married Tobin Marsh.", title="Orla Venn"),
    Document("tobin", "Tobin Marsh (3 May 1899 to 1970) built organs in Leith.", title="Tobin Marsh"),
    Document("ida", "Ida Krell was a painter of horses, born in 1890, whose spouse wrote plays.", title="Ida Krell"),
    Document("boats", "Harbours were painted by many; a painter was seldom born beside one.", title="Harbour art"),
    *(Document(f"o{i}", f"Mill number {i} grinds barley beside the river Aln.", title=f"Mill {i}") for i in range(12)),
)
UNTITLED = tuple(replace(page, title="") for page in PAGES)


def ranked(documents: tuple[Document, ...], question: str = SPOUSE, k: int = 2, **settings: object) -> list[str]:
    """Ids of the first documents."""
    from sire_core.recipes import sire

    with indexed(documents, recipe=sire(**settings)) as index:
        return [hit.doc_ids[0] for hit in index.search(question, k)]


@pytest.mark.parametrize("documents", [PAGES, UNTITLED], ids=["titled", "untitled"])
def test_a_passage_is_reached_over_the_sentence_that_names_it(documents: tuple[Document, ...]) -> None:
    assert ranked(documents) == ["orla", "tobin"]
    assert ranked(documents, rounds=0) != ["orla", "tobin"], "the second passage shares no word with the question"


def test_the_sentence_is_found_behind_a_first_line_that_is_one() -> None:
    """A question above its answer: the line is what the passage is called, and no sentence of it."""
    from sire_core.recipes import sire

    asked: list[str] = []

    class Recording(HashEmbedder):
        async def embed(self, texts: Sequence[str], kind: str = "document") -> NDArray[np.float32]:
            asked.extend(texts if kind == "query" else ())
            return await super().embed(texts, kind)

    line = "Which ship did the Baltic Line lose in 1911?"
    told = "Her captain on that last voyage was Olaf Brandt of Riga."
    pages = [
        Document("lost", f"{line}\nThe Northern Wren of the Baltic Line was lost off Gotland in a storm. {told}"),
        Document("olaf", "Olaf Brandt sailed for thirty years. His mother was Marta Krumin, a weaver.", "Olaf Brandt"),
    ]
    question = "Who was the mother of the captain of the Northern Wren on her last voyage?"
    with indexed(pages, recipe=sire(read_steps=9), embedder=Recording()) as index:
        paths = {hit.doc_ids[0]: hit.path for hit in index.search(question, 2)}
    [step] = [step for step in paths["olaf"] if step.step == "entity"]
    assert (step.note, step.sentence) == (f"{line!r} names Olaf Brandt: {told}", told)
    assert f"{question} {told}" in asked


def test_only_allowed_passages_are_walked() -> None:
    documents = tuple(replace(page, metadata={"open": page.id != "orla"}) for page in PAGES)
    with indexed(documents, recipe="sire") as index:
        hits = index.search(SPOUSE, 20, filter={"open": True})
        assert {hit.doc_ids[0] for hit in hits} == {page.id for page in PAGES} - {"orla"}
        hidden = {unit for hit in index.search(SPOUSE, 20) if hit.doc_ids == ("orla",) for unit in [hit.unit.id]}
        assert not hidden & {found for hit in hits for step in hit.path for found in step.ids}
        closed = index.search(SPOUSE, 20, filter={"open": False})
        assert [hit.doc_ids for hit in closed] == [("orla",)]


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        (
            "Wann wurde die Frau von Anton Bielek geboren?",
            ("Anton Bielek war ein Maler. Er heiratete Jana Strohm.", "Jana Strohm (1901 in Graz) sang im Chor."),
        ),
        (
            "\u5c71\u7530\u592a\u90ce\u306e\u59bb\u306f\u3044\u3064\u751f\u307e\u308c\u305f\u304b",
            (
                "\u5c71\u7530\u592a\u90ce\u306f\u753b\u5bb6\u3067\u3042\u308b\u3002\u9234\u6728\u82b1\u5b50\u3068\u7d50\u5a5a\u3057\u305f\u3002",
                "\u9234\u6728\u82b1\u5b50\u306f1901\u5e74\u306b\u4eac\u90fd\u3067\u751f\u307e\u308c\u305f\u3002",
            ),
        ),
    ],
    ids=["German", "Japanese"],
)
def test_other_languages(question: str, pages: tuple[str, str]) -> None:
    documents = (Document("first", pages[0]), Document("second", pages[1]), *PAGES[4:])
    assert set(ranked(documents, question)) == {"first", "second"}


def test_everyday_phrases_do_not_lead() -> None:
    pages = (
        Document("default", "The Default is a 1994 novel by Ada Quill.", title="Default"),
        Document("threads", "The thread pool has four threads by default; UV_THREADPOOL_SIZE sets it.", title="Pool"),
        *PAGES[4:],
    )
    assert ranked(pages, "how many threads does the pool have by default?", k=1) == ["threads"]


def test_a_heading_that_asks_the_question_comes_first() -> None:
    filler = "The volume is kept, the volume is copied, and restoring waits until a volume is free."
    pages = [
        Document("told", f"Backups of volumes\n\n{filler}"),
        Document("asked", "Restoring a volume\n\nOpen the console, choose the snapshot and press the second button."),
        *(Document(f"o{i}", f"Release notes {i}\n\nMinor repairs of part {i} of the console.") for i in range(12)),
    ]
    assert ranked(tuple(pages), "How do I go about restoring a volume?", k=1) == ["asked"]


def test_what_the_question_names_itself_is_not_explained_by_another_passage() -> None:
    with indexed(PAGES, recipe="sire") as index:
        hits = {hit.doc_ids[0]: hit.path for hit in index.search("When did Orla Venn and Tobin Marsh marry?", 2)}
        assert [step.step for step in hits["tobin"]] == ["question", "vector:chunk"]
        assert hits["tobin"][0].note == "the question names Tobin Marsh"
        unnamed = {hit.doc_ids[0]: hit.path for hit in index.search(SPOUSE, 2)}
        assert [step.step for step in unnamed["tobin"]][:2] == ["question", "entity"], "led to by what names him"


def test_paths_begin_where_the_question_leads_and_never_go_in_circles() -> None:
    pages = [
        Document(
            "incident",
            "The archive stopped at noon on that day. Root cause: Olu Adeyemi blocked UDP port 123.",
            "Incident 7",
        ),
        Document("owners", "Deputy of Olu Adeyemi is Orla Venn. Olu Adeyemi owns the router.", "Who owns what"),
        Document("runbook", "Check that vault02 agrees with ntp.example.lan.", "Runbook"),
        Document("hosts", "vault02 is a backup server; its time comes from ntp.example.lan.", "Hosts"),
    ]
    with indexed(pages, recipe="sire") as index:
        asked = index.search("Who is the deputy of the person who blocked UDP port 123?", 2)
        paths = {hit.doc_ids[0]: hit.path for hit in asked}
        assert not [step for step in paths["incident"] if step.sentence]
        [step] = [step for step in paths["owners"] if step.sentence]
        assert step.note == f"'Incident 7' names Olu Adeyemi: {step.sentence}"
        assert step.sentence == "Root cause: Olu Adeyemi blocked UDP port 123."
        for hit in index.search("vault02", 2):  # both have the word by themselves, and name what the other one names
            assert not [step for step in hit.path if step.sentence]
            assert "vault02" in hit.path[-1].note


def test_a_step_to_a_passage_that_names_what_another_is_about_quotes_where_it_does() -> None:
    pages = [
        Document("orr", "The lock of Orr was mended by divers in May. It has two gates.", title="Orr Lock"),
        Document("trip", "We left at nine. Boats wait at Orr Lock. Lunch is in Lindle.", title="A trip"),
        *(Document(f"o{n}", f"Mill {n} grinds oats and rye.", title=f"Mill {n}") for n in range(30)),
    ]
    with indexed(pages, recipe="sire") as index:
        hits = {hit.doc_ids[0]: hit for hit in index.search("What was mended by divers in May?", 3)}
    assert hits["trip"].path[0].note == "names Orr Lock, the title of another passage: Boats wait at Orr Lock."


def test_a_word_that_is_shared_as_another_word_is_shown_as_that() -> None:
    with indexed([Document("a", "Every authorization expires.", title="Access"), *PAGES], recipe="sire") as index:
        notes = [hit.path[-1].note for hit in index.search("Who is the author?", 5) if hit.doc_ids == ("a",)]
    assert notes[0].startswith("shares the word author (authorization); ")


def test_a_step_from_a_passage_that_is_called_like_the_name_says_so() -> None:
    with Index(recipe="sire") as index:
        index.build([*PAGES, Document("bees", "Bees were kept in Kirkwall by Orla Venn.", title="Orla Venn")])
        hits = {hit.doc_ids[0]: hit for hit in index.search("Which painter of harbours married in 1931?", 5)}
        said = index.explain("Which painter of harbours married in 1931?", 1)
    step = hits["bees"].path[0]
    assert step.note == f"Orla Venn is the title of another passage: {step.sentence}"
    assert "\u2514\u2500 shares the words painter, harbours, married, 1931; cosine" in said


def test_passages_of_one_source_know_each_other() -> None:
    """By a document's own passages, or by what a splitter says."""
    texts = [f"Part {i} of the lamp manual." for i in range(4)]
    cut = [
        Document(f"c{i}", text, metadata={"source": "lamp.md", "start_index": 100 * i}) for i, text in enumerate(texts)
    ]
    with Index(recipe="sire", chunker=None) as index:
        index.build([cut[2], Document("x", "A mill.", metadata={"source": "mill.md"}), cut[0], cut[3], cut[1]])
        view = index.view()
        found = EvidenceIndex.of(view)
        names = [unit.text for unit in view.units(found.chunks)]
    [source] = np.flatnonzero(found.source_sizes > 1)
    assert sorted(names[passage] for passage in np.flatnonzero(found.source == source)) == texts


@pytest.mark.parametrize("filtered", [False, True])
def test_passages_of_one_title_lead_to_the_nearest_of_them_alone(filtered: bool) -> None:
    """A book in many passages has one title: all pairs of them would be steps, and a search take as long."""
    texts = [f"Chapter {n} tells of whale number {n} and of the mast." for n in range(150)]
    with Index(embedder=HashEmbedder()) as index:
        index.build([Document(f"d{n}", text, "Moby Dick") for n, text in enumerate(texts)])
        view = index.view()
        found = EvidenceIndex.of(view)
        cosines = np.linspace(0.0, 1.0, len(found.chunks)).astype(np.float32)
        allowed = np.arange(len(found.chunks)) % 2 == 0 if filtered else None
        evidence = QueryFeatures("Which whale is told of?", found, KnownSimilarities(cosines), view.matrix, allowed, 10)
        first = np.array([0, 4, 148])
        steps = evidence.hops(first, np.zeros(3), 0.0, 40)
        best = np.flatnonzero(np.ones(150) if allowed is None else allowed)[-40:]
        for passage in first.tolist():
            led = np.unique(steps.targets[steps.sources == passage])
            assert led.tolist() == [other for other in best.tolist() if other != passage]


TURKISH = (
    Document("returns", "Ürünler teslimattan sonraki on dört gün içinde iade edilebilir.", title="İade koşulları"),
    Document("mill", "Değirmeni İsmail Hakkı Çobanoğlu yaptırdı. Buğday öğütülürdü.", title="Kızılırmak Değirmeni"),
    Document("miller", "İsmail Hakkı Çobanoğlu Gümüşdere'de doğdu.", title="İsmail Hakkı Çobanoğlu"),
    Document("village", "Gümüşdere, Kayseri'ye bağlı bir köydür.", title="Gümüşdere"),
    Document("light", "Le dernier gardien du phare fut Yves Le Goasguen.", title="Le Phare de Kermeur"),
    Document("keeper", "Yves Le Goasguen est né à Plouguerrec en 1929.", title="Yves Le Goasguen"),
    Document("town", "Plouguerrec est une commune du Finistère.", title="Plouguerrec"),
    Document("fees", "Rückerstattungsanträge müssen bis Ende März vorliegen.", title="Krankenversicherungsbeitrag"),
    Document("bridge", "Der Entwurf der Brücke über das Tal kam von Konrad Vellmer.", title="Kettelbachbrücke"),
    Document("engineer", "Konrad Vellmer wuchs als Sohn des Müllers in Hohenzell auf.", title="Konrad Vellmer"),
    Document("place", "Der Ort ist auf der Höhe. Auf der Weide blüht der Klee.", title="Hohenzell"),
)
"""Three pages that say who did it, who that was and where, in two languages; and what is asked for below."""
TAGGED = tuple(replace(page, metadata={"turkish": place < 4}) for place, page in enumerate(TURKISH))


def order(question: str, recipe: str | Recipe = "sire", **where: bool) -> list[str]:
    """Ids of all documents that pass the filter, best first."""
    with indexed(TAGGED, recipe=recipe) as index:
        return [hit.doc_ids[0] for hit in index.search(question, len(TAGGED), filter=where or None)]


@pytest.mark.parametrize("question", ["ürün iadesi teslimatı", "Antrag Rückerstattung", "zzqvv", "What is it?"])
def test_a_question_without_a_word_of_the_passages_ranks_as_hybrid_search(question: str) -> None:
    assert order(question) == order(question, flat(ranker="hybrid"))


def test_words_that_a_filter_hides_are_words_that_the_passages_lack() -> None:
    question = "iadesi gardien phare"
    assert order(question, turkish=True) == order(question, flat(ranker="hybrid"), turkish=True)


def test_function_words_of_another_language_do_not_decide() -> None:
    question = "Bis wann muss der Antrag auf Rückerstattung gestellt werden?"
    assert order(question).index("fees") <= order(question, flat(ranker="hybrid")).index("fees")


def test_no_name_leads_on_from_a_passage_that_the_question_does_not_support() -> None:
    with indexed(TURKISH, recipe="sire") as index:
        steps = [step.step for hit in index.search("ürün iadesi teslimatı", 3) for step in hit.path]
    assert "entity" not in steps


def test_steps_lead_on_from_a_name_among_words_that_the_passages_lack() -> None:
    assert set(order("Hvor ble Konrad Vellmer født?")[:2]) == {"engineer", "place"}
