"""`AtomicKnowledge`: what each document states, as one unit: stage 1 of IndexRAG (ALGORITHMS 4.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.protocols import Delta
from sire_core.types import Chunk, Unit, UnitKind, unit_id

if TYPE_CHECKING:
    from sire_core.organize.bridges.document_units import DocumentUnits, Written
    from sire_core.protocols import BuildView, Change

__all__ = ["AtomicKnowledge"]

_TABLE = "table"


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
        """Write the units of the documents that changed; the others stay as they are.

        Also after a change without chunks: other metadata can make two units of one, or one of two.
        """
        import asyncio

        from sire_core.organize.bridges.document_units import DocumentUnits, distinct_documents

        before = DocumentUnits.from_note(view.notes([_TABLE]).get(_TABLE))
        documents = await asyncio.to_thread(distinct_documents, view.chunks, view.chunk_units)
        todo = self._outdated(documents, before, {chunk.id for chunk in change.added}, view.makers[1])
        if self.needs_summaries:
            texts = await self._summaries(todo, view)
        else:
            texts = await asyncio.to_thread(_stated, todo, len(todo) == len(documents), view)
        fresh = {
            found.signature: _unit(text, found.chunk_ids, view.fingerprint)
            for found, text in zip(todo, texts, strict=True)
        }
        units = {
            found.signature: fresh[found.signature].id if found.signature in fresh else before.units[found.signature]
            for found in documents
        }
        raw = frozenset(s.signature for s, text in zip(todo, texts, strict=True) if text == _raw(s.chunks))
        return _delta(before, DocumentUnits(view.makers[1], units, raw), fresh, view)

    def _outdated(
        self, documents: Sequence[Written], before: DocumentUnits, redone: Collection[str], extractor: str
    ) -> list[Written]:
        """Documents whose text has to be written.

        Chunk ids stand for the text, so that a summary of the same ones stays, unless it failed: a document that stands
        as it is, is summarised again.
        """
        if self.needs_summaries:
            written = before.units.keys() - before.raw
            return [found for found in documents if found.signature not in written]
        known: Collection[int] = before.units if extractor == before.extractor else ()
        return [
            found
            for found in documents
            if found.signature not in known or any(chunk.id in redone for chunk in found.chunks)
        ]

    async def _summaries(self, documents: Sequence[Written], view: BuildView) -> list[str]:
        passages = {chunk: unit for unit in view.chunk_units for chunk in unit.chunk_ids}
        clusters = [[passages[chunk.id] for chunk in found.chunks] for found in documents]
        view.progress("summaries of documents", 0, len(documents))
        written = await view.summarizer(self.summary_tokens).summarize(clusters)
        view.progress("summaries of documents", len(documents), len(documents))
        return [text or _raw(found.chunks) for found, (text, _) in zip(documents, written, strict=True)]


def _stated(documents: Sequence[Written], everything: bool, view: BuildView) -> list[str]:
    records = view.records(None if everything else {chunk.id for found in documents for chunk in found.chunks})
    texts = []
    for found in documents:
        facts = [fact for chunk in found.chunks if chunk.id in records for fact in records[chunk.id].facts]
        texts.append("\n".join(dict.fromkeys(fact.answer or fact.text for fact in facts)) or _raw(found.chunks))
    return texts


def _delta(before: DocumentUnits, after: DocumentUnits, fresh: Mapping[int, Unit], view: BuildView) -> Delta:
    if before.units:
        there = dict.fromkeys(before.units.values())
        same = {unit.id: unit for unit in view.units([unit.id for unit in fresh.values() if unit.id in there])}
    else:  # nothing is known of an index that an older version wrote
        same = {unit.id: unit for unit in view.units()}
        there = dict.fromkeys(same)
    kept = set(after.units.values())
    return Delta(
        put_units=tuple(unit for unit in fresh.values() if same.get(unit.id) != unit),
        drop_units=tuple(unit for unit in there if unit not in kept),
        notes={_TABLE: after.to_note()},
    )


def _unit(text: str, chunk_ids: tuple[str, ...], fingerprint: str) -> Unit:
    return Unit(
        id=unit_id(UnitKind.AKU.value, fingerprint, chunk_ids, text),
        kind=UnitKind.AKU,
        text=text,
        chunk_ids=chunk_ids,
    )


def _raw(chunks: Sequence[Chunk]) -> str:
    """The document itself, for one that states nothing."""
    return "\n".join([chunks[0].title, *(chunk.text for chunk in chunks)]).strip()
