"""`SireNodeParser`: turns documents into all units of a recipe as nodes, for any `IngestionPipeline`."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, SerializeAsAny, field_validator, model_validator
from llama_index.core.llms import LLM
from llama_index.core.node_parser.interface import IdFuncCallable, NodeParser
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, NodeRelationship, ObjectType, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_sire.calls import call
from llama_index_sire.documents import to_documents, to_node
from llama_index_sire.embedding import LlamaIndexEmbedder
from llama_index_sire.opening import resolve_llm
from sire_core.arguments import named
from sire_core.documents.chunker import SentenceChunker
from sire_core.errors import ConfigurationError, IndexMissingError, StorageError
from sire_core.index import Index
from sire_core.models.embedder_names import check_embedder_name
from sire_core.models.sync import run_sync
from sire_core.progress import Bars
from sire_core.recipes.registry import recipe_by_name
from sire_core.storage.plain_files import read_checked, write_checked
from sire_core.types import Unit, UnitKind, to_uuid

_logger = logging.getLogger(__name__)
_HELD = "llama_index_nodes.json"


class SireNodeParser(NodeParser):
    """Turns documents into nodes: passages and everything that a recipe derives from them.

    Summaries depend on the whole corpus, but a pipeline passes only changed documents to its transformations. So the
    parser keeps its own index in `persist_dir`. In a pipeline, also pass the pipeline's vector store and document
    store: the parser then deletes outdated nodes from the store, and removes documents that `UPSERTS_AND_DELETE` has
    deleted. Without the document store it does not learn of deletions, and warns. Without the vector store, call
    `delete_retired` after each run.

    Without a `persist_dir`, every call is a corpus of its own, and text derived from a deleted document would stay in
    the store. This is refused, unless `complete` declares that each call has the complete corpus, or `kinds` selects
    only passages.

    Ids are content hashes in the form of UUIDs; `id_func` is not used. Pipelines must run with one worker; several
    workers, each with a part of the corpus, are refused.

    Attributes:
        recipe: Name of a recipe in the registry.
        recipe_settings: Settings of the recipe.
        kinds: The kinds of units to return, for example only the atomic knowledge units and bridging facts of
            `indexrag`: `["aku", "bridge"]`. None means all.
        persist_dir: Folder of the parser's index.
        complete: Whether each call has the complete corpus; needed without a `persist_dir`.
        llm: Extracts and summarizes; `"settings"` uses `Settings.llm`; None works without a model.
        embed_model: Embeds the texts to be clustered: a LlamaIndex model or a name for `resolve_embedder`.
        embed_nodes: Put the vectors of `embed_model` on the nodes, so that the pipeline needs no embedding step.
        seed: Random seed.
        title_key: Metadata key with the title of a document, or a list of keys with its headings.
        vector_store: The pipeline's vector store.
        docstore: The pipeline's document store.
        include_prev_next_rel: Link adjacent passages of a document.
    """

    recipe: str = "sirerag"
    recipe_settings: dict[str, Any] = Field(default_factory=dict)
    kinds: list[UnitKind] | None = None
    persist_dir: str | None = None
    complete: bool = False
    llm: Union[SerializeAsAny[LLM], Literal["settings"], None] = None
    embed_model: Union[SerializeAsAny[BaseEmbedding], str, None] = None
    embed_nodes: bool = False
    seed: int = 0
    title_key: str | list[str] = "title"
    vector_store: BasePydanticVectorStore | None = Field(default=None, exclude=True)
    docstore: BaseDocumentStore | None = Field(default=None, exclude=True)
    include_prev_next_rel: bool = False
    # Not used, and what it is dumped as cannot be read back.
    id_func: IdFuncCallable = Field(default=default_id_func, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        """Refuse unknown keywords, which LlamaIndex ignores; `to_dict` adds `call`."""
        if not isinstance(values, Mapping):
            return values
        stored = ("call", "class_name")
        return named(cls.__name__, {k: v for k, v in values.items() if k not in stored}, cls.model_fields)

    @field_validator("persist_dir", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, Path) else value

    def model_post_init(self, context: Any, /) -> None:
        """Refuse settings that make no sense before anything is read."""
        super().model_post_init(context)
        recipe_by_name(self.recipe, **self.recipe_settings)
        if isinstance(self.embed_model, str):
            check_embedder_name(self.embed_model)
        if self.embed_nodes and not isinstance(self.embed_model, BaseEmbedding):
            raise ConfigurationError("embed_nodes needs an embed_model of LlamaIndex, which embeds the questions too.")
        if (self.vector_store or self.docstore) and not self.persist_dir:
            raise ConfigurationError("A vector_store or docstore can only be followed with a persist_dir.")
        if self.vector_store is not None and self.docstore is None and self._derives():
            # No refusal: a pipeline without a document store deletes nothing, and has none to give.
            _logger.warning(
                "SireNodeParser has a vector_store but no docstore: what it derives from a document stays in the "
                "vector store when the pipeline drops the document. Give it the pipeline's own: docstore=docstore."
            )

    @classmethod
    def class_name(cls) -> str:
        """Name in serialized forms."""
        return "SireNodeParser"

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """As for every component. With an index behind it no two calls are the same, and no cached answer is right."""
        data: dict[str, Any] = super().to_dict(**kwargs)
        return {**data, "call": uuid.uuid4().hex} if self.persist_dir else data

    def __getstate__(self) -> dict[str, Any]:
        raise ConfigurationError(
            "A SireNodeParser looks at the whole corpus and cannot be sent to worker processes, which would each see a "
            "part of it: run the pipeline without num_workers."
        )

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        return run_sync(self._aparse_nodes(nodes, show_progress))

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        with self._index(show_progress) as index:
            missing = [] if self.docstore is None else await asyncio.to_thread(self._missing, index, nodes)
            change = await self._apply(index, nodes, [d for d in missing if not await self._stored(d)])
        if self.vector_store is not None:
            await self._drop(self.vector_store, change.drop, change.retired)
        return list(change.nodes)

    async def _apply(self, index: Index, nodes: Sequence[BaseNode], missing: Sequence[str]) -> _NodeChange:
        documents = to_documents(nodes, self.title_key, chunker=SentenceChunker())
        if not documents and not missing:
            return _NodeChange()
        self._refuse_what_would_go_stale()
        # A large pool takes a while to read: that leaves the loop.
        before = await asyncio.to_thread(_read_pool, index, self.kinds)
        if missing:
            await index.adelete(missing)
        report = await index.aupdate(documents)
        after = await asyncio.to_thread(_read_pool, index, self.kinds)
        held_ids = list(dict.fromkeys((*self._read_held(), *after.derived)))
        self._write_held(held_ids)
        given_ids = [document.id for document in documents]
        # An unchanged document is only seen again when the store does not have it: the last run did not get there.
        again = report.unchanged > 0
        return await asyncio.to_thread(
            _node_change, before, after, [*given_ids, *missing], held_ids, again=again, embed=self.embed_nodes
        )

    def _derives(self) -> bool:
        recipe = recipe_by_name(self.recipe, **self.recipe_settings)
        return bool(recipe.organizers) and self.kinds != [UnitKind.CHUNK]

    def _refuse_what_would_go_stale(self) -> None:
        if not self._derives():
            return
        if not self.persist_dir and not self.complete:
            raise ConfigurationError(
                f"Without a persist_dir nobody removes what {self.recipe} derived from a document when that goes. "
                "Give the parser a persist_dir and the pipeline's vector_store, or complete=True when these documents "
                'are all there will be, or kinds=["chunk"] for passages alone.'
            )
        retired = [] if self.vector_store is not None else self.retired_ids
        if retired:
            raise ConfigurationError(
                f"{len(retired):,} nodes that an earlier run handed out have left the index, and the parser knows no "
                "vector store to delete them from. Call delete_retired(vector_store) after each run, or give the "
                "parser the vector_store."
            )

    def _index(self, show_progress: bool) -> Index:
        model = self.embed_model
        return Index(
            self.persist_dir,
            recipe=recipe_by_name(self.recipe, **self.recipe_settings),
            language_model=resolve_llm(self.llm),
            embedder=LlamaIndexEmbedder(model) if isinstance(model, BaseEmbedding) else model,
            seed=self.seed,
            progress=Bars() if show_progress else None,
        )

    @property
    def retired_ids(self) -> list[str]:
        """Ids of returned nodes that are no longer in the index; each is its own `ref_doc_id`."""
        if not self.persist_dir:
            return []
        with self._index(show_progress=False) as index:
            held_ids = self._read_held()
            pool = _read_pool(index, self.kinds) if held_ids else _PoolSnapshot()
            return list(_node_change(_PoolSnapshot(), pool, held_ids=held_ids).retired)

    def delete_retired(self, vector_store: BasePydanticVectorStore) -> list[str]:
        """Delete nodes that are no longer in the index from a store that was not passed to the parser."""
        return run_sync(self.adelete_retired(vector_store))

    async def adelete_retired(self, vector_store: BasePydanticVectorStore) -> list[str]:
        """See `delete_retired`."""
        retired = await asyncio.to_thread(lambda: self.retired_ids)
        await self._drop(vector_store, retired, retired)
        return retired

    async def _drop(self, store: BasePydanticVectorStore, names: Sequence[str], retired: Sequence[str]) -> None:
        for name in names:
            await call(store.delete, store.adelete, name)
        retired_ids = set(retired)
        self._write_held([name for name in self._read_held() if to_uuid(name) not in retired_ids])

    def _read_held(self) -> list[str]:
        """Ids of derived units whose nodes were handed out and not deleted since; never fewer than the store holds."""
        try:
            return [str(name) for name in read_checked(Path(self.persist_dir, _HELD), list)] if self.persist_dir else []
        except FileNotFoundError:
            return []

    def _write_held(self, ids: Sequence[str]) -> None:
        if self.persist_dir:
            file = Path(self.persist_dir, _HELD)
            try:
                write_checked(file, list(ids))
            except OSError as error:
                raise StorageError(f"Cannot write {file}: {error.strerror}.") from error

    def _missing(self, index: Index, nodes: Sequence[BaseNode]) -> list[str]:
        """Documents of the index that are not given; none when it was never built."""
        given_ids = {node.ref_doc_id or node.node_id for node in nodes}
        with suppress(IndexMissingError):
            return [document for document in index.snapshot().document_ids() if document not in given_ids]
        return []

    async def _stored(self, document: str) -> bool:
        store = self.docstore
        assert store is not None
        if await call(store.get_document_hash, store.aget_document_hash, document) is not None:
            return True
        return bool(await call(store.get_ref_doc_info, store.aget_ref_doc_info, document))


@dataclass(frozen=True, slots=True)
class _PoolSnapshot:
    """The pool of an index at one moment, in its order: passages first, then what was derived, by level."""

    units: Mapping[str, tuple[Unit, tuple[str, ...]]] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    children: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    documents: tuple[str, ...] = ()

    @property
    def derived(self) -> list[str]:
        return [name for name in self.units if not self.is_passage(name)]

    def is_passage(self, name: str) -> bool:
        return self.units[name][0].kind is UnitKind.CHUNK

    def same(self, other: _PoolSnapshot, name: str, *, embed: bool = False) -> bool:
        """True if a unit of both would give the same node, vector included if asked for."""
        return (
            self.units[name] == other.units[name]
            and self.metadata[name] == other.metadata[name]
            and self.children.get(name) == other.children.get(name)
            and (not embed or np.array_equal(self.vectors[name], other.vectors[name]))
        )

    def node(self, name: str, *, embed: bool = False) -> TextNode:
        """The node of a unit; with the index's vector on it if asked for."""
        unit, documents = self.units[name]
        node = to_node(unit, documents, self.metadata[name])
        if name in self.children:
            node.relationships[NodeRelationship.CHILD] = [
                RelatedNodeInfo(node_id=to_uuid(child), node_type=ObjectType.TEXT) for child in self.children[name]
            ]
        if embed:
            node.embedding = self.vectors[name].tolist()
        return node


@dataclass(frozen=True, slots=True)
class _NodeChange:
    """Change of a vector store."""

    drop: tuple[str, ...] = ()
    nodes: tuple[TextNode, ...] = ()
    retired: tuple[str, ...] = ()


def _read_pool(index: Index, kinds: Collection[str] | None = None) -> _PoolSnapshot:
    """Everything in an index; nothing when it was never built."""
    try:
        view = index.view()
    except IndexMissingError:
        return _PoolSnapshot()
    rows = [(position, *view.pool.unit(position)) for position in range(view.size)]
    rows = [row for row in rows if kinds is None or row[1].kind in kinds]
    handed = {unit.id for _, unit, _ in rows}
    children: dict[str, list[str]] = {}
    for edge in view.edges():
        if edge.kind == "child" and edge.target in handed:
            children.setdefault(edge.source, []).append(edge.target)
    return _PoolSnapshot(
        units={unit.id: (unit, documents) for _, unit, documents in rows},
        metadata={unit.id: view.shared_metadata(position) for position, unit, _ in rows},
        children={parent: sorted(members) for parent, members in children.items()},
        vectors={unit.id: view.matrix[position] for position, unit, _ in rows},
        documents=tuple(view.pool.document_ids()) if kinds is None or UnitKind.CHUNK in kinds else (),
    )


def _node_change(
    before: _PoolSnapshot,
    after: _PoolSnapshot,
    given_ids: Collection[str] = (),
    held_ids: Collection[str] = (),
    *,
    again: bool = False,
    embed: bool = False,
) -> _NodeChange:
    changed = {name for name in before.units if name not in after.units or not before.same(after, name, embed=embed)}
    if again:
        changed |= {name for name in after.units if not after.is_passage(name)}
    # Vector stores delete passages by document only. A passage that two documents share may change hands or sources
    # when one of them changes: the document that owned it is put again.
    owners = [before.units[name][1][0] for name in before.units if name in changed and before.is_passage(name)]
    earlier_ids = set(before.documents)
    fresh = dict.fromkeys((*(name for name in given_ids if name in earlier_ids), *owners))
    changes = [
        name
        for name, (_, documents) in after.units.items()
        if name in changed or name not in before.units or (after.is_passage(name) and documents[0] in fresh)
    ]
    retired = tuple(to_uuid(name) for name in held_ids if name not in after.units)
    stale = (to_uuid(name) for name in held_ids if name in after.units and name in changed)
    return _NodeChange(
        drop=(*fresh, *stale, *retired),
        nodes=tuple(after.node(name, embed=embed) for name in changes),
        retired=retired,
    )
