"""Trees of summaries: how they grow, follow changes and are written."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sire_core import Document, Index, Passage
from sire_core.changes.summarizers import ExtractiveSummarizer, ModelSummarizer, select_sentences
from sire_core.extend import count_tokens, estimate_tokens, summarize_elements
from sire_core.recipes import raptor, sirerag
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder, PlainExtractor, ScriptedModel
from sire_core.types import Unit, UnitKind
from support.indexes import indexed

WORDS = [
    "amber",
    "basil",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "inlet",
    "jetty",
    "kelp",
    "lagoon",
    "marsh",
    "north",
    "oasis",
]


def documents(n):
    return [Document(f"d{i}", f"The {WORDS[i]} stands by the {WORDS[i - 1]} in town {i}.") for i in range(n)]


def grown(tmp_path, n, **settings):
    indexed(documents(n), tmp_path / "index", recipe=raptor(**settings), embedder=HashEmbedder()).close()
    found = read_contents(tmp_path / "index")
    levels = {}
    for unit in found.units.values():
        levels.setdefault(unit.level, []).append(unit)
    return found, levels


def test_oracle_R2_eleven_nodes_make_one_summary_and_the_tree_stops(tmp_path):
    found, levels = grown(tmp_path, 11)
    assert {level: len(units) for level, units in levels.items()} == {0: 11, 1: 1}
    (summary,) = levels[1]
    assert set(summary.chunk_ids) == set(found.chunks)
    assert {(edge.kind, edge.source, edge.target) for edge in found.edges} == {
        ("child", summary.id, chunk) for chunk in found.chunks
    }


def test_oracle_R2_without_a_stop_rule_one_node_is_summarised_again(tmp_path):
    found, levels = grown(tmp_path, 11, stop_rule="none")
    assert {level: len(units) for level, units in levels.items()} == {0: 11, 1: 1, 2: 1, 3: 1}
    above = {edge.target: edge.source for edge in found.edges if edge.target not in found.chunks}
    assert above == {levels[1][0].id: levels[2][0].id, levels[2][0].id: levels[3][0].id}


def test_oracle_R2_the_official_rule_stops_at_eleven_nodes(tmp_path):
    _, levels = grown(tmp_path, 11, stop_rule="official")
    assert list(levels) == [0]


@pytest.mark.parametrize(("rule", "summaries"), [("default", 0), ("none", 3), ("official", 0)])
def test_oracle_R2_a_single_passage(tmp_path, rule, summaries):
    found, _ = grown(tmp_path, 1, stop_rule=rule)
    assert len(found.units) == 1 + summaries


OVERVIEW = "Gardens are usually kept for food or pleasure, and most of them are shared by various people."


def with_overviews(tmp_path, extractor=None, **settings):
    given = [*documents(11), Document("d90", OVERVIEW), Document("d91", OVERVIEW.replace("Gardens", "Parks"))]
    recipe = raptor(hierarchy=True, **settings)
    indexed(given, tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=extractor or PlainExtractor()).close()
    found = read_contents(tmp_path)
    levels = {unit.id: unit.level for unit in found.units.values()}
    documents_of = {chunk.id: chunk.doc_id for chunk in found.chunks.values()}
    return {
        level: {documents_of[e.target] for e in found.edges if levels[e.source] == level and e.target in documents_of}
        for level in (1, 2)
    }


def test_a_model_decides_what_is_an_overview(tmp_path):
    class Judged(PlainExtractor):
        def _record(self, chunk):
            level = "high" if chunk.doc_id in ("d0", "d1") else "low"
            return replace(super()._record(chunk), abstractiveness=level)

    below = with_overviews(tmp_path, Judged(), max_cluster_tokens=10000)
    assert below[2] == {"d0", "d1"}
    assert {"d90", "d91"} <= below[1]


def test_what_passages_say_of_themselves_comes_first(tmp_path):
    given = [
        Document("a", chunks=(Passage("Ann met Bob in 1901.", metadata={"abstractiveness": "high"}),)),
        *(
            Document(f"b{i}", chunks=(Passage(f"{OVERVIEW} {i}", metadata={"abstractiveness": "low"}),))
            for i in range(3)
        ),
    ]
    recipe = sirerag(hierarchy=True, cross="replace")
    indexed(given, tmp_path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor()).close()
    found = read_contents(tmp_path)
    levels = {unit.id: unit.level for unit in found.units.values()}
    above = {found.chunks[e.target].doc_id: levels[e.source] for e in found.edges if e.target in found.chunks}
    assert above == {"a": 2, "b0": 1, "b1": 1, "b2": 1}


PLACES = ["harbor", "mill", "school", "orchard", "station", "quarry", "library", "bakery"]
LIMIT = 90


def document(number):
    place = PLACES[number % 8]
    return Document(f"d{number}", f"The {place} of town {number} has a {place} keeper named Keeper{number}.")


def index_at(path, recipe=None, **options):
    recipe = recipe or raptor(max_cluster_tokens=LIMIT)
    return Index(path, recipe=recipe, embedder=HashEmbedder(), extractor=PlainExtractor(), **options)


def check_tree(path):
    found = read_contents(path)
    below = {}
    for edge in found.edges:
        assert {edge.source, edge.target} <= set(found.units)
        below.setdefault(edge.source, []).append(found.units[edge.target])
    levels = {}
    for unit in found.units.values():
        levels.setdefault(unit.level, []).append(unit)
        if unit.level:
            members = below[unit.id]
            assert {chunk for member in members for chunk in member.chunk_ids} == set(unit.chunk_ids)
            assert len(members) == 1 or sum(count_tokens(member.text) for member in members) <= LIMIT
    for number in range(1, len(levels)):
        covered = {member.id for unit in levels[number] for member in below[unit.id]}
        assert covered == {unit.id for unit in levels[number - 1]}
    return found


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sets(st.integers(0, 59), min_size=1, max_size=12), min_size=1, max_size=4))
def test_any_history_leaves_a_whole_tree(steps):
    with tempfile.TemporaryDirectory() as place, index_at(Path(place, "a")) as index:
        there = set(range(40))
        index.build([document(number) for number in sorted(there)])
        for step in steps:
            index.delete([f"d{number}" for number in sorted(step & there)])
            index.add([document(number) for number in sorted(step - there)])
            there ^= step
            found = check_tree(Path(place, "a"))
            assert {chunk.doc_id for chunk in found.chunks.values()} == {f"d{number}" for number in there}


def test_a_small_change_leaves_most_summaries_alone_and_asks_for_the_others_only(tmp_path):
    asked = ScriptedModel()
    recipe = raptor(max_cluster_tokens=LIMIT, depth=1)
    with Index(tmp_path / "a", recipe=recipe, embedder=HashEmbedder(), language_model=asked) as index:
        built = index.build([document(number) for number in range(80)]).calls
        before = read_contents(tmp_path / "a").units
        added = index.add([document(80)]).calls
        after = read_contents(tmp_path / "a").units
        new = [unit for unit in after.values() if unit.id not in before and unit.level]
        assert added <= len(new) < built / 4
        chunk = next(unit.id for unit in after.values() if "Keeper80" in unit.text and not unit.level)
        assert all(chunk in unit.chunk_ids or len(unit.chunk_ids) < 80 for unit in new)
        index.delete(["d80"])
        gone = read_contents(tmp_path / "a").units
        assert not any("Keeper80" in unit.text for unit in gone.values())
        assert index.add([]).calls == 0


def test_drift_is_told_and_a_tree_that_drifted_is_made_anew(tmp_path):
    with index_at(tmp_path / "a", sirerag()) as index:
        index.build([document(number) for number in range(60)])
        assert index.stats()["drift_sim"] == index.stats()["drift_rel"] == 0
        index.add([document(60)])
        assert 0 < index.stats()["drift_sim"] < 1
        index.add([document(number) for number in range(61, 120)])
        assert index.stats()["drift_sim"] == 0


@pytest.mark.parametrize("recipe", [raptor(), sirerag(), sirerag(cross="add"), sirerag(variant="E")])
def test_a_copy_of_a_passage_is_cited_by_the_summaries_above_it(tmp_path, recipe):
    with index_at(tmp_path / "a", recipe) as index:
        index.build([document(number) for number in range(30)])
        index.add([Document("copy", document(4).text)])
        found = read_contents(tmp_path / "a")
        copy = next(chunk.id for chunk in found.chunks.values() if chunk.doc_id == "copy")
        first = next(chunk.id for chunk in found.chunks.values() if chunk.doc_id == "d4")
        above = [unit for unit in found.units.values() if unit.level and first in unit.chunk_ids]
        assert above
        assert all(copy in unit.chunk_ids for unit in above)
        index.delete(["d4"])
        found = read_contents(tmp_path / "a")
        assert not any(first in unit.chunk_ids for unit in found.units.values())
        assert any(copy in unit.chunk_ids for unit in found.units.values() if unit.kind is not UnitKind.CHUNK)


def unit(name: str, text: str, title: str = "") -> Unit:
    return Unit(name, UnitKind.CHUNK, text, (f"chunk-{name}",), title=title)


async def test_over_the_context_limit_parts_are_summarised_first() -> None:
    model = ScriptedModel(lambda call: "Short." if len(call.data) > 60 else "Final.")
    summarizer = ModelSummarizer(model, max_tokens=20, context_tokens=60)
    cluster = [unit(str(n), f"Sentence {n} has eight words in it really. " * 3) for n in range(6)]
    found = await summarizer.summarize([cluster])
    assert found[0][0] == "Final."
    assert len(model.log) > 3
    assert all(estimate_tokens(call.data) <= 60 for call in model.log)
    everything = " ".join(call.data for call in model.log)
    assert all(f"Sentence {n} " in everything for n in range(6))


def rows(generator, n):
    """Sparse rows of length one; some are empty."""
    from scipy.sparse import csr_matrix

    dense = generator.random((n, 30)) * (generator.random((n, 30)) < 0.2)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return csr_matrix((dense / np.where(norms > 0, norms, 1)).astype(np.float32))


def by_all_pairs(vectors, lengths, budget, diversity):
    """Maximal marginal relevance as it is defined: over the similarities of all pairs."""
    similarity = np.asarray((vectors @ vectors.T).todense())
    relevance = similarity.mean(axis=1)
    relevance = relevance / max(float(relevance.max()), 1e-9)
    chosen = []
    while fitting := [i for i in range(len(lengths)) if i not in chosen and (not chosen or lengths[i] <= budget)]:
        redundancy = similarity[:, chosen].max(axis=1, initial=0)
        values = np.round((1 - diversity) * relevance - diversity * redundancy, 5)
        chosen.append(max(fitting, key=lambda i: (values[i], -i)))
        budget -= int(lengths[chosen[-1]])
    return chosen


@pytest.mark.parametrize("diversity", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_sentences_are_chosen_by_marginal_relevance(n, diversity):
    for seed in range(8):
        generator = np.random.default_rng(seed)
        vectors, lengths = rows(generator, n), generator.integers(3, 40, n)
        assert select_sentences(vectors, lengths, 200, diversity) == by_all_pairs(vectors, lengths, 200, diversity)


def test_a_long_document_takes_memory_as_it_grows():
    generator = np.random.default_rng(0)
    words = generator.integers(0, 3000, (3000, 12)).tolist()
    text = "\n".join("The " + " ".join(f"w{word}" for word in line) + "." for line in words)
    from sire_core.models.sync import run_sync

    summarizer = ExtractiveSummarizer()
    run_sync(summarizer.summarize([[Unit("a", UnitKind.CHUNK, "One line.\nTwo.", ("a",))]]))  # what is loaded is loaded
    tracemalloc.start()
    [(summary, cited)] = run_sync(summarizer.summarize([[Unit("b", UnitKind.CHUNK, text, ("b",))]]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cited == ("b",)
    assert 5 < len(summary.splitlines()) < 30
    assert peak < 20_000_000, "all pairs of 3,000 sentences take 36 MB"


def answer(call):
    data = json.loads(call.data)
    said = [
        {"id": e["id"], "summary": f"About {e['name']}:  {data['passages'][e['passages'][0]]}"}
        for e in data["elements"]
    ]
    return json.dumps({"summaries": said})


async def test_twenty_elements_share_a_call_and_their_passages_are_sent_once():
    model = ScriptedModel(answer)
    elements = [Unit(f"e{i}", UnitKind.ENTITY, f"name {i}", ("c0", f"c{i}")) for i in range(1, 42)]
    texts = {f"c{i}": f"text {i}" for i in range(42)}
    found, failures = await summarize_elements(elements, texts, model)
    assert [len(json.loads(call.data)["elements"]) for call in model.log] == [20, 20, 1]
    assert json.loads(model.log[0].data)["passages"].count("text 0") == 1
    assert found["e7"] == "About name 7: text 0"
    assert list(found) == [element.id for element in elements]
    assert failures == []


async def test_headings_and_rules_of_tables_are_no_sentences_of_a_summary():
    texts = ("## Notes\n\nThe lamp of Karn burns.\n\n| Name | Sky |\n| --- | --- |\n| Bunya | Cross |", "# Alone")
    units = [Unit(f"{n}", UnitKind.CHUNK, text, (f"{n}",), title="Vale") for n, text in enumerate(texts)]
    [(summary, _), (alone, _)] = await ExtractiveSummarizer().summarize([units[:1], units[1:]])
    assert summary.splitlines() == [
        f"Vale: {line}" for line in ("The lamp of Karn burns.", "| Name | Sky |", "| Bunya | Cross |")
    ]
    assert alone == "Vale: # Alone", "nothing else to say"
