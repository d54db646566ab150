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
_NOT_STORED = {"similarity_top_k": 10, "returns": "passages", "scores": "recipe", "search_type": "similarity"}
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
        options = {name: value for name, value in self._others(folder, other_than).items() if name in self.search}
        for name in _HIDING & options.keys():
            _logger.warning(
                "%s was built with %s=%r, which applies; %s=None drops it.", folder, name, options[name], name
            )
        return options

    def chunker(self, folder: str | os.PathLike[str] | None) -> SentenceChunker | None:
        """Chunker of documents that retrievers added; None if none was stored."""
        settings = self.read(folder).get("chunker")
        return SentenceChunker(**settings) if settings else None

    def update(
        self, folder: Path, mine: Mapping[str, Any], names: Collection[str], otherwise: Mapping[str, Any]
    ) -> None:
        """Store those settings of a retriever that were given to it; the others of the folder stay.

        Args:
            folder: The index folder.
            mine: All settings of the retriever; empty ones are defaults, and drop what is stored if they were given.
            names: Names of those to store. A warning names replaced ones that hide documents.
            otherwise: What is stored where the folder has nothing else.
        """
        stored = self.read(folder)
        settings = {**otherwise, **self._others(folder, names), **{n: v for n, v in mine.items() if n in names}}
        settings = {name: value for name, value in settings.items() if value not in (None, [], {})}
        for name in _HIDING & stored.keys():
            if settings.get(name) != stored[name]:
                now = f"{name}={settings[name]!r}" if name in settings else f"no {name}"
                _logger.warning("%s had %s=%r for all that open it, and has %s now.", folder, name, stored[name], now)
        folder.mkdir(parents=True, exist_ok=True)  # where there was nothing to index yet
        if settings != stored or not (folder / self.file).exists():
            write_checked(folder / self.file, settings)

    def _others(self, folder: str | os.PathLike[str] | None, names: Collection[str]) -> dict[str, Any]:
        """Stored settings, without those that settings of these names replace."""
        replaced = {*names, *(self.exclusive if set(self.exclusive).intersection(names) else ())}
        return {name: value for name, value in self.read(folder).items() if name not in replaced}


def search_settings(filter: Filter | None, as_of: Day, *, key: str = "filter", **others: Any) -> dict[str, Any]:
    """Options of a search as they are stored; `key` is what the framework calls a filter."""
    return {
        key: None if filter is None else filter_mapping(filter),
        "as_of": None if as_of is None else read_day(as_of),
        **{name: None if value == _NOT_STORED.get(name) else value for name, value in others.items()},
    }


def reading_settings(title_key: str | Sequence[str], chunker: SentenceChunker | None) -> dict[str, Any]:
    """Settings of reading documents, as they are stored."""
    keys = title_key if isinstance(title_key, str) else list(title_key)
    return {"title_key": None if keys == "title" else keys, "chunker": chunker.settings() if chunker else None}
