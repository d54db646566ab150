"""Heading paths: the title of a passage holds the title of its document and the headings that it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sire_core.documents.markdown_sections import title_line

_JOINT = " > "
_LEVEL = re.compile(r"[Hh](?:eader|eading)?[ _]?([1-6])")


def title_path(title: str) -> tuple[str, ...]:
    """The title of a document and the headings below it, from the title of a passage."""
    return tuple(title.split(_JOINT))


def is_path(title: str) -> bool:
    """True if the title of a passage holds headings below that of its document."""
    return _JOINT in title


def joined_path(names: Iterable[str]) -> str:
    """The title of a passage whose path is `names`; it is part of ids and of what is embedded."""
    return _JOINT.join(names)


def path_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The section path that a framework's splitter left in the metadata: `Header 1`, `Header 2` .. or `header_path`."""
    path = metadata.get("header_path")
    if isinstance(path, str):
        return tuple(part.strip() for part in path.split("/") if part.strip())
    levels = {
        int(match.group(1)): " ".join(value.split())
        for key, value in metadata.items()
        if (match := _LEVEL.fullmatch(key)) and isinstance(value, str) and value.strip()
    }
    return tuple(levels[level] for level in sorted(levels))


def naming_title(title: str, text: str) -> str:
    """Return the name of a passage: its title, else the title line of its text; empty for a section path."""
    return "" if is_path(title) else title or title_line(text)[0]


def title_of(metadata: Mapping[str, Any], keys: str | Sequence[str]) -> str:
    """The title in the metadata: the text values of the keys, as a path from the outermost."""
    values = [metadata.get(key) for key in ([keys] if isinstance(keys, str) else keys)]
    return section_title("", [name for name in values if isinstance(name, str) and name.strip()])


def is_cut(metadata: Mapping[str, Any]) -> bool:
    """True if the metadata show that a splitter cut the text already, so that it is not cut again."""
    return isinstance(metadata.get("start_index"), int) or bool(path_of(metadata))


def independent_headings(title: str, paths: Sequence[tuple[str, ...]]) -> set[str]:
    """Top-level headings next to the one that is the document's title, which their sections do not belong to.

    The first heading is a chapter like them, and not above them, if it has headings of its own as they have. Numbers
    and single words ("Note", "References") stand for a part of a document.
    """
    chapters = dict.fromkeys(path[0] for path in paths if len(path) > 1)
    first = next((path[0] for path in paths if path), "")
    if first not in chapters or first.casefold() != title.casefold():
        return set()
    return {name for name in chapters if name != first and " " in name and not name[0].isdigit()}


def section_title(title: str, path: Sequence[str]) -> str:
    """Title of a passage: the document's title and the headings that it does not already end with."""
    whole = " ".join(title.split())
    names: list[str] = []
    for name in path:
        if name and (not names or name.casefold() != names[-1].casefold()):
            names.append(name)
    ends = joined_path(["", whole]).casefold()
    repeated = (n for n in range(len(names), 0, -1) if ends.endswith(joined_path(["", *names[:n]]).casefold()))
    return joined_path([*([whole] if whole else []), *names[next(repeated, 0) :]])
