"""`sire`: passages that were cut from one source, as metadata says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.recipes import REGISTRY
from sire_core.recipes.sire.index import EvidenceIndex
from sire_core.recipes.sire.question import OWN, QueryFeatures
from sire_core.search.rankers.hybrid import Hybrid
from sire_core.search.vectors.sq_index import KnownSimilarities
from sire_core.testing.doubles import HashEmbedder

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "Who was the mother of Olaf Brandt?"
TEXTS = (
    "Olaf Brandt was born in Riga in 1870.",
    "He commanded the Northern Wren for ten years.",
    "The ship sank off Gotland.",
    "Marta Krumin was his mother.",
    "Trains run to Warsaw.",
)


def cut(source: str, starts: tuple[object, ...] = (0, 100, 200, 300, 400)) -> list[Document]:
    """Passages that a splitter says it has cut from sources."""
    return [
        Document(str(n), text, metadata={"source": source.format(n), "start_index": start})
        for n, (text, start) in enumerate(zip(TEXTS, starts, strict=True))
    ]


def seen(index: Index) -> tuple[list[int], list[tuple[str, float]]]:
    """Sources of the passages, and the scores of a search."""
    hits = index.search(QUESTION, 9)
    return EvidenceIndex.of(index.view()).source.tolist(), [(hit.doc_ids[0], hit.score) for hit in hits]


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
    [members] = [found.members.of(i) for i in range(len(found.members)) if len(found.members.of(i)) > 1]
    assert [names[passage] for passage in members] == texts
    assert [int(found.place[passage]) for passage in members] == [0, 1, 2, 3]


def test_neighbours_that_a_filter_hides_say_nothing() -> None:
    texts = ["Page 0 of the album.", "The brass valve opens at nine bar.", "Page 2 of the album.", "A mill."]
    pages = [Document(f"c{i}", text, metadata={"source": "lamp.md", "start_index": i}) for i, text in enumerate(texts)]
    with Index(recipe="sire", chunker=None) as index:
        index.build([*pages, Document("x", "A brass band.")])
        view = index.view()
        found = EvidenceIndex.of(view)
        place = {unit.text: place for place, unit in enumerate(view.units(found.chunks))}
    valve, page = place[texts[1]], np.array([place[texts[2]]])
    cosines = np.zeros(len(place), dtype=np.float32)
    cosines[valve] = 0.9
    columns = [place for place, name in enumerate(OWN) if name.split(" ")[-2:-1] in (["near"], ["source"])]
    for hidden in (False, True):
        allowed = np.arange(len(place)) != valve if hidden else None
        evidence = QueryFeatures(
            "Where is the brass valve?", found, KnownSimilarities(cosines), view.matrix, allowed, 10
        )
        assert evidence.own(page)[0, columns].any() == (not hidden)


@pytest.mark.parametrize("start", [2**70, 2**63, -1, True, 1.5, "7"])
def test_a_place_that_no_text_has_is_none(start: object) -> None:
    """Such a passage is a source of its own; the others keep their order."""
    with Index() as index:
        index.build(cut("book", (300, 200, 2**63 - 1, start, 0)))
        sources, found = seen(index)
        members = EvidenceIndex.of(index.view()).members
    assert len(found) == len(TEXTS)
    assert [sources.count(source) for source in sources] == [4, 4, 4, 1, 4]
    assert members.of(sources[0]).tolist() == [4, 1, 0, 2]


def test_sources_follow_an_update_of_metadata_alone(tmp_path: Path) -> None:
    """In the process that searched before, in another one, and back."""
    with Index() as fresh:
        fresh.build(cut("page {}"))
        expected = seen(fresh)
    with Index(tmp_path / "ix") as index:
        index.build(cut("book"))
        first = seen(index)
        assert index.update(cut("page {}")).updated == len(TEXTS)
        assert seen(index) == expected != first
        with Index(tmp_path / "ix") as other:
            assert seen(other) == expected
        index.update(cut("book"))
        assert seen(index) == first


def test_paths_and_chains_rank_together() -> None:
    """What both make of the passages has names of its own."""
    chains = REGISTRY["iier"]()
    both = Hybrid((REGISTRY["sire"]().ranker, chains.ranker))
    with Index(
        recipe=replace(
            chains, name="both", organizers=(*REGISTRY["sire"]().organizers, *chains.organizers), ranker=both
        )
    ) as index:
        index.build(cut("book"))
        assert index.search(QUESTION, 1)[0].doc_ids == ("0",)


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
        steps = evidence.hops(first, np.zeros(3), 40)
        best = np.flatnonzero(np.ones(150) if allowed is None else allowed)[-40:]
        for passage in first.tolist():
            led = np.unique(steps.targets[steps.sources == passage])
            assert led.tolist() == [other for other in best.tolist() if other != passage]
