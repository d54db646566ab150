"""`RecordedModel`: a language model whose answers are kept, so that a run can be taken up where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sire_core.models.caching import answer_key
from sire_core.models.structured import UnusableAnswerError, parse_answer
from sire_core.protocols import Completion, Prompt

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel

__all__ = ["PausedError", "RecordedModel"]


class PausedError(Exception):
    """The next call is not allowed here.

    Args:
        schema: What it asks for.
    """

    def __init__(self, schema: type[Any] | None) -> None:
        super().__init__("the next call is made in another step")
        self.schema = schema


class RecordedModel:
    """Answers what it has answered before from the record, and asks the model for the rest.

    Args:
        model: Who is asked.
        replies: The record, plain JSON; new answers are added.
        numbered: Whether an answer belongs to the place of its call in the run, rather than to its prompt: the record
            then holds although prompts differ, for example when the index has changed meanwhile.
        most: New calls allowed; None for any number.
    """

    def __init__(
        self, model: LanguageModel, replies: dict[str, Any], *, numbered: bool = False, most: int | None = None
    ) -> None:
        self._model = model
        self._replies = replies
        self._numbered = numbered
        self._most = most
        self._calls = 0

    @property
    def fingerprint(self) -> str:
        """The model's."""
        return self._model.fingerprint

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Completion:
        """Answer a prompt; see `LanguageModel.complete`.

        Raises:
            PausedError: It would be one new call too many.
        """
        self._calls += 1
        key = str(self._calls)
        if not self._numbered:
            key = answer_key(self.fingerprint, prompt, schema, stop, max_tokens, temperature)
        if key in self._replies:
            return _read(self._replies[key], schema)
        if self._most is not None:
            if not self._most:
                raise PausedError(schema)
            self._most -= 1
        try:
            answer = await self._model.complete(
                prompt, schema=schema, stop=stop, max_tokens=max_tokens, temperature=temperature
            )
        except UnusableAnswerError as error:
            self._replies[key] = {"text": error.text, "input_tokens": 0, "output_tokens": 0}
            raise
        self._replies[key] = {
            "text": answer.text,
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
        }
        return answer


def _read(reply: dict[str, Any], schema: type[Any] | None) -> Completion:
    completion = Completion(reply["text"], None, reply["input_tokens"], reply["output_tokens"])
    if schema is None:
        return completion
    try:
        parsed = parse_answer(completion.text, schema)
    except ValueError as error:
        raise UnusableAnswerError(str(error), completion.text) from error
    return Completion(completion.text, parsed, completion.input_tokens, completion.output_tokens)
