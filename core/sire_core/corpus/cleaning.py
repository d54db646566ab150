"""Ids and metadata as they can be kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sire_core.clean_text import clean_text, clean_value
from sire_core.errors import CorpusError

__all__ = ["clean_id", "clean_metadata"]


def clean_id(text: str) -> str:
    """An id as it was given: it must be found again under the same name.

    Raises:
        CorpusError: It holds what cannot be kept; the message is the reason alone.
    """
    text = str.__str__(text)
    if clean_text(text) != text:
        raise CorpusError(f"the id {text!r} holds a NUL character or half a surrogate pair; give it another")
    return text


def clean_metadata(metadata: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Copy metadata into plain JSON types with clean strings.

    Args:
        metadata: Values by key.
        where: Names the document in errors.

    Raises:
        CorpusError: A key is not a string, or a value cannot be written as JSON.
    """
    cleaned: dict[str, Any] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise CorpusError(f"{where}: metadata key {key!r} is {_kind(key)}; metadata keys must be strings.")
        try:
            # The round trip turns tuples into lists, so that what is stored equals what is compared later.
            cleaned[clean_text(key)] = clean_value(json.loads(json.dumps(value, allow_nan=False)))
        except (TypeError, ValueError, RecursionError) as error:
            raise CorpusError(
                f"{where}: metadata key {key!r} holds {_kind(value)} that cannot be stored as JSON ({error}); "
                "use strings, finite numbers, true/false, null, lists or mappings of these."
            ) from error
    return cleaned


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
