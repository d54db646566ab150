"""`ScriptedModel`: a language model that does what a test says, without network."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sire_core.errors import ModelError, RefusalError
from sire_core.models.base import CheckedModel
from sire_core.models.structured import strict_json_schema
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, ModelRequest, Prompt
from sire_core.testing.scripts import Script, ScriptedCall, default_script

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sire_core.models.base import AnswerParts

__all__ = ["ScriptedModel"]

_WORD = re.compile(r"\S+\s*|\s+")


class ScriptedModel(CheckedModel):
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

    async def send(self, request: ModelRequest) -> Completion:
        """One call of the script."""
        self._active += 1
        prompt = request.prompt
        form: type[BaseModel] | None = request.schema
        try:
            call = self._note(prompt, None if form is None else strict_json_schema(form))
            await asyncio.sleep(self._latency)
            text = self._play(call)
        except RefusalError as refusal:
            return Completion(str(refusal), finish="refusal")
        finally:
            self._active -= 1
        size = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data)
        return Completion(text, None, size, estimate_tokens(text))

    async def pieces(self, request: ModelRequest) -> AnswerParts:
        """The same, word by word."""
        answer = await self.send(request)
        for word in _WORD.findall(answer.text if answer.finish == "stop" else ""):
            yield word
            await asyncio.sleep(self._gap)
        yield answer

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
