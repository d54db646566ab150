"""`SireRetriever`: the index behind LlamaIndex's retriever interface."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TransformComponent
from llama_index.core.settings import Settings
from llama_index_instrumentation import get_dispatcher

from llama_index_sire.cutting import fingerprint
from llama_index_sire.document_changes import DocumentChanges, Nodes
from llama_index_sire.embedding import known_query
from llama_index_sire.engines import Engines
from llama_index_sire.filters import FilterLike, both_filters, to_filter, within
from llama_index_sire.nodes import to_scored_node
from llama_index_sire.opening import (
    CUT_BY,
    FIELDS,
    TOP_K,
    open_index,
    read_arguments,
    read_settings,
    saved_titles,
    write_settings,
)
from sire_core.errors import ConfigurationError, IndexMissingError, StorageError
from sire_core.index import Index
from sire_core.models.sync import run_sync
from sire_core.search.passages import check_returns

if TYPE_CHECKING:
    from sire_core.types import Hit

__all__ = ["SireRetriever"]

SCORES = ("recipe", "similarity")
"""What scores of nodes say."""

dispatcher = get_dispatcher(__name__)


class SireRetriever(DocumentChanges, Engines):
    """A LlamaIndex retriever over an index; use it instead of `index.as_retriever()`.

    Nodes come back as they were added, with their classes, ids, metadata, character offsets and relationships; whole
    documents are split by the index. The sources of a node are in `metadata["sire_doc_ids"]` and
    `metadata["sire_chunk_ids"]` (JSON lists). Scores are positive (zero and below become 0.000001, because LlamaIndex
    reads a score of 0.0 as 1.0) and in descending order, except with `scores="similarity"`.

    Args:
        index: An index of the core; see `from_documents` and `from_persist_dir`.
        similarity_top_k: Number of nodes.
        filters: `MetadataFilters` or a filter of the core, on the metadata and the ids (`ref_doc_id`, `doc_id`,
            `node_id`) of nodes. A derived node matches only if all its source passages match.
        doc_ids: Return only nodes of these documents.
        node_ids: Return only these nodes.
        returns: "passages", or "units": also summaries, aggregates and reports, with the metadata that all their source
            passages share.
        scores: "recipe": those of the recipe, without a fixed scale; "similarity": cosine similarities to the question
            from 0 to 1, for cut-offs such as `SimilarityPostprocessor`; the order stays that of the recipe.
        recipe: Name of a recipe in the index; None uses that of the index.
        title_key: Metadata key with the title of added documents, or a list of keys with its headings, outermost first.
            None means the one saved in the folder of the index, else "title".
        transformations: Split added documents, such as `[SentenceSplitter()]`; None leaves that to the index.
        callback_manager: Default: `Settings.callback_manager`.
        object_map: For recursive retrieval: the objects of `IndexNode`s by `index_id`, such as another retriever.
        objects: The same as `IndexNode`s with their objects, instead of `object_map`.
        verbose: Print the objects that recursive retrieval uses.

    Raises:
        ConfigurationError: `index` is not an index, `similarity_top_k` is below one, or a filter cannot be translated.
    """

    def __init__(
        self,
        index: Index,
        *,
        similarity_top_k: int = 10,
        filters: FilterLike = None,
        doc_ids: Collection[str] | None = None,
        node_ids: Collection[str] | None = None,
        returns: str = "passages",
        scores: str = "recipe",
        recipe: str | None = None,
        title_key: str | Sequence[str] | None = None,
        transformations: Sequence[TransformComponent] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        if not callable(getattr(index, "search", None)):
            raise ConfigurationError(
                f"index is an Index, not {type(index).__name__}; from_documents makes one, from_persist_dir opens one."
            )
        if not isinstance(similarity_top_k, int) or similarity_top_k < 1:
            raise ConfigurationError(f"similarity_top_k must be at least 1, not {similarity_top_k!r}.")
        filters = within(filters, doc_ids, node_ids)
        to_filter(filters)  # a filter that cannot be read is refused here, not in the first search
        check_returns(returns)
        if scores not in SCORES:
            raise ConfigurationError(f"scores is 'recipe' or 'similarity', not {scores!r}.")
        self.index = index
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        self.returns = returns
        self.scores = scores
        self.recipe = recipe
        self.title_key = saved_titles(index.path) if title_key is None else title_key
        self.transformations = transformations
        self._persisted: dict[str, object] = {}
        super().__init__(
            callback_manager=callback_manager or Settings.callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    # --- making one -------------------------------------------------------------------------------------------------

    @classmethod
    def from_documents(cls, documents: Nodes, **options: Any) -> SireRetriever:
        """Add documents to a new or existing index, and return a retriever over it.

        In an existing index, documents are added, or replaced if their id is known, and nothing else changes; see also
        `replace_all`.

        Args:
            documents: Documents, or nodes from a splitter, which are not split again.
            **options: `persist_dir` (the index folder; without it, the index is in memory), `recipe` (a name or a
                `Recipe`; by default the recipe saved with the retriever, the folder's latest or the default), `llm`
                (also `extraction_llm`, see `resolve_llm`; without one, no model is called), settings of the recipe
                (`ranker="hybrid"`, or all in `recipe_settings={...}`), `embed_model` (see `resolve_embed_model`),
                `vector_store` (your store, or a `VectorStoreMirror` of it, which is kept up to date and searched),
                `show_progress=True` for progress bars, arguments of the class (`similarity_top_k`, `filters`,
                `transformations`, ...) and of `sire_core.Index`: `chunker`, `seed`, `workers`, `limits` and others.

        Raises:
            CorpusError: Documents contradict each other, or have metadata that is not JSON.
            BuildError: Too many passages failed.
            TypeError: An argument is unknown.
        """
        return run_sync(cls._afrom_documents("from_documents", documents, options))

    @classmethod
    async def afrom_documents(cls, documents: Nodes, **options: Any) -> SireRetriever:
        """See `from_documents`."""
        return await cls._afrom_documents("afrom_documents", documents, options)

    @classmethod
    async def _afrom_documents(cls, called: str, documents: Nodes, options: dict[str, Any]) -> SireRetriever:
        settings, fields = read_arguments(f"{cls.__name__}.{called}", options)
        retriever = cls(open_index(**settings), **fields)
        await retriever.arefresh(documents)
        if retriever.index.path is not None:
            retriever._save_settings(retriever.index.path)
        return retriever

    @classmethod
    def from_persist_dir(cls, persist_dir: str | os.PathLike[str], **options: Any) -> SireRetriever:
        """Open a folder written by `persist` or `from_documents(persist_dir=...)`.

        Args:
            persist_dir: The index folder.
            **options: As in `from_documents`. The defaults of `similarity_top_k` and `recipe` are the saved values.
                `embed_model` is needed unless the index was built with the core's default embedder, or it is set in
                `Settings`.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: The index was built with another embedding model.
            TypeError: An argument is unknown.
        """
        from sire_core.build.mirroring import catch_up

        try:
            with Index(persist_dir) as known:
                known.stats()
        except IndexMissingError as error:
            raise IndexMissingError(
                f"There is no index in {persist_dir}. Make one: {cls.__name__}.from_documents(documents, "
                f"persist_dir={str(persist_dir)!r})."
            ) from error
        settings, fields = read_arguments(f"{cls.__name__}.from_persist_dir", {**options, "persist_dir": persist_dir})
        saved = {name: value for name, value in read_settings(Path(persist_dir)).items() if name == TOP_K}
        retriever = cls(open_index(**settings), **{**saved, **fields})
        retriever.searched().snapshot()  # another embedder or recipe is said here, not by the first search
        catch_up(retriever.index.push)
        return retriever

    def persist(self, persist_dir: str | os.PathLike[str]) -> None:
        """Write the index and the retriever's settings into a folder; a later call replaces this copy.

        Raises:
            StorageError: The folder contains another index, or the copy was changed in the meantime.
        """
        place = Path(persist_dir)
        if self.index.path is None or self.index.path.resolve() != place.resolve():
            name = str(place.resolve())
            if name in self._persisted:
                self._replace_copy(place.resolve(), self._persisted[name])
            else:
                self.index.save(place)
            self._persisted[name] = _state(place)
        self._save_settings(place)

    def _replace_copy(self, place: Path, state: object) -> None:
        from tempfile import TemporaryDirectory

        from sire_core.storage.folder_swap import replace_folder

        if _state(place) != state:
            raise StorageError(f"{place} was changed since it was written here. Name a new folder.")
        with TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as beside:
            self.index.save(Path(beside, "new"))
            replace_folder(place, Path(beside, "new"), Path(beside, "old"))

    def _save_settings(self, place: Path) -> None:
        cut_by = fingerprint(self.transformations)
        if cut_by is None:
            cut_by = read_settings(self.index.path or place).get(CUT_BY)
        write_settings(place, self.similarity_top_k, cut_by, self.searched().recipe_name, self.title_key)

    # --- retrieving -------------------------------------------------------------------------------------------------

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with known_query(query_bundle):
            return [to_scored_node(hit) for hit in run_sync(self._hits(query_bundle.query_str))]

    # The base class gives a span to abstract methods only, and runs the sync method on the loop.
    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with known_query(query_bundle):
            return [to_scored_node(hit) for hit in await self._hits(query_bundle.query_str)]

    async def _hits(self, query: str) -> list[Hit]:
        k, where, index = self.similarity_top_k, to_filter(self.filters), self.searched()
        if self.scores == "recipe":
            return await index.asearch(query, k, filter=where, returns=self.returns)
        snapshot = await index.asnapshot(filter=where)
        snapshot = replace(snapshot, view=await snapshot.view.asking([query]))  # embedded once
        hits = await snapshot.asearch(query, k, returns=self.returns)
        if not hits:
            return []
        question, vectors = await snapshot.vectors(query, hits)
        return [replace(hit, score=float(vector @ question)) for hit, vector in zip(hits, vectors, strict=True)]

    def searched(self) -> Index:
        """The index, with the recipe of this retriever."""
        return self.index if self.recipe is None else self.index.using(self.recipe)

    def narrowed(self, similarity_top_k: int | None, filters: FilterLike, **fields: Any) -> SireRetriever:
        """This retriever with another number of nodes; a filter can only narrow what it returns."""
        mine = {name: getattr(self, name) for name in (*FIELDS, "recipe") if hasattr(self, name)}
        mine["verbose"] = self._verbose
        k = self.similarity_top_k if similarity_top_k is None else similarity_top_k
        return SireRetriever(
            self.index, **{**mine, **fields, "similarity_top_k": k, "filters": both_filters(self.filters, filters)}
        )

    def as_retriever(self, **options: Any) -> SireRetriever:
        """This retriever with other settings: `similarity_top_k`, `recipe`, `returns`, `scores`; filters narrow it."""
        _, fields = read_arguments("SireRetriever.as_retriever", options, fields_only=True)
        return self.narrowed(fields.pop("similarity_top_k", None), fields.pop("filters", None), **fields)


def _state(place: Path) -> object:
    """What is another one after every change of an index, also after one that only waits there."""
    with Index(place) as copy:
        return copy.stats()["generation"], sorted(file.name for file in (place / "pending").glob("*.json"))
