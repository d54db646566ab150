"""Two indexes that differ only in hidden documents: equal for a role, or listed on the page about filters."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.errors import SireError
from sire_core.explore import browse
from sire_core.explore.corpus_map import CorpusMap
from sire_core.explore.paths import Names
from sire_core.explore.query_result import query_result
from sire_core.explore.why_not import why_not
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.recipes import REGISTRY
from sire_core.serve.tools import IndexTools
from sire_core.testing.doubles import HashEmbedder
from support.indexes import indexed

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"
ROW = re.compile(r"^\| `(\w+)` \| (yes|no)[^|]* \| (yes|no)[^|]* \|$", re.MULTILINE)
SHOWN = [
    Document(
        f"a{n}",
        f"Bela Kovac {n} was born in Drava {n}. She founded the mill of Lindle {n % 3} in 19{n + 10}. It stood in Kemi.",
        f"Title {n}",
        {"tenant": "a"},
    )
    for n in range(12)
]
HIDDEN = [
    [
        Document(
            f"b{n}",
            f"Zora Petrov {n} sold the mill of Lindle {n % 3} to Bela Kovac {n}.",
            f"Secret {n}",
            {"tenant": "b"},
        )
        for n in range(8)
    ],
    [
        Document(f"c{n}", f"The harbour of Ostia {n} froze. Nobody sailed to Corvo {n}.", "Other", {"tenant": "b"})
        for n in range(5)
    ],
]
QUESTIONS = ["Who founded the mill of Lindle 1?", "Bela Kovac 3"]
TOOLS = {
    "search": {"query": QUESTIONS[0]},
    "ask": {"question": QUESTIONS[0]},
    "explain": {"query": QUESTIONS[1]},
    "open": {"doc_id": "a1"},
    "fetch": {"doc_id": "a1"},
    "neighbors": {"doc_id": "a1", "passage": 1},
}


async def _silent(_: str) -> None: ...


def outputs(index: Index) -> dict[str, dict[str, object]]:
    """All that a role may see, by what it depends on."""
    ranking: dict[str, object] = {}
    derived: dict[str, object] = {"counts": str(index.snapshot().counts())}
    for question in QUESTIONS:
        for returns in ("passages", "units"):
            hits = index.search(question, 10, returns=returns)
            ranking[f"{question} {returns}"] = [
                (hit.unit, round(hit.score, 6), hit.doc_ids, [(step.step, step.ids, step.note) for step in hit.path])
                for hit in hits
            ]
        ranking[f"{question} context"] = index.context(question, 300).text
        shown = asyncio.run(query_result(index.snapshot(), question, 5)).html()
        ranking[f"{question} picture"] = re.sub(r"\d[\d,]* texts searched in \d+ ms", "", shown)
        ranking[f"{question} explain"] = index.explain(question, 5).split("\n", 2)[2]
    stats = {name: value for name, value in index.stats().items() if name not in ("units", "kinds", "generation")}
    snapshot, tools = index.snapshot(), IndexTools(index)
    answers = {name: asyncio.run(tools.call(name, given, _silent)) for name, given in TOOLS.items()}
    ranking["tools"] = [answers[name] for name in ("search", "ask")]
    always = {
        "documents": [(document.id, document.text) for document in index.documents()],
        "snapshot": (snapshot.document_ids(), snapshot.metadata(), snapshot.passage_ids(), snapshot.titles()),
        "stats": stats,
        "map": json.dumps(CorpusMap.of(snapshot).data(), default=str),
        "names": str(browse.entities(snapshot, "", 0)),
        "tools": [answers[name] for name in ("open", "fetch", "neighbors")],
        "introduction": (tools.introduction(), str(tools.specs())),
    }
    try:
        ranking["why not"] = str(asyncio.run(why_not(snapshot, QUESTIONS[0], "a5")))
    except SireError as error:
        ranking["why not"] = str(error)
    return {"order": ranking, "derived": derived, "always": always}


def differing(place: Path, recipe: str, embedder: object, *, learns: bool = False) -> set[str]:
    """What depends on hidden documents."""
    seen = []
    for number, hidden in enumerate(HIDDEN):
        folder = place / f"{recipe}{number}"
        indexed([*SHOWN, *hidden], folder, recipe=recipe, embedder=embedder).close()
        with Index(folder, recipe=recipe, embedder=embedder, allow="tenant=a") as index:
            seen.append(outputs(index))
        if learns:  # the places on the map, and the embedder's fingerprint, are made of its vectors
            seen[-1]["always"].pop("map")
            seen[-1]["always"]["stats"].pop("embedder")
    return {kind for kind in seen[0] if seen[0][kind] != seen[1][kind]}


def listed() -> dict[str, set[str]]:
    """What the page says of each recipe."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {
        recipe: {kind for kind, says in (("order", order), ("derived", derived)) if says == "yes"}
        for recipe, order, derived in rows
    }


def test_the_page_lists_every_recipe():
    assert listed().keys() == REGISTRY.keys()


@pytest.mark.quick(recipe=["flat", "iier", "msrag", "sire", "sirerag", "smart"])
@pytest.mark.parametrize("recipe", sorted(REGISTRY))
def test_outputs_are_equal_or_listed(recipe, tmp_path):
    found, may = differing(tmp_path, recipe, HashEmbedder()), listed()[recipe]
    assert "always" not in found
    # Where other units may be found, they also take places in the order.
    assert found <= (may | {"order"} if "derived" in may else may)


def test_the_default_embedder_has_an_influence_on_order_and_map_only(tmp_path):
    assert differing(tmp_path, "flat", None, learns=True) <= {"order"}


@pytest.mark.parametrize("recipe", ["sire", "hipporag2", "linearrag"])
def test_no_id_of_an_entity_confirms_a_guess_of_its_names(recipe, tmp_path):
    """Stored ids are digests of names, merged in hidden documents, too; paths have ids of what is seen."""
    seen = []
    for number, hidden in enumerate(HIDDEN):
        folder = tmp_path / str(number)
        with indexed([*SHOWN, *hidden], folder, recipe=recipe, embedder=HashEmbedder()) as index:
            stored = set(EntityGraph.of(index.view()).entity_ids)
        with Index(folder, allow="tenant=a", embedder=HashEmbedder()) as index:
            snapshot = index.snapshot()
            hits = index.search(QUESTIONS[1], 10)
            ids = {name for hit in hits for step in hit.path for name in step.ids} - snapshot.view.places().keys()
            names = {name: Names.of(snapshot).entity(name) for name in ids}
            shown = {row.id: row.label for row in browse.entities(snapshot, "", 0).rows}
        assert names
        assert all(names.values())  # the explorer finds them
        assert not stored.intersection(names, shown)
        seen.append(names)
    assert all(seen[0][name] == seen[1][name] for name in seen[0].keys() & seen[1].keys())
    assert seen[0].keys() & seen[1].keys()
