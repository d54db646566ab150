"""The arrays of `sire` after a history of changes are those of an index that was built at once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.arrays.lists import arrays_of
from sire_core.data import demo_documents
from sire_core.recipes.sire.evidence_index import EvidenceIndex
from sire_core.testing.doubles import HashEmbedder

SOME = demo_documents()[:30]
MENU = "\n\n".join(f"{word} of the harbour office" for word in ("Home", "News", "Tides", "Boats", "Fees", "Contact"))
PAGES = [
    Document(
        f"page {n}", f"# {name}\n\n{MENU}\n\n{name} was born in {place} and kept {n + 3} herons near Kirkwall.", name
    )
    for n, (name, place) in enumerate(
        [
            ("Orla Venn", "Aberdeen"),
            ("Tam Reid", "Leith"),
            ("Ada Voss", "Oban"),
            ("Ivo Karr", "Wick"),
            ("Una Foss", "Ayr"),
        ]
    )
]
GERMAN = Document(
    "heron", "Der Graureiher ist ein Vogel. Er lebt am Wasser und frisst vor allem kleine Fische.", "Reiher"
)


def arrays(index: Index) -> dict[str, np.ndarray]:
    return arrays_of(EvidenceIndex.of(index.snapshot().view))


@pytest.mark.parametrize("reopened", [False, True])
def test_arrays_after_changes_are_those_of_an_index_built_at_once(tmp_path, monkeypatch, reopened: bool) -> None:
    """Menus become boilerplate with a third page, and are none again; languages, names and the language of most come and go."""
    monkeypatch.setattr("sire_core.search.view._WORTH_FILES", 1)  # as if they were many: later processes go on from it
    known: dict[str, Document] = {}
    with ExitStack() as stack:
        for put, gone in [
            ([*SOME, *PAGES[:2], Document("list", "Frauen, Katzen, Hunden")], []),
            (PAGES[2:3], []),
            ([GERMAN, *PAGES[3:]], []),
            ([replace(PAGES[1], text=f"{PAGES[1].text} Ada Voss wrote to him.")], []),
            ([], [PAGES[2].id, PAGES[4].id, "heron"]),
            ([replace(document, text=GERMAN.text + str(n)) for n, document in enumerate(SOME)], []),
            ([], [document.id for document in SOME[::2]]),
        ]:
            known |= {document.id: document for document in put}
            if reopened or len(known) == len(put):
                stack.close()
                index = Index(tmp_path, recipe="sire", embedder=HashEmbedder(), chunker=None)
                grown = stack.enter_context(index)
            grown.update(put) if put else grown.delete(gone)
            known = {name: document for name, document in known.items() if name not in gone}
            with Index(recipe="sire", embedder=HashEmbedder(), chunker=None) as built:
                built.build(known.values())
                here, there = arrays(grown), arrays(built)
            assert here.keys() == there.keys()
            assert not [name for name in here if not np.array_equal(here[name], there[name])]
