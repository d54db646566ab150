"""Names in other languages than English: without their function words, and in German without common nouns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from sire_core.extraction.spans import TextSpan
from sire_core.text.languages import ENGLISH, UNDETERMINED, language

CAPITALISED_NOUNS = ("de",)  # Languages that write all nouns with a capital letter, so that it names nothing
_CERTAIN_TYPES = frozenset(("Date", "Quantity", "Work", "Code", "Term"))
_ELISION = re.compile(r"\A(?:d|l|D|L)['\u2019](?=\w)")
_GREETING = re.compile(
    r"(?:liebe[rs]?|hallo|guten|geehrte[rs]?|sehr|bonjour|bonsoir|ch[e\u00e8]re?s?|hola|buen[oa]s|estimad[oa]s?|querid[oa]s?|ciao|"
    r"gentil[ei]|buongiorno|beste|geachte|ol\u00e1|prezad[oa]s?|drog[iae]|szanown[yia]|k\u00e4re?|hej|hei|kjære|merhaba|say\u0131n|"
    r"\u0443\u0432\u0430\u0436\u0430\u0435\u043c\w+|\u0434\u043e\u0440\u043e\u0433\w+|\u0437\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\w+)\Z",
    re.IGNORECASE,
)
_HONORIFIC = re.compile(
    r"(?:frau|herrn?|dr|prof|hausmeister(?:in)?|architekt(?:in)?|m(?:me|lle|onsieur|adame|a\u00eetre)|se\u00f1or(?:a|ita)?|sra?|"
    r"do[n\u00f1]a?|signora?|sig|senhora?|pani?|mevrouw|meneer|fru|\u0433\u043e\u0441\u043f\u043e\u0434\u0438\u043d|"
    r"\u0433\u043e\u0441\u043f\u043e\u0436\u0430|bay(?:an)?)\.?\Z",
    re.IGNORECASE,
)
"""Title in front of a name of two words or more; behind it the name is that of the texts without it."""
_TURKISH_ENDING = re.compile(r"(?<=\w\w)['\u2019][a-z\u00e7\u011f\u0131\u00f6\u015f\u00fc]+\Z")
_OPENS = re.compile(r"[.!?:|\u2026][\"'\u201c\u201d\u00bb)\s]*\Z")
_MIXED = re.compile(r"\A.+[A-Z\d]|\d")
_GERMAN_NOUN = re.compile(
    r"(?:ung|heit|keit|schaft|ion|t\u00e4t|nis|tum|ment|ling|chen|ismus|enz|anz|ik|ur|erei)(?:en|e|s|es|n|innen)?\Z|innen\Z"
)
"""Endings of nouns that are made of other words; they name nothing."""
_PLACE = re.compile(r"(?:\A|\W)(?:in|nach|aus|bei|zwischen)\s\Z", re.IGNORECASE)
_INFLECTED = re.compile(r"\w*[a-z\u00e4\u00f6\u00fc\u00df](?:e|en|er|es|em)")
_OWNED = re.compile(r"[^ ]+ (?:der|des|dem|den|die|das) (?=[^ ]+ [^ ])")
_CHARS_BEFORE = 40
_TITLED = 2


def names_in_language(sentences: Sequence[str], rows: Sequence[list[TextSpan]], code: str) -> None:
    """Leave in the spans of each sentence of a passage what may be a name in its language."""
    if code in (ENGLISH, UNDETERMINED):
        return
    for row in rows:
        row[:] = [part for span in row for part in ([span] if span.type in _CERTAIN_TYPES else _parts(span, code))]
    inside = _inside(sentences, rows)
    for sentence, row in zip(sentences, rows, strict=True):
        row[:] = [span for span in row if span.type in _CERTAIN_TYPES or _is_name(sentence, span, code, inside)]


def _parts(span: TextSpan, code: str) -> list[TextSpan]:
    """A span without function words and greetings at its ends; in German what a conjunction joins is apart.

    Nor has a name there what it belongs to in front: `Spitze der Nordlicht Reederei`.
    """
    function_words = language(code).listed_words
    pieces, start = [(span.start, span.name)], span.start
    if code in CAPITALISED_NOUNS and " und " in span.name:
        pieces = []
        for piece in span.name.split(" und "):
            pieces.append((start, piece))
            start += len(piece) + len(" und ")
    elif code in CAPITALISED_NOUNS and (owned := _OWNED.match(span.name)):
        pieces = [(start + owned.end(), span.name[owned.end() :])]
    parts = []
    for at, name in pieces:
        words, position = name.split(" "), at
        while words and (_is_function(words[0], function_words) or _GREETING.match(words[0])):
            position += len(words[0]) + 1
            del words[0]
        while words and _is_function(words[-1], function_words):
            del words[-1]
        while len(words) > _TITLED and _HONORIFIC.match(words[0]):
            position += len(words[0]) + 1
            del words[0]
        bare = " ".join(words)
        bare = _TURKISH_ENDING.sub("", bare) if code == "tr" else bare
        if elided := _ELISION.match(bare):
            bare, position = bare[elided.end() :], position + elided.end()
        if len(bare) > 1 and any(map(str.isupper, bare)):
            parts.append(TextSpan(position, position + len(bare), bare, span.type))
    return parts


def _is_function(word: str, function_words: frozenset[str]) -> bool:
    """True if a word is a function word, with a pronoun behind an apostrophe or not (`C'est`)."""
    lower = word.lower().rstrip("'\u2019.").replace("\u2019", "'")
    return lower in function_words or all(part in function_words for part in lower.split("'"))


def _opens(sentence: str, start: int) -> bool:
    return start <= 1 or _OPENS.search(sentence, max(0, start - 4), start) is not None


def _inside(sentences: Sequence[str], rows: Sequence[list[TextSpan]]) -> dict[str, int]:
    """Words of names of several words, and how often each single word is capitalised inside of a sentence."""
    counts: dict[str, int] = {}
    for sentence, row in zip(sentences, rows, strict=True):
        for span in row:
            words = span.name.split(" ")
            if not _opens(sentence, span.start):
                for word in words if len(words) > 1 else ():
                    counts[word] = counts.get(word, 0) + 2
            if len(words) == 1 and not _opens(sentence, span.start):
                counts[span.name] = counts.get(span.name, 0) + 1
    return counts


def _is_name(sentence: str, span: TextSpan, code: str, inside: dict[str, int]) -> bool:
    words = span.name.split(" ")
    if _MIXED.match(span.name) and " " not in span.name:
        return True
    opens = _opens(sentence, span.start)
    if code not in CAPITALISED_NOUNS:
        return len(words) > 1 or not opens or span.name in inside
    if len(words) > 1:
        return not (opens and _INFLECTED.fullmatch(words[0]) and words[0] not in inside and _is_noun(words[-1]))
    if _is_noun(span.name) or (opens and span.name not in inside):
        return False
    before = sentence[max(0, span.start - _CHARS_BEFORE) : span.start]
    word = before.split()[-1] if before[-1:].isspace() and before.strip() else ""
    if word.lower() in _german_articles() or _INFLECTED.fullmatch(word):
        return inside.get(span.name, 0) > 1
    return inside.get(span.name, 0) > 1 or bool(_PLACE.search(before))


def _is_noun(word: str) -> bool:
    return bool(_GERMAN_NOUN.search(word))


@cache
def _german_articles() -> frozenset[str]:
    return frozenset(
        "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner am im zum zur vom "
        "beim ins ans aufs jede jeder jedes jedem jeden dieser diese dieses diesem diesen "
        "viele mehrere einige alle".split()
    )
