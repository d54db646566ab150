"""Which records have to be linked again when titles come and go, and the titles that some records can name at all."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from sire_core.algorithms.text import name_key
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.extraction.names import cached_key
from sire_core.extraction.titles import WORD, title_forms

if TYPE_CHECKING:
    from sire_core.types import ExtractionRecord

__all__ = ["changed_wordings", "likely_passages", "titles_in_reach", "touched_records"]

_ESCAPED = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # JSON escapes no letters here


def titles_in_reach(titles: Sequence[str], records: Iterable[ExtractionRecord]) -> list[str]:
    """Titles that may be named in some records, in their order; all others change nothing when these are linked.

    Every way to write a title holds its first word that is no function word, and so do the titles that make a short
    form ambiguous.
    """
    said = "\n".join(_texts(records))
    words = set(WORD.findall(name_key(said)))
    return [title for title in titles if (head := _head(title)) == "" or head in words]


def changed_wordings(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Ways to write titles that mean something in one of two corpora which they do not mean in the other.

    Args:
        before: Titles before a change, in corpus order.
        after: And after it.
    """
    old, new = set(before), set(after)
    heads = {_head(title) for title in old.symmetric_difference(new)}
    if not heads:
        return []
    was, now = (_forms_of(titles, heads) for titles in (before, after))
    different = dict.fromkeys(key for key in (*was, *now) if was.get(key) != now.get(key))
    return list(dict.fromkeys(forms[key][0] for key in different for forms in (was, now) if key in forms))


def touched_records(bodies: Mapping[str, bytes], wordings: Sequence[str]) -> set[str]:
    """Keys of the records in whose text a wording occurs: those that may link it.

    Args:
        bodies: Stored records by key, UTF-8.
        wordings: From `changed_wordings`.
    """
    keys = list(bodies)
    found: set[str] = set()
    for number, pattern in _candidates(list(bodies.values()), wordings):
        if keys[number] not in found and pattern.search(_ESCAPED.sub(" ", bodies[keys[number]].decode())):
            found.add(keys[number])
    return found


def likely_passages(texts: Sequence[str], wordings: Sequence[str]) -> list[int]:
    """Positions of the texts that hold all words of a wording, ascending: only their verbatim records may link it.

    Args:
        texts: Titles and texts of passages.
        wordings: From `changed_wordings`.
    """
    bodies = [text.encode("utf-8", "surrogatepass") for text in texts]
    return sorted({number for number, _ in _candidates(bodies, wordings)})


def _candidates(bodies: Sequence[bytes], wordings: Sequence[str]) -> Iterator[tuple[int, re.Pattern[str]]]:
    """Bodies that hold all words of a wording, and what the wording looks like."""
    everything = b"\0".join(bodies).lower()
    starts = list(accumulate((len(body) + 1 for body in bodies), initial=0))
    for piece, alike in _by_piece(wordings).items():
        place = everything.find(piece)
        while 0 <= place < starts[-1]:
            number = bisect_right(starts, place) - 1
            first, last = starts[number], starts[number + 1]
            for pieces, pattern in alike:
                if all(everything.find(other, first, last) >= 0 for other in pieces):
                    yield number, pattern
            place = everything.find(piece, last)


@lru_cache(1 << 16)
def _head(title: str) -> str:
    words = WORD.findall(cached_key(title))
    return next((word for word in words if word != "&" and word not in FUNCTION_WORDS), "")


def _forms_of(titles: Sequence[str], heads: Collection[str]) -> dict[str, tuple[str, str]]:
    """(text, name) by key, of the titles that begin with one of some words."""
    chosen = [title for title in dict.fromkeys(titles) if title.strip() and _head(title) in heads]
    return {cached_key(form.text): (form.text, form.name) for form in title_forms(dict.fromkeys(chosen))}


def _pattern(wording: str) -> re.Pattern[str]:
    """A wording in a record: its words in a row; a single one only as it is written, or as a whole name."""
    words = [r"(?:and|&)" if word.lower() in ("&", "and") else re.escape(word) for word in WORD.findall(wording)]
    if len(words) == 1:
        return re.compile(rf'\b{words[0]}\b|(?i:"\W*{words[0]}\W*")')
    return re.compile(r"\b" + r"\W+".join(words) + r"\b", re.IGNORECASE)


def _by_piece(wordings: Sequence[str]) -> dict[bytes, list[tuple[list[bytes], re.Pattern[str]]]]:
    """Wordings as (pieces, pattern) by a piece that they share, so that all records are gone through once for each."""
    groups: dict[bytes, list[tuple[list[bytes], re.Pattern[str]]]] = {}
    for pieces, wording in sorted(
        ((_pieces(wording), wording) for wording in wordings), key=lambda item: (len(item[0]), item)
    ):
        shared = next((piece for piece in pieces if piece in groups), pieces[0])
        groups.setdefault(shared, []).append((pieces, _pattern(wording)))
    return groups


def _pieces(wording: str) -> list[bytes]:
    """The pieces of the words that upper and lower case leave alike once ASCII is lowered, the longest first.

    `&` and `and` are one word to the linker, so neither is looked for.
    """
    words = [word for word in WORD.findall(wording) if word.lower() not in ("&", "and")]
    steady = ("".join(letter.lower() if letter.isascii() else _caseless(letter) for letter in word) for word in words)
    pieces = sorted({part for word in steady for part in word.split()}, key=lambda part: (-len(part), part))
    return [piece.encode() for piece in pieces] or [b""]


def _caseless(letter: str) -> str:
    same = letter.lower() == letter.upper() and unicodedata.normalize("NFKC", letter) == letter
    return letter if same else " "


def _texts(records: Iterable[ExtractionRecord]) -> Iterable[str]:
    for record in records:
        for entity in record.entities:
            yield entity.name
            yield from entity.aliases
        for fact in record.facts:
            yield fact.text
