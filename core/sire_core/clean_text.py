"""Text that hashing, databases, model clients and protocols can all carry: no NUL characters, no lone surrogates."""

from __future__ import annotations

from typing import Any


def clean_text(text: str) -> str:
    """Remove NUL characters, join surrogate pairs and replace lone surrogates by U+FFFD."""
    # Subclasses (string enumerations, numpy strings) become plain strings.
    text = str.__str__(text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def clean_value(value: Any) -> Any:
    """A JSON value whose texts and keys are clean."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_value(item) for key, item in value.items()}
    return value
