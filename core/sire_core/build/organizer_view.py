"""`OrganizerView`: what one organizer reads during a build."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sire_core.build.build_context import BuildContext
    from sire_core.extraction.stage import RecordReader
    from sire_core.protocols import Change, Delta, FloatArray, LanguageModel, Runner, Summarizer, TableStore
    from sire_core.types import Chunk, Edge, ExtractionRecord, Unit

__all__ = ["OrganizerView"]


class OrganizerView:
    """See `sire_core.protocols.BuildView`."""

    def __init__(
        self,
        fingerprint: str,
        context: BuildContext,
        records: RecordReader,
        finished: Mapping[str, tuple[str, Delta]],
    ) -> None:
        self._fingerprint = fingerprint
        self._context = context
        self._records = records
        self._corpus = context.update.after
        self._store = context.files.store
        self._finished = finished

    @property
    def fingerprint(self) -> str:
        """Build fingerprint of the organizer."""
        return self._fingerprint

    @property
    def chunks(self) -> Sequence[Chunk]:
        """All chunks after the change, in corpus order."""
        return self._corpus.chunks

    @property
    def chunk_units(self) -> Sequence[Unit]:
        """One unit per distinct passage, in corpus order."""
        return self._corpus.units

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""
        return self._context.language_model

    @property
    def fingerprints(self) -> tuple[str, str]:
        """Fingerprints of the embedder and of the extractor."""
        return self._context.embedder.fingerprint, self._context.extractor.fingerprint

    @property
    def runner(self) -> Runner:
        """Runs parallel work."""
        return self._context.runner

    def records(self, chunk_ids: Collection[str] | None = None) -> Mapping[str, ExtractionRecord]:
        """Return extraction records by chunk id, of some chunks or of all."""
        return self._records(chunk_ids)

    def chunk(self, chunk: str) -> Chunk:
        """Return a chunk by its id."""
        return self._corpus.chunk_by_id[chunk]

    def place(self, chunk: str) -> tuple[int, int]:
        """Return the sequence number of a chunk's document, and the chunk's position in it."""
        sequence, position, _ = self._corpus.place(self.chunk(chunk))
        return sequence, position

    def touched(self, change: Change) -> Collection[str]:
        """Ids of chunk units that are added, changed or removed by a change, and of those whose records changed."""
        again = {chunk.id for chunk in change.added}.union(self.stale_links())
        units = self._corpus.unit_by_chunk
        return {units[chunk].id for chunk in again if chunk in units}.union(self._context.touched)

    def tables(self) -> TableStore:
        """Tables of the organizer's steps, as of the last commit."""
        return self._store.tables(self._fingerprint)

    def stale_links(self) -> Collection[str]:
        """Ids of old chunks whose records may link other titles than before the change."""
        return self._context.stale_links

    def forgotten(self) -> AbstractSet[str]:
        """Ids of old chunks about which models are asked again."""
        return self._context.forgotten

    def units(self, ids: Collection[str] | None = None) -> Sequence[Unit]:
        """Return units that this organizer made before, or stored units by id."""
        if ids is None:
            return self._store.units(self._fingerprint)
        return list(self._store.units_by_id(list(ids)).values())

    def edges(self) -> Sequence[Edge]:
        """Return edges that this organizer made before."""
        return self._store.edges([self._fingerprint])

    def state(self) -> Mapping[str, Any]:
        """Return the state that this organizer stored before."""
        return self._store.state(self._fingerprint)

    def notes(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """Return notes that this organizer stored before, by key."""
        return self._store.notes(self._fingerprint, list(keys))

    def required(self, organizer: str) -> tuple[Sequence[Unit], Sequence[Edge], Delta]:
        """Return units and edges of a required organizer after the change, and its delta."""
        fingerprint, delta = self._finished[organizer]
        dropped = set(delta.drop_units)
        units = {unit.id: unit for unit in self._store.units(fingerprint) if unit.id not in dropped}
        units.update((unit.id, unit) for unit in delta.put_units)
        gone = {(e.kind, e.source, e.target) for e in (*delta.drop_edges, *delta.in_blocks.drop)}
        edges = {(e.kind, e.source, e.target): e for e in self._store.edges([fingerprint])}
        edges = {key: edge for key, edge in edges.items() if key not in gone}
        edges.update(((e.kind, e.source, e.target), e) for e in (*delta.put_edges, *delta.in_blocks.put))
        return list(units.values()), list(edges.values()), delta

    def required_delta(self, organizer: str) -> Delta:
        """Return the delta of a required organizer; unlike `required` it reads nothing."""
        return self._finished[organizer][1]

    async def vectors(self, units: Sequence[Unit | str]) -> FloatArray:
        """Return unit-length vectors of the units' index texts."""
        return await self._context.vectors.embed(units)

    def rng(self, *names: str) -> np.random.Generator:
        """Return a random generator that depends on the index seed and `names` only."""
        raw = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
        return np.random.default_rng([self._context.seed, int.from_bytes(raw, "little")])

    def summarizer(self, max_tokens: int, stage: str = "summaries") -> Summarizer:
        """Return the model-based summarizer if there is a model, else the extractive one."""
        return self._context.make_summarizer(max_tokens, partial(self.progress, stage))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        self._context.configuration.progress(stage, done, total)
