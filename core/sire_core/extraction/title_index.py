"""`TitleIndex`: the titles of a corpus by the word that they begin with, brought along with changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key
from sire_core.corpus.sections import naming_title
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.extraction.titles import WORD

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.corpus.stored_corpus import CorpusUpdate, StoredCorpus
    from sire_core.types import Chunk

__all__ = ["TitleIndex", "first_word", "title_of"]


def title_of(chunk: Chunk) -> str:
    """Return the title that names a passage; see `naming_title`."""
    return naming_title(chunk.title, chunk.text)


def first_word(title: str) -> str:
    """The first word of a title that is no function word, as `name_key` has it; empty where there is none.

    Every way to write a title holds it, and so do the titles that make a short form ambiguous.
    """
    words = WORD.findall(name_key(title))
    return next((word for word in words if word != "&" and word not in FUNCTION_WORDS), "")


@dataclass(frozen=True, slots=True)
class TitleIndex:
    """Titles of a corpus; those that are empty are left out. An `Incremental` of the corpus.

    Attributes:
        titles: By `first_word`.
        chunks: Ids of the passages that have a title.
    """

    titles: dict[str, tuple[str, ...]]
    chunks: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Of all passages."""
        found = cls({}, {})
        _put(found.titles, found.chunks, corpus.chunks)
        return found

    def updated(self, update: CorpusUpdate) -> Self:
        """After a change."""
        gone = {chunk.id for chunk in update.old_chunks}
        titles, chunks = dict(self.titles), dict(self.chunks)
        for title in {title_of(chunk) for chunk in update.old_chunks}.intersection(chunks):
            if left := tuple(chunk for chunk in chunks[title] if chunk not in gone):
                chunks[title] = left
                continue
            del chunks[title]
            first = first_word(title)
            if others := tuple(other for other in titles[first] if other != title):
                titles[first] = others
            else:
                del titles[first]
        _put(titles, chunks, update.new_chunks)
        return type(self)(titles, chunks)

    def beginning_with(self, words: Iterable[str], corpus: StoredCorpus) -> list[str]:
        """Titles whose `first_word` is one of some, by the first passage that has them."""
        found = [title for word in words for title in self.titles.get(word, ())]
        by_id = corpus.chunk_by_id
        return sorted(found, key=lambda title: min(corpus.place(by_id[chunk]) for chunk in self.chunks[title]))


def _put(titles: dict[str, tuple[str, ...]], chunks: dict[str, tuple[str, ...]], new: Sequence[Chunk]) -> None:
    """Put more passages into the maps of an index that is being made."""
    come: dict[str, list[str]] = {}
    for chunk in new:
        if (title := title_of(chunk)).strip():
            come.setdefault(title, []).append(chunk.id)
    beginning: dict[str, list[str]] = {}
    for title, ids in come.items():
        if title not in chunks:
            beginning.setdefault(first_word(title), []).append(title)
        chunks[title] = (*chunks.get(title, ()), *ids)
    for first, own in beginning.items():
        titles[first] = (*titles.get(first, ()), *own)
