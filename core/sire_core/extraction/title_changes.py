"""Which records have to be linked again when titles come and go, and the titles that some records can name at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.text import cached_key, name_key
from sire_core.extraction.passage_texts import TextBlock
from sire_core.extraction.title_index import first_word
from sire_core.extraction.titles import WORD, title_forms
from sire_core.extraction.wordings import by_piece, folded

if TYPE_CHECKING:
    from sire_core.types import ExtractionRecord

__all__ = ["changed_wordings", "touched_records", "words_said"]

_ESCAPED = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # JSON escapes no letters here


def words_said(records: Iterable[ExtractionRecord]) -> set[str]:
    """Words of some records. Only titles whose `first_word` is one of them, or empty, can be named there."""
    return {"", *WORD.findall(name_key("\n".join(_texts(records))))}


def changed_wordings(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Ways to write titles that mean something in one of two corpora which they do not mean in the other."""
    heads = set(map(first_word, set(before).symmetric_difference(after)))
    if not heads:
        return []
    was, now = (_forms_of(titles, heads) for titles in (before, after))
    different = dict.fromkeys(key for key in (*was, *now) if was.get(key) != now.get(key))
    return list(dict.fromkeys(forms[key][0] for key in different for forms in (was, now) if key in forms))


def touched_records(bodies: Mapping[str, bytes], wordings: Sequence[str]) -> set[str]:
    """Keys of the records in whose text a wording occurs: those that may link it."""
    texts = {key: body.decode("utf-8", "surrogatepass") for key, body in bodies.items()}
    block = TextBlock.of({key: folded(text) for key, text in texts.items()})
    found: set[str] = set()
    for number, wording in block.candidates(by_piece(wordings)):
        key = block.keys[number]
        if key not in found and wording.occurs(_ESCAPED.sub(" ", texts[key])):
            found.add(key)
    return found


def _forms_of(titles: Sequence[str], heads: Collection[str]) -> dict[str, tuple[str, str]]:
    """(text, name) by key, of the titles that begin with one of some words."""
    chosen = [title for title in dict.fromkeys(titles) if title.strip() and first_word(title) in heads]
    return {cached_key(form.text): (form.text, form.name) for form in title_forms(dict.fromkeys(chosen))}


def _texts(records: Iterable[ExtractionRecord]) -> Iterable[str]:
    for record in records:
        for entity in record.entities:
            yield entity.name
            yield from entity.aliases
        for fact in record.facts:
            yield fact.text
