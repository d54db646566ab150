"""Words of a question that hits lack: a warning, and how much of them is worth quoting."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING

from sire_core.extraction.headings import is_everyday
from sire_core.text.languages import ENGLISH, find_language, language, question_language
from sire_core.text.lexicon import FUNCTION_WORDS, VAGUE_NOUNS
from sire_core.text.snippets import identifiers, stem
from sire_core.text.words import find_words, is_plain

if TYPE_CHECKING:
    from sire_core.text.languages import Language
    from sire_core.types import Hit

MAX_TOKENS, NEAREST_TOKENS = 280, 80
"""Tokens of all quotes; and of those from hits that hardly answer."""
_MARKS = "?!.,;:()[]{}<>\"'`\u2018\u2019\u201c\u201d"  # Around words of a question
_SHARED = 3  # Where no hit has one of so many words of a question, hits are about something else
_KEYWORD = 3  # Letters of a word in capitals that is no form of another: `RETURNING`
_DEGREE = re.compile(r"(?i)(?<=\bhow )(?:long|far|old|tall|high|deep|large|big|fast|soon)\b")
_VAGUE = (
    "know tell say explain connect put get rid make keep happen want become wait need blame right away already really "
    "please"
)


def unanswered_note(question: str, hits: Sequence[Hit]) -> str:
    """A warning if hits lack words of the question, or none has two, and are only the nearest; else empty."""
    return judge_hits(question, hits)[0]


def judge_hits(question: str, hits: Sequence[Hit]) -> tuple[str, int]:
    """The warning, and how many tokens are worth quoting: hits may lack a name and tell the rest."""
    ways = ("\n".join(step.sentence for step in hit.path) for hit in hits)
    texts = [f"{hit.unit.title}\n{hit.unit.text}\n{way}" for hit, way in zip(hits, ways, strict=True)]
    texts = [f"{text}\n{text.replace('_', ' ')}" if "_" in text else text for text in texts]
    question = _DEGREE.sub("", question)
    spoken = language(question_language(question, (hit.unit.language for hit in hits)))
    idle = FUNCTION_WORDS | spoken.listed_words | language(find_language(question)).listed_words
    exact = not question.isupper()
    every = _whole_stems(question, spoken, idle, exact=exact)
    asked = every - _vague_stems() or every
    if not hits or not is_plain(question):  # scripts without spaces have no words to compare
        return "", MAX_TOKENS
    if not asked:
        return "The question has no word to search for; these are only the nearest passages.", NEAREST_TOKENS
    keywords = every - _whole_stems(question, spoken, idle)
    shares = [
        every & (_whole_stems(text, spoken) | keywords.intersection(map(str.lower, find_words(text)))) for text in texts
    ]
    if spoken.min_part:
        shares = [
            share | every & _compounded(question, text, spoken) for share, text in zip(shares, texts, strict=True)
        ]
    if not any(shares):
        return "No hit shares a word with the question; these are only the nearest.", 0
    missing = asked.difference(*shares)
    hardly = len(missing) * _SHARED >= len(asked)
    first, *_ = spelled = list(dict.fromkeys(word.strip(_MARKS) for word in question.split()))
    lacking = [word for word in spelled if _whole_stems(word, spoken, idle, exact=exact) & missing]
    if lacking:
        every_word = [word for text in texts for word in find_words(text)]
        lacking = [word for word in lacking if not any(_begins(word, other) for other in every_word)]
    if not hardly:  # then only names are worth a warning
        lacking = [word for word in lacking if not is_everyday(word) or (word[0].isupper() and word != first)]
    if lacking:
        most = 0 if missing == asked else NEAREST_TOKENS if hardly else MAX_TOKENS
        return f"No hit mentions {' or '.join(map(repr, lacking[:_SHARED]))}.", most
    if len(asked) > 1 and max(map(len, shares)) == 1:
        return "No hit has more than one word of the question; these are only the nearest.", NEAREST_TOKENS
    return "", MAX_TOKENS


def _begins(word: str, other: str) -> bool:
    """True if another word is a word and a part that begins with a capital: `PostgreSQL` of `Postgres`."""
    return other[len(word) :][:1].isupper() and other.lower().startswith(word.lower())


def _compounded(question: str, text: str, spoken: Language) -> frozenset[str]:
    """Stems of words with which, or behind which, other parts make a word of a text: `Haftpflicht`."""
    least = spoken.min_part
    whole = [word.lower() for word in find_words(text)]
    parts = [
        part
        for part in map(str.lower, find_words(question))
        if len(part) >= least
        and any(len(word) - len(part) >= least and (word.startswith(part) or word.endswith(part)) for word in whole)
    ]
    return _whole_stems(" ".join(parts), spoken)


def _whole_stems(
    text: str, spoken: Language, idle: Collection[str] = FUNCTION_WORDS, *, exact: bool = False
) -> frozenset[str]:
    """As `stems`, but words that only begin alike are told apart (`Tonga`, `Tongann`); if exact, keywords are whole."""
    words = [word for word in find_words(text) if word.lower() not in idle]
    is_whole = [exact and word.isupper() and len(word) >= _KEYWORD for word in words]
    lower = zip(map(str.lower, words), is_whole, strict=True)
    return frozenset(word if whole else stem(word, spoken) for word, whole in lower) | identifiers(text)


@cache
def _vague_stems() -> frozenset[str]:
    return _whole_stems(" ".join(VAGUE_NOUNS) + f" {_VAGUE}", language(ENGLISH))
