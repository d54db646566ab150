"""Faults of model servers: their messages without keys, and whether and when to retry."""

from __future__ import annotations

import asyncio
import html
import json
import random
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from typing_extensions import Self

from sire_core.errors import ConfigurationError
from sire_core.models.base import begun_at_end

_REQUEST_FAULTS = frozenset({400, 404, 413, 415, 422, 501})  # Statuses that refuse the form of a request

_NOT_OF_THE_FORM = frozenset({401, 402, 403, 407, 408, 429})
"""Statuses that do not concern the form of a request, whatever the message."""

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 524, 529})
_READ_FAULTS = frozenset({"TransportError", "ClientError"})  # of httpx, httpx2 and aiohttp, while a body is read
_WRAPPED = 8
_MAX_SHOWN_LETTERS = 300  # Most characters of a server's words in an error

FORM_WORDS = re.compile(
    r"response_format|json_schema|json_object|json mode|structured|schema|grammar|guided|xgrammar|outlines",
    re.IGNORECASE,
)
"""Refusals of the requested form of the answer."""
SYSTEM_WORDS = re.compile(
    r"system (?:role|message|prompt|instruction)|developer instruction|roles? must alternate|"
    r"only (?:the )?user(?:,| and)[a-z, ]{0,30} roles?|(?:role|roles) [`'\"]?system",
    re.IGNORECASE,
)
"""Refusals of messages with instructions, by models whose template has no role for them (Gemma 2, some of Mistral)."""
CONTEXT_WORDS = re.compile(
    r"context[ _]?(?:length|window|size)|maximum (?:context|model) len|max_model_len|n_ctx|prompt is too long|"
    r"too many (?:input )?tokens|input (?:is too|length)|longer than the model|maximum (?:sequence|input) length|"
    r"reduce the length|must have less than \d+ tokens|max_new_tokens. must be|too large to process",
    re.IGNORECASE,
)
"""Refusals of a prompt that is longer than the model's context."""
_HTML_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^<>]{0,500}>", re.IGNORECASE | re.DOTALL)
_HEADER_NUMBER = re.compile(r"\d+(\.\d+)?")


class UnacceptableResponseError(Exception):
    """A response that is too long, takes too long or comes from elsewhere; asking again would not help."""


class BrokenResponseError(Exception):
    """A response that is not what it should be; the server may do better next time."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status_code = status

    @classmethod
    def of(cls, error: object) -> BrokenResponseError:
        """The error that a response holds in the place of an answer, or beside half of one."""
        return cls(words_or_all(error), _code(error))


_FAULT_WORDS = ("error", "message", "detail", "errors", "error_message", "error_description", "msg", "reason", "title")
"""Names of fields that hold a reason, in any case of letters."""


def server_words(body: object) -> str:
    """The reason in the body of an error, whatever its form: OpenAI's, FastAPI's, plain text, a page of HTML."""
    if isinstance(body, str | bytes):
        return _plain(body.decode("utf-8", "replace") if isinstance(body, bytes) else body)
    if isinstance(body, list):
        return "; ".join(filter(None, map(server_words, body[:5])))[:_MAX_SHOWN_LETTERS]
    if not isinstance(body, Mapping):
        return ""
    fields = {str(name).lower(): value for name, value in body.items()}
    words = ": ".join(dict.fromkeys(filter(None, (server_words(fields.get(name)) for name in _FAULT_WORDS))))
    field = fields.get("loc")  # FastAPI says which field
    named = f"{'.'.join(map(str, field))}: " if "msg" in fields and isinstance(field, list) and words else ""
    return f"{named}{words}"[:_MAX_SHOWN_LETTERS]


def words_or_all(body: object) -> str:
    """The reason in the body of an error; where no field of a known name has one, the whole body."""
    return server_words(body) or (
        json.dumps(body, ensure_ascii=False, default=str)[:_MAX_SHOWN_LETTERS] if body else ""
    )


def _plain(text: str) -> str:
    text = text[: 20 * _MAX_SHOWN_LETTERS].strip()
    if text.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):  # text that only looks like JSON is shown as it is
            return server_words(json.loads(text)) or text[:_MAX_SHOWN_LETTERS]
    if text.startswith("<"):
        text = html.unescape(_HTML_TAG.sub(" ", text))
    return " ".join(text.split())[:_MAX_SHOWN_LETTERS]


def words_of(fault: Exception) -> str:
    """Message of a refusal; empty if the server sent none or did not answer."""
    if words := words_or_all(getattr(fault, "body", None)):
        return words
    if isinstance(fault, json.JSONDecodeError):
        return (
            f"the response is no JSON: {_plain(fault.doc[:_MAX_SHOWN_LETTERS])!r}"
            if fault.doc.strip()
            else "the response is empty"
        )
    text = str(fault)
    return "" if text.startswith("Error code:") or not status_of(fault) else _plain(text)


def _code(error: object) -> int:
    """The HTTP status that an error names inside a body."""
    if not isinstance(error, Mapping):
        return 0
    for name in ("code", "status", "status_code"):
        code = error.get(name)
        if isinstance(code, str) and code.isdecimal() and len(code) == 3:
            code = int(code)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
            return code
    return 400 if "invalid_request" in str(error.get("type", "")) else 0


def status_of(fault: Exception) -> int:
    """HTTP status of a refusal, which may also come as an event of a stream; 0 for everything else."""
    status = getattr(fault, "status_code", None)
    return status if isinstance(status, int) and status else _code(getattr(fault, "body", None))


def is_bad_request(fault: Exception, body: Mapping[str, Any]) -> bool:
    """True if a server refuses the form of a request, which another form may mend."""
    status, words = status_of(fault), words_of(fault)
    if status < 400 or status in _REQUEST_FAULTS | _NOT_OF_THE_FORM:
        return status in _REQUEST_FAULTS
    form = "response_format" in body and FORM_WORDS.search(words) is not None
    has_system = "messages" in body and SYSTEM_WORDS.search(words) is not None
    return form or has_system or CONTEXT_WORDS.search(words) is not None


def is_transient(fault: Exception) -> bool:
    """True if the same request may succeed later."""
    import openai

    if status_of(fault):
        # A spent account answers 429 too, and will not recover by waiting.
        return status_of(fault) in _TRANSIENT and getattr(fault, "code", None) != "insufficient_quota"
    if unacceptable(fault) is not None:
        return False
    if any(kind.__name__ in _READ_FAULTS for kind in type(fault).__mro__):
        return True
    # Reset, time-out, half a body; no JSON, or nested too deeply, or with a number too long; an error in a stream.
    if isinstance(fault, openai.APIConnectionError | ValueError | RecursionError | BrokenResponseError):
        return True
    if isinstance(fault, openai.APIError):
        return type(fault) is openai.APIError
    raise fault


def spoils_an_answer(fault: Exception) -> bool:
    """True if a server is there and fails at this request, or answers it with something else than an answer."""
    is_broken = isinstance(fault, ValueError | RecursionError | BrokenResponseError) and not status_of(fault)
    return is_broken or status_of(fault) in (500, 502, 504)


def is_timeout(fault: Exception) -> bool:
    """True if the server took the request and nothing came for as long as one waits."""
    import openai

    timed_out = any(type(cause).__name__ == "ReadTimeout" for cause in _causes(fault))
    return timed_out and isinstance(fault, openai.APITimeoutError) and unacceptable(fault) is None


def why_unreachable(fault: Exception) -> str:
    """Why no connection could be made, with advice: nothing listens, no such host, no trust; else empty."""
    import ssl

    import openai

    causes = list(_causes(fault)) if isinstance(fault, openai.APIConnectionError) else []
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "the connection was refused; start it, or check base_url"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "there is no such host; check base_url"
    fault_of_tls = next((cause for cause in reversed(causes) if isinstance(cause, ssl.SSLError)), None)
    if isinstance(fault_of_tls, ssl.SSLCertVerificationError):
        reason = fault_of_tls.verify_message
        return f"its certificate is not trusted ({reason}); set SSL_CERT_FILE to that of its issuer"
    return "it does not speak TLS; base_url may begin with http:// instead" if fault_of_tls is not None else ""


def unacceptable(fault: BaseException | None) -> UnacceptableResponseError | None:
    """The bound that a response broke, if that is behind a fault; clients wrap it in errors of their own."""
    return next((cause for cause in _causes(fault) if isinstance(cause, UnacceptableResponseError)), None)


def _causes(fault: BaseException | None) -> Iterator[BaseException]:
    """A fault and what is behind it."""
    for _ in range(_WRAPPED):
        if fault is None:
            return
        yield fault
        fault = fault.__cause__ or fault.__context__


def explain_fault(fault: Exception) -> str:
    """Describe a fault in the server's own words, if it sent any, with advice."""
    if (broken := unacceptable(fault)) is not None:
        return str(broken)
    *_, root = (cause for cause in _causes(fault) if isinstance(cause, Exception))  # no cancelled task
    detail = f"{type(root).__name__}: {root}" if str(root) else type(root).__name__
    status = status_of(fault)
    cause = f" ({detail[:200]})" if fault.__cause__ is not None and not status else ""
    words = words_of(fault) or ("the server gave no reason" if status else str(fault) or type(fault).__name__)
    advice = _advice(status, words, fault)
    return (
        f"{f'HTTP {status}: ' if status else ''}{words[:_MAX_SHOWN_LETTERS]}{cause}{f' ({advice})' if advice else ''}"
    )


def _advice(status: int, words: str, fault: Exception) -> str:
    """Advice on a refusal; may be empty."""
    if status in (401, 403):
        return "the key was refused: check OPENAI_API_KEY or api_key, and that it may use this model"
    if status == 404:
        return "there is no such model or address: check the model's name and base_url, which mostly ends in /v1"
    if status == 429 and getattr(fault, "code", None) == "insufficient_quota":
        return "the account has no credit left"
    if status == 413 or (status and CONTEXT_WORDS.search(words)):
        return "the prompt does not fit the model: use smaller passages or a model with a larger context"
    if status in _REQUEST_FAULTS and re.search(r"max_(?:completion_)?tokens", words):
        return "the server does not take this length of an answer"
    return ""


# --------------------------------------------------------------------------------------------------------------------
# Keys

_KEY = re.compile(r"\b(?:sk|pk|rk|gsk|hf)[-_][A-Za-z0-9_-]{16,}|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}")
_MASK = "[key removed]"
_MAX_DEPTH = 20
_LEAST_KEY = 6
_MIN_SECRET_LETTERS = 16
_PLACEHOLDERS = frozenset({"lm-studio", "not-needed", "no-key-required", "sk-no-key-required", "your-api-key"})


def _is_secret(key: str) -> bool:
    """True if a key is one: servers of one's own take words like `ollama`, `unused` and `EMPTY`."""
    is_word = key.isalpha() and len(key) < _MIN_SECRET_LETTERS
    return len(key) >= _LEAST_KEY and not is_word and key.lower() not in _PLACEHOLDERS


class Redactor:
    """Removes keys from what a server sends, before anything of it is stored, logged or shown."""

    def __init__(self, *secrets: str | None) -> None:
        self._known = sorted({key for key in secrets if key and _is_secret(key)}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text without keys."""
        for key in self._known:
            text = text.replace(key, _MASK)
        return _KEY.sub(_MASK, text)

    def clean_value(self, value: Any, depth: int = 0) -> Any:
        """Clean all texts in a JSON value; values nested deeper than in any answer are left out."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict | list) and depth > _MAX_DEPTH:
            return None
        if isinstance(value, list):
            return [self.clean_value(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {name: self.clean_value(item, depth + 1) for name, item in value.items()}
        return value

    def split(self, text: str) -> tuple[str, str]:
        """A text that goes on: what may be shown, and an end that may be the beginning of a key."""
        begun = _BEGUN.search(text)
        at = min(begun.start() if begun else len(text), len(text) - begun_at_end(text, self._known))
        return self.clean(text[:at]), text[at:]


_BEGUN = re.compile(
    r"(?:\b(?:[srph]|gs?)|\b(?:sk|pk|rk|gsk|hf)(?:[-_][A-Za-z0-9_-]{0,200})?|"
    r"\b[Bb](?:e(?:a(?:r(?:er?)?)?)?)?|\b[Bb]earer [A-Za-z0-9._~+/=-]{0,4000})\Z"
)
"""The end of a text that goes on and may become a key."""


def redact_fault(fault: Exception, redactor: Redactor) -> None:
    """Remove keys from an exception of a client and those behind it: their texts get into logs."""
    for cause in _causes(fault):
        cause.args = tuple(redactor.clean(part) if isinstance(part, str) else part for part in cause.args)
        if (response := getattr(cause, "response", None)) is not None and hasattr(cause, "body"):
            cause.body = _whole_body(response) or cause.body
        for name in ("message", "body", "doc"):  # of the official client's, and of what cannot be parsed
            if getattr(cause, name, None):
                with suppress(AttributeError):
                    setattr(cause, name, redactor.clean_value(getattr(cause, name)))


def _whole_body(response: Any) -> Any:
    """The body of a refusal as JSON, or as text where it is none."""
    try:
        return json.loads(response.content)  # which knows UTF-16 by its first bytes
    except (ValueError, RecursionError):
        return response.text
    except Exception:  # noqa: BLE001 - clients differ in what they raise where nothing was read
        return None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter."""

    max_retries: int = 6  # Repetitions after the first try
    base: float = 0.5  # Seconds before the first repetition, doubled every time
    cap: float = 30.0  # Longest wait of our own
    max_retry_after: float = 300.0  # Longest wait that a server may ask for; beyond it the call fails
    seed: int | None = None  # Makes the jitter repeatable

    def __post_init__(self) -> None:
        if self.max_retries < 0 or self.base < 0 or self.cap < 0:
            raise ConfigurationError("max_retries, base and cap of a RetryPolicy must be 0 or more")

    def jitter(self) -> random.Random:
        """A source of jitter for one client."""
        return random.Random(self.seed)  # noqa: S311 - spreads requests over time, hides nothing

    def delay(self, attempt: int, wanted: float | None, source: random.Random) -> float:
        """Seconds before repetition number `attempt` (0-based); `asked` is what the server asked for, if anything."""
        backoff = min(self.cap, self.base * 2.0**attempt) * source.uniform(0.5, 1.0)
        if wanted is None:
            return backoff
        # A little later than asked, and not all at the same moment.
        return wanted + min(backoff, 0.1 * wanted + 0.05)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a response asks to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _HEADER_NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000.0
    value = headers.get("retry-after", "").strip()
    if _HEADER_NUMBER.fullmatch(value):
        return float(value)
    if not value:
        return None
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


class AdaptiveGate:
    """Bounds the requests under way, additive increase and multiplicative decrease. Belongs to one event loop.

    `async with gate` takes a place. `throttled` halves the number of places, once per wave of refusals: refusals of
    requests that began before the last halving are its echo. Places are withheld as they are given back. `succeeded`
    gives out about one more place per round.
    """

    def __init__(self, maximum: int) -> None:
        if maximum < 1:
            raise ConfigurationError(f"concurrency must be at least 1, not {maximum}")
        self._maximum = maximum
        self._width = float(maximum)
        self._places = asyncio.Semaphore(maximum)
        self._withheld = 0
        self._paused_until = 0.0
        self.wave = 0  # Number of halvings so far; a request notes it when it begins

    async def __aenter__(self) -> Self:
        await self._places.acquire()
        try:
            while (pause := self._paused_until - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110 - a clock is waited for
                await asyncio.sleep(pause)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._withheld < self._maximum - int(self._width):
            self._withheld += 1
        else:
            self._places.release()

    def throttled(self, wave: int, pause: float) -> None:
        """The server refused a request for its rate, which began in `wave`; nothing is sent for `pause` seconds."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + pause)
        if wave == self.wave:
            self.wave += 1
            self._width = max(1.0, self._width / 2)

    def succeeded(self) -> None:
        """A request was answered."""
        self._width = min(float(self._maximum), self._width + 1.0 / self._width)
        if self._withheld > self._maximum - int(self._width):
            self._withheld -= 1
            self._places.release()
