"""`StreamedAnswer`: the events of a chat completion, put together again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["StreamedAnswer", "joined"]


def joined(content: Any) -> str:
    """The text of a message's content, which some servers give in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


class StreamedAnswer:
    """Takes the `chat.completion.chunk`s of a stream and has the `chat.completion` they stand for.

    Attributes:
        text: The text so far.
    """

    def __init__(self) -> None:
        self.text = ""
        self._refusal = ""
        self._finish = ""
        self._usage: Any = None

    @property
    def ended(self) -> bool:
        """Whether the server has said how the answer ends; a stream without that was cut off."""
        return bool(self._finish)

    def add(self, event: Any) -> str:
        """The piece of text of an event, which may be empty."""
        if not isinstance(event, Mapping):
            return ""
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices") or [{}]
        choice = choices[0] if isinstance(choices[0], Mapping) else {}
        self._finish = str(choice.get("finish_reason") or self._finish)
        delta = choice.get("delta") or choice.get("message") or {}  # a server that cannot stream answers as a whole
        self._refusal += str(delta.get("refusal") or "")
        piece = joined(delta.get("content"))
        self.text += piece
        return piece

    def whole(self) -> dict[str, Any] | None:
        """What a server answers that does not stream; None before anything came."""
        if not (self.text or self._refusal or self._finish or self._usage):
            return None
        message = {"role": "assistant", "content": self.text, "refusal": self._refusal or None}
        choice = {"index": 0, "message": message, "finish_reason": self._finish or None}
        return {"choices": [choice], "usage": self._usage}
