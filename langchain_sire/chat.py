"""`LangChainChat`: any LangChain chat model as a `LanguageModel`; callbacks reach the models inside a search."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Union

from langchain_core.callbacks import Callbacks
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableParallel, RunnableSequence
from pydantic import BaseModel

from sire_core.arguments import kind_of
from sire_core.errors import ConfigurationError, ModelError, SireError
from sire_core.models.answer_parsing import schema_hint, schema_name, strict_json_schema
from sire_core.models.base import AnswerParts, CheckedModel, check_language_model, cut_at, known_finish, whole_answer
from sire_core.models.openai.client import data_url
from sire_core.models.prompt_format import RenderedPrompt, render
from sire_core.models.sync import call, call_streaming
from sire_core.models.usage import UsageLimits, estimate_tokens
from sire_core.models.usage_meter import UsageMeter, counted
from sire_core.protocols import Completion, LanguageModel, ModelRequest

# Context variables travel with tasks, with `asyncio.to_thread` and with the sync bridge.
_callbacks: ContextVar[Callbacks] = ContextVar("langchain_sire_callbacks", default=None)


@contextmanager
def child_runs(callbacks: Callbacks) -> Iterator[None]:
    """Inner model calls of this block report to these callbacks (`run_manager.get_child()`)."""
    token = _callbacks.set(callbacks)
    try:
        yield
    finally:
        _callbacks.reset(token)


def inner_config() -> RunnableConfig:
    """The configuration of an inner call. Outside of `child_runs` LangChain's own context decides."""
    callbacks = _callbacks.get()
    return {} if callbacks is None else {"callbacks": callbacks}


LLMLike = Union[BaseChatModel, "LanguageModel", None]  # A LangChain chat model, a `LanguageModel`, or None

_MODEL_FIELDS = ("model_name", "model", "model_id", "deployment_name", "model_path")
_SAMPLING = ("temperature", "top_p", "top_k", "seed")
_REFUSED_FORMS = (400, 404, 422)


class LangChainChat(CheckedModel):
    """A `StreamingModel` over a LangChain chat model.

    Structured output uses `with_structured_output(include_raw=True)` if the model supports it, otherwise the prompt; an
    invalid answer is repaired once. Temperature, retries and rate limits are the model's own settings. Tokens are
    counted on `meter`, and reported to LangChain's callbacks as usual.

    Args:
        model: The LangChain chat model.
        name: Part of the fingerprint. Needed only if class and model attribute are the same for different models.
        limits: Limits of calls and tokens, counted on `meter`.
        concurrency: Maximum concurrent calls, for builds.
        bound_answers: Whether to set `max_tokens` for a model that has none. Turn it off for models that use tokens for
            thinking.

    Raises:
        ConfigurationError: It is not a chat model.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        name: str = "",
        limits: UsageLimits | None = None,
        concurrency: int = 8,
        bound_answers: bool = True,
    ) -> None:
        if not isinstance(model, BaseChatModel):
            raise ConfigurationError(f"{kind_of(model)} is no LangChain chat model.")
        self.chat_model = model
        self.concurrency = concurrency
        self.meter = UsageMeter(limits)
        self._name = name
        self._bound = bound_answers
        self._meters: tuple[tuple[UsageMeter, str], ...] = ((self.meter, ""),)
        self._learnt = {"native": True}

    def __repr__(self) -> str:
        return f"LangChainChat({self.fingerprint!r})"

    @property
    def fingerprint(self) -> str:
        """Class, model, name, and what decides its answers: stored ones are not those of another temperature."""
        names = (getattr(self.chat_model, attribute, None) for attribute in _MODEL_FIELDS)
        model = next((value for value in names if isinstance(value, str) and value), "")
        chosen = ((name, getattr(self.chat_model, name, None)) for name in _SAMPLING)
        sampling = (f"{name}={value:g}" for name, value in chosen if type(value) in (int, float))
        effort = getattr(self.chat_model, "reasoning_effort", None)
        parts = (type(self.chat_model).__name__, model, self._name, *sampling, effort)
        return ":".join(["langchain", *(part for part in parts if part and isinstance(part, str))])

    def metered(self, meter: UsageMeter, stage: str = "") -> LangChainChat:
        """A copy that also counts every request on `meter`; what was learnt is shared."""
        twin = copy.copy(self)
        twin._meters = (*self._meters, (meter, stage))  # noqa: SLF001 - a copy of ourselves
        return twin

    async def send(self, request: ModelRequest) -> Completion:
        """One request, in the strongest form that the model has. The temperature is the model's own."""
        return await whole_answer(self._asked(request, in_pieces=False))

    def pieces(self, request: ModelRequest) -> AnswerParts:
        """One streamed request, with the model's `astream`."""
        return self._asked(request, in_pieces=True)

    async def _asked(self, request: ModelRequest, *, in_pieces: bool) -> AnswerParts:
        schema = request.schema
        native = None if schema is None else self._native(schema, request.max_tokens)
        if native is not None:
            received = False
            try:
                async with aclosing(self._sent(native, request, "", in_pieces=in_pieces)) as parts:
                    async for part in parts:
                        received = True
                        yield part
            except ModelError as error:
                if received or not _refused(error):
                    raise
            else:
                return
        suffix = "" if schema is None else schema_hint(schema)
        sent = self._sent(self._bounded(request.max_tokens), request, suffix, in_pieces=in_pieces)
        async with aclosing(sent) as parts:
            async for part in parts:
                yield part
        if native is not None:
            self._learnt["native"] = False  # the server took the plain form of the same request

    def _native(self, schema: type[Any], room: int | None) -> Runnable[Any, Any] | None:
        if self._learnt["native"]:
            try:
                return _structured(self._bounded(room), schema)
            except NotImplementedError:
                self._learnt["native"] = False
        return None

    def _bounded(self, room: int | None) -> BaseChatModel:
        """The model with room for an answer; a bound of the user's own stays."""
        if self._bound and room and getattr(self.chat_model, "max_tokens", 0) is None:
            return self.chat_model.model_copy(update={"max_tokens": room})
        return self.chat_model

    async def _sent(
        self, chain: Runnable[Any, Any], request: ModelRequest, suffix: str, *, in_pieces: bool
    ) -> AnswerParts:
        """One request, counted; what goes wrong becomes our kind of error."""
        stop, rendered = list(request.stop), render(request.prompt, suffix=suffix)
        size = estimate_tokens(rendered.system) + estimate_tokens(rendered.user)
        is_plain = isinstance(chain, BaseChatModel)
        arguments: dict[str, Any] = {"stop": stop} if stop and is_plain else {}
        messages, config = _to_messages(rendered, request.prompt.images), inner_config()
        chat = _streaming_part(chain) if in_pieces else None
        text = ""
        async with counted(self._meters, size, request.max_tokens) as used:
            try:
                if chat is None:
                    sync = partial(chain.invoke, messages, config, **arguments)
                    answer = await call(sync, partial(chain.ainvoke, messages, config, **arguments))
                else:
                    async with aclosing(_chat_pieces(chat, messages, config, arguments)) as walk:
                        async for part in walk:
                            if isinstance(part, str):
                                text += part
                                used[:] = size, estimate_tokens(text)  # should it break off here
                                yield part
                            else:
                                answer = part if is_plain else {"raw": part}
            except SireError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever the user's class raises; `_of_error` raises ours
                completion = _of_error(error, size)
            else:
                completion = _of_message(answer, stop, size) if is_plain else _of_structured(answer, size)
            used[:] = completion.input_tokens, completion.output_tokens
        if in_pieces and chat is None:
            yield completion.text
        yield completion


def _structured(model: BaseChatModel, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """The model with the schema as JSON, not as a class: clients that validate themselves throw flawed answers away."""
    form = {"title": schema_name(schema), **strict_json_schema(schema)}
    try:
        return model.with_structured_output(form, include_raw=True, strict=True)
    except (TypeError, ValueError):  # a class that knows no `strict`
        return model.with_structured_output(form, include_raw=True)


def _refused(error: ModelError) -> bool:
    return getattr(error.__cause__, "status_code", None) in _REFUSED_FORMS


def as_language_model(model: LLMLike) -> LanguageModel | None:
    """Language model of an index, from LangChain's or ours."""
    if isinstance(model, BaseChatModel):
        return LangChainChat(model)
    check_language_model(
        model,
        "llm is a LangChain chat model or a LanguageModel: pass the model itself, with no bind, retry or parser around "
        "it; init_chat_model makes one from a name",
    )
    return model


def _to_messages(rendered: RenderedPrompt, images: Sequence[bytes] = ()) -> list[BaseMessage]:
    """Our words as the system message, the data block and images as the user's."""
    if not rendered.user and not images:
        return [HumanMessage(rendered.system)]
    if not images:
        return [SystemMessage(rendered.system), HumanMessage(rendered.user)]
    content: list[str | dict[str, Any]] = [{"type": "text", "text": rendered.user}] if rendered.user else []
    content += [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]
    return [SystemMessage(rendered.system), HumanMessage(content)]


def _of_message(message: Any, stop: Sequence[str], prompt_tokens: int) -> Completion:
    """A plain answer. The text ends at the first stop text, for models that ignore `stop`."""
    if not isinstance(message, AIMessage):
        raise ModelError(f"the chat model answered a {type(message).__name__}, not an AIMessage")
    return _completion(message, cut_at(str(message.text), stop), prompt_tokens)


def _of_structured(answer: Any, prompt_tokens: int) -> Completion:
    """Completion from the answer of `with_structured_output(include_raw=True)`: raw message, value, parsing error."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("raw"), AIMessage):
        raise ModelError("the chat model's structured output has no raw message; is include_raw supported?")
    raw: AIMessage = answer["raw"]
    completion = _completion(raw, _tool_arguments(raw) or str(raw.text), prompt_tokens)
    if "refusal" in type(answer.get("parsing_error")).__name__.lower():
        return replace(completion, text=str(answer["parsing_error"]), finish="refusal")
    return completion


def _of_error(error: Exception, prompt_tokens: int) -> Completion:
    """Some clients raise where others answer: refusals and cut-off answers. Everything else is a `ModelError`."""
    kind = type(error).__name__.lower()
    if "refusal" in kind or "contentfilter" in kind:
        return Completion(str(error), None, prompt_tokens, 0, "refusal")
    if "lengthfinish" in kind:
        return Completion("", None, prompt_tokens, 0, "length")
    raise ModelError(f"the chat model failed: {type(error).__name__}: {error}"[:500]) from error


def _completion(message: AIMessage, text: str, prompt_tokens: int) -> Completion:
    used = message.usage_metadata
    tokens = (used["input_tokens"], used["output_tokens"]) if used else (prompt_tokens, estimate_tokens(text))
    refusal = message.additional_kwargs.get("refusal")
    reason = message.response_metadata.get("finish_reason") or message.response_metadata.get("stop_reason")
    finish = "refusal" if refusal else known_finish(reason) or "stop"
    return Completion(str(refusal or text or reason) if finish == "refusal" else text, None, *tokens, finish)


def _tool_arguments(message: AIMessage) -> str:
    """The arguments of a tool call, which is how many models give structured output."""
    if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
        # As they came: in `tool_calls` LangChain has closed what was cut off.
        return str(message.tool_call_chunks[0]["args"] or "")
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)
    if message.invalid_tool_calls:
        return str(message.invalid_tool_calls[0]["args"] or "")
    return ""


def _streaming_part(chain: Runnable[Any, Any]) -> Runnable[Any, Any] | None:
    """The part that streams of a chat model, or of its `with_structured_output(include_raw=True)`; None if unknown."""
    if isinstance(chain, BaseChatModel):
        return chain
    first = chain.first if isinstance(chain, RunnableSequence) else None
    return first.steps__.get("raw") if isinstance(first, RunnableParallel) else None


async def _chat_pieces(
    chat: Runnable[Any, Any], messages: list[BaseMessage], config: RunnableConfig, arguments: dict[str, Any]
) -> AsyncGenerator[Union[str, AIMessage], None]:
    """Ask a chat model the way its caller came; see `call_streaming`."""

    def sync() -> Generator[Any, None, None]:
        yield from chat.stream(messages, config, **arguments)

    async def native() -> AsyncIterator[Any]:
        return chat.astream(messages, config, **arguments)

    whole: Any = None
    async with aclosing(call_streaming(sync, native)) as walk:
        async for part in walk:
            whole = part if whole is None else whole + part
            if piece := _text(part):
                yield piece
    yield whole


def _text(part: Any) -> str:
    """The text of a chunk; a model that cannot stream gives a message."""
    if not isinstance(part, AIMessage):
        return ""
    calls = part.tool_call_chunks if isinstance(part, AIMessageChunk) else ()
    return str(part.text) + "".join(call.get("args") or "" for call in calls)
