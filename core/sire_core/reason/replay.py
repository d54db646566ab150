"""Answers and searches of a run that are kept, so that it can be taken up where it stopped."""

from __future__ import annotations

import copy
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sire_core.errors import UnusableAnswerError
from sire_core.models.answer_parsing import parse_answer
from sire_core.models.base import AnswerParts, ModelWrapper
from sire_core.models.caching import answer_key
from sire_core.models.usage_meter import UsageMeter, with_meter
from sire_core.protocols import Completion, FloatArray, LanguageModel, ModelRequest, WrapModel

if TYPE_CHECKING:
    from sire_core.filters import FilterLike
    from sire_core.index import Index
    from sire_core.reason import PassageSource
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.validity import Day
    from sire_core.search.view import PoolView


class PausedError(Exception):
    """The next call, which asks for an answer of `schema`, is not allowed here."""

    def __init__(self, schema: type[Any] | None) -> None:
        super().__init__("the next call is made in another step")
        self.schema = schema


class RecordedModel(ModelWrapper):
    """Answers from a record (plain JSON) what it has answered before, asks the model for the rest, and records that.

    With `numbered`, an answer belongs to the place of its call in the run rather than to its prompt: the record then
    holds although prompts differ, for example when the index has changed meanwhile. At most `max_calls` new calls.
    """

    def __init__(
        self, model: LanguageModel, replies: dict[str, Any], *, numbered: bool = False, max_calls: int | None = None
    ) -> None:
        super().__init__(model)
        self._replies = replies
        self._numbered = numbered
        self._count = {"calls": 0, "left": max_calls}
        self._meters: tuple[tuple[UsageMeter, str], ...] = ()

    def metered(self, meter: UsageMeter, stage: str = "") -> RecordedModel:
        """A copy that also counts on `meter`, answers of the record too; record and count of calls are shared."""
        twin = copy.copy(self)
        twin._model = with_meter(self._model, meter, stage)  # noqa: SLF001 - a copy of ourselves
        twin._meters = (*self._meters, (meter, stage))  # noqa: SLF001 - as above
        return twin

    async def asked(self, request: ModelRequest, *, in_pieces: bool) -> AnswerParts:
        """Answer from the record, else ask; `PausedError` where that is one new call too many."""
        key = self._key(request)
        if key in self._replies:
            answer = await self._again(self._replies[key], request.schema)
            if in_pieces:
                yield answer.text
            yield answer
            return
        self._spend(request.schema)
        meter = UsageMeter()
        counted_model = ModelWrapper(with_meter(self._model, meter))
        completion: Completion | None = None
        try:
            async with aclosing(counted_model.asked(request, in_pieces=in_pieces)) as walk:
                async for part in walk:
                    if isinstance(part, str):
                        yield part
                    else:
                        completion = part
        except UnusableAnswerError as error:
            self._replies[key] = _reply(error.text, meter)
            raise
        if completion is not None:
            self._replies[key] = _reply(completion.text, meter)
            yield completion

    def _key(self, request: ModelRequest) -> str:
        """Where the record has the answer of the next call."""
        self._count["calls"] = (self._count["calls"] or 0) + 1
        if self._numbered:
            return str(self._count["calls"])
        return answer_key(self.fingerprint, request)

    def _spend(self, schema: type[Any] | None) -> None:
        """Count a new call, or raise `PausedError`."""
        left = self._count["left"]
        if left is not None:
            if not left:
                raise PausedError(schema)
            self._count["left"] = left - 1

    async def _again(self, reply: dict[str, Any], schema: type[Any] | None) -> Completion:
        """An answer of the record, counted as it was when it was given."""
        used = (reply["input_tokens"], reply["output_tokens"])
        for meter, stage in self._meters:
            for tokens in [used, *[(0, 0)] * (reply["calls"] - 1)]:
                meter.settle(await meter.reserve(sum(tokens), stage), *tokens)
        if schema is None:
            return Completion(reply["text"], None, *used)
        try:
            return Completion(reply["text"], parse_answer(reply["text"], schema), *used)
        except ValueError as error:
            raise UnusableAnswerError(str(error), reply["text"]) from error


def _reply(text: str, meter: UsageMeter) -> dict[str, Any]:
    used = meter.report().total
    return {
        "text": text,
        "calls": used.calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
    }


_MOST = 256


class RecordedSearches:
    """An index or retriever whose rankers and selectors answer from a record; keeps vectors of questions in memory."""

    language_model: LanguageModel | None = None
    """Strategies are given their model."""

    def __init__(
        self, index: Index | PassageSource, replies: dict[str, Any], vectors: dict[tuple[str, str], FloatArray]
    ) -> None:
        self._index = index
        self._replies = replies
        self._vectors = vectors

    async def asnapshot(self, *, filter: FilterLike = None, as_of: Day = None) -> SearchSnapshot:
        """See `Index.asnapshot`."""
        snapshot = await self._index.asnapshot(filter=filter, as_of=as_of)
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
