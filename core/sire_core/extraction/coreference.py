"""Coreference by name within a passage: the mentions of the same thing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sire_core.extraction.headings import CAPTIONS, acts, is_everyday, is_numbered
from sire_core.extraction.spans import TextSpan, is_common, stands_free
from sire_core.text.lexicon import FUNCTION_WORDS, HONORIFICS, NAME_TAILS, VAGUE_NOUNS, VAGUE_WORDS
from sire_core.text.words import cached_key

_TITLE_MODIFIERS = frozenset(("grand", "crown", "high", "prime", "vice", "deputy", "chief"))
_CELLS = frozenset(
    "get post put delete patch head x n/a tbd todo faq faqs id ids yes no true false null ok none na".split()
)
PRESSED = frozenset(
    "click select use see choose enter ensure specify press tap go run launch confirm expand "
    "provision configure create deploy enable add manage update delete install".split()
)
_MADE_UP = re.compile(
    r"(?=[0-9A-Fa-f-]{16})[0-9A-Fa-f-]*\d|(?=\w{12})(?:[A-Z]*\d){3}|\d[\w-]*$|\W|(?:GET|POST|PUT|DELETE|PATCH)/"
)
_COMPOUND = re.compile(
    r"[\w.]+-(?:branded|provided|based|enabled|managed|only|specific|compatible|style|like|related|defined|supported|encoded?)$"
)
_LIST = 4  # longer rows of capitalised everyday words are headings and rows of tables

_ALIAS = re.compile(
    r"[ ,;(]*(?:\(?(?:born|née|nee|né|formerly|aka|a\.k\.a\.|or simply|real name)|"
    r"(?:[\w-]+ly |also |better |best |sometimes |often )*(?:known|referred to|credited|billed|abbreviated|nicknamed)"
    r"(?: \w+ly)?(?: as| to)?) (?:the )?[\"\u201c]?"
)
_SUBJECT = re.compile(r"[\"\u201d]?(?:,[^,(]{3,40}|,)? ?(?:\(|,? (?:is|was|are|were) )")
_ALIAS_REACH = 50
_OPENS = ":|!?;%#"
_LAST_MARK = re.compile(r"[\w:|!?;%#,.](?=[^\w:|!?;%#,.]*\Z)")
_WORDS = re.compile(r"(?<![\w.$@\\-])[^\W\d_A-Z]+(?![\w-])")
_VERB_TAIL = re.compile(
    r" (?:the|this|these|those|your|its|their|each|any|les?|la|une?|des|vos|votre|que|den|die|das|el|los|las|una)\b"
    r"(?! [A-Z][a-z])"
)
"""Behind a verb at the start of a sentence; not as in `Conan the Barbarian`."""
_DERIVED = re.compile(r"(?:re-|(?:un|re)(?=[a-z]{4}))([a-z]{3,})")
_VALUES = frozenset(("Date", "Quantity"))
_UNCAPITALISED = _VALUES | {"Code", "Term"}
_UNNAMED = _VALUES | {"Location"}  # `in Scandinavia (known as ...)` says what something else is called
_CERTAIN = frozenset(("Work", "Code", "Term"))  # quoted, or found by more than a capital letter
_PLAIN_KINDS = frozenset(("Name", "Person"))


def _opens(sentence: str, start: int) -> bool:
    """True if a place is the start of a sentence, of a comment, of a cell or of what stands behind a colon."""
    before = _LAST_MARK.search(sentence, max(0, start - 9), start)
    return before is None or before.group() in _OPENS


def instructs(words: Sequence[str]) -> bool:
    """True if capitalised words begin with a user-interface action, or name nothing."""
    return words[0].lower() in PRESSED or says_nothing(" ".join(words))


@lru_cache(1 << 13)  # passages share most of their names
def says_nothing(name: str) -> bool:
    """True if capitalised words are a heading, a label or an instruction rather than a name."""
    words = name.split(" ")
    lower = [word.lower().strip(".,:'\u2019") for word in words]
    if len(words) == 1:
        return (
            is_everyday(lower[0])
            or lower[0] in _CELLS
            or lower[0] in VAGUE_NOUNS
            or bool(_COMPOUND.match(words[0]) or _MADE_UP.match(words[0]))
        )
    if (
        lower[0] in _CELLS
        or lower[0] in CAPTIONS
        or _MADE_UP.match(words[0])
        or "n/a" in lower
        or len(set(lower)) == 1
        or is_numbered(name)
    ):
        return True
    everyday = [is_everyday(word) or word.isdigit() for word in lower]
    if not all(everyday):
        return len(words) > _LIST and sum(everyday) * 2 > len(words) and all(map(_capital, words))
    return (
        acts(lower[0])
        or lower[0] in VAGUE_WORDS
        or (len(words) == 2 and lower[0] in VAGUE_NOUNS and lower[1].isdigit())
        or lower[-1] in VAGUE_NOUNS
        or all(word.isupper() for word in words)
        or (len(words) > _LIST and all(map(_capital, words)))
    )


def _capital(word: str) -> bool:
    return not word[:1].islower()


def name_parts(name: str) -> tuple[str, ...]:
    """Words that may stand for a person alone: first and last name; for `Adolph II of the Marck` only `Adolph`."""
    words = without_honorifics(name).split()
    for index, word in enumerate(words):
        if word in ("of", "the") or (index and is_numeral(word)):
            return (words[0],) if index and len(words[0]) > 2 else ()
    words = [word for word in words if word.rstrip(".") not in ("Jr", "Sr") and not word.startswith('"')]
    if len(words) < 2 or words[-1].lower() in NAME_TAILS or words[0].lower() in ("new", "san", "los", "saint", "st."):
        return ()
    return tuple(word for word in (words[0], words[-1]) if len(word.strip(".")) > 2)


def is_numeral(word: str) -> bool:
    """True if a word is a Roman numeral."""
    return len(word) < 6 and not word.strip("IVX")


def without_honorifics(name: str) -> str:
    """`Emperor Lothair I` becomes `Lothair I`; a single word keeps its rank (`King Michael`)."""
    words = name.split()
    while len(words) > 2 and words[0].lower().rstrip(".") in HONORIFICS and words[1][0].isupper():
        if words[0].lower() in _TITLE_MODIFIERS and words[1].lower() not in HONORIFICS:
            break
        del words[0]
    return " ".join(words)


def is_acronym(short: str, name: str) -> bool:
    """True if the letters abbreviate the name."""
    words = name.replace("-", " ").split()
    capitals = "".join(word[0] for word in words if word[0].isupper())
    initials = "".join(word[0] for word in words if word.lower() not in FUNCTION_WORDS).upper()
    letters = short.replace(".", "")
    return 1 < len(short) <= 8 and letters.upper() == letters and (capitals.startswith(short[0]) or initials == letters)


class Mention(NamedTuple):
    """A resolved span: `name` is the entity's full name, `about` whether that is what the title names."""

    start: int
    end: int
    name: str
    type: str
    about: bool


class NameTable:
    """Resolves the spans of one passage, per sentence, to entity names; see `detect_kind` for the kind of its title."""

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
        self._sentences = sentences
        self._uncapitalised: frozenset[str] | None = None
        self._rows = [self._with_title(*item) for item in zip(sentences, spans, strict=True)]
        self._collect()
        if self._rows and self._rows[0]:
            self._match_lead(sentences[0], self._rows[0])
        for sentence, row in zip(sentences, self._rows, strict=True):
            self._find_aliases(sentence, row)

    def _with_title(self, sentence: str, spans: Sequence[TextSpan]) -> Sequence[TextSpan]:
        """Add the title as a span if the sentence contains it and it is not part of a longer name."""
        lower = sentence.lower()
        at = lower.find(self._title_lower) if len(self._title_lower) > 2 else -1
        row = spans
        while at >= 0:
            end = at + len(self._title_lower)
            if lower[end : end + 1] == "s" and end - at > 4:
                end += 1  # a plural
            free = stands_free(lower, at, end)
            if free and not any(
                span.start <= at and end <= span.end and span.end - span.start > end - at + 2 for span in row
            ):
                title = TextSpan(at, end, self.title, self.kind or "Name")
                row = sorted([title, *(span for span in row if span.end <= at or end <= span.start)])
            at = lower.find(self._title_lower, end)
        return row

    def _collect(self) -> None:
        """Collect full names, their short forms, and words that are capitalised inside sentences."""
        words = self.title.split()
        self._inside.update(words[1:] or words)
        for sentence, row in zip(self._sentences, self._rows, strict=True):
            for span in row:
                if span.type in _UNCAPITALISED:
                    continue
                words = span.name.split()
                self._inside.update(words[1:] if _opens(sentence, span.start) else words)
                if span.type in _PLAIN_KINDS and len(words) > 1 and not instructs(words):
                    self._note_parts(without_honorifics(span.name), span.type)

    def _note_parts(self, name: str, kind: str) -> None:
        if self._is_title(name):
            return
        for part in name_parts(name):
            bearer = self._partial.setdefault(part, (name, kind))
            if bearer is not None and bearer[0] != name:
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
        """Find the full name of the title in the first words (`Onika Maraj (born ...), known as Nicki Minaj`)."""
        lead = row[0]
        if lead.start > 4 or not self.title or self._is_title(lead.name):
            return
        if not _SUBJECT.match(sentence, lead.end):
            return
        if self.kind == "Person" and " " in lead.name:
            names_title = any(self._is_title(span.name) for span in row[1:5])
            shared = {word.lower() for word in self._title_parts}.intersection(lead.name.lower().split())
        else:
            names_title, shared = f"{self._title_lower} ".startswith(f"{lead.name.lower()} "), set()
        if names_title or shared:
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
        """The resolved mentions of a sentence, by its number."""
        mentions = []
        for span in self._rows[number]:
            if span.type in _VALUES:
                mentions.append(Mention(*span, about=False))
            elif (vetted := self._vetted(span, self._sentences[number])) is not None:
                name, kind = self._resolve(vetted.name, vetted.type)
                mentions.append(Mention(vetted.start, vetted.end, name, kind, name == self.title))
        return mentions

    def _vetted(self, span: TextSpan, sentence: str) -> TextSpan | None:
        """The span if it is a name; at the start of a sentence, a comment or a cell a capital letter is not enough."""
        if span.type in _CERTAIN or cached_key(span.name) in self._full or self._is_title(span.name):
            return span
        first, _, rest = span.name.partition(" ")
        if rest and first.lower() in PRESSED:
            span = span._replace(start=span.start + len(first) + 1, name=rest)
            first, _, rest = rest.partition(" ")
        part = self._resolve_part(first) is not None
        if says_nothing(span.name) and (rest or not part):
            return None
        is_known = part or first in self._inside
        if not (is_known or rest) and _opens(sentence, span.start) and self._is_word(first, sentence, span.end):
            return None
        if span.start > 1 or (is_known and not (rest and acts(first.lower()))):
            return span
        return self._vetted_start(span, first, rest)

    def _is_word(self, capitalised: str, sentence: str, end: int) -> bool:
        """True if a first word is one that the passage has in small letters, too, or a verb in front of its object."""
        if not capitalised[1:].islower():
            return False
        if self._uncapitalised is None:
            code = {span.name.lower() for row in self._rows for span in row if span.type == "Code"}
            words = {word for text in self._sentences for word in _WORDS.findall(text)}
            self._uncapitalised = frozenset(words - code)
        word = capitalised.lower()
        derived = _DERIVED.fullmatch(word)  # `Uncomment`, `Re-run`
        return (
            word in self._uncapitalised
            or (derived is not None and is_everyday(derived[1]))
            or _VERB_TAIL.match(sentence, end) is not None
        )

    def _vetted_start(self, span: TextSpan, first: str, rest: str) -> TextSpan | None:
        """The name in a span at the start of a sentence that occurs nowhere else in the passage."""
        if not rest:
            return None if first.lower().endswith(("ly", "ing", "ed")) else span
        if not is_everyday(first) or rest.split(" ", 1)[0] in FUNCTION_WORDS:
            return span
        if is_common(rest.split()) or says_nothing(rest):
            return None
        return span._replace(start=span.start + len(first) + 1, name=rest)

    def _resolve(self, name: str, kind: str) -> tuple[str, str]:
        key = cached_key(name)
        if key in self._full:
            return self._full[key]
        resolved: tuple[str, str] | None = None
        if self._is_title(name):
            resolved = (self.title, self.kind or kind)
        elif kind in _PLAIN_KINDS or kind == "Location":
            bare = without_honorifics(name) if kind == "Person" else name
            if " " not in bare or (len(bare.split()) < len(name.split()) and self._resolve_part(bare)):
                resolved = self._resolve_part(bare) if kind != "Location" else None
            if resolved is None and self._same_person(bare):
                resolved = (self.title, self.kind)
            if resolved is None and bare != name and " " in bare:
                resolved = (bare, kind)
        if resolved is None:
            resolved = (name, kind)
        elif " " in name and cached_key(resolved[0]) != key:
            self.aliases.setdefault(cached_key(resolved[0]), {})[name] = None
        self._full[key] = resolved
        return resolved

    def _resolve_part(self, word: str) -> tuple[str, str] | None:
        if word in self._title_parts:
            return (self.title, self.kind)
        full_name = self._partial.get(word)
        return self._full.get(cached_key(full_name[0]), full_name) if full_name else None

    def _same_person(self, name: str) -> bool:
        """`Robert Trent` for the title `Robert H. Trent`: first and last word agree, the middle does not differ."""
        mine, theirs = self.title.split(), name.split()
        if len(self._title_parts) != 2 or len(theirs) < 2 or (mine[0], mine[-1]) != (theirs[0], theirs[-1]):
            return False
        return len(mine) == 2 or len(theirs) == 2 or (mine[1][0] == theirs[1][0] and "." in mine[1] + theirs[1])

    def _is_title(self, name: str) -> bool:
        key = cached_key(name)
        return bool(self._title_key) and self._title_key in (key, f"the {key}")
