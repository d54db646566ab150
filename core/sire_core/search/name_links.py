"""Links between passages by a rare word: a sentence names a server, and a row of another file says whose it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from sire_core.documents.blocks import ROW, line_cells
from sire_core.search.pieces import stem_set
from sire_core.text.lexicon import WEEKDAYS
from sire_core.text.snippets import stems
from sire_core.text.words import find_words

if TYPE_CHECKING:
    from sire_core.search.context import Candidates

_NAME_END = re.compile(r"[^\w' -]+")
_WEEKDAYS = stems(" ".join(WEEKDAYS))
_NEAR_HITS = 5  # Among which a table is that was found by a name of a piece, whatever its header says
_MAX_HOLDERS = 3  # Pieces that may have a word that links them


class NameLinks:
    """The links of candidates; numbers and days of the week link nothing."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._has_rows = any(piece.kind == ROW for piece in candidates.pieces())
        self._question_stems = stems(candidates.question, candidates.spoken)

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        """Stems of each piece."""
        return [stem_set(words) for each in self._candidates.read for words in each.words]

    @cached_property
    def _silent_tables(self) -> list[list[int]]:
        """Rows of each table about which the question tells nothing, until one of them is linked."""
        tables = rows_by_table(self._candidates)
        return [rows for table, rows in tables.items() if table and self._are_silent(rows)]

    def _are_silent(self, rows: Sequence[int]) -> bool:
        """True if the question has no word of some rows but of all."""
        shared = [self._words[row] & self._question_stems for row in rows]
        return len(rows) > 1 and len({*shared}) == 1

    @cached_property
    def _counts(self) -> Counter[str]:
        """Number of the pieces that have each word."""
        return Counter(chain.from_iterable(self._words))

    @cached_property
    def _keys(self) -> dict[int, tuple[str, frozenset[str]]]:
        """The first cell of each row that is no number, and its stems; empty ones if there is none."""
        rows = (number for number, piece in enumerate(self._candidates.pieces()) if piece.kind == ROW)
        cells = {row: line_cells(self._candidates.text(row)) for row in rows}
        keys = {
            row: next((cell for cell in of_row if any(map(str.isalpha, cell))), "") for row, of_row in cells.items()
        }
        return {row: (key, stems(key, self._candidates.spoken)) for row, key in keys.items()}

    def rows(self, candidate: int) -> Iterator[int]:
        """Rows of other passages with a rare word of a piece that the question lacks.

        And with words of the question, in the row or its headings, that the piece lacks. Of a table with a row that
        begins with a name of the piece no other.
        """
        candidates, missing = self._candidates, self._question_stems - self._words[candidate]
        linked: dict[object, list[int]] = {}
        for _, other in self._holders(candidate) if self._has_rows else ():
            table, number = candidates.owner[other], candidates.number[other]
            each = candidates.read[table]
            if each.pieces[number].kind == ROW and missing & (self._words[other] | stem_set(each.headings[number])):
                linked.setdefault((table, each.pieces[number].header), []).append(other)
        names = [name for name, _ in self._names(candidate)] if linked else []
        for rows in linked.values():
            yield from [row for row in rows if any(map(self._keys[row][0].startswith, names))] or rows

    def named(self, candidate: int) -> Iterator[int]:
        """Pieces of other passages with such a word that is a name, and words of the question that a piece lacks."""
        missing, spoken = self._question_stems - self._words[candidate], self._candidates.spoken
        spelled = find_words(self._candidates.text(candidate))[1:]
        names = stems(" ".join(word for word in spelled if word[0].isupper() and not word.isupper()), spoken)
        return (other for word, other in self._holders(candidate) if word in names and missing & self._words[other])

    def named_rows(self, candidate: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Rows about a name of a piece, each with all rows of its table; for each table once.

        The question tells nothing about the rows of such a table. Either it has words of the header that the piece
        lacks, or the passage of the table is one of the first and was found by the name, which its row begins with. A
        row that begins with a word of the piece as no other does counts before others, as one that begins with a name
        does, of those with another first cell only a single one.
        """
        candidates, missing = self._candidates, self._question_stems - self._words[candidate]
        for rows in list(self._silent_tables):
            table = candidates.owner[rows[0]]
            if table == candidates.owner[candidate]:
                continue
            is_asked = bool(missing & stem_set(candidates.read[table].headings[candidates.number[rows[0]]]))
            is_near = candidates.passages[table].rank < _NEAR_HITS
            leading = {step.name for step in candidates.passages[table].hit.path} if is_near else set()
            new_words = self._words[candidate] - self._question_stems if is_asked else frozenset()
            keyed = [row for row in rows if self._keys[row][1] and self._keys[row][1] <= new_words]
            named = set(keyed if len(keyed) == 1 else ())
            for name, words in () if named else self._names(candidate):
                holders = [row for row in rows if words <= self._words[row]] if is_asked or name in leading else []
                first = [row for row in holders if self._keys[row][0].startswith(name)]
                named.update(first or (holders if is_asked and len(holders) == 1 else ()))
            if named:
                self._silent_tables.remove(rows)
                yield from ((row, rows) for row in sorted(named))

    def _names(self, candidate: int) -> Iterator[tuple[str, frozenset[str]]]:
        """Names of several words in a piece that the question lacks, and their stems; single words may name kinds."""
        for part in _NAME_END.split(self._candidates.text(candidate)):
            for is_name, words in groupby(find_words(part), lambda word: word[0].isupper() and not word.isupper()):
                name = " ".join(words) if is_name else ""
                own_stems = stems(name, self._candidates.spoken)
                if len(own_stems) > 1 and not own_stems & self._question_stems:
                    yield name, own_stems

    def _holders(self, candidate: int) -> Iterator[tuple[str, int]]:
        """Rare words of a piece that the question lacks, each with the pieces of other passages that have it."""
        owner = self._candidates.owner
        for word in self._words[candidate] - self._question_stems:
            if 1 < self._counts[word] <= _MAX_HOLDERS and not word.isdigit() and word not in _WEEKDAYS:
                yield from (
                    (word, other)
                    for other, words in enumerate(self._words)
                    if word in words and owner[other] != owner[candidate]
                )


def rows_by_table(candidates: Candidates) -> dict[tuple[Any, ...], list[int]]:
    """Numbers of the sentences that are rows, by table; those of all others under an empty one."""
    tables: dict[tuple[Any, ...], list[int]] = {}
    for number, (row, piece) in enumerate(zip(candidates.owner, candidates.pieces(), strict=True)):
        tables.setdefault((row, piece.header) if piece.kind == ROW else (), []).append(number)
    return tables
