"""`PassageTexts`: the words of all passages in a few long texts, to find those that hold a wording."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from sire_core.extraction.wordings import Wording, by_piece, folded

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.corpus.stored_corpus import CorpusUpdate, StoredCorpus

__all__ = ["PassageTexts", "TextBlock"]

_BLOCK = 4096
"""Texts that are searched, and written again, together."""
_GONE = 4
"""Texts are written again when more than one in so many is of a passage that is gone."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Some texts behind one another.

    Attributes:
        keys: Of the texts.
        starts: Where each begins, and behind the last one the end.
        body: Texts as `folded` gives them, each with a zero behind it.
    """

    keys: tuple[str, ...]
    starts: tuple[int, ...]
    body: bytes

    @classmethod
    def of(cls, texts: Mapping[str, bytes]) -> Self:
        """From texts by key."""
        starts = accumulate((len(text) + 1 for text in texts.values()), initial=0)
        return cls(tuple(texts), tuple(starts), b"".join(text + b"\0" for text in texts.values()))

    def texts(self) -> dict[str, bytes]:
        """The texts by key."""
        return {
            key: self.body[start : end - 1]
            for key, start, end in zip(self.keys, self.starts, self.starts[1:], strict=False)
        }

    def candidates(self, pieces: Mapping[bytes, Sequence[Wording]]) -> Iterator[tuple[int, Wording]]:
        """Places of the texts that hold all words of a wording, and the wording."""
        body, starts = self.body, self.starts
        for piece, alike in pieces.items():
            place = body.find(piece)
            while 0 <= place < starts[-1]:
                number = bisect_right(starts, place) - 1
                first, last = starts[number], starts[number + 1]
                for wording in alike:
                    if all(body.find(other, first, last) >= 0 for other in wording.pieces):
                        yield number, wording
                place = body.find(piece, last)


@dataclass(frozen=True, slots=True)
class PassageTexts:
    """Titles and texts of all passages by content hash. An `Incremental` of the corpus.

    Attributes:
        blocks: The texts; some may be of passages that are gone.
        gone: Content hashes of these.
    """

    blocks: tuple[TextBlock, ...] = ()
    gone: frozenset[str] = frozenset()

    @classmethod
    def of(cls, corpus: StoredCorpus) -> Self:
        """Of all passages."""
        return cls(_extended((), corpus, corpus.units_by_hash))

    def updated(self, update: CorpusUpdate) -> Self:
        """After a change."""
        before, after = update.before, update.after
        old = {before.hashes[chunk.id] for chunk in update.old_chunks}
        come = dict.fromkeys(after.hashes[chunk.id] for chunk in update.new_chunks)
        new = [found for found in come if found not in before.units_by_hash]
        blocks, gone = self.blocks, self.gone.union(found for found in old if found not in after.units_by_hash)
        if len(gone) * _GONE > len(after.units_by_hash) or not gone.isdisjoint(
            new
        ):  # some come back: they are put again
            blocks, gone = tuple(_remaining(blocks, gone)), frozenset()
        return type(self)(_extended(blocks, after, new), gone)

    def holding(self, wordings: Sequence[str]) -> set[str]:
        """Content hashes of the passages that hold all words of a wording: only their verbatim records may link it."""
        pieces = by_piece(wordings)
        found = {block.keys[place] for block in self.blocks for place, _ in block.candidates(pieces)}
        return found - self.gone


def _remaining(blocks: Sequence[TextBlock], gone: Collection[str]) -> Iterator[TextBlock]:
    """Blocks without the texts that are gone; those that hold none of them as they are."""
    for block in blocks:
        if not any(key in gone for key in block.keys):
            yield block
        elif left := {key: text for key, text in block.texts().items() if key not in gone}:
            yield TextBlock.of(left)


def _extended(blocks: Sequence[TextBlock], corpus: StoredCorpus, new: Iterable[str]) -> tuple[TextBlock, ...]:
    """Blocks with more passages, by their content hashes, behind the others."""
    found, texts = list(blocks), dict[str, bytes]()
    if found and len(found[-1].keys) < _BLOCK:
        texts = found.pop().texts()
    for said in new:
        texts[said] = folded(corpus.chunk_by_id[corpus.units_by_hash[said][0]].index_text)
        if len(texts) == _BLOCK:
            found.append(TextBlock.of(texts))
            texts = {}
    return (*found, TextBlock.of(texts)) if texts else tuple(found)
