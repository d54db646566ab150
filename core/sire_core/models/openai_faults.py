"""What goes wrong between us and an OpenAI-compatible server, and whether it is worth another try."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sire_core.errors import ModelError

__all__ = [
    "REQUEST_FAULTS",
    "BadRequest",
    "BrokenResponseError",
    "broken_off",
    "explain_fault",
    "headers_of",
    "is_transient",
    "status_of",
]

REQUEST_FAULTS = frozenset({400, 404, 413, 415, 422, 501})
"""Statuses of servers that do not like the form of a request."""

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 524, 529})
_READ_FAULTS = frozenset({"TransportError", "ClientError"})  # of httpx, httpx2 and aiohttp, while a body is read


class BadRequest(ModelError):  # noqa: N818 - an internal signal; users see the ModelError that it is
    """The server refused the form of the request; carries what it said."""


class BrokenResponseError(Exception):
    """A response that is not what it should be; the server may do better next time."""


def broken_off(fault: Exception, text: str) -> ModelError:
    """The error of a stream that broke after its first pieces: they are passed on already, so it is not repeated."""
    is_transient(fault)  # raises what is no fault of the server
    return ModelError(
        f"the model's answer broke off after {len(text)} characters: {explain_fault(fault)}; "
        f"nothing of it was stored, ask again"
    )


def status_of(fault: Exception) -> int:
    """HTTP status of a refusal, which may also come as an event of a stream; 0 for everything else."""
    body = getattr(fault, "body", None)
    code = getattr(fault, "status_code", None) or (body.get("code") if isinstance(body, dict) else None)
    return code if isinstance(code, int) else 0


def headers_of(fault: Exception) -> Mapping[str, str]:
    """Headers of a refusal."""
    response = getattr(fault, "response", None)
    return getattr(response, "headers", None) or {}


def is_transient(fault: Exception) -> bool:
    """Whether the same request may succeed later.

    Raises:
        Exception: `fault` itself, when it has nothing to do with the server.
    """
    import openai

    if status_of(fault):
        # A spent account answers 429 too, and will not recover by waiting.
        return status_of(fault) in _TRANSIENT and getattr(fault, "code", None) != "insufficient_quota"
    if any(kind.__name__ in _READ_FAULTS for kind in type(fault).__mro__):
        return True
    if isinstance(fault, openai.APIConnectionError | json.JSONDecodeError | UnicodeDecodeError | BrokenResponseError):
        return True  # reset, time-out, half a body, no JSON
    if isinstance(fault, openai.APIError):
        return False
    raise fault


def explain_fault(fault: Exception) -> str:
    """What happened, for people."""
    body = getattr(fault, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    cause = f" ({type(fault.__cause__).__name__})" if fault.__cause__ is not None else ""
    status = f"HTTP {status_of(fault)}: " if status_of(fault) else ""
    return f"{status}{str(message or fault or type(fault).__name__)[:300]}{cause}"
