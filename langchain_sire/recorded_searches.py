"""`RecordedSearches`: an index that can be searched again for what was searched before without paying twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_sire.recorded_model import RecordedModel
from sire_core.filters import FilterLike
from sire_core.index import Index

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray, LanguageModel, WrapModel
    from sire_core.reason import PassageSource
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.view import PoolView

__all__ = ["RecordedSearches"]

_MOST = 256


class RecordedSearches:
    """What a strategy takes as its index.

    Args:
        index: What is searched, in either form.
        replies: Record of what rankers and selectors ask their models; see `RecordedModel`.
        vectors: Vectors of questions, kept as long as the process lives.
    """

    language_model: LanguageModel | None = None
    """Strategies are given their model."""

    def __init__(
        self, index: Index | PassageSource, replies: dict[str, Any], vectors: dict[tuple[str, str], FloatArray]
    ) -> None:
        self._index = index
        self._replies = replies
        self._vectors = vectors

    async def asnapshot(self, *, filter: FilterLike = None) -> SearchSnapshot:
        """See `Index.asnapshot`."""
        snapshot = await self._index.asnapshot(filter=filter)
        view: Any = _View(snapshot.view, self._vectors)
        return replace(snapshot, view=view.with_models(lambda model: RecordedModel(model, self._replies)))


class _View:
    """A pool that embeds each question once."""

    def __init__(self, view: PoolView, vectors: dict[tuple[str, str], FloatArray]) -> None:
        self._view = view
        self._vectors = vectors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def with_models(self, wrap: WrapModel | None) -> _View:
        """See `PoolView`."""
        return _View(self._view.with_models(wrap), self._vectors)

    async def embed_query(self, query: str) -> FloatArray:
        """See `PoolView`."""
        key = (self._view.embedder_fingerprint, query)
        vector = self._vectors.get(key)
        if vector is None:
            vector = await self._view.embed_query(query)
            if len(self._vectors) >= _MOST:
                self._vectors.clear()
            self._vectors[key] = vector
        return vector
