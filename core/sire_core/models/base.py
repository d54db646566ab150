"""Base classes of language models: both methods from one, wrappers of other models, checked answers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar, Union

from sire_core.arguments import kind_of
from sire_core.errors import ConfigurationError
from sire_core.models.answer_parsing import ask_checked
from sire_core.protocols import Completion, LanguageModel, ModelRequest, Prompt, StreamingModel
from sire_core.worker_pool import map_all

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_token", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length", "token_limit"), "length"),
    **dict.fromkeys(
        ("content_filter", "refusal", "safety", "recitation", "prohibited_content", "sensitive"), "refusal"
    ),
}


def known_finish(reason: object) -> str | None:
    """`Completion.finish` for the finish reason of a server, which may be empty; None if it is unknown."""
    return _FINISHES.get(str(reason or "stop").lower().replace("-", "_"))


def cut_at(text: str, stop: Sequence[str]) -> str:
    """The text up to the stop text that is complete first: a server that writes on would end there."""
    starts = ((text.find(word), len(word)) for word in stop if word)
    ends = [(at + length, at) for at, length in starts if at >= 0]
    return text[: min(ends)[1]] if ends else text


def begun_at_end(text: str, words: Sequence[str]) -> int:
    """Number of letters at the end of a text that may be the beginning of one of these words."""
    tails = range(min(max(map(len, words), default=1) - 1, len(text)), 0, -1)
    return next((n for n in tails if any(word.startswith(text[-n:]) for word in words)), 0)


class StopCutter:
    """`cut_at` for a text that comes in pieces; what may be the beginning of a stop text waits for the next piece."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [word for word in stop if word]
        self._waiting = ""
        self._ended = False

    def add(self, piece: str) -> str:
        """Return the part of the text so far that is certain and was not returned yet."""
        if self._ended:
            return ""
        text = self._waiting + piece
        whole = cut_at(text, self._stop)
        self._ended = len(whole) < len(text)
        sure = len(whole) if self._ended else len(text) - begun_at_end(text, self._stop)
        self._waiting = whole[sure:]
        return whole[:sure]

    def end(self) -> str:
        """Return the rest."""
        rest, self._waiting = self._waiting, ""
        return rest


AnswerParts = AsyncGenerator[Union[str, Completion], None]
"""Pieces of an answer, then the whole of it; see `StreamingModel`."""

_CONCURRENCY = 8


async def stream_answer(model: LanguageModel, request: ModelRequest) -> AnswerParts:
    """Ask any model; one that cannot stream yields its answer in one piece. See `StreamingModel.stream`."""
    if not isinstance(model, StreamingModel):
        answer = await model.complete(request.prompt, **request.settings)
        yield answer.text
        yield answer
        return
    async with aclosing(model.stream(request.prompt, **request.settings)) as walk:
        async for part in walk:
            yield part


async def whole_answer(parts: AnswerParts) -> Completion:
    """The answer at the end of its pieces."""
    async with aclosing(parts) as walk:
        return [part async for part in walk if not isinstance(part, str)][-1]


async def in_own_task(parts: AnswerParts) -> AnswerParts:
    """Pass the pieces of an answer on from a task that goes on when nobody reads; closing the generator ends it."""
    came: asyncio.Queue[str | Completion | None] = asyncio.Queue()

    async def read() -> None:
        try:
            async with aclosing(parts) as walk:
                async for part in walk:
                    came.put_nowait(part)
        finally:
            came.put_nowait(None)

    reading = asyncio.create_task(read())
    try:
        while (part := await came.get()) is not None:
            yield part
        await reading
    finally:
        reading.cancel()
        if not reading.done():  # when a loop ends it is: waiting would hold up those who close this generator
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.exception()  # the caller is gone


def _texts(stop: Sequence[str]) -> tuple[str, ...]:
    """Stop texts as a tuple; a single string is one stop text."""
    return (stop,) if isinstance(stop, str) else tuple(stop)


def concurrency_of(model: LanguageModel) -> int:
    """Maximum concurrent calls of a model; 8 if it does not state one."""
    return int(getattr(model, "concurrency", _CONCURRENCY))


async def ask_all(
    model: LanguageModel,
    ask: Callable[[Item], Awaitable[Answer]],
    items: Sequence[Item],
    progress: Callable[[int, int], None] | None = None,
) -> list[Answer]:
    """Ask about every item, as many at a time as the model allows; answers in the order of the items."""
    return await map_all(ask, items, concurrency_of(model), progress)


def with_sources(model: LanguageModel, chunk_ids: Sequence[str]) -> LanguageModel:
    """The model, told which chunks it reads if it notes that; see `CachedModel.with_sources`."""
    bind = getattr(model, "with_sources", None)
    return model if bind is None else bind(chunk_ids)


class ModelBase(ABC):
    """A `StreamingModel` that answers a `ModelRequest`; without a `parts` of its own it gives answers in one piece."""

    concurrency: int = _CONCURRENCY
    """Maximum concurrent calls."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the model and every setting that changes its answers."""

    @abstractmethod
    async def answer(self, request: ModelRequest) -> Completion:
        """Answer a request; raises as `LanguageModel.complete` does."""

    async def parts(self, request: ModelRequest) -> AnswerParts:
        """Answer a request in pieces, then as a whole; raises as `StreamingModel.stream` does."""
        answer = await self.answer(request)
        yield answer.text
        yield answer

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Completion:
        """Answer a prompt; see `LanguageModel.complete`."""
        return await self.answer(ModelRequest(prompt, schema, _texts(stop), max_tokens, temperature))

    def stream(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> AnswerParts:
        """Answer a prompt in pieces; see `StreamingModel.stream`."""
        return self.parts(ModelRequest(prompt, schema, _texts(stop), max_tokens, temperature))


class ModelWrapper(ModelBase):
    """A model in front of another one, whose answers it stores, counts, bounds or records."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.concurrency = concurrency_of(model)

    @property
    def fingerprint(self) -> str:
        """The wrapped model's: a wrapper changes no answer."""
        return self._model.fingerprint

    async def answer(self, request: ModelRequest) -> Completion:
        """Ask the wrapped model; see `asked`."""
        return await whole_answer(self.asked(request, in_pieces=False))

    def parts(self, request: ModelRequest) -> AnswerParts:
        """Ask the wrapped model for its answer in pieces; see `asked`."""
        return self.asked(request, in_pieces=True)

    async def asked(self, request: ModelRequest, *, in_pieces: bool) -> AnswerParts:
        """Ask the wrapped model; yields its answer, with `in_pieces` its pieces before."""
        if not in_pieces:
            yield await self._model.complete(request.prompt, **request.settings)
            return
        async with aclosing(stream_answer(self._model, request)) as walk:
            async for part in walk:
                yield part

    async def aclose(self) -> None:
        """Close the wrapped model's connections, where it has any."""
        close = getattr(self._model, "aclose", None)
        if close is not None:
            await close()


class CheckedModel(ModelBase):
    """A model whose raw answers go through the parse ladder (see `ask_structured`) and end at the stop texts.

    A subclass sends one request: `send`, and `pieces` where it can stream. Meters count every one of them, see
    `with_meter`.
    """

    @abstractmethod
    async def send(self, request: ModelRequest) -> Completion:
        """One answered request, unchecked."""

    async def pieces(self, request: ModelRequest) -> AnswerParts:
        """One streamed request, its completion unchecked."""
        answer = await self.send(request)
        yield answer.text
        yield answer

    async def answer(self, request: ModelRequest) -> Completion:
        """Answer a request: validated, repaired once where it does not fit, never empty."""
        return await ask_checked(self._ask, request)

    async def parts(self, request: ModelRequest) -> AnswerParts:
        """Pass pieces on, then the answer as `answer` has it; one that does not fit is asked for again as a whole."""
        cutter = StopCutter(request.stop)
        came: list[Completion] = []
        async with aclosing(self.pieces(request)) as walk:
            async for part in walk:
                if isinstance(part, Completion):
                    came.append(_cut(part, request.stop))
                elif piece := cutter.add(part):
                    yield piece
        if rest := cutter.end():
            yield rest

        async def first_then_ask(repeated: ModelRequest) -> Completion:
            return came.pop() if came else await self._ask(repeated)

        yield await ask_checked(first_then_ask, request)

    async def _ask(self, request: ModelRequest) -> Completion:
        return _cut(await self.send(request), request.stop)


def _cut(answer: Completion, stop: Sequence[str]) -> Completion:
    """End the text at the first stop text, for servers that ignore or refuse `stop`."""
    return replace(answer, text=cut_at(answer.text, stop)) if stop else answer


_FORMS = (
    "pass one of sire_core.models, for example OpenAIChat('gpt-4o-mini') of sire_core.models.openai.client, or an "
    "object with fingerprint and async complete(prompt, ...)"
)
_ADAPTERS = {
    "langchain_core": "that is a model of LangChain: pass it as llm=... of langchain_sire (SireRetriever and others), "
    "or wrap it as langchain_sire.LangChainChat(model)",
    "llama_index": "that is a model of LlamaIndex: pass it as llm=... of llama_index_sire (SireRetriever and others), "
    "or wrap it as llama_index_sire.LlamaIndexModel(model)",
}
"""By the package of a class: how its models are passed."""


def check_language_model(model: object, forms: str = "") -> None:
    """Raise if an argument is neither a language model nor None."""
    if model is None:
        return
    is_class = isinstance(model, type)
    form = model if isinstance(model, type) else type(model)
    packages = {base.__module__.partition(".")[0] for base in form.__mro__}
    theirs = (
        "" if hasattr(form, "fingerprint") else next((_ADAPTERS[name] for name in _ADAPTERS if name in packages), "")
    )
    if not is_class and not theirs and callable(getattr(model, "complete", None)):
        return
    raise ConfigurationError(f"{kind_of(model)} is no language model; {forms or theirs or _FORMS}.")
