"""Changes of a corpus: one plan for build, add, update and delete."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from sire_core.arguments import similar_names
from sire_core.documents.chunker import SentenceChunker, chunk_documents
from sire_core.documents.stored_corpus import StoredDocument, is_allowed, scoped_id, shown_id, to_documents
from sire_core.errors import CorpusError, KnownDocumentError
from sire_core.filters import Filter
from sire_core.filters.conditions import passes
from sire_core.text.pluralize import count
from sire_core.types import Chunk, Document, Passage, chunk_id, digest

_logger = logging.getLogger(__name__)
Cut = Callable[[SentenceChunker | None, Sequence[Document]], Iterable[tuple[Chunk, ...]]]
"""Makes the chunks of documents."""


@dataclass(frozen=True, slots=True)
class CorpusChange:
    """Documents and chunks that are added or changed, and documents that are removed."""

    put_documents: tuple[StoredDocument, ...] = ()  # New or changed documents
    put_chunks: tuple[Chunk, ...] = ()  # Their chunks
    drop_documents: tuple[str, ...] = ()  # Ids of documents that are gone (changed ones are not listed)
    added: int = 0  # How many are new
    updated: int = 0  # How many changed
    unchanged: int = field(default=0)  # How many were given but are the same

    def __bool__(self) -> bool:
        return bool(self.put_documents or self.drop_documents)


def plan_build(
    stored: Mapping[str, StoredDocument],
    new_documents: Sequence[Document],
    chunker: SentenceChunker | None,
    keep: Collection[str] = (),
    cut: Cut = chunk_documents,
) -> CorpusChange:
    """Plan a build: the corpus becomes the given documents, and some stored ones to keep."""
    new_ids = {document.id for document in new_documents}
    kept_ids = {name for name in keep if name in stored and name not in new_ids}
    change = plan_put(stored, new_documents, chunker, cut=cut)
    removed = tuple(document for document in stored if document not in new_ids and document not in kept_ids)
    return replace(change, drop_documents=removed, unchanged=change.unchanged + len(kept_ids))


def plan_put(
    stored: Mapping[str, StoredDocument],
    new_documents: Sequence[Document],
    chunker: SentenceChunker | None,
    *,
    may_replace: bool = True,
    cut: Cut = chunk_documents,
) -> CorpusChange:
    """Plan to add documents and to replace those with a known id."""
    following = 1 + max((document.sequence for document in stored.values()), default=-1)
    stored_documents: list[StoredDocument] = []
    changed: list[Document] = []
    replaced: list[str] = []
    for document in new_documents:
        content = _content_hash(document, chunker)
        before = stored.get(document.id)
        if before is not None and before.hash == content:
            continue
        if before is not None:
            replaced.append(document.id)
        sequence = before.sequence if before else following
        following += before is None
        stored_documents.append(StoredDocument(document.id, sequence, content, document.title, dict(document.metadata)))
        changed.append(document)
    if replaced and not may_replace:
        raise KnownDocumentError(
            f"Already in the index with another text: {count(len(replaced), 'document')} "
            f"({', '.join(replaced[:10])}). Update them instead of adding them, or give the new ones other ids.",
            tuple(replaced),
        )
    chunks = list(cut(chunker, changed))
    if empty := [document.id for document, of_document in zip(changed, chunks, strict=True) if not of_document]:
        _logger.warning(
            "%s without text: no search finds %s. The first is %r.",
            count(len(empty), "document"),
            "it" if len(empty) == 1 else "them",
            empty[0],
        )
    added, unchanged = len(changed) - len(replaced), len(new_documents) - len(changed)
    put_chunks = tuple(chain.from_iterable(chunks))
    return CorpusChange(tuple(stored_documents), put_chunks, (), added, len(replaced), unchanged)


def plan_put_shown(
    stored: Mapping[str, StoredDocument],
    chunks: Sequence[Chunk],
    new_documents: Sequence[Document],
    chunker: SentenceChunker | None,
    allow: Filter,
    *,
    may_replace: bool = True,
) -> CorpusChange:
    """Like `plan_put`, limited by a filter that new documents must pass; what it hides stays, whatever its id.

    A document whose id a hidden one has is stored under a scoped id, so that nothing tells that the id was taken.
    """
    stored_as = {document.id: document.id for document in new_documents}
    shown = dict(stored)  # as the filter shows it: hidden documents under names that nobody gives
    candidates = {name: stored[name] for name in stored_as if name in stored}
    hidden = _hidden(candidates, chunks, allow)
    for name in stored_as:
        scoped = scoped_id(name, allow)
        if name in hidden or scoped in stored:
            stored_as[name] = scoped
            shown |= {f"hidden {name}": shown.pop(name)} if name in shown else {}
            shown |= {name: stored[scoped]} if scoped in stored else {}
    change = plan_put(shown, new_documents, chunker)
    coming = {document.id: document for document in change.put_documents}
    if refused := _hidden(coming, change.put_chunks, allow):
        names = [document.id for document in new_documents if document.id in refused]
        raise CorpusError(
            f"This index was opened with allow=..., and these documents are not for it: {', '.join(names[:10])}. Each "
            "needs metadata that passes the filter. Nothing was changed; to write anything else, open the index "
            "without allow."
        )
    seen = {chunk.id: chunk.doc_id for chunk in chunks if chunk.doc_id in hidden and is_allowed(chunk, allow, stored)}
    seen_parts = {name: stored[name] for name in seen.values()}
    if not may_replace:
        plan_put({**shown, **seen_parts}, new_documents, chunker, may_replace=False)
    taken = {chunk.id for chunk in chunks if chunk.doc_id not in stored_as.values()}
    gone = _without(stored, chunks, seen)
    return replace(
        change,
        put_documents=(*(replace(d, id=stored_as[d.id]) for d in change.put_documents), *gone.put_documents),
        put_chunks=(*(_stored_as(chunk, stored_as, taken) for chunk in change.put_chunks), *gone.put_chunks),
        drop_documents=gone.drop_documents,
        added=change.added - len(seen_parts),
        updated=change.updated + len(seen_parts),
    )


def _stored_as(chunk: Chunk, stored_as: Mapping[str, str], taken: Collection[str]) -> Chunk:
    """A chunk with the stored id of its document; its own id is that of the shown one, if no hidden chunk has it."""
    doc_id = stored_as[chunk.doc_id]
    own_id = chunk_id(doc_id, chunk.position, chunk.title, chunk.text) if chunk.id in taken else chunk.id
    return replace(chunk, id=own_id, doc_id=doc_id)


def _hidden(documents: Mapping[str, StoredDocument], chunks: Sequence[Chunk], allow: Filter) -> set[str]:
    """Documents of which a filter hides a passage; without passages, those whose metadata do not pass."""
    theirs = [chunk for chunk in chunks if chunk.doc_id in documents]
    without = documents.keys() - {chunk.doc_id for chunk in theirs}
    fields = [(documents[name].metadata, name, "", documents[name].title) for name in without]
    hidden = {name for name, passing in zip(without, passes(allow, fields), strict=True) if not passing}
    return hidden | {chunk.doc_id for chunk in theirs if not is_allowed(chunk, allow, documents)}


def plan_build_shown(
    stored: Mapping[str, StoredDocument],
    chunks: Sequence[Chunk],
    new_documents: Sequence[Document],
    chunker: SentenceChunker | None,
    keep: Collection[str],
    allow: Filter,
) -> CorpusChange:
    """Like `plan_build`, limited by a filter: what it hides stays."""
    staying = {*keep, *(document.id for document in new_documents)}
    change = plan_put_shown(stored, chunks, new_documents, chunker, allow)
    visible = {shown_id(chunk.doc_id, allow) for chunk in chunks if is_allowed(chunk, allow, stored)}
    gone = plan_delete_shown(stored, chunks, [name for name in visible if name not in staying], allow)
    return replace(
        change,
        put_documents=(*change.put_documents, *gone.put_documents),
        put_chunks=(*change.put_chunks, *gone.put_chunks),
        drop_documents=gone.drop_documents,
        unchanged=change.unchanged + len(visible.intersection(keep).difference(d.id for d in new_documents)),
    )


def replacing(
    current: Mapping[str, StoredDocument], stored: Mapping[str, StoredDocument], chunks: Sequence[Chunk]
) -> CorpusChange:
    """Plan to make a corpus a copy of another."""
    documents = [document for name, document in stored.items() if current.get(name) != document]
    changed = {document.id for document in documents}
    removed = tuple(name for name in current if name not in stored)
    updated = len(changed & current.keys())
    passages = tuple(chunk for chunk in chunks if chunk.doc_id in changed)
    return CorpusChange(
        tuple(documents), passages, removed, len(documents) - updated, updated, len(stored) - len(documents)
    )


def plan_delete(stored: Mapping[str, StoredDocument], ids: Iterable[str], *, missing_ok: bool = False) -> CorpusChange:
    """Plan to remove documents; `missing_ok` skips unknown ids."""
    wanted = tuple(dict.fromkeys(ids))
    if not missing_ok:
        check_known(wanted, stored)
    return CorpusChange(drop_documents=tuple(name for name in wanted if name in stored))


def check_known(ids: Iterable[str], stored: Collection[str]) -> None:
    """Refuse to delete unknown ids."""
    stored_ids = stored if isinstance(stored, Mapping) else set(stored)
    missing = [identifier for identifier in dict.fromkeys(ids) if identifier not in stored_ids]
    if missing:
        similar = similar_names(missing[0], stored)
        advice = f"similar to {missing[0]}: {', '.join(similar)}." if similar else "`sire documents` lists the ids."
        raise CorpusError(
            f"Not in the index: {count(len(missing), 'id')} to delete ({', '.join(missing[:10])}). "
            f"Nothing was deleted; {advice}"
        )


def plan_delete_shown(
    stored: Mapping[str, StoredDocument],
    chunks: Sequence[Chunk],
    ids: Iterable[str],
    allow: Filter,
    *,
    missing_ok: bool = False,
) -> CorpusChange:
    """Like `plan_delete`, limited by a filter: passages that do not pass stay, and so do their documents."""
    doc_by_chunk = {chunk.id: chunk.doc_id for chunk in chunks if is_allowed(chunk, allow, stored)}
    shown = {name: shown_id(name, allow) for name in doc_by_chunk.values()}
    visible = {shown[name]: stored[name] for name in shown}
    removed = set(plan_delete(visible, ids, missing_ok=missing_ok).drop_documents)
    return _without(stored, chunks, {name: owner for name, owner in doc_by_chunk.items() if shown[owner] in removed})


def plan_delete_passages(
    stored: Mapping[str, StoredDocument],
    chunks: Sequence[Chunk],
    ids: Collection[str],
    *,
    allow: Filter | None = None,
) -> CorpusChange:
    """Plan to remove single passages, and documents without any left."""
    matches = [chunk for chunk in chunks if (chunk.source_id or chunk.id) in ids and is_allowed(chunk, allow, stored)]
    if cut_here := [chunk.doc_id for chunk in matches if not chunk.source_id]:
        raise CorpusError(
            f"{cut_here[0]} was given whole, and its passages were cut here: with its next update they would come "
            "back. Update the document without what shall go, or delete it. Nothing was deleted."
        )
    return _without(stored, chunks, {chunk.id: chunk.doc_id for chunk in matches})


def _without(
    stored: Mapping[str, StoredDocument],
    chunks: Sequence[Chunk],
    doc_by_chunk: Mapping[str, str],
) -> CorpusChange:
    """Plan to remove passages, documents by id, and documents without passages left."""
    touched = {name: stored[name] for name in doc_by_chunk.values()}
    left = to_documents(touched, (chunk for chunk in chunks if chunk.id not in doc_by_chunk))
    change = plan_put(stored, [document for document in left if document.chunks], None)
    return replace(change, drop_documents=tuple(document.id for document in left if not document.chunks))


def _content_hash(document: Document, chunker: SentenceChunker | None) -> str:
    metadata = json.dumps(dict(document.metadata), sort_keys=True, ensure_ascii=False)
    cut = "as given" if document.chunks or chunker is None else chunker.fingerprint_of(document.text)
    passages = [chunk if isinstance(chunk, str) else _passage_hash(chunk) for chunk in document.chunks]
    return digest(document.title, "" if document.chunks else document.text, *passages, metadata, cut)


def _passage_hash(passage: Passage) -> str:
    metadata = json.dumps(dict(passage.metadata), sort_keys=True, ensure_ascii=False)
    return digest("passage", passage.text, passage.id, passage.title, metadata)
