"""Names of documents for people and agents: their ids, or their sources where ids are digests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.metadata_values import shown_value

if TYPE_CHECKING:
    from sire_core.types import Hit

NAMES = ("source", "file_name", "file_path", "url", "title")
_GENERATED = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHOWN = 5


def check_cite_key(cite_key: str) -> str:
    """Validate a cite key."""
    if not isinstance(cite_key, str):
        raise ConfigurationError(
            f"cite_key is a metadata key or a template such as '{{source}} ({{page}})', not {cite_key!r}."
        )
    try:
        keys = [key for _, key, _, _ in Formatter().parse(cite_key) if key is not None]
    except ValueError as error:
        raise ConfigurationError(f"The template cite_key={cite_key!r} cannot be read: {error}.") from error
    if "" in keys:
        raise ConfigurationError(f"The template cite_key={cite_key!r} has braces without a metadata key.")
    return cite_key


def cited_names(
    doc_ids: Sequence[str],
    metadata: Mapping[str, Any],
    differing: Mapping[str, Sequence[Any]],
    title: str = "",
    cite_key: str = "",
) -> list[str]:
    """Names of the documents that a passage or derived unit is based on."""
    ids = list(doc_ids)
    if "{" in cite_key:
        keys = {key for _, key, _, _ in Formatter().parse(cite_key) if key}
        values = {**metadata, "id": ", ".join(ids[:_SHOWN]), "title": metadata.get("title") or title}
        if all(values.get(key) not in (None, "") for key in keys):
            return [
                "".join(
                    literal + _formatted(values, key, spec) for literal, key, spec, _ in Formatter().parse(cite_key)
                )
            ]
    elif cite_key:
        return _values(cite_key, metadata, differing, title) or cited_names(ids, metadata, differing, title)
    if any(not _GENERATED.fullmatch(name) for name in ids):
        return ids
    return next((names for key in NAMES if (names := _values(key, metadata, differing, title))), ids)


def _formatted(values: Mapping[str, Any], key: str | None, spec: str | None) -> str:
    """A value as its template says; as it is where it is of another type."""
    try:
        value = "" if key is None else values[key]
        return format(shown_value(value) if isinstance(value, (list, tuple, Mapping)) else value, spec or "")
    except (TypeError, ValueError):
        return shown_value(values[str(key)])


def _values(key: str, metadata: Mapping[str, Any], differing: Mapping[str, Sequence[Any]], title: str) -> list[str]:
    values = [metadata[key]] if key in metadata else list(differing.get(key, ()))
    texts = [str(value) for value in values if isinstance(value, (str, int, float)) and str(value).strip()]
    return list(dict.fromkeys(texts)) or ([title] if key == "title" and title else [])


def citation(names: Sequence[str]) -> str:
    """The first names in one text, and the number of others."""
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def documents_of(hit: Hit, cite_key: str = "") -> str:
    """Names of the first documents of a hit; see `cited_names`."""
    ids = hit.doc_ids or (hit.unit.id,)
    return citation(cited_names(ids, hit.metadata, hit.differing, hit.unit.title, cite_key))


def page_label(hit: Hit) -> str:
    """The pages of a hit, as `page 3` or `pages 3-4`; empty where there are none."""
    pages = hit.pages()
    return f"pages {pages[0]}-{pages[-1]}" if pages[1:] else "".join(f"page {page}" for page in pages)
