"""`ScriptedModel`: a language model that does what a test says, without network."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from sire_core.errors import ModelError, RefusalError
from sire_core.models.stops import cut_at
from sire_core.models.streaming import stream_checked
from sire_core.models.structured import ask_checked, strict_json_schema
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, Prompt
from sire_core.testing.scripts import Script, ScriptedCall, default_script

if TYPE_CHECKING:
    from sire_core.models.streaming import AnswerParts

__all__ = ["ScriptedModel"]

_WORD = re.compile(r"\S+\s*|\s+")


class ScriptedModel:
    """A `StreamingModel` that plays a script through the real parse ladder and logs every prompt.

    Args:
        script: A function from a call to a text, or the texts and errors themselves in the order of the calls. None
            gives sensible answers to everything, see `default_script`.
        name: Part of the fingerprint.
        latency: Seconds that an answer takes, or its first word when it is streamed.
        gap: Seconds between two words.
    """

    def __init__(
        self,
        script: Script | Sequence[str | Exception] | None = None,
        *,
        name: str = "default",
        latency: float = 0.0,
        gap: float = 0.0,
    ) -> None:
        self._script = script or default_script
        self._latency = latency
        self._gap = gap
        self._seen: Counter[str] = Counter()
        self._active = 0
        self.name = name
        self.concurrency = 8
        self.log: list[ScriptedCall] = []
        """Every call, in order; repairs are calls of their own."""

    @property
    def fingerprint(self) -> str:
        """`scripted:` and the name."""
        return f"scripted:{self.name}"

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,  # noqa: ARG002 - the protocol's
    ) -> Completion:
        """Answer a prompt; see `LanguageModel.complete`."""
        answer = await ask_checked(partial(self._ask, schema), prompt, schema, max_tokens)
        return replace(answer, text=cut_at(answer.text, stop))

    async def stream(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,  # noqa: ARG002 - the protocol's
    ) -> AnswerParts:
        """Answer a prompt word by word; see `StreamingModel.stream`."""
        ask = partial(self._ask, schema)
        parts = stream_checked(
            self._words(schema, prompt, stop), ask, prompt, schema=schema, stop=stop, max_tokens=max_tokens
        )
        async with aclosing(parts) as walk:
            async for part in walk:
                yield part

    async def _words(self, schema: type[Any] | None, prompt: Prompt, stop: Sequence[str]) -> AnswerParts:
        answer = await self._ask(schema, prompt, None)
        for word in _WORD.findall(answer.text if answer.finish == "stop" else ""):
            yield word
            await asyncio.sleep(self._gap)
        yield replace(answer, text=cut_at(answer.text, stop))

    async def _ask(self, schema: type[Any] | None, prompt: Prompt, _room: int | None) -> Completion:
        self._active += 1
        try:
            form: type[BaseModel] | None = schema
            call = self._note(prompt, None if form is None else strict_json_schema(form))
            await asyncio.sleep(self._latency)
            text = self._play(call)
        except RefusalError as refusal:
            return Completion(str(refusal), finish="refusal")
        finally:
            self._active -= 1
        size = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data)
        return Completion(text, None, size, estimate_tokens(text))

    def _note(self, prompt: Prompt, schema: dict[str, Any] | None) -> ScriptedCall:
        call = ScriptedCall(prompt.instructions, prompt.data, schema, number=len(self.log) + 1, active=self._active)
        attempt = self._seen[call.input]
        self._seen[call.input] += 1
        call = ScriptedCall(call.instructions, call.data, schema, call.number, attempt, self._active)
        self.log.append(call)
        return call

    def _play(self, call: ScriptedCall) -> str:
        if callable(self._script):
            return self._script(call)
        if call.number > len(self._script):
            raise ModelError(f"the script has {len(self._script)} answers, and this is call {call.number}")
        answer = self._script[call.number - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer
