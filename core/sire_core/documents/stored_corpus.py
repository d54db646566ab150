"""`StoredCorpus`: documents as the index stores them and passages of one generation, updated incrementally."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from sire_core.documents.block_reading import read_blocks
from sire_core.documents.blocks import repeated_of
from sire_core.filters import Filter, comparable
from sire_core.filters.conditions import filtered_title, passes
from sire_core.protocols import Delta
from sire_core.types import Chunk, Document, Passage, Unit, UnitKind, digest

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.documents.change_plan import CorpusChange


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the index stores it."""

    id: str  # The user's id
    sequence: int  # Its place in the corpus; an update keeps it
    hash: str  # Of everything that its chunks depend on
    title: str  # Title
    metadata: Mapping[str, Any]  # Metadata


_SCOPE = " #allow-"


def scoped_id(doc_id: str, allow: Filter) -> str:
    """Id under which an index with `allow` stores a document if a hidden one has its id."""
    return f"{doc_id}{_SCOPE}{digest(repr(allow), size=6)}"


def shown_id(doc_id: str, allow: Filter | None) -> str:
    """Id of a stored document as an index with `allow` shows it: without its own scope."""
    plain, mark, _ = doc_id.rpartition(_SCOPE)
    return plain if mark and allow is not None and doc_id == scoped_id(plain, allow) else doc_id


def to_documents(
    documents: Mapping[str, StoredDocument], chunks: Iterable[Chunk], allow: Filter | None = None
) -> list[Document]:
    """Rebuild documents from stored ones; only passages that pass the filter are included."""
    pieces: dict[str, list[str | Passage]] = {}
    for chunk in chunks:
        if chunk.doc_id in documents and is_allowed(chunk, allow, documents):
            pieces.setdefault(chunk.doc_id, []).append(_chunk_item(chunk, documents[chunk.doc_id]))
    return [
        Document(
            shown_id(name, allow), title=document.title, metadata=document.metadata, chunks=(*pieces.get(name, ()),)
        )
        for name, document in documents.items()
        if allow is None or name in pieces
    ]


def with_changes(
    stored: Iterable[Document], changes: Mapping[str, Document | None], wanted: set[str] | None, allow: Filter | None
) -> list[Document]:
    """Documents as they will be once pending changes are indexed."""
    documents: dict[str, Document | None] = {document.id: document for document in stored}
    for name, document in changes.items():
        if wanted is None or name in wanted:
            is_visible = document is not None and (allow is None or all(passes(allow, filter_fields(document))))
            documents[name] = document if is_visible else None
    return [document for document in documents.values() if document is not None]


def is_allowed(chunk: Chunk, allow: Filter | None, documents: Mapping[str, StoredDocument | Document]) -> bool:
    """True if a passage passes a filter on its metadata, ids and title."""
    title, name = filtered_title(documents[chunk.doc_id].title, chunk.title), shown_id(chunk.doc_id, allow)
    return allow is None or all(passes(allow, [(chunk.metadata, name, chunk.source_id or chunk.id, title)]))


def filter_fields(document: Document) -> list[tuple[Mapping[str, Any], str, str, str]]:
    """The fields that filters compare, for `passes`: one item per passage, or one for a document without passages."""
    bare = Passage("-")
    pieces = [piece if isinstance(piece, Passage) else bare for piece in document.chunks or ("",)]
    return [
        ({**document.metadata, **piece.metadata}, document.id, piece.id, filtered_title(document.title, piece.title))
        for piece in pieces
    ]


def _chunk_item(chunk: Chunk, document: StoredDocument) -> str | Passage:
    """A passage as an item of `Document.chunks`: text alone if nothing else is known of it."""
    title = "" if chunk.title == document.title else chunk.title
    missing = object()
    differing = {key: value for key, value in chunk.metadata.items() if document.metadata.get(key, missing) != value}
    repeated = repeated_of(chunk.layout)
    if chunk.source_id or title or differing or repeated or chunk.blocks != read_blocks(chunk.text):
        return Passage(chunk.text, chunk.source_id, title, differing, chunk.blocks, repeated)
    return chunk.text


def chunk_units(chunks: Sequence[Chunk]) -> list[Unit]:
    """One unit per distinct passage, in corpus order."""
    groups: dict[tuple[str, str, str], list[Chunk]] = {}
    for chunk in chunks:
        metadata = json.dumps(dict(chunk.metadata), sort_keys=True) if chunk.metadata else ""
        groups.setdefault((chunk.title, chunk.text, metadata), []).append(chunk)
    return [
        Unit(
            id=same[0].id,
            kind=UnitKind.CHUNK,
            text=same[0].text,
            chunk_ids=tuple(chunk.id for chunk in same),
            title=same[0].title,
            metadata=same[0].metadata,
            source_ids=tuple(chunk.source_id for chunk in same) if any(chunk.source_id for chunk in same) else (),
            layout=same[0].layout,
        )
        for same in groups.values()
    ]


@dataclass(frozen=True, slots=True)
class PassageChange:
    """Changes of the chunk units."""

    delta: Delta  # Units that come, change or go
    regrouped: frozenset[str]  # Ids of chunks that stay, but stand in one unit with others than before


def differs(unit: Unit, other: Unit) -> bool:
    """True if two versions differ; also `1` and `True` in metadata, which Python takes as equal."""
    both = unit.metadata, other.metadata
    return unit != other or (both[0] is not both[1] and comparable(both[0]) != comparable(both[1]))


T = TypeVar("T")
F = TypeVar("F", bound="Incremental")
Place = tuple[int, int, str]  # Sort key of chunks and units: sequence of the document, position in it, id


class Incremental(Protocol):
    """Derived from a whole corpus once, then updated with its changes; immutable."""

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Build it from a corpus."""
        ...

    def updated(self, update: CorpusUpdate) -> Self:
        """Return it after a change, equal to `of` of the new corpus."""
        ...


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """Documents and passages of one generation; immutable."""

    documents: Mapping[str, StoredDocument] = field(default_factory=dict)  # By id, in corpus order
    chunks: Sequence[Chunk] = ()  # In corpus order
    hashes: Mapping[str, str] = field(default_factory=dict)  # Content hash of every chunk by id
    units: Sequence[Unit] = ()  # One unit per distinct passage, in corpus order
    chunk_by_id: Mapping[str, Chunk] = field(default_factory=dict)  # The chunks by id
    unit_by_chunk: Mapping[str, Unit] = field(default_factory=dict)  # The unit of every chunk, by its id
    # Ids of the units with the same title and text, by content hash
    units_by_hash: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # What `following` has made, by its class; brought along with every change
    followed: dict[type[Incremental], Incremental] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, documents: Mapping[str, StoredDocument], chunks: Sequence[Chunk]) -> StoredCorpus:
        """Build from documents and all of their chunks, both in corpus order."""
        units = chunk_units(chunks)
        hashes = {chunk.id: chunk.hash for chunk in chunks}
        return cls(
            documents,
            chunks,
            hashes,
            units,
            {chunk.id: chunk for chunk in chunks},
            {chunk: unit for unit in units for chunk in unit.chunk_ids},
            _by_hash(units, hashes),
        )

    def place(self, chunk: Chunk) -> Place:
        """Sort key of a chunk."""
        return self.documents[chunk.doc_id].sequence, chunk.position, chunk.id

    def number(self, chunk: str) -> int:
        """Index in `chunks` of the chunk with an id."""
        return bisect_left(self.chunks, self.place(self.chunk_by_id[chunk]), key=self.place)

    def in_order(self, chunks: Iterable[str]) -> list[Chunk]:
        """Chunks by their ids, in corpus order."""
        return sorted((self.chunk_by_id[chunk] for chunk in chunks), key=self.place)

    def of_documents(self, ids: Iterable[str]) -> list[Chunk]:
        """Chunks of some documents, in corpus order; unknown ids are left out."""
        chunks: list[Chunk] = []
        for document in sorted((self.documents[name] for name in ids if name in self.documents), key=_in_order):
            start = bisect_left(self.chunks, (document.sequence, -1, ""), key=self.place)
            end = bisect_left(self.chunks, (document.sequence + 1, -1, ""), key=self.place)
            chunks += [chunk for chunk in self.chunks[start:end] if chunk.doc_id == document.id]
        return chunks

    def following(self, kind: type[F]) -> F:
        """The instance of an `Incremental` class: built on first use, then updated with the corpus."""
        follower = self.followed.get(kind)
        if follower is None:
            follower = self.followed[kind] = kind.of(self)
        return cast("F", follower)

    def updated(self, change: CorpusChange) -> CorpusUpdate:
        """The corpus after a change; the work is proportional to the change."""
        documents = _documents_after(self.documents, change)
        removed = self.of_documents({*(document.id for document in change.put_documents), *change.drop_documents})
        added = sorted(
            change.put_chunks, key=lambda chunk: (documents[chunk.doc_id].sequence, chunk.position, chunk.id)
        )
        by_id = _replaced(self.chunk_by_id, (chunk.id for chunk in removed), {chunk.id: chunk for chunk in added})
        hashes = _replaced(self.hashes, (chunk.id for chunk in removed), {chunk.id: chunk.hash for chunk in added})
        changed_hashes = dict.fromkeys(
            [*(self.hashes[chunk.id] for chunk in removed), *(hashes[chunk.id] for chunk in added)]
        )
        old = [
            self.unit_by_chunk[unit]
            for content_hash in changed_hashes
            for unit in self.units_by_hash.get(content_hash, ())
        ]
        before = [chunk for unit in old for chunk in unit.chunk_ids]
        left = set(before).difference(chunk.id for chunk in removed)
        after = StoredCorpus(documents, (), hashes, (), by_id)
        new = chunk_units(after.in_order(left.union(chunk.id for chunk in added)))
        unit_of = {chunk: unit for unit in new for chunk in unit.chunk_ids}
        after = StoredCorpus(
            documents,
            _spliced(
                self.chunks, self.place, map(self.place, removed), [(after.place(chunk), chunk) for chunk in added]
            ),
            hashes,
            _spliced(
                self.units,
                lambda unit: self.place(self.chunk_by_id[unit.id]),
                (self.place(self.chunk_by_id[unit.id]) for unit in old),
                [(after.place(by_id[unit.id]), unit) for unit in new],
            ),
            by_id,
            _replaced(self.unit_by_chunk, before, unit_of),
            _replaced(self.units_by_hash, changed_hashes, _by_hash(new, hashes)),
        )
        update = CorpusUpdate(self, change, after, tuple(removed), tuple(added), _passage_change(old, new))
        for kind in self.followed:
            update.following(kind)
        return update


@dataclass(frozen=True, slots=True)
class CorpusUpdate:
    """A corpus before and after one change."""

    before: StoredCorpus  # The corpus before
    change: CorpusChange  # What changes
    after: StoredCorpus  # The corpus after
    old_chunks: tuple[Chunk, ...]  # Chunks of changed documents and of those that go, as they were; in corpus order
    new_chunks: tuple[Chunk, ...]  # Chunks of documents that come or change; in corpus order
    passages: PassageChange  # What the change does to the chunk units

    def following(self, kind: type[F]) -> tuple[F, F]:
        """The instances of an `Incremental` class before and after the change."""
        before = self.before.following(kind)
        if kind not in self.after.followed:
            self.after.followed[kind] = before.updated(self)
        return before, self.after.following(kind)

    @property
    def added(self) -> list[Chunk]:
        """New chunks."""
        return [chunk for chunk in self.new_chunks if chunk.id not in self.before.chunk_by_id]

    @property
    def removed(self) -> list[Chunk]:
        """Removed chunks."""
        return [chunk for chunk in self.old_chunks if chunk.id not in self.after.chunk_by_id]


def _passage_change(old: Sequence[Unit], new: Sequence[Unit]) -> PassageChange:
    """Compare the units of changed documents before and after."""
    units_before = {unit.id: unit for unit in old}
    staying = {unit.id for unit in new}
    was, now = ({chunk: unit.chunk_ids for unit in units for chunk in unit.chunk_ids} for units in (old, new))
    delta = Delta(
        put_units=tuple(unit for unit in new if unit.id not in units_before or differs(unit, units_before[unit.id])),
        drop_units=tuple(unit for unit in units_before if unit not in staying),
    )
    return PassageChange(delta, frozenset(chunk for chunk in now if chunk in was and was[chunk] != now[chunk]))


def _documents_after(documents: Mapping[str, StoredDocument], change: CorpusChange) -> dict[str, StoredDocument]:
    documents_after = _replaced(
        documents, change.drop_documents, {document.id: document for document in change.put_documents}
    )
    last = next(reversed(documents.values())).sequence if documents else -1  # type: ignore[call-overload] # a dict's
    for document in change.put_documents:
        before = documents.get(document.id)
        if document.sequence != before.sequence if before else document.sequence <= last:
            return {
                documents_after.id: documents_after
                for documents_after in sorted(documents_after.values(), key=_in_order)
            }
        last = max(last, document.sequence)
    return documents_after


def _in_order(document: StoredDocument) -> tuple[int, str]:
    return document.sequence, document.id


def _by_hash(units: Iterable[Unit], hashes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    unit_ids: dict[str, tuple[str, ...]] = {}
    for unit in units:
        unit_ids[hashes[unit.id]] = (*unit_ids.get(hashes[unit.id], ()), unit.id)
    return unit_ids


def _replaced(items: Mapping[str, T], removed: Iterable[str], added: Mapping[str, T]) -> dict[str, T]:
    """A copy of a mapping without some keys and with others; positions are kept."""
    result = dict(items)
    for key in removed:
        if key not in added:
            result.pop(key, None)
    result.update(added)
    return result


def _spliced(
    items: Sequence[T], key: Callable[[T], Place], removed: Iterable[Place], new: Sequence[tuple[Place, T]]
) -> list[T]:
    """Sorted items without some and with others; unchanged runs are copied as slices."""
    edits: list[tuple[Place, int, T | None]] = [(position, 0, None) for position in removed]
    edits += [(position, 1, item) for position, item in new]
    result: list[T] = []
    start = 0
    for position, comes, item in sorted(edits, key=itemgetter(0, 1)):
        stop = bisect_left(items, position, lo=start, key=key)
        result += items[start:stop]
        start = stop if comes else stop + 1
        if item is not None:
            result.append(item)
    return [*result, *items[start:]]
