"""What an OpenAI-compatible server turned out to support; learnt from its refusals, once per client."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.models.openai.faults import CONTEXT_WORDS, FORM_WORDS
from sire_core.models.structured import schema_name, strict_json_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sire_core.protocols import ModelRequest

__all__ = ["FORMATS", "Features"]

FORMATS = ("json_schema", "json_object", "none")
"""Forms of structured output, strongest first."""

_UNKNOWN_WORDS = re.compile(r"unsupported|unrecognized|unknown|not support|extra", re.IGNORECASE)
_SILENT_REFUSALS = frozenset({400, 415, 422, 500, 501})
_AT_MOST = re.compile(r"(?:at most|maximum(?: value)?(?: of| is|:)?|<=|less than or equal to|up to)\D{0,12}(\d{1,7})")
_TOKEN_WORDS = re.compile(r"max_tokens|max_completion_tokens", re.IGNORECASE)


@dataclass(slots=True)
class Features:
    """Shared by every copy of a client. Only ever steps down, so that concurrent calls agree.

    Attributes:
        format: Index into `FORMATS`.
        fixed: Whether the user chose the format; then it is not changed.
        token_key: Name of the answer's length limit; newer models want `max_completion_tokens`.
        slow: Whether a whole answer took longer than one waits without news; then answers are streamed.
        confirmed: Index of the weakest format that the server has answered; -1 for none.
        most_tokens: Longest answer that the server takes; None where it has not said.
        left_out: Parameters that the server refuses (`temperature`, `stop`, `stream_options`, `stream`).
    """

    format: int = 0
    fixed: bool = False
    token_key: str = "max_tokens"  # noqa: S105 - tokens of text
    left_out: set[str] = field(default_factory=set)
    slow: bool = False
    confirmed: int = -1
    most_tokens: int | None = None

    @classmethod
    def of(cls, structured: str) -> Features:
        """From the user's choice: `auto` or one of `FORMATS`."""
        if structured == "auto":
            return cls()
        if structured not in FORMATS:
            raise ConfigurationError(f"structured must be auto, {', '.join(FORMATS)}, not {structured!r}")
        return cls(format=FORMATS.index(structured), fixed=True)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The part of a request that depends on what the server supports."""
        body: dict[str, Any] = {}
        if "temperature" not in self.left_out:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body[self.token_key] = min(request.max_tokens, self.most_tokens or request.max_tokens)
        if request.stop and "stop" not in self.left_out:
            body["stop"] = list(request.stop)
        schema: type[BaseModel] | None = request.schema
        if schema is not None and FORMATS[self.format] == "json_schema":
            form = {"name": schema_name(schema), "strict": True, "schema": strict_json_schema(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif schema is not None and FORMATS[self.format] == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def streaming(self) -> dict[str, Any]:
        """What asks for the answer as a stream of events that ends with its tokens; empty when the server refuses."""
        wanted: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        if "stream" in self.left_out:
            return {}
        return {name: value for name, value in wanted.items() if name not in self.left_out}

    def step_down(self, body: dict[str, Any], message: str, status: int = 400) -> bool:
        """Learn from a refused request.

        Args:
            body: The request that was refused.
            message: What the server said.
            status: The HTTP status.

        Returns:
            Whether the same call is worth sending again in another form.
        """
        if CONTEXT_WORDS.search(message):
            return False
        if ("max_tokens" in body or "max_completion_tokens" in body) and _TOKEN_WORDS.search(message):
            return self._other_token_key(body, message)
        for name in ("temperature", "stop", "stream_options", "stream"):
            if name in body and re.search(rf"\b{name}(?:ing)?\b", message):  # "streaming is not supported"
                self.left_out.add(name)
                return True
        used = body.get("response_format", {}).get("type")
        if used is None or self.fixed:
            return False
        # Many say nothing that can be understood; what has worked before is not given up for that.
        guessed = status in _SILENT_REFUSALS and self.confirmed < FORMATS.index(used)
        if not guessed and not FORM_WORDS.search(message):
            return False
        self.format = max(self.format, FORMATS.index(used) + 1)
        return True

    def _other_token_key(self, body: dict[str, Any], message: str) -> bool:
        used = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        other = "max_tokens" if used == "max_completion_tokens" else "max_completion_tokens"
        if self.token_key == other:  # another call learnt it meanwhile
            return True
        if other not in message and not _UNKNOWN_WORDS.search(message):
            return self._shorter(body[used], message)
        self.token_key = other
        return True

    def confirm(self, body: dict[str, Any]) -> None:
        """Remember that a request in this form was answered."""
        used = body.get("response_format", {}).get("type")
        if used is not None:
            self.confirmed = max(self.confirmed, FORMATS.index(used))

    def _shorter(self, given: int, message: str) -> bool:
        """Learn the longest answer that the server takes, where it says so."""
        found = _AT_MOST.search(message)
        if found is None or not 0 < int(found[1]) < given:
            return False
        self.most_tokens = int(found[1])
        return True
