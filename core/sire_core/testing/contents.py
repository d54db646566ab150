"""Small corpora, and all that an index folder holds of its latest recipe."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from sire_core.data import demo_documents
from sire_core.storage.index_files import IndexFiles
from sire_core.storage.store import CORPUS
from sire_core.types import Chunk, Document, Edge, Unit, UnitKind


@dataclass(frozen=True, slots=True)
class IndexContents:
    """Chunks, and one recipe's units, edges and vectors."""

    chunks: Mapping[str, Chunk]  # By id, in corpus order
    units: Mapping[str, Unit]  # By id
    edges: tuple[Edge, ...]  # In the store's order
    vectors: Mapping[str, bytes]  # Bytes of the float32 vectors by unit id

    def said(self, *kinds: UnitKind) -> set[tuple[str, str, frozenset[str]]]:
        """(kind, text, passages) of the units of some kinds, of all when none is given: what matters to a reader."""
        return {
            (unit.kind.value, unit.text, frozenset(unit.chunk_ids))
            for unit in self.units.values()
            if not kinds or unit.kind in kinds
        }


def read_contents(path: str | os.PathLike[str], recipe: str = "") -> IndexContents:
    """Read an index folder."""
    with closing(IndexFiles(Path(path))) as files, files.store.snapshot():
        built = files.refresh().find(None, recipe)
        owners = [CORPUS, *built.owners]
        return IndexContents(
            chunks={chunk.id: chunk for chunk in files.store.chunks()},
            units={unit.id: unit for owner in owners for unit in files.store.each_unit(owner)},
            edges=tuple(files.store.edges(list(built.owners))),
            vectors={unit: vector.tobytes() for unit, vector in files.store.each_vector(owners)},
        )


def sample_corpus() -> list[Document]:
    """The demo corpus, with a copied passage and one without text."""
    documents = list(demo_documents())
    copy = replace(documents[3], id="copy")
    return [*documents, copy, Document("nothing", "")]


def two_tenants() -> list[Document]:
    """Two tenants with names, sentences and a passage in common; each has words that the other must never see."""
    documents = []
    for tenant in ("red", "blue"):
        name = f"{tenant.title()}marker"
        texts = {
            f"{name} 0": f"Lord Ashby met the {tenant}canary Council in Port Amber. Mira Vale joined Lord Ashby.",
            f"{name} 1": f"Mira Vale owns {name} Mill. Port Amber is a harbor.",
            "Port Amber": "Port Amber is a harbor. Lord Ashby lives in Port Amber.",
            f"{name} 3": f"The {name} Company sells rope. Lord Ashby bought rope of Mira Vale.",
        }
        documents += [Document(f"{name} {title}", text, title, {"tenant": tenant}) for title, text in texts.items()]
    # Titles of one tenant that are longer forms of names in the other's text.
    for title, text in (("Earl Corin, Duke of Redcanary", "..."), ("Lord Ashby (Redcanary)", "It opened late.")):
        documents.append(Document(title, text, title, {"tenant": "red"}))
    for text in ("Earl Corin sailed to Port Amber.", "Earl Corin wrote a long letter to Mira Vale."):
        documents.append(Document(text, text, "Bluemarker 9", {"tenant": "blue"}))
    return documents
