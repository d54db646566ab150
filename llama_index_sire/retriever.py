"""`SireRetriever`: the index behind LlamaIndex's retriever interface."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index_instrumentation import get_dispatcher

from llama_index_sire.documents import to_documents
from llama_index_sire.embedding import known_query
from llama_index_sire.filters import FilterLike, both_filters, to_filter
from llama_index_sire.language_model import LlamaIndexModel
from llama_index_sire.mirror import VectorStoreMirror
from llama_index_sire.models import EmbedModelLike, LLMLike, resolve_embed_model, resolve_llm
from llama_index_sire.nodes import to_scored_node
from llama_index_sire.vector_store import open_index
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.models.sync import run_sync

if TYPE_CHECKING:
    from sire_core.recipes.base import Recipe
    from sire_core.types import BuildReport

__all__ = ["SireRetriever"]

dispatcher = get_dispatcher(__name__)

_SETTINGS = "llama_index.json"


class SireRetriever(BaseRetriever):
    """Retrieves passages and what was derived from them, in place of `index.as_retriever()`.

    Every node names its sources in `metadata["sire_doc_ids"]` and `metadata["sire_chunk_ids"]` (JSON lists), scores
    are positive and descending.

    Args:
        index: An index of the core; see `from_documents` and `from_persist_dir`.
        similarity_top_k: How many nodes.
        filters: `MetadataFilters`, or what the core reads, on the metadata of the documents. A derived node passes only
            if all its passages pass.
        callback_manager: `Settings.callback_manager` when left out.
        object_map: For recursive retrieval.
        objects: For recursive retrieval.
        verbose: For recursive retrieval.

    Raises:
        ConfigurationError: `index` is none, `similarity_top_k` is below one, or a filter cannot be translated.
    """

    def __init__(
        self,
        index: Index,
        *,
        similarity_top_k: int = 10,
        filters: FilterLike = None,
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
        to_filter(filters)  # a filter that cannot be read is refused here, not in the first search
        self.index = index
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        super().__init__(
            callback_manager=callback_manager or Settings.callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )

    # --- making one -------------------------------------------------------------------------------------------------

    @classmethod
    def from_documents(
        cls,
        documents: BaseNode | Sequence[BaseNode],
        *,
        recipe: Recipe | str = "sirerag",
        llm: LLMLike = None,
        embed_model: EmbedModelLike = None,
        persist_dir: str | os.PathLike[str] | None = None,
        vector_store: BasePydanticVectorStore | VectorStoreMirror | None = None,
        similarity_top_k: int = 10,
        filters: FilterLike = None,
        **options: Any,
    ) -> SireRetriever:
        """Index documents and return a retriever over them.

        Args:
            documents: Documents, or nodes that a splitter cut from documents.
            recipe: A `Recipe` or its name.
            llm: See `resolve_llm`; without one nothing is spent.
            embed_model: See `resolve_embed_model`.
            persist_dir: The index folder; in memory when left out. Documents that it holds already cost nothing.
            vector_store: The user's store, or a `VectorStoreMirror` of it: gets all nodes, follows every change, ranks.
            similarity_top_k: See the class.
            filters: See the class.
            **options: Further arguments of `sire_core.Index`.
        """
        making = cls.afrom_documents(
            documents,
            recipe=recipe,
            llm=llm,
            embed_model=embed_model,
            persist_dir=persist_dir,
            vector_store=vector_store,
            similarity_top_k=similarity_top_k,
            filters=filters,
            **options,
        )
        return run_sync(making)

    @classmethod
    async def afrom_documents(
        cls,
        documents: BaseNode | Sequence[BaseNode],
        *,
        recipe: Recipe | str = "sirerag",
        llm: LLMLike = None,
        embed_model: EmbedModelLike = None,
        persist_dir: str | os.PathLike[str] | None = None,
        vector_store: BasePydanticVectorStore | VectorStoreMirror | None = None,
        similarity_top_k: int = 10,
        filters: FilterLike = None,
        **options: Any,
    ) -> SireRetriever:
        """See `from_documents`."""
        index = open_index(
            persist_dir,
            recipe,
            vector_store,
            language_model=resolve_llm(llm),
            embedder=resolve_embed_model(embed_model),
            **options,
        )
        retriever = cls(index, similarity_top_k=similarity_top_k, filters=filters)
        await retriever._follow(lambda: index.abuild(to_documents(documents)))
        return retriever

    @classmethod
    def from_persist_dir(
        cls,
        persist_dir: str | os.PathLike[str],
        *,
        recipe: Recipe | str | None = None,
        llm: LLMLike = None,
        embed_model: EmbedModelLike = None,
        vector_store: BasePydanticVectorStore | VectorStoreMirror | None = None,
        similarity_top_k: int | None = None,
        filters: FilterLike = None,
        **options: Any,
    ) -> SireRetriever:
        """Open what `persist` or `from_documents(persist_dir=...)` has written.

        Args:
            persist_dir: The index folder.
            recipe: One of the recipes in it; the latest when left out.
            llm: As when it was built, for changes of the documents; searching needs none.
            embed_model: As when it was built, unless it was the core's default or is set in `Settings`.
            vector_store: As when it was built.
            similarity_top_k: What was saved when left out.
            filters: See the class.
            **options: Further arguments of `sire_core.Index`.

        Raises:
            IndexMissingError: There is no index.
            EmbedderMismatchError: At the first search: another embedding model than the one it was built with.
        """
        from sire_core.pipeline.mirroring import catch_up

        with Index(persist_dir) as known:
            bridged = str(known.stats()["embedder"]).startswith("llama-index:")
        index = open_index(
            persist_dir,
            recipe,
            vector_store,
            language_model=resolve_llm(llm),
            embedder=resolve_embed_model(embed_model) if bridged or embed_model is not None else None,
            **options,
        )
        k = similarity_top_k or _saved_settings(Path(persist_dir)).get("similarity_top_k", 10)
        retriever = cls(index, similarity_top_k=k, filters=filters)
        catch_up(index.push)
        return retriever

    def persist(self, persist_dir: str | os.PathLike[str]) -> None:
        """Write the index and the retriever's settings into a folder.

        Raises:
            StorageError: The folder holds another index already.
        """
        place = Path(persist_dir)
        if self.index.path is None or self.index.path.resolve() != place.resolve():
            self.index.save(place)
        settings = json.dumps({"similarity_top_k": self.similarity_top_k})
        (place / _SETTINGS).write_text(settings, encoding="utf-8")

    # --- changing documents -----------------------------------------------------------------------------------------

    def insert(self, documents: BaseNode | Sequence[BaseNode]) -> BuildReport:
        """Add documents; those that are there already and unchanged cost nothing.

        Raises:
            CorpusError: A document with the same id and another text is there; use `refresh`.
        """
        return run_sync(self.ainsert(documents))

    async def ainsert(self, documents: BaseNode | Sequence[BaseNode]) -> BuildReport:
        """See `insert`."""
        return await self._follow(lambda: self.index.aadd(to_documents(documents)))

    def refresh(self, documents: BaseNode | Sequence[BaseNode]) -> BuildReport:
        """Bring documents up to date: new ones are added, changed ones replaced, unchanged ones left alone."""
        return run_sync(self.arefresh(documents))

    async def arefresh(self, documents: BaseNode | Sequence[BaseNode]) -> BuildReport:
        """See `refresh`."""
        return await self._follow(lambda: self.index.aupdate(to_documents(documents)))

    def delete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """Remove documents and everything derived from them.

        Raises:
            CorpusError: An id is unknown; nothing is deleted.
        """
        return run_sync(self.adelete(ref_doc_ids))

    async def adelete(self, ref_doc_ids: str | Iterable[str]) -> BuildReport:
        """See `delete`."""
        given = [ref_doc_ids] if isinstance(ref_doc_ids, str) else list(ref_doc_ids)
        return await self._follow(lambda: self.index.adelete(given))

    async def _follow(self, change: Callable[[], Awaitable[BuildReport]]) -> BuildReport:
        report = await change()
        if report.failures:
            await self.index.apush()  # a store that missed the change is told again; it raises what the store raises
        return report

    # --- retrieving -------------------------------------------------------------------------------------------------

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        k, where = self.similarity_top_k, to_filter(self.filters)
        with known_query(query_bundle):
            return [to_scored_node(hit) for hit in self.index.search(query_bundle.query_str, k, filter=where)]

    # The base class gives a span to abstract methods only, and runs the sync method on the loop.
    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        k, where = self.similarity_top_k, to_filter(self.filters)
        with known_query(query_bundle):
            return [to_scored_node(hit) for hit in await self.index.asearch(query_bundle.query_str, k, filter=where)]

    def narrowed(self, similarity_top_k: int | None, filters: FilterLike) -> SireRetriever:
        """This retriever with another number of nodes; a filter narrows further, and never widens what it may see."""
        return SireRetriever(
            self.index,
            similarity_top_k=self.similarity_top_k if similarity_top_k is None else similarity_top_k,
            filters=both_filters(self.filters, filters),
            callback_manager=self.callback_manager,
        )

    def as_query_engine(
        self, *, similarity_top_k: int | None = None, filters: FilterLike = None, **kwargs: Any
    ) -> RetrieverQueryEngine:
        """A query engine over this retriever; further arguments are those of `RetrieverQueryEngine.from_args`.

        Without an `llm` the index's own answers, where it was made with one of LlamaIndex's.
        """
        unchanged = similarity_top_k is None and filters is None
        retriever = self if unchanged else self.narrowed(similarity_top_k, filters)
        if isinstance(model := self.index.language_model, LlamaIndexModel):
            kwargs.setdefault("llm", model.llm)
        return RetrieverQueryEngine.from_args(retriever, **kwargs)


def _saved_settings(place: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((place / _SETTINGS).read_text(encoding="utf-8")))
    except FileNotFoundError:  # a folder that the core wrote
        return {}
