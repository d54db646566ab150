"""Links between passages by a rare word: a sentence names a server, and a row of another file says whose it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from sire_core.documents.blocks import ROW
from sire_core.text.snippets import stems
from sire_core.text.words import find_words

if TYPE_CHECKING:
    from sire_core.search.context import Candidates

_MAX_HOLDERS = 3  # Pieces that may have a word that links them


class NameLinks:
    """The links of candidates; numbers link nothing."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._words = list(chain.from_iterable(each.words for each in candidates.read))
        self._has_rows = any(piece.kind == ROW for piece in candidates.pieces())
        self._question_stems = stems(candidates.question, candidates.spoken)

    @cached_property
    def _counts(self) -> Counter[str]:
        """Number of the pieces that have each word."""
        return Counter(chain.from_iterable(self._words))

    def rows(self, candidate: int) -> Iterator[int]:
        """Rows of other passages with a rare word of a piece that the question lacks.

        And with words of the question, in the row or its headings, that the piece lacks.
        """
        candidates, missing = self._candidates, self._question_stems - self._words[candidate]
        for _, other in self._holders(candidate) if self._has_rows else ():
            each, number = candidates.read[candidates.owner[other]], candidates.number[other]
            if each.pieces[number].kind == ROW and missing & (self._words[other] | each.headings[number]):
                yield other

    def named(self, candidate: int) -> Iterator[int]:
        """Pieces of other passages with such a word that is a name, and words of the question that a piece lacks."""
        missing, spoken = self._question_stems - self._words[candidate], self._candidates.spoken
        spelled = find_words(self._candidates.text(candidate))[1:]
        names = stems(" ".join(word for word in spelled if word[0].isupper() and not word.isupper()), spoken)
        return (other for word, other in self._holders(candidate) if word in names and missing & self._words[other])

    def _holders(self, candidate: int) -> Iterator[tuple[str, int]]:
        """Rare words of a piece that the question lacks, each with the pieces of other passages that have it."""
        owner = self._candidates.owner
        for word in self._words[candidate] - self._question_stems:
            if 1 < self._counts[word] <= _MAX_HOLDERS and not word.isdigit():
                yield from (
                    (word, other)
                    for other, words in enumerate(self._words)
                    if word in words and owner[other] != owner[candidate]
                )
