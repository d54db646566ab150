"""The extraction stage of a build: every chunk gets a record, and every record is stored at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sire_core.errors import BuildError
from sire_core.extraction.record import StoredRecord, read_records, stored_json
from sire_core.extraction.title_links import (
    PassageTexts,
    TitleIndex,
    TitleLinker,
    changed_surface_forms,
    first_word,
    title_of,
    touched_records,
    words_of_records,
)
from sire_core.protocols import ChunkInContext, Extractor, Progress, RecordDecoder, Runner
from sire_core.text.pluralize import count
from sire_core.types import Chunk, ExtractionRecord, Failure

if TYPE_CHECKING:
    from sire_core.documents.stored_corpus import CorpusUpdate
    from sire_core.storage.call_cache import CallStore


async def extract_missing(
    chunks: Sequence[Chunk],
    extractor: Extractor,
    store: CallStore,
    progress: Progress,
    max_failure_ratio: float,
    hashes: Mapping[str, str] | None = None,
    runner: Runner | None = None,
) -> tuple[int, tuple[Failure, ...], frozenset[str]]:
    """Extract chunks without a stored record."""
    hashes = {chunk.id: chunk.hash for chunk in chunks} if hashes is None else hashes
    distinct = set(hashes.values())
    todo = missing_chunks(chunks, store.known(extractor.fingerprint, distinct), hashes)
    failures: list[Failure] = []
    fresh: set[str] = set()
    if todo:
        location_by_hash = {item.chunk.hash: f"{item.chunk.doc_id}#{item.chunk.position}" for item in todo}
        done = 0
        progress("extraction", 0, len(todo))
        async with aclosing(_batches(todo, extractor, runner)) as batches:
            async for batch in batches:
                store.put_records(extractor.fingerprint, batch)
                failures += [Failure(location_by_hash[r.hash], r.reason) for r in batch if r.status == "failed"]
                fresh.update(r.hash for r in batch if r.status != "failed")
                done += len(batch)
                progress("extraction", done, len(todo))
            passages = len(distinct)
        if len(failures) > max_failure_ratio * passages:
            raise BuildError(
                f"Extraction failed for {len(failures):,} of {count(passages, 'passage')}, first: {failures[0].where}: "
                f"{failures[0].reason}. What succeeded is stored; fix the cause and build again, or raise "
                "max_failure_ratio."
            )
    return len(distinct) - len(todo), tuple(failures), frozenset(fresh)


async def _batches(
    todo: Sequence[ChunkInContext], extractor: Extractor, runner: Runner | None
) -> AsyncGenerator[Sequence[StoredRecord], None]:
    """Yield records as they come, from the extractor or from a runner."""
    if runner is None or runner.part_size is None or not getattr(extractor, "portable", False):
        async with aclosing(extractor.extract(todo)) as batches:  # type: ignore[type-var] # an async generator
            async for records in batches:
                yield _stored(records)
        return
    parts = [todo[start : start + runner.part_size] for start in range(0, len(todo), runner.part_size)]
    async with aclosing(runner.map(_extracted, extractor, parts)) as results:
        async for _, batch in results:
            yield batch


def _stored(records: Sequence[ExtractionRecord]) -> list[StoredRecord]:
    return list(map(StoredRecord.of, records))


def _extracted(extractor: Extractor, part: Sequence[ChunkInContext]) -> list[StoredRecord]:
    """Records of a part, on a worker."""

    async def all_of_them() -> list[StoredRecord]:
        return [record async for batch in extractor.extract(part) for record in _stored(batch)]

    return asyncio.run(all_of_them())


class RecordReader:
    """Reads records by chunk id; links titles as entities if the extractor asks for it."""

    def __init__(self, update: CorpusUpdate, extractor: Extractor, store: CallStore) -> None:
        self._update, self._extractor, self._store = update, extractor, store
        self._all: Mapping[str, ExtractionRecord] | None = None
        self._linked = 0

    def read(self, chunk_ids: Collection[str] | None = None) -> Mapping[str, ExtractionRecord]:
        """Records of some chunks, or of all (cached for the next request)."""
        if self._all is not None:
            return self._all
        chunks = self._update.after.chunks if chunk_ids is None else self._update.after.in_order(chunk_ids)
        ids = [chunk.id for chunk in chunks]
        records = self.decoder(ids)(self.stored(ids))
        if chunk_ids is None:
            self._all = records
        return records

    def stored(self, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        """Records of chunks as they are stored, for `decoded_records`."""
        hashes = self._update.after.hashes
        bodies = self._store.bodies(self._extractor.fingerprint, [hashes[chunk] for chunk in chunk_ids])
        return {chunk: bodies[hashes[chunk]] for chunk in chunk_ids if hashes[chunk] in bodies}

    def decoder(self, chunk_ids: Sequence[str]) -> RecordDecoder:
        """Decoder of stored records. It links all titles in many records, and those within reach in few."""
        if not self._extractor.links_titles:
            return read_records
        self._linked += len(chunk_ids)
        corpus = self._update.after
        if self._linked > len(corpus.chunks) // 32 or not self._update.before.chunks:
            return partial(_linked_records, self._full_linker)
        words = words_of_records(read_records(self.stored(chunk_ids)).values())
        titles = self._update.following(TitleIndex)[1].occurring(words, corpus)
        return partial(_linked_records, TitleLinker(titles))

    @cached_property
    def _full_linker(self) -> TitleLinker:
        return TitleLinker(list(map(title_of, self._update.after.chunks)))


def _linked_records(linker: TitleLinker, stored: Mapping[str, bytes]) -> dict[str, ExtractionRecord]:
    return linker.link(read_records(stored))


def chunks_with_stale_links(update: CorpusUpdate, extractor: Extractor, store: CallStore) -> frozenset[str]:
    """Ids of chunks whose linked titles may differ after the change."""
    before, after = update.before, update.after
    if not extractor.links_titles or not before.chunks:  # none is old
        return frozenset()
    was, now = update.following(TitleIndex)
    touched = {title_of(chunk) for chunk in (*update.old_chunks, *update.new_chunks)}
    words = {first_word(title) for title in touched if (title in was.chunks) != (title in now.chunks)}
    wordings = changed_surface_forms(was.beginning_with(words, before), now.beginning_with(words, after))
    if not wordings:
        return frozenset()
    verbatim = getattr(extractor, "verbatim", False)
    if len(wordings) > len(after.chunks) // (8 if verbatim else 32):  # linking everything is faster then
        return frozenset(chunk.id for chunk in after.chunks)
    if verbatim:  # the passages are at hand, and shorter than what is stored of them
        likely = update.following(PassageTexts)[1].holding(wordings, after)
        bodies = store.bodies(extractor.fingerprint, sorted(likely))
    else:
        bodies = store.bodies(extractor.fingerprint)
    units_by_hash = after.units_by_hash
    touched_hashes = touched_records({name: stored_json(body) for name, body in bodies.items()}, wordings)
    units = [unit for content_hash in touched_hashes for unit in units_by_hash.get(content_hash, ())]
    return frozenset(chunk for unit in units for chunk in after.unit_by_chunk[unit].chunk_ids)


def missing_chunks(
    chunks: Sequence[Chunk], recorded: set[str], hashes: Mapping[str, str] | None = None
) -> list[ChunkInContext]:
    """Distinct passages without a record, each with the previous text of its document."""
    hashes = {chunk.id: chunk.hash for chunk in chunks} if hashes is None else hashes
    missing = set(hashes.values()) - recorded
    todo: dict[str, ChunkInContext] = {}
    for number in [number for number, chunk in enumerate(chunks) if hashes[chunk.id] in missing] if missing else ():
        chunk, previous = chunks[number], chunks[number - 1] if number else None
        same = previous is not None and previous.doc_id == chunk.doc_id
        todo.setdefault(hashes[chunk.id], ChunkInContext(chunk, previous.text if previous and same else ""))
    return list(todo.values())
