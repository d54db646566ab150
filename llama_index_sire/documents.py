"""LlamaIndex documents and nodes as documents of the core, cut by transformations or here; and hits as nodes again."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Union

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.ingestion import run_transformations
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)
from llama_index.core.schema import Document as LlamaIndexDocument

from llama_index_sire.calls import call, overrides
from sire_core.documents.chunker import SentenceChunker, Slice, cut_document
from sire_core.documents.heading_paths import title_of
from sire_core.documents.titles import header_title
from sire_core.documents.validation import check_as_many, check_list, require_json, text_rows, warn_of_long_passages
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.files.reading_signs import warn_of_bad_reading
from sire_core.index import Index
from sire_core.metadata_values import lost_types, plain_value, restored
from sire_core.reason import RetrieverSource
from sire_core.reason.searchers import ForeignHit, foreign_hit
from sire_core.search.context import Evidence
from sire_core.text.words import count_tokens
from sire_core.types import Document, Hit, Passage, Unit, UnitKind, digest, to_uuid

Metadatas = Union[Sequence[Mapping[str, Any]], None]

CUT_KEY = "sire_cut"  # Under `NODE_KEY`: from which document, by which transformations a node was cut

NODE_KEY = "sire_node"
"""Metadata key under which other fields of a node (places in the text, relationships) travel as JSON."""

TYPES, ORDER = "types", "order"
"""Under `NODE_KEY`: types of metadata values that JSON does not have, and the order of the keys, which is hashed."""

_CLASS = "class"
_CLASSES = {kind.class_name(): kind for kind in (TextNode, IndexNode, ImageNode)}
"""Classes of nodes that come back as they were."""

_EMPTY_NODE = TextNode()
_FIELDS = (
    *("start_char_idx", "end_char_idx", "excluded_embed_metadata_keys", "excluded_llm_metadata_keys"),
    *("metadata_template", "metadata_separator", "text_template", "mimetype"),
)


class HitMetadata(dict[str, Any]):
    """A node's own metadata as its items; what a search says of the node (`sire_path`, ...) can be read beside them.

    `metadata["sire_path"]`, `metadata.get("sire_path")` and `"sire_path" in metadata` work. Items, length, equality,
    texts for models, JSON and the hash of the node are those of the node as it was added: LlamaIndex joins the results
    of several retrievers by the hash.

    Args:
        items: The items.
        about: Readable beside them.
    """

    def __init__(self, items: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        super().__init__(items)
        self._about = dict(about)

    @property
    def about(self) -> dict[str, Any]:
        """Values that can be read beside the items."""
        return dict(self._about)

    def __missing__(self, key: str) -> Any:
        return self._about[key]

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._about

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return super().get(key, self._about.get(key, default))

    def __reduce__(self) -> tuple[type[HitMetadata], tuple[dict[str, Any], dict[str, Any]]]:
        return type(self), (dict(self), self._about)

    def __deepcopy__(self, memo: dict[int, Any]) -> HitMetadata:
        return type(self)(copy.deepcopy(dict(self), memo), copy.deepcopy(self._about, memo))


def with_ids(nodes: Sequence[BaseNode], ids: Sequence[str]) -> list[BaseNode]:
    """Copies of documents or nodes with other ids."""
    check_as_many(len(nodes), "documents or nodes", ids=ids)
    return [node.model_copy(update={"id_": str(name)}) for node, name in zip(nodes, ids, strict=True)]


def listed(objects: object, kinds: tuple[type, ...] = (BaseNode, Document)) -> list[Any]:
    """Documents or nodes that a user gave, or one of them, as a list."""
    several: Any = [objects] if isinstance(objects, kinds) else objects
    return check_list(several, kinds, "LlamaIndex documents or nodes (llama_index.core.Document, TextNode)")


def as_nodes(document: BaseNode | Document) -> Sequence[BaseNode]:
    """Convert a document of `read_documents`: to a document, or to nodes where it is cut already."""
    if not isinstance(document, Document):
        return [document]
    metadata = {**document.metadata, **({"title": document.title} if document.title else {})}
    if not document.chunks:
        return [LlamaIndexDocument(id_=document.id, text=document.text, metadata=metadata)]
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.id)}
    nodes: list[BaseNode] = []
    for number, passage in enumerate(document.passages, 1):
        passage_metadata = {**metadata, **({"title": passage.title} if passage.title else {}), **passage.metadata}
        name = passage.id or f"{document.id}#{number}"
        nodes.append(TextNode(id_=name, text=passage.text, metadata=passage_metadata, relationships=source))
    return nodes


def documents_of_texts(
    texts: Iterable[str], metadatas: Metadatas = None, ids: Sequence[str] | None = None
) -> list[LlamaIndexDocument]:
    """LlamaIndex documents from parallel lists; without ids they are made from the content."""
    rows = text_rows(texts, metadatas, ids)
    return [
        LlamaIndexDocument(
            id_=digest("llama-index", text, json.dumps(metadata, sort_keys=True, default=repr))
            if name is None
            else str(name),
            text=text,
            metadata=metadata,
        )
        for text, metadata, name in rows
    ]


_REMEDY = (
    "Split them: from llama_index.core.node_parser import SentenceSplitter; "
    "SireRetriever.from_documents(documents, transformations=[SentenceSplitter(chunk_size=512)])."
)


_READER = "SimpleDirectoryReader(folder, file_extractor=SireReader.extractor()), with SireReader of llama_index_sire"


def to_documents(
    nodes: BaseNode | Iterable[BaseNode],
    title_key: str | Sequence[str] = "title",
    *,
    chunker: SentenceChunker | None = None,
    marks: Mapping[str, str] | None = None,
    strict_metadata: bool = False,
) -> list[Document]:
    """Convert documents, or nodes from a splitter.

    A document keeps its id, text and metadata. Nodes become passages of their source document, in the given order, with
    their ids, metadata, character offsets and relationships; they are not split again. The given objects are not
    modified.

    Args:
        nodes: Documents or text nodes, or one of them.
        title_key: Metadata key that holds the title, or a list of keys with its headings.
        chunker: Splits documents; None makes each one a passage.
        marks: What is noted with the nodes of a document, by the document's id.
        strict_metadata: Refuse metadata values that JSON does not have; by default they are stored in another form, and
            come back as they were given.

    Raises:
        CorpusError: Something is no node, has fields that cannot be kept, or one id stands for two things.
    """
    documents: list[Document] = []
    pieces: dict[str, dict[str, BaseNode]] = {}
    for node in listed(nodes, (BaseNode,)):
        if strict_metadata:
            require_json(node.metadata, f"Node {node.node_id!r}")
        if isinstance(node, LlamaIndexDocument):
            documents.append(_whole(node, title_key, chunker))
            continue
        group = pieces.setdefault(node.ref_doc_id or node.node_id, {})
        if group.setdefault(node.node_id, node) != node:
            raise CorpusError(f"Two different nodes have the id {node.node_id!r}. Give each an id of its own.")
    both = sorted(pieces.keys() & {document.id for document in documents})
    if both:
        raise CorpusError(f"Given whole and in pieces, too: {', '.join(both[:10])}. Give the document or its nodes.")
    noted = marks or {}
    groups = ((name, list(group.values())) for name, group in pieces.items())
    documents += [_pieced(name, group, title_key, noted.get(name, "")) for name, group in groups]
    warn_of_long_passages(documents, _REMEDY)
    warn_of_bad_reading(documents, _READER)
    return documents


def _whole(node: LlamaIndexDocument, title_key: str | Sequence[str], chunker: SentenceChunker | None) -> Document:
    text, metadata = node.get_content(metadata_mode=MetadataMode.NONE), _metadata(node)
    about, title = _about(node), title_of(metadata, title_key) or header_title(text)
    document = Document(node.node_id, text, title, metadata)
    if chunker is None:
        document = replace(document, text="", chunks=(Passage(text),) if text.strip() else ())
    passages: list[Passage] = []
    end = 0
    for passage in cut_document(document, chunker).passages:
        piece = _place(text, passage, end)
        fields = about if piece is None else {**about, "start_char_idx": piece.start, "end_char_idx": piece.end}
        end = end if piece is None else piece.end
        node_fields = {NODE_KEY: json.dumps(fields, sort_keys=True)}
        passages.append(replace(passage, metadata={**passage.metadata, **node_fields}))
    return replace(document, text="", chunks=tuple(passages))


def _place(text: str, passage: Passage, before: int) -> Slice | None:
    """A passage in the text that it was cut from, without a repeated head; `before` is the end of the last one.

    None where the passage was cleaned of what no reader needs.
    """
    for body, since in (
        (passage.text, before - passage.repeated),
        (passage.text[passage.repeated :].removeprefix("\n"), before),
    ):
        if (start := text.find(body, max(0, since))) >= 0:
            return Slice(start, start + len(body), body, passage.repeated)
    return None


def _pieced(name: str, group: Sequence[BaseNode], title_key: str | Sequence[str], mark: str) -> Document:
    all_metadata = [_metadata(node) for node in group]
    rest = all_metadata[1:]
    shared = {k: value for k, value in all_metadata[0].items() if all(k in each and each[k] == value for each in rest)}
    title = title_of(shared, title_key) or header_title(group[0].get_content(metadata_mode=MetadataMode.NONE))
    passages: list[Passage] = []
    for node, metadata in zip(group, all_metadata, strict=True):
        differing = {key: value for key, value in metadata.items() if key not in shared}
        about = {**_about(node), CUT_KEY: mark} if mark else _about(node)
        differing[NODE_KEY] = json.dumps(about, sort_keys=True)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        whole = title_of(metadata, title_key)
        passages.append(Passage(text, node.node_id, whole if whole != title else "", differing))
    return Document(name, "", title, shared, tuple(passages))


def _metadata(node: BaseNode) -> dict[str, Any]:
    """A node's own metadata, without what a search said of it."""
    try:
        return {str(key): plain_value(value) for key, value in dict(node.metadata).items()}
    except (TypeError, ValueError, RecursionError):  # refused later, in words that name the document
        return dict(node.metadata)


def _about(node: BaseNode) -> dict[str, Any]:
    """Fields of a node beside its text and metadata that are not the defaults."""
    values = {name: getattr(node, name) for name in _FIELDS if hasattr(node, name)}
    about = {name: value for name, value in values.items() if value != getattr(_EMPTY_NODE, name)}
    with suppress(TypeError, ValueError, RecursionError):  # refused later, in words that name the document
        if types := lost_types(node.metadata):
            about[TYPES] = types
    if list(node.metadata) != sorted(node.metadata):
        about[ORDER] = list(node.metadata)
    if isinstance(node, LlamaIndexDocument):
        return about
    if node.relationships:
        about["relationships"] = {kind.value: _related(to) for kind, to in node.relationships.items()}
    return {**about, **_own_fields(node)}


def _own_fields(node: BaseNode) -> dict[str, Any]:
    """Class of a node that is more than a text, and the fields that only this class has."""
    kind = type(node)
    fields = {name: field for name, field in kind.model_fields.items() if name not in TextNode.model_fields}
    fields.pop("text_resource", None)  # the text itself
    usual = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    changed = {name: getattr(node, name) for name in fields if getattr(node, name) != usual[name]}
    if changed.get("obj") is not None and isinstance(node, IndexNode):
        raise CorpusError(
            f"Node {node.node_id!r} refers to an object, which an index does not store. Give the node with obj=None, "
            f"and the retriever object_map={{{node.index_id!r}: the object}}."
        )
    if changed and kind not in _CLASSES.values():
        raise CorpusError(
            f"Node {node.node_id!r} is a {kind.__name__}, whose {', '.join(changed)} an index does not store. Put them "
            f"into its metadata, and give a {' or '.join(_CLASSES)}."
        )
    return {} if kind not in _CLASSES.values() or kind is TextNode else {_CLASS: kind.class_name(), **changed}


def _related(to: RelatedNodeInfo | list[RelatedNodeInfo]) -> Any:
    """Ids, kinds and hashes; the metadata of other nodes are not copied."""
    if isinstance(to, list):
        return [_related(one) for one in to]
    return [to.node_id, None if to.node_type is None else str(getattr(to.node_type, "value", to.node_type)), to.hash]


def own_metadata(metadata: Mapping[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """A node's metadata with the types and in the order in which it came; takes both out of `about`."""
    types, order = about.pop(TYPES, {}), about.pop(ORDER, sorted(metadata))
    typed = restored(metadata, json.dumps(types))
    return {key: typed[key] for key in [*(key for key in order if key in typed), *(k for k in typed if k not in order)]}


def read_about(text: str) -> tuple[type[TextNode], dict[str, Any]]:
    """Class and fields of a node from what stands under `NODE_KEY`."""
    about: dict[str, Any] = json.loads(text)
    about.pop(CUT_KEY, None)
    node_class = _CLASSES[about.pop(_CLASS, "TextNode")]
    related = about.pop("relationships", {})
    about["relationships"] = {NodeRelationship(kind): _to(related_node) for kind, related_node in related.items()}
    return node_class, about


def _to(entries: list[Any]) -> RelatedNodeInfo | list[RelatedNodeInfo]:
    if entries and isinstance(entries[0], list):
        return [RelatedNodeInfo(node_id=name, node_type=kind, hash=hashed) for name, kind, hashed in entries]
    return RelatedNodeInfo(node_id=entries[0], node_type=entries[1], hash=entries[2]) if entries else []


def fingerprint(transformations: Sequence[TransformComponent] | None) -> list[str] | None:
    """Classes of transformations with a digest of their settings, as LlamaIndex's own pipeline tells them apart."""
    if transformations is None:
        return None
    return [f"{type(each).__name__}:{get_transformation_hash([], each)[:16]}" for each in transformations]


def cut(
    nodes: Sequence[BaseNode],
    index: Index,
    title_key: str | Sequence[str],
    transformations: Sequence[TransformComponent] | None,
    *,
    saved: Sequence[str] | None,
    stored: Callable[[Collection[str]], Mapping[str, Document]],
    everything: bool,
) -> tuple[list[Document], list[str]]:
    """Documents of the core from what the user gives, and ids of those that stay as they are stored."""
    whole: dict[str, LlamaIndexDocument] = {}
    for node in nodes:
        if isinstance(node, LlamaIndexDocument) and whole.setdefault(node.node_id, node).hash != node.hash:
            raise CorpusError(f"Two different documents have the id {node.node_id!r}. Give each an id of its own.")
    stored_documents = stored(whole) if whole else {}
    mine = fingerprint(transformations)
    if whole:
        _refuse_another(mine, saved, everything)
    convert = partial(to_documents, title_key=title_key, chunker=index.chunker, strict_metadata=index.strict_metadata)
    if transformations is None:
        _refuse_nodes(stored_documents)
        return convert(nodes), []
    marks = {name: digest(node.hash, str(title_key), *(mine or ())) for name, node in whole.items()}
    same = {name: document for name, document in stored_documents.items() if _mark(document) == marks[name]}
    pieces = {node.ref_doc_id or node.node_id for node in nodes if not isinstance(node, LlamaIndexDocument)}
    if both := sorted(pieces & whole.keys()):
        raise CorpusError(f"Given whole and in pieces, too: {', '.join(both[:10])}. Give the document or its nodes.")
    fresh = {name: document for name, document in whole.items() if name not in same}
    left = [n for n in nodes if not isinstance(n, LlamaIndexDocument) or n is fresh.get(n.node_id)]
    nodes_made = run_transformations(left, transformations)
    return convert(nodes_made, marks=marks), list(same)


def _refuse_another(mine: list[str] | None, saved: Sequence[str] | None, everything: bool) -> None:
    if not saved or mine == list(saved) or (everything and mine is not None):
        return
    names = ", ".join(each.partition(":")[0] for each in saved)
    how = "without transformations" if mine is None else "with others, or with other settings of them"
    raise ConfigurationError(
        f"The documents of this index were cut by transformations ({names}), and this retriever was made {how}: the "
        "new ones would be cut in another way. Give the same: SireRetriever.from_persist_dir(folder, "
        "transformations=[...]). To cut all of them again, give other ones ([] leaves it to the index) and call "
        "replace_all(documents)."
    )


def _refuse_nodes(stored_documents: Mapping[str, Document]) -> None:
    """Refuse documents that the index holds as nodes that were cut from them elsewhere."""
    nodes_found = [name for name, document in stored_documents.items() if _source(document) == name or _mark(document)]
    if nodes_found:
        raise ConfigurationError(
            f"In the index as nodes that were cut before: {', '.join(nodes_found[:10])}. Whole, a document would be "
            "cut in another way. Give its nodes (splitter.get_nodes_from_documents), or name what cuts it: "
            "SireRetriever.from_persist_dir(folder, transformations=[...]); [] leaves it to the index."
        )


def _mark(document: Document) -> str:
    """Note of `cut` with the passages of a document; empty where the index cut it, or the user did."""
    return str(_about_first_node(document).get(CUT_KEY, ""))


def _source(document: Document) -> str:
    related = _about_first_node(document).get("relationships", {}).get(NodeRelationship.SOURCE.value)
    return str(related[0]) if related else ""


def _about_first_node(document: Document) -> dict[str, Any]:
    first = document.chunks[0] if document.chunks else ""
    metadata = first.metadata if isinstance(first, Passage) else {}
    about: dict[str, Any] = json.loads(metadata.get(NODE_KEY, "{}"))
    return about


PROVENANCE_KEYS = ("sire_kind", "sire_level", "sire_doc_ids", "sire_chunk_ids", "sire_differing", "sire_path")
"""Metadata keys that we add, neither embedded nor shown to models; lists are JSON texts in vector stores."""

MAX_VALUE_TOKENS = 8  # Of metadata that models read with a quote; paths, addresses and summaries are longer
_LEAST = 1e-6
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make one per call


def to_node(
    unit: Unit, doc_ids: Sequence[str], metadata: Mapping[str, Any] | None = None, *, own_id: bool = False
) -> TextNode:
    """Convert a unit into a node of its own; every call makes a new one."""
    return _node(unit, doc_ids, metadata, own_id=own_id, added=_flat(_provenance(unit, doc_ids)))


def _flat(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as every vector store takes it: lists and mappings as JSON texts."""
    return {key: value if isinstance(value, (str, int, float)) else _encode(value) for key, value in metadata.items()}


def passage_node(unit: Unit, doc_ids: Sequence[str], metadata: Mapping[str, Any]) -> TextNode:
    """A passage as the node that it was, with its id, metadata, positions, relationships and hash."""
    return _node(unit, doc_ids, metadata, own_id=True, added={})


def _provenance(unit: Unit, doc_ids: Sequence[str]) -> dict[str, Any]:
    return {
        "sire_kind": unit.kind.value,
        "sire_level": unit.level,
        "sire_doc_ids": list(doc_ids),
        "sire_chunk_ids": list(unit.chunk_ids),
    }


def doc_ids_of(node: BaseNode) -> list[str]:
    """Ids of the documents of a node: of a hit, of one from a vector store that an index fills, or of any other."""
    ids = node.metadata.get("sire_doc_ids") or []
    return (json.loads(ids) if isinstance(ids, str) else list(ids)) or [node.ref_doc_id or node.node_id]


def _node(
    unit: Unit, doc_ids: Sequence[str], metadata: Mapping[str, Any] | None, *, own_id: bool, added: Mapping[str, Any]
) -> TextNode:
    """See `to_node`; `added` are items of its metadata that models and embedders do not see."""
    is_passage, name = unit.kind is UnitKind.CHUNK, to_uuid(unit.id)
    metadata_ = dict(unit.metadata) if metadata is None and is_passage else dict(metadata or {})
    node, about = read_about(metadata_.pop(NODE_KEY, "{}"))
    node_metadata = own_metadata(metadata_, about)
    metadata_ = node_metadata if own_id else metadata_  # a vector store takes what JSON has
    related = about.pop("relationships", {}) if is_passage else {}
    if not is_passage:
        node = TextNode
        about = {key: value for key, value in about.items() if key.startswith("excluded")}
        if unit.title:
            metadata_["title"] = unit.title
    source = related.pop(NodeRelationship.SOURCE, None)
    if is_passage and doc_ids and (source is None or source.node_id != doc_ids[0]):
        source = RelatedNodeInfo(node_id=doc_ids[0], node_type=ObjectType.DOCUMENT)
    elif source is None:  # `delete(ref_doc_id)` of a store must reach it; without SOURCE it would stay
        source = RelatedNodeInfo(node_id=name, node_type=ObjectType.TEXT)
    hidden = {
        key: [*about.pop(key, ()), *(PROVENANCE_KEYS if added else ())]
        for key in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
    }
    return node(
        id_=unit.source_id if own_id and unit.source_ids else name,
        text=unit.text,
        metadata={**metadata_, **added},
        relationships={**related, NodeRelationship.SOURCE: source},
        **hidden,
        **about,
    )


def to_scored_node(hit: Hit) -> NodeWithScore:
    """Convert a hit: a passage as the node that it was, with its id, metadata, places, relationships and hash."""
    node = passage_node(hit.unit, hit.doc_ids, hit.metadata)
    about = _provenance(hit.unit, hit.doc_ids)
    differing = {key: list(values) for key, values in hit.differing.items() if key != NODE_KEY}
    if differing:
        about["sire_differing"] = copy.deepcopy(differing)
    about["sire_path"] = [step.note for step in hit.path]
    about |= {key: value for key, value in (("sire_title", hit.unit.title), ("sire_pages", hit.pages())) if value}
    node.__dict__["metadata"] = HitMetadata(node.metadata, about)  # an assignment would make a plain dict of it
    return NodeWithScore(node=node, score=max(float(hit.score), _LEAST))


def evidence_node(evidence: Evidence) -> NodeWithScore:
    """The quoted part of a passage as a node with the id, metadata and relationships of the whole one.

    `metadata["sire_spans"]` and the character offsets of the node say where the quotes stand. Models do not read long
    values of the metadata.
    """
    hit = evidence.hit if isinstance(evidence.hit, ForeignHit) else evidence.cut_hit()
    scored, spans = _briefly_described(hit), evidence.spans
    node = scored.node
    node.set_content(evidence.text)
    if isinstance(node, TextNode) and node.start_char_idx is not None:
        start = node.start_char_idx
        node.start_char_idx, node.end_char_idx = start + spans[0][0], start + spans[-1][1]
    about = node.metadata.about if isinstance(node.metadata, HitMetadata) else {}
    about |= {"sire_pages": pages} if (pages := evidence.pages) else {}
    node.__dict__["metadata"] = HitMetadata(node.metadata, {**about, "sire_spans": [list(span) for span in spans]})
    return scored


def evidence_content(evidence: Sequence[Evidence]) -> str:
    """Evidence as LlamaIndex writes nodes into prompts: metadata and text, with empty lines between them."""
    nodes = (evidence_node(one).node for one in evidence)
    return "\n\n".join(node.get_content(MetadataMode.LLM) for node in nodes)


def evidence_head(hit: Hit) -> str:
    """Metadata of a passage as LlamaIndex writes it for a model."""
    return _briefly_described(hit).node.get_metadata_str(MetadataMode.LLM)


def _briefly_described(hit: Hit) -> NodeWithScore:
    """A hit as a node that excludes metadata values above `MAX_VALUE_TOKENS`, but titles, from what models read."""
    scored = node_of(hit)
    values = {key: str(value) for key, value in scored.node.metadata.items()}
    scored.node.excluded_llm_metadata_keys = [
        *scored.node.excluded_llm_metadata_keys,
        *(k for k, v in values.items() if v not in hit.unit.title and count_tokens(v) > MAX_VALUE_TOKENS),
    ]
    return scored


def retriever_source(retriever: BaseRetriever) -> RetrieverSource:
    """A retriever as something to reason over; its own settings say how many nodes it gives."""

    async def retrieve(query: str, _: int) -> Sequence[Hit]:
        is_async = overrides(retriever, BaseRetriever, "_aretrieve")
        nodes = await call(retriever.retrieve, retriever.aretrieve, query, is_async=is_async)
        scored = all(node.score is not None and math.isfinite(node.score) for node in nodes)
        return [foreign(node, node.score if scored else None, rank) for rank, node in enumerate(nodes, 1)]

    return RetrieverSource(retrieve, type(retriever).__name__)


def node_of(hit: Hit) -> NodeWithScore:
    """A hit as a node: a copy of the one that the retriever gave, where it was not ours."""
    if isinstance(hit, ForeignHit):
        return NodeWithScore(node=hit.original.node.model_copy(deep=True), score=float(hit.score))
    return to_scored_node(hit)


def foreign(scored_node: NodeWithScore, score: float | None, rank: int) -> ForeignHit:
    """A node of any retriever as a hit; `rank` is from 1."""
    node = scored_node.node
    source, text = node.metadata.get("file_name") or node.ref_doc_id, node.get_content(MetadataMode.NONE)
    score = 1.0 / rank if score is None else score
    return foreign_hit(node.node_id, text, node.metadata.get("title"), str(source or ""), score, scored_node)
