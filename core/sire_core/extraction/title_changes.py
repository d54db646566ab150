"""Which records have to be linked again when titles come and go, and the titles that some records can name at all."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from sire_core.algorithms.text import cached_key, name_key
from sire_core.algorithms.words import visible_text
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.extraction.titles import WORD, title_forms

if TYPE_CHECKING:
    from sire_core.types import ExtractionRecord

__all__ = ["changed_wordings", "folded", "likely_passages", "titles_in_reach", "touched_records"]

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
    texts = [body.decode("utf-8", "surrogatepass") for body in bodies.values()]
    found: set[str] = set()
    for number, wording in _candidates(list(map(folded, texts)), wordings):
        if keys[number] not in found and wording.occurs(_ESCAPED.sub(" ", texts[number])):
            found.add(keys[number])
    return found


def likely_passages(texts: Sequence[bytes], wordings: Sequence[str]) -> list[int]:
    """Positions of the texts that hold all words of a wording, ascending: only their verbatim records may link it.

    Args:
        texts: Titles and texts of passages, as `folded` gives them.
        wordings: From `changed_wordings`.
    """
    return sorted({number for number, _ in _candidates(texts, wordings)})


class _Wording:
    """A way to write a title, as it is looked for in records.

    Args:
        text: The wording.
    """

    def __init__(self, text: str) -> None:
        words, written = WORD.findall(_folded(text)), WORD.findall(text)
        # `&` and `and` are one word to the linker, so neither has to be there.
        said = {word for word in words if word not in ("&", "and")}
        by_length = sorted(said, key=lambda word: (-len(word), word)) or [""]
        self.pieces = [word.encode("utf-8", "surrogatepass") for word in by_length]
        single = len(words) == len(written) == 1  # only as it is written, or as a whole name
        self._written = re.compile(_row(written)) if single else None
        self._pattern = re.compile(rf'"\W*{_row(words)}\W*"' if single else _row(words))

    def occurs(self, text: str) -> bool:
        """Whether a record says it."""
        return bool((self._written and self._written.search(visible_text(text))) or self._pattern.search(_folded(text)))


def _row(words: Sequence[str]) -> str:
    """Pattern of words in a row; around `&` there need not be a space."""
    row = ""
    for place, word in enumerate(words):
        joined = place and "&" not in (word, words[place - 1])
        row += r"\W+" if joined else r"\W*" if place else ""
        row += r"(?:&|\band\b)" if word in ("&", "and") else rf"\b{re.escape(word)}\b"
    return row


def folded(text: str) -> bytes:
    """A text as words of wordings are looked for in it."""
    return _folded(text).encode("utf-8", "surrogatepass")


def _candidates(bodies: Sequence[bytes], wordings: Sequence[str]) -> Iterator[tuple[int, _Wording]]:
    """Positions of folded texts that hold all words of a wording, and the wording."""
    everything = b"\0".join(bodies)
    starts = list(accumulate((len(body) + 1 for body in bodies), initial=0))
    for piece, alike in _by_piece(wordings).items():
        place = everything.find(piece)
        while 0 <= place < starts[-1]:
            number = bisect_right(starts, place) - 1
            first, last = starts[number], starts[number + 1]
            for wording in alike:
                if all(everything.find(other, first, last) >= 0 for other in wording.pieces):
                    yield number, wording
            place = everything.find(piece, last)


def _folded(text: str) -> str:
    """A text as `name_key` compares it, whose words are also those of its lower case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", visible_text(text)).casefold()


@lru_cache(1 << 16)
def _head(title: str) -> str:
    words = WORD.findall(cached_key(title))
    return next((word for word in words if word != "&" and word not in FUNCTION_WORDS), "")


def _forms_of(titles: Sequence[str], heads: Collection[str]) -> dict[str, tuple[str, str]]:
    """(text, name) by key, of the titles that begin with one of some words."""
    chosen = [title for title in dict.fromkeys(titles) if title.strip() and _head(title) in heads]
    return {cached_key(form.text): (form.text, form.name) for form in title_forms(dict.fromkeys(chosen))}


def _by_piece(wordings: Sequence[str]) -> dict[bytes, list[_Wording]]:
    """Wordings by a piece that they share, so that all records are gone through once for each."""
    groups: dict[bytes, list[_Wording]] = {}
    parsed = [(found.pieces, text, found) for text in wordings for found in (_Wording(text),)]
    for pieces, _, wording in sorted(parsed, key=lambda item: (len(item[0]), *item[:2])):
        shared = next((piece for piece in pieces if piece in groups), pieces[0])
        groups.setdefault(shared, []).append(wording)
    return groups


def _texts(records: Iterable[ExtractionRecord]) -> Iterable[str]:
    for record in records:
        for entity in record.entities:
            yield entity.name
            yield from entity.aliases
        for fact in record.facts:
            yield fact.text
