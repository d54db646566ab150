"""Documents by id: identical repeats are merged, contradictions are an error."""

from __future__ import annotations

from sire_core.algorithms.wording import count
from sire_core.errors import CorpusError
from sire_core.types import Document

__all__ = ["DocumentPool"]

_SHOWN = 10


class DocumentPool:
    """Collects documents in order and keeps one of each id.

    Attributes:
        duplicates: Origin of each dropped repeat -> origin of the document that was kept.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Document, str]] = {}
        self._conflicts: dict[str, str] = {}
        self.duplicates: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, document: Document, origin: str) -> None:
        """Take a document in; `origin` says where it was found."""
        if document.id not in self._kept:
            self._kept[document.id] = (document, origin)
            return
        kept, first = self._kept[document.id]
        if kept == document:
            self.duplicates[origin] = first
            return
        part = "metadata differs" if _words(kept) == _words(document) else "text differs"
        self._conflicts.setdefault(document.id, f"{document.id!r} ({first} and {origin}: {part})")

    def documents(self) -> tuple[Document, ...]:
        """The documents in the order they came.

        Raises:
            CorpusError: One id has two different contents.
        """
        if self._conflicts:
            listed = "; ".join(list(self._conflicts.values())[:_SHOWN])
            more = f"; and {len(self._conflicts) - _SHOWN} more" if len(self._conflicts) > _SHOWN else ""
            raise CorpusError(
                f"{count(len(self._conflicts), 'document id')} with different content: {listed}{more}. "
                "Give each document an id of its own, or remove one of the two. Files of several folders have "
                "different ids when the folder above them is given."
            )
        return tuple(document for document, _ in self._kept.values())


def _words(document: Document) -> tuple[object, ...]:
    return document.title, document.text, document.chunks
