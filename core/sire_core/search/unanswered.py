"""Refuse to quote hits that have too little of a question, and warn of words of it that they lack."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from sire_core.extraction.headings import is_everyday, rarity
from sire_core.text.languages import ENGLISH, find_language, language, language_among
from sire_core.text.lexicon import FUNCTION_WORDS, VAGUE_NOUNS
from sire_core.text.snippets import identifiers, stem
from sire_core.text.words import find_words, is_plain

if TYPE_CHECKING:
    from sire_core.text.languages import Language
    from sire_core.types import Hit

MIN_SHARE, MAX_RARITY = 0.4, 60.0
"""Share of a question that the best hit must have to be quoted. Words that are rare in English count more, names that
no hit has twice, and of long questions only so much, about seven rare words; see `benchmarks/extracts.py --refused`."""
_MARKS = "?!.,;:()[]{}<>\"'`\u2018\u2019\u201c\u201d"  # Around words of a question
_MAX_NAMED = 3  # Missing words that a warning names
_MANY = 3  # Everyday words are named, too, where no hit has one of so many words of the question
_KEYWORD = 3  # Letters of a word in capitals that is no form of another: `RETURNING`
_DEGREE = re.compile(r"(?i)(?<=\bhow )(?:long|far|old|tall|high|deep|large|big|fast|soon)\b")
_VAGUE = (
    "know tell say explain connect put get rid make keep happen want become wait need blame right away already really "
    "please"
)


def unanswered_note(question: str, hits: Sequence[Hit]) -> str:
    """A warning if hits hardly answer a question or lack names of it; else empty."""
    return judge_hits(question, hits)[0]


def judge_hits(question: str, hits: Sequence[Hit]) -> tuple[str, bool]:
    """The warning, and whether a hit has enough of the question to be quoted; it may lack a name."""
    if not hits or not is_plain(question):  # scripts without spaces have no words to compare
        return "", True
    question = _DEGREE.sub("", question)
    spoken = language_among(question, (hit.unit.language for hit in hits))
    idle = FUNCTION_WORDS | spoken.listed_words | language(find_language(question)).listed_words
    exact = not question.isupper()
    every = _whole_stems(question, spoken, idle, exact=exact)
    asked = every - _vague_stems() or every
    if not asked:
        return "The question has no word to search for; these are only the nearest passages.", False
    keywords = every - _whole_stems(question, spoken, idle)
    shares = [every & words for words in _words_of_hits(question, hits, keywords, spoken)]
    missing = asked.difference(*shares)
    first, *_ = spelled = list(dict.fromkeys(word.strip(_MARKS) for word in question.split()))
    lacking = [word for word in spelled if _whole_stems(word, spoken, idle, exact=exact) & missing]
    names = [word for word in lacking if not is_everyday(word) or (word[0].isupper() and word != first)]
    rarities = [*map(rarity, asked), *(rarity(word.lower()) for word in names if spoken.is_english)]
    best = max(sum(map(rarity, share & asked)) for share in shares)
    is_answered = best >= MIN_SHARE * min(sum(rarities), MAX_RARITY)
    lacking = lacking if len(missing) * _MANY >= len(asked) else names
    note = f"No hit mentions {' or '.join(map(repr, lacking[:_MAX_NAMED]))}." if lacking else ""
    if not any(shares):
        note = "No hit shares a word with the question."
    elif not note and len(asked) > 1 and max(map(len, shares)) == 1:
        note = "No hit has more than one word of the question; these are only the nearest."
    return note if is_answered else f"The documents do not seem to answer this. {note}".rstrip(), is_answered


def _words_of_hits(
    question: str, hits: Sequence[Hit], keywords: frozenset[str], spoken: Language
) -> Iterator[frozenset[str]]:
    """Stems of each hit's text, title and path, and of words of the question that begin or end a word there."""
    either = "|".join(map(re.escape, find_words(question)))
    begins = re.compile(rf"\b(?i:{either})(?=[A-Z])")  # `PostgreSQL` has the word `Postgres`
    for hit in hits:
        text = "\n".join([hit.unit.title, hit.unit.text, *(step.sentence for step in hit.path)])
        text = f"{text}\n{text.replace('_', ' ')}" if "_" in text else text
        yield (
            _whole_stems(text, spoken)
            | keywords.intersection(map(str.lower, find_words(text)))
            | _whole_stems(" ".join(begins.findall(text)), spoken)
            | (_compounded(question, text, spoken) if spoken.min_part else frozenset())
        )


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
