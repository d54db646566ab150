"""`PoolView`: what rankers and selectors see of an index at one generation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.errors import ConfigurationError, EmbedderMismatchError
from sire_core.search.pool_content import PoolContent
from sire_core.search.vectors.sq_index import sq_pays
from sire_core.storage.pool import Pool
from sire_core.types import Edge

if TYPE_CHECKING:
    from sire_core.filters import Filter
    from sire_core.protocols import (
        BoolArray,
        Embedder,
        FloatArray,
        LanguageModel,
        Similarities,
        WrapModel,
    )
    from sire_core.search.vectors.store_scores import FollowedIndex

__all__ = ["PoolView"]


_INLINE = 16_000_000
"""Matrix elements that one product gets through in about 5 ms; more work than that leaves the event loop."""


class PoolView(PoolContent):
    """A read-only snapshot of one recipe's pool. Shared by concurrent queries; holds nothing of a query."""

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        language_model: LanguageModel | None,
        load_edges: Callable[[], Sequence[Edge]],
        load_notes: Callable[[str], Mapping[str, bytes]],
        vectors: FollowedIndex | None = None,
        before: PoolView | None = None,
        wrap_model: WrapModel | None = None,
    ) -> None:
        super().__init__(pool, load_edges, load_notes, before)
        self._embedder = embedder
        self._language_model = language_model
        self._wraps: tuple[WrapModel, ...] | None = ()
        self._named_models = wrap_model
        self._vectors = vectors
        self._questions: dict[str, FloatArray] = {}
        self._cosines: dict[str, FloatArray] = {}

    @property
    def language_model(self) -> LanguageModel | None:
        """The user's model, or None."""
        return self._wrapped(self._language_model)

    @property
    def asks_models(self) -> bool:
        """Whether a language model may be asked."""
        return self._wraps is not None

    def named_model(self, setting: str, name: str) -> LanguageModel | None:
        """The model that a setting names; see `View`. The one way from a setting to a model."""
        if self._wraps is None:
            return None
        from sire_core.models.openai.client import named_model

        model: LanguageModel = named_model(setting, name)
        return self._wrapped(model if self._named_models is None else self._named_models(model))

    def _wrapped(self, model: LanguageModel | None) -> LanguageModel | None:
        if model is None or self._wraps is None:
            return None
        for wrap in self._wraps:
            model = wrap(model)
        return model

    def with_models(self, wrap: WrapModel | None) -> PoolView:
        """This snapshot, whose rankers and selectors ask models through a wrapper; None means that none is asked."""
        twin = copy.copy(self)
        twin._wraps = None if wrap is None or self._wraps is None else (*self._wraps, wrap)  # noqa: SLF001 - a copy of ourselves
        return twin

    async def asking(self, queries: Sequence[str]) -> PoolView:
        """This snapshot for some questions at once: one request to the embedder, one product with all vectors."""
        asked = list(dict.fromkeys(queries))
        if not self.size or not asked:
            return self
        questions = await self.embed_queries(asked)
        twin = copy.copy(self)
        twin._questions, twin._cosines = dict(zip(asked, questions, strict=True)), {}  # noqa: SLF001 - our own kind
        return twin

    @property
    def embedder_fingerprint(self) -> str:
        """Fingerprint of the embedder that the vectors are of; empty when nothing was ever embedded."""
        return "" if self._embedder is None else self._embedder.fingerprint

    async def embed_query(self, query: str) -> FloatArray:
        """Unit-length vector of a question, `[dimension]`."""
        return self._questions[query] if query in self._questions else (await self.embed_queries([query]))[0]

    async def embed_queries(self, queries: Sequence[str]) -> FloatArray:
        """Unit-length vectors of questions or parts of one, `[queries, dimension]`, from one call of the embedder."""
        vectors: FloatArray = unit_rows(np.asarray(await self._embedder.embed(queries, "query"), dtype=np.float32))
        if self.size and vectors.shape[1] != self.matrix.shape[1]:
            raise EmbedderMismatchError(
                f"The embedder {self._embedder.fingerprint} answered vectors of length {vectors.shape[1]}, but the "
                f"index holds vectors of length {self.matrix.shape[1]}. Give the embedder that it was built with."
            )
        return vectors

    async def embed_tokens(self, texts: Sequence[str], kind: str) -> list[FloatArray]:
        """Unit-length vectors of the tokens of texts, each `[tokens, d]`."""
        embed = getattr(self._embedder, "embed_tokens", None)
        if embed is None:
            raise ConfigurationError(
                f"The embedder {self._embedder.fingerprint} has no vectors of single tokens, which late interaction "
                "needs. Give a model: onnx:NAME_OR_FOLDER or st:NAME_OR_FOLDER."
            )
        found: list[FloatArray] = await embed(texts, kind)
        return found

    def waiting(self) -> BoolArray:
        """Which units the user's own store has not got yet, or not as they are, `[size]`; none without one."""
        return np.zeros(self.size, dtype=bool) if self._vectors is None else self._vectors.waiting(self)

    async def cosines(self, query: str, question: FloatArray, where: Filter | None = None) -> FloatArray:
        """Similarity of a question with every unit, `[size]`: exact cosines, or what the user's store makes of them."""
        if self._vectors is not None and self.size:
            from sire_core.search.vectors.store_scores import store_scores

            return await store_scores(self._vectors, query, question, self, where)
        if self._questions.get(query) is question:
            return await self._cosines_of_all(query)
        if self.matrix.size > _INLINE:
            import asyncio

            return np.asarray(await asyncio.to_thread(np.dot, self.matrix, question), dtype=np.float32)
        return np.asarray(np.dot(self.matrix, question) if self.size else np.zeros(0), dtype=np.float32)

    async def similarities(self, query: str, question: FloatArray, where: Filter | None = None) -> Similarities:
        """As `cosines`, but those of a large pool are computed as far as they are read. For one question only."""
        from sire_core.search.similarities import KnownSimilarities, ReadSimilarities

        alone = self._questions.get(query) is not question
        if where is None and alone and self.scans and sq_pays(*self.matrix.shape):
            return ReadSimilarities(self, question)
        return KnownSimilarities(await self.cosines(query, question, where))

    async def _cosines_of_all(self, query: str) -> FloatArray:
        """Of a question that is asked with others: the product is made for the first of them, if any wants it."""
        import asyncio

        if not self._cosines:
            questions = np.stack(list(self._questions.values()))
            product = await asyncio.to_thread(np.dot, questions, self.matrix.T)
            self._cosines.update(zip(self._questions, product, strict=True))
        return self._cosines[query]

    @property
    def scans(self) -> bool:
        """Whether similarities come from the pool's own vectors."""
        return self._vectors is None
