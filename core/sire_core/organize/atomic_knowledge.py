"""`AtomicKnowledge`: what each document states, as one unit: stage 1 of IndexRAG (ALGORITHMS 4.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.protocols import Delta
from sire_core.types import Chunk, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Change

__all__ = ["AtomicKnowledge"]


@dataclass(frozen=True, slots=True)
class AtomicKnowledge:
    """One unit per document. Documents of the same words and metadata are one unit that stands on all of them.

    The paper's third way, passages as they are, needs no organizer: they are in every pool.

    Attributes:
        stage1: `qa` joins the answers of the document's facts, a line each, without their questions; a document without
            facts stands as it is. `summary` has the document summarised.
        summary_tokens: Length of a summary.

    Raises:
        ConfigurationError: `stage1` is unknown.
    """

    stage1: str = "qa"
    summary_tokens: int = 200

    def __post_init__(self) -> None:
        if self.stage1 not in ("qa", "summary"):
            raise ConfigurationError(f"stage1 of AtomicKnowledge is 'qa' or 'summary', not {self.stage1!r}.")

    @property
    def name(self) -> str:
        """Short name."""
        return "atomic_knowledge"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads no other organizer."""
        return ()

    @property
    def needs_records(self) -> bool:
        """Reads facts, unless it summarises."""
        return self.stage1 == "qa"

    @property
    def needs_summaries(self) -> bool:
        """Whether it writes summaries."""
        return self.stage1 == "summary"

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        length = {"summary_tokens": self.summary_tokens} if self.needs_summaries else {}
        return {"stage1": self.stage1, **length}

    def describe(self) -> str:
        """What is built, and what it costs."""
        if self.needs_summaries:
            return "A summary of each document; with a language model one call per document, without one no calls."
        return (
            "The facts of each document as one text; with a language model one extraction call per passage, "
            "without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Write the units of the documents that changed; the others stay as they are."""
        if not change:
            return Delta()
        import asyncio

        documents = await asyncio.to_thread(_documents, view.chunks)
        old = {unit.id: unit for unit in view.units()}
        if self.needs_summaries:
            new = await self._summaries(documents, list(old.values()), view)
        else:
            new = await asyncio.to_thread(_stated, documents, view)
        return Delta(
            put_units=tuple(unit for unit in new.values() if old.get(unit.id) != unit),
            drop_units=tuple(unit for unit in old if unit not in new),
        )

    async def _summaries(
        self, documents: Sequence[Sequence[Sequence[Chunk]]], old: Sequence[Unit], view: BuildView
    ) -> dict[str, Unit]:
        """Chunk ids stand for the text, so that a unit with the ids of a document is its summary already."""
        known = {frozenset(unit.chunk_ids): unit for unit in old}
        wanted = [_chunk_ids(copies) for copies in documents]
        for copies, chunk_ids in zip(documents, wanted, strict=True):
            found = known.get(frozenset(chunk_ids))
            if found is not None and found.text == _raw(copies[0]):  # its summary failed: ask again
                del known[frozenset(chunk_ids)]
        todo = [at for at, chunk_ids in enumerate(wanted) if frozenset(chunk_ids) not in known]
        passages = {chunk: unit for unit in view.chunk_units for chunk in unit.chunk_ids}
        clusters = [[passages[chunk.id] for chunk in documents[at][0]] for at in todo]
        view.progress("summaries of documents", 0, len(todo))
        written = await view.summarizer(self.summary_tokens).summarize(clusters)
        view.progress("summaries of documents", len(todo), len(todo))
        texts = {at: text or _raw(documents[at][0]) for at, (text, _) in zip(todo, written, strict=True)}
        units = [
            _unit(texts[at], chunk_ids, view.fingerprint) if at in texts else known[frozenset(chunk_ids)]
            for at, chunk_ids in enumerate(wanted)
        ]
        return {unit.id: unit for unit in units}


def _documents(chunks: Sequence[Chunk]) -> list[list[list[Chunk]]]:
    """Documents in corpus order, copies of one together, each as its chunks."""
    by_document: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_document.setdefault(chunk.doc_id, []).append(chunk)
    copies: dict[str, list[list[Chunk]]] = {}
    for found in by_document.values():
        content = [found[0].title, dict(found[0].metadata), *(chunk.text for chunk in found)]
        copies.setdefault(json.dumps(content, sort_keys=True), []).append(found)
    return list(copies.values())


def _stated(documents: Sequence[Sequence[Sequence[Chunk]]], view: BuildView) -> dict[str, Unit]:
    records = view.records()
    units = {}
    for copies in documents:
        facts = [fact for chunk in copies[0] if chunk.id in records for fact in records[chunk.id].facts]
        text = "\n".join(dict.fromkeys(fact.answer or fact.text for fact in facts)) or _raw(copies[0])
        unit = _unit(text, _chunk_ids(copies), view.fingerprint)
        units[unit.id] = unit
    return units


def _unit(text: str, chunk_ids: tuple[str, ...], fingerprint: str) -> Unit:
    return Unit(
        id=unit_id(UnitKind.AKU.value, fingerprint, chunk_ids, text),
        kind=UnitKind.AKU,
        text=text,
        chunk_ids=chunk_ids,
    )


def _chunk_ids(copies: Sequence[Sequence[Chunk]]) -> tuple[str, ...]:
    return tuple(chunk.id for chunks in copies for chunk in chunks)


def _raw(chunks: Sequence[Chunk]) -> str:
    """The document itself, for one that states nothing."""
    return "\n".join([chunks[0].title, *(chunk.text for chunk in chunks)]).strip()
