"""`AppSettings`: settings of a framework's retrievers that an index folder stores."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sire_core.documents.chunker import SentenceChunker
from sire_core.filters import Filter, filter_mapping
from sire_core.search.validity import Day, read_day
from sire_core.storage.plain_files import read_optional, write_checked

if TYPE_CHECKING:
    import os


_HIDING = {"filter", "filters", "as_of", "search_type"}
_DEFAULTS = {"returns": "passages", "scores": "recipe", "search_type": "similarity"}  # Not stored
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AppSettings:
    """A file of an index folder with settings of the retrievers over it: whoever opens the folder has them, too.

    It stores all options that say which documents a search returns and how much of them. Objects of a process (models,
    stores, callbacks) are not stored.

    The file also says that the documents are an app's, see `Folder.framework`.
    """

    file: str  # Its name
    search: tuple[str, ...]  # Names of the settings that are options of a search
    exclusive: tuple[str, ...]  # Those that do not go together: if one is given, no stored one applies

    def read(self, folder: str | os.PathLike[str] | None) -> dict[str, Any]:
        """All settings: options of a search, and how documents are read; empty without any."""
        return read_optional(folder, self.file)

    def search_options(self, folder: str | os.PathLike[str] | None, other_than: Collection[str]) -> dict[str, Any]:
        """Options of a search without some, which are given; a warning names those that hide documents."""
        stored, is_given = self.read(folder), set(other_than)
        is_given |= set(self.exclusive) if is_given.intersection(self.exclusive) else set()
        options = {name: stored[name] for name in self.search if name in stored and name not in is_given}
        for name in _HIDING & options.keys():
            _logger.warning(
                "%s was built with %s=%r, which applies; %s=None drops it.", folder, name, options[name], name
            )
        return options

    def chunker(self, folder: str | os.PathLike[str] | None) -> SentenceChunker | None:
        """Chunker of documents that retrievers added; None if none was stored."""
        settings = self.read(folder).get("chunker")
        return SentenceChunker(**settings) if settings else None

    def write(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Replace the settings, if they differ; empty ones are defaults and left out."""
        settings = {name: value for name, value in settings.items() if value not in (None, [], {})}
        folder.mkdir(parents=True, exist_ok=True)  # where there was nothing to index yet
        if settings != self.read(folder) or not (folder / self.file).exists():
            write_checked(folder / self.file, settings)


def search_settings(filter: Filter | None, as_of: Day, *, key: str = "filter", **others: Any) -> dict[str, Any]:
    """Options of a search as they are stored; `key` is what the framework calls a filter."""
    return {
        key: None if filter is None else filter_mapping(filter),
        "as_of": None if as_of is None else read_day(as_of),
        **{name: None if value == _DEFAULTS.get(name) else value for name, value in others.items()},
    }


def reading_settings(title_key: str | Sequence[str], chunker: SentenceChunker | None) -> dict[str, Any]:
    """Settings of reading documents, as they are stored."""
    keys = title_key if isinstance(title_key, str) else list(title_key)
    return {"title_key": None if keys == "title" else keys, "chunker": chunker.settings() if chunker else None}
