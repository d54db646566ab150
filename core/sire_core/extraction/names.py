"""Which mentions of a passage name the same thing: coreference by name, inside one passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sire_core.algorithms.text import cached_key
from sire_core.extraction.headings import acts, is_everyday
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.extraction.name_words import PRESSED, instructs, is_acronym, name_parts, says_nothing, without_honorifics
from sire_core.extraction.spans import TextSpan, is_common

__all__ = ["Mention", "NameTable"]

_ALIAS = re.compile(
    r"[ ,;(]*(?:\(?(?:born|née|nee|né|formerly|aka|a\.k\.a\.|or simply|real name)|"
    r"(?:[\w-]+ly |also |better |best |sometimes |often )*(?:known|referred to|credited|billed|abbreviated|nicknamed)"
    r"(?: \w+ly)?(?: as| to)?) (?:the )?[\"\u201c]?"
)
_SUBJECT = re.compile(r"[\"\u201d]?(?:,[^,(]{3,40}|,)? ?(?:\(|,? (?:is|was|are|were) )")
_ALIAS_REACH = 50
_VALUES = frozenset(("Date", "Quantity"))
_UNCAPITALISED = _VALUES | {"Code", "Term"}
_UNNAMED = _VALUES | {"Location"}  # `in Scandinavia (known as ...)` says what something else is called
_CERTAIN = frozenset(("Work", "Code", "Term"))  # quoted, or found by more than a capital letter
_PLAIN = frozenset(("Name", "Person"))


class Mention(NamedTuple):
    """A resolved span: `name` is the entity's full name, `about` whether that is what the title names."""

    start: int
    end: int
    name: str
    type: str
    about: bool


class NameTable:
    """Resolves the spans of one passage to entity names.

    Args:
        title: Title without its bracketed part; may be empty.
        kind: What the title names (`detect_kind`).
        sentences: Sentences of the passage.
        spans: Spans per sentence.
    """

    def __init__(
        self,
        title: str,
        kind: str,
        sentences: Sequence[str],
        spans: Sequence[Sequence[TextSpan]],
    ) -> None:
        self.title = title
        self.kind = kind
        self.aliases: dict[str, dict[str, None]] = {}
        self._title_key = cached_key(title)
        self._title_lower = title.lower()
        self._title_parts = name_parts(title.split(",", 1)[0]) if kind == "Person" else ()
        self._full: dict[str, tuple[str, str]] = {}
        self._partial: dict[str, tuple[str, str] | None] = {}
        self._inside: set[str] = set()
        self._rows = [self._with_title(*item) for item in zip(sentences, spans, strict=True)]
        self._collect()
        if self._rows and self._rows[0]:
            self._match_lead(sentences[0], self._rows[0])
        for sentence, row in zip(sentences, self._rows, strict=True):
            self._find_aliases(sentence, row)

    def _with_title(self, sentence: str, spans: Sequence[TextSpan]) -> Sequence[TextSpan]:
        """Put in the title where the sentence says it word by word, in any case, unless it is part of a longer name."""
        lower = sentence.lower()
        at = lower.find(self._title_lower) if len(self._title_lower) > 2 else -1
        row = spans
        while at >= 0:
            end = at + len(self._title_lower)
            if lower[end : end + 1] == "s" and end - at > 4:
                end += 1  # a plural
            free = not lower[at - 1 : at].isalnum() and not lower[end : end + 1].isalnum()
            if free and not any(
                span.start <= at and end <= span.end and span.end - span.start > end - at + 2 for span in row
            ):
                title = TextSpan(at, end, self.title, self.kind or "Name")
                row = sorted([title, *(span for span in row if span.end <= at or end <= span.start)])
            at = lower.find(self._title_lower, end)
        return row

    def _collect(self) -> None:
        """Note the full names, what short forms they have, and which words stand capitalised inside sentences."""
        words = self.title.split()
        self._inside.update(words[1:] or words)
        for row in self._rows:
            for span in row:
                if span.type in _UNCAPITALISED:
                    continue
                words = span.name.split()
                self._inside.update(words if span.start else words[1:])
                if span.type in _PLAIN and len(words) > 1 and not instructs(words):
                    self._note_parts(without_honorifics(span.name), span.type)

    def _note_parts(self, name: str, kind: str) -> None:
        if self._is_title(name):
            return
        for part in name_parts(name):
            known = self._partial.setdefault(part, (name, kind))
            if known is not None and known[0] != name:
                self._partial[part] = None  # two people of that name: it stands for neither

    def _find_aliases(self, sentence: str, row: Sequence[TextSpan]) -> None:
        """`X (also known as Y)`, `X (born Y)`, `Long Name (LN)`."""
        for left, right in pairwise(row):
            if right.start - left.end > _ALIAS_REACH or right.type in _VALUES or left.type in _UNNAMED:
                continue
            between = sentence[left.end : right.start]
            if (between == " (" and is_acronym(right.name, left.name)) or _ALIAS.fullmatch(between):
                self._join(left, right)
            elif between == " (" and is_acronym(left.name, right.name):
                self._join(right, left)

    def _match_lead(self, sentence: str, row: Sequence[TextSpan]) -> None:
        """The passage's first words name the title in full (`Onika Maraj (born ...), known as Nicki Minaj`)."""
        lead = row[0]
        if lead.start > 4 or not self.title or self._is_title(lead.name):
            return
        if not _SUBJECT.match(sentence, lead.end):
            return
        if self.kind == "Person" and " " in lead.name:
            known = any(self._is_title(span.name) for span in row[1:5])
            shared = {word.lower() for word in self._title_parts}.intersection(lead.name.lower().split())
        else:
            known, shared = f"{self._title_lower} ".startswith(f"{lead.name.lower()} "), set()
        if known or shared:
            self._alias(lead.name, self.title, self.kind)

    def _join(self, left: TextSpan, right: TextSpan) -> None:
        if self._is_title(right.name):
            left, right = right, left
        if self._is_title(right.name) or cached_key(right.name) in self._full:
            return
        name, kind = self._resolve(left.name, left.type)
        self._alias(right.name, name, kind)

    def _alias(self, alias: str, name: str, kind: str) -> None:
        self._full[cached_key(alias)] = (name, kind)
        if cached_key(alias) != cached_key(name):
            self.aliases.setdefault(cached_key(name), {})[alias] = None

    def mentions(self, number: int) -> list[Mention]:
        """The resolved mentions of a sentence, by its number; what is no name is left out."""
        found = []
        for span in self._rows[number]:
            if span.type in _VALUES:
                found.append(Mention(*span, about=False))
            elif (kept := self._vetted(span)) is not None:
                name, kind = self._resolve(kept.name, kept.type)
                found.append(Mention(kept.start, kept.end, name, kind, name == self.title))
        return found

    def _vetted(self, span: TextSpan) -> TextSpan | None:
        """The span, if it is a name; one at the start of a sentence needs more evidence than its capital."""
        if span.type in _CERTAIN or cached_key(span.name) in self._full or self._is_title(span.name):
            return span
        first, _, rest = span.name.partition(" ")
        if rest and first.lower() in PRESSED:
            span = span._replace(start=span.start + len(first) + 1, name=rest)
            first, _, rest = rest.partition(" ")
        part = self._resolve_part(first) is not None
        if says_nothing(span.name.split(" ")) and (rest or not part):
            return None
        known = part or first in self._inside
        if span.start > 1 or (known and not (rest and acts(first.lower()))):
            return span
        return self._vetted_start(span, first, rest)

    def _vetted_start(self, span: TextSpan, first: str, rest: str) -> TextSpan | None:
        """What is left of a span that opens a sentence and is known from nowhere else in the passage."""
        if not rest:
            return None if first.lower().endswith(("ly", "ing", "ed")) else span
        if not is_everyday(first) or rest.split(" ", 1)[0] in FUNCTION_WORDS:
            return span
        if is_common(rest.split()) or says_nothing(rest.split(" ")):
            return None
        return span._replace(start=span.start + len(first) + 1, name=rest)

    def _resolve(self, name: str, kind: str) -> tuple[str, str]:
        key = cached_key(name)
        if key in self._full:
            return self._full[key]
        found: tuple[str, str] | None = None
        if self._is_title(name):
            found = (self.title, self.kind or kind)
        elif kind in _PLAIN or kind == "Location":
            bare = without_honorifics(name) if kind == "Person" else name
            if " " not in bare or (len(bare.split()) < len(name.split()) and self._resolve_part(bare)):
                found = self._resolve_part(bare) if kind != "Location" else None
            if found is None and self._same_person(bare):
                found = (self.title, self.kind)
            if found is None and bare != name and " " in bare:
                found = (bare, kind)
        if found is None:
            found = (name, kind)
        elif " " in name and cached_key(found[0]) != key:
            self.aliases.setdefault(cached_key(found[0]), {})[name] = None
        self._full[key] = found
        return found

    def _resolve_part(self, word: str) -> tuple[str, str] | None:
        if word in self._title_parts:
            return (self.title, self.kind)
        found = self._partial.get(word)
        return self._full.get(cached_key(found[0]), found) if found else None

    def _same_person(self, name: str) -> bool:
        """`Robert Trent` for the title `Robert H. Trent`: first and last word agree, the middle does not differ."""
        mine, theirs = self.title.split(), name.split()
        if len(self._title_parts) != 2 or len(theirs) < 2 or (mine[0], mine[-1]) != (theirs[0], theirs[-1]):
            return False
        return len(mine) == 2 or len(theirs) == 2 or (mine[1][0] == theirs[1][0] and "." in mine[1] + theirs[1])

    def _is_title(self, name: str) -> bool:
        key = cached_key(name)
        return bool(self._title_key) and self._title_key in (key, f"the {key}")
