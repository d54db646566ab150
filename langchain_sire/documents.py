"""LangChain documents from and to ours. Nobody's objects are changed: both ways make copies."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Union

from langchain_core.documents import Document as LangChainDocument

from sire_core.changes.file_titles import FileTitles
from sire_core.documents.heading_paths import title_of
from sire_core.documents.validation import check_as_many, check_list, text_rows, warn_of_long_passages
from sire_core.errors import CorpusError
from sire_core.files.reading_signs import warn_of_bad_reading
from sire_core.metadata_values import TYPES_KEY, plain_value, restored, with_types
from sire_core.reason.searchers import ForeignHit, foreign_hit
from sire_core.search.context import Evidence
from sire_core.types import Document, Hit, Passage, Unit, digest, to_uuid

Metadatas = Union[Sequence[Mapping[str, Any]], None]
Documents = Iterable[Union[LangChainDocument, Document]]
"""Documents of LangChain, or of `read_documents`."""
Ids = Union[Sequence[Union[str, None]], None]

KEY = "sire"  # Metadata key under which a retrieved document has what we say of it

POOL_KEYS = ("unit_id", "kind", "level", "doc_id", "doc_ids", "chunk_ids")
"""Metadata keys that a document of the pool gets from us."""


class _About(dict[str, Any]):
    """Provenance of a document; equal to any other of the same passage or unit, whatever question led to it.

    Classes of LangChain that join the results of several questions (`MultiQueryRetriever`) tell documents apart by
    everything that they hold.
    """

    __hash__ = None  # as a dict's

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and self._unit() == _About._unit(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _unit(self: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in self.items() if key not in ("score", "path")}


_SPLIT_HERE = "Let sire-rag split them: SireRetriever.from_documents(documents, chunker='sentences')."
_SPLIT_BEFORE = (
    " Or split them before: from langchain_text_splitters import RecursiveCharacterTextSplitter; documents = "
    "RecursiveCharacterTextSplitter(chunk_size=2000).split_documents(documents)."
)
"""For documents of LangChain; its splitters take no others."""


def document_id(document: LangChainDocument) -> str:
    """The document's own id; else one made from its content and metadata, the same in every run."""
    if document.id is not None:
        return str(document.id)
    # Values without a form are refused later, in words that name the document.
    metadata = json.dumps(document.metadata, sort_keys=True, default=_plain_or_repr)
    return digest("langchain", document.page_content, metadata)


def _plain_or_repr(value: object) -> Any:
    try:
        return plain_value(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def from_langchain(
    documents: Documents, title_key: str | Sequence[str] = "title", *, whole: bool = True
) -> list[Document]:
    """Documents for an index."""
    documents = listed(documents)
    converted = [_one(document, number, title_key, whole=whole) for number, document in enumerate(documents)]
    is_read_here = any(isinstance(document, Document) for document in documents)
    warn_of_long_passages(converted, _SPLIT_HERE if is_read_here else _SPLIT_HERE + _SPLIT_BEFORE)
    warn_of_bad_reading(converted, "SireLoader(folder) of langchain_sire")
    return FileTitles(title_key).put(converted)


def listed(documents: Documents) -> list[LangChainDocument | Document]:
    """Documents that a user gave, as a list."""
    return check_list(documents, (LangChainDocument, Document), "langchain_core.documents.Document objects")


def _one(
    document: LangChainDocument | Document, number: int, title_key: str | Sequence[str], *, whole: bool
) -> Document:
    if isinstance(document, Document):  # of `read_documents`
        is_cut = bool(document.chunks) or not whole
        return document if is_cut else replace(document, text="", chunks=(Passage(document.text, id=document.id),))
    for field, kind in (("page_content", str), ("metadata", Mapping)):
        if not isinstance(value := getattr(document, field), kind):
            raise CorpusError(
                f"Document number {number} (id {document.id!r}): {field} is {type(value).__name__}, not "
                f"{'a text' if kind is str else 'a mapping'}."
            )
    metadata, text, name = document.metadata, document.page_content, document_id(document)
    whole = whole and bool(text.strip())
    return Document(
        id=name,
        text="" if whole else text,
        title=title_of(metadata, title_key),
        metadata=_with_types(metadata),
        chunks=(Passage(text, id=name),) if whole else (),
    )


def _with_types(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return with_types(metadata)
    except (TypeError, ValueError, RecursionError):  # refused later, in words that name the document
        return dict(metadata)


def from_texts(texts: Iterable[str], metadatas: Metadatas = None, ids: Ids = None) -> list[LangChainDocument]:
    """LangChain documents from parallel lists, as `VectorStore.from_texts` takes them."""
    rows = text_rows(texts, metadatas, ids)
    return [LangChainDocument(id=name, page_content=text, metadata=metadata) for text, metadata, name in rows]


def with_ids(documents: Documents, ids: Sequence[str | None]) -> list[LangChainDocument | Document]:
    """Copies of documents with other ids."""
    originals = listed(documents)
    check_as_many(len(originals), "documents", ids=ids)
    pairs = zip(originals, ids, strict=True)
    return [
        replace(document, id=str(name)) if isinstance(document, Document) else document.model_copy(update={"id": name})
        for document, name in pairs
    ]


def to_langchain(document: Document) -> LangChainDocument:
    """A document of an index as it was put in; several passages are joined by empty lines."""
    text = document.text or "\n\n".join(passage.text for passage in document.passages)
    return LangChainDocument(id=document.id, page_content=text, metadata=copy.deepcopy(restored(document.metadata)))


def hit_to_langchain(hit: Hit, *, plain: bool = False) -> LangChainDocument:
    """A hit as a document."""
    unit = hit.unit
    metadata = keep_user_keys(restored(hit.metadata), () if plain else (KEY,))
    if not plain:
        metadata[KEY] = _about(hit)
        if unit.title:  # of documents that the core has indexed
            metadata.setdefault("title", unit.title)
    return LangChainDocument(id=unit.source_id, page_content=unit.text, metadata=metadata)


def evidence_to_langchain(evidence: Evidence) -> LangChainDocument:
    """The quoted part of a passage as a document; `metadata["sire"]["spans"]` says where in the passage it stands.

    A passage of another retriever comes back as its own document with the quoted text.
    """
    spans = [list(span) for span in evidence.spans]
    if isinstance(evidence.hit, ForeignHit):
        original = evidence.hit.original
        metadata = {**copy.deepcopy(original.metadata), KEY: {**original.metadata.get(KEY, {}), "spans": spans}}
        return LangChainDocument(id=original.id, page_content=evidence.text, metadata=metadata)
    document = hit_to_langchain(evidence.cut_hit())
    document.metadata[KEY] |= {"spans": spans, **({"pages": pages} if (pages := evidence.pages) else {})}
    return document


def evidence_text(evidence: Sequence[Evidence]) -> str:
    """Evidence as chains write documents into prompts: the texts with empty lines between them."""
    return "\n\n".join(one.text for one in evidence)


def foreign(document: LangChainDocument, rank: int, title_key: str | Sequence[str] = "title") -> ForeignHit:
    """A document of any retriever as a hit; `rank` is from 1."""
    text, source = document.page_content, document.metadata.get("source")
    # Without an id a passage is known by its text and where it is from: the rest of the metadata may be of the search,
    # a score for example, and the same passage would take several places of the context.
    name = digest("langchain", text, str(source)) if document.id is None else str(document.id)
    return foreign_hit(name, text, title_of(document.metadata, title_key), source, 1.0 / rank, document)


def _about(hit: Hit) -> dict[str, Any]:
    about = _About(
        {
            "score": float(hit.score),
            "kind": str(hit.unit.kind),
            "level": int(hit.unit.level),
            "doc_ids": list(hit.doc_ids),
            "chunk_ids": list(hit.unit.chunk_ids),
            "path": [step.note for step in hit.path],
        }
    )
    about |= {key: value for key, value in (("title", hit.unit.title), ("pages", hit.pages())) if value}
    if differing := {key: list(values) for key, values in hit.differing.items() if key != TYPES_KEY}:
        about["differing"] = copy.deepcopy(differing)
    return about


def keep_user_keys(metadata: Mapping[str, Any], ours: Sequence[str]) -> dict[str, Any]:
    """A deep copy in which the user's value under a key of ours stands under `user_<key>`: nothing is lost."""
    copied = copy.deepcopy(dict(metadata))
    return {f"user_{key}" if key in ours else key: value for key, value in copied.items()}


def pool_document(unit: Unit, doc_ids: Sequence[str], shared: Mapping[str, Any]) -> LangChainDocument:
    """One unit as `pool_documents` makes it."""
    metadata = keep_user_keys({key: value for key, value in shared.items() if key != TYPES_KEY}, POOL_KEYS)
    if unit.title:
        metadata["title"] = unit.title
    metadata |= {
        "unit_id": unit.id,
        "kind": str(unit.kind),
        "level": unit.level,
        "doc_id": doc_ids[0],
        "doc_ids": json.dumps(list(doc_ids), ensure_ascii=False),
        "chunk_ids": json.dumps(list(unit.chunk_ids)),
    }
    return LangChainDocument(id=to_uuid(unit.id), page_content=unit.index_text, metadata=metadata)
