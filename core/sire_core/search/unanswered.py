"""Refuse to quote hits that have too little of a question, and warn of words of it that they lack."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.headings import is_everyday, rarity
from sire_core.models.lexical_embedder import gram_vectors
from sire_core.search.alike_words import MIN_ALIKE_COSINE
from sire_core.text.asking import asking_rules
from sire_core.text.languages import ENGLISH, CompoundWords, find_language, language, language_among
from sire_core.text.lexicon import FUNCTION_WORDS, VAGUE_NOUNS
from sire_core.text.snippets import identifiers, stem
from sire_core.text.words import find_words, is_plain

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray
    from sire_core.text.languages import Language
    from sire_core.types import Hit

MIN_SHARE, MAX_RARITY = 0.4, 60.0
"""Share of a question that the best hit must have to be quoted. Words that are rare in English count more, names that
no hit has twice, and of long questions only so much, about seven rare words; see `benchmarks/extracts.py --refused`."""
_MIN_SHARE_OF_LANGUAGE = {"zh": 0.35, "th": 0.65, "lo": 0.65, "km": 0.65, "my": 0.65}
_MIN_SHARE_OF_WORDS = 0.42
"""Share of a question in another language that two hits must have to be quoted; of pairs of letters, which texts share
by chance more often the smaller the alphabet is. Chosen on XQuAD, see `benchmarks/languages.py --refused`."""
_SECOND_HIT = 0.5  # How much words count that only the second of the two hits has
_MAX_LETTERS = 12  # Words of so many letters or more count alike
_REFUSED = "The documents do not seem to answer this."
_NO_WORDS = "The question has no word to search for; these are only the nearest passages."
_NO_SHARED_WORD = "No hit shares a word with the question."
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
    if not hits:
        return "", True
    spoken = language_among(question, (hit.unit.language for hit in hits))
    note, is_answered = (_judge_english if spoken.is_english else _judge)(question, hits, spoken)
    return note if is_answered or note == _NO_WORDS else f"{_REFUSED} {note}".rstrip(), is_answered


def _judge(question: str, hits: Sequence[Hit], spoken: Language) -> tuple[str, bool]:
    """As `judge_hits`: names and long words of a question count more, words that are similar to those of a hit less."""
    content = asking_rules(spoken).content_words(question)
    if not content:
        return _NO_WORDS, False
    shares = _shares_of_hits(content, [spoken.words(_text_of(hit)) for hit in hits], spoken)
    if not shares.any():
        return _NO_SHARED_WORD, False
    spelled = list(dict.fromkeys(find_words(question)))
    names = [word for word in spelled[1:] if word[0].isupper() or word[0].isdigit()]
    in_names = {part for name in names for part in spoken.words(name)}
    weights = np.array([_MAX_LETTERS if word in in_names else min(len(word), _MAX_LETTERS) for word in content])
    added = np.array([(np.maximum(shares - share, 0.0) @ weights).max() for share in shares])
    best = (shares @ weights + _SECOND_HIT * added).max() / weights.sum()
    missing = {word for word, share in zip(content, shares.max(axis=0), strict=True) if not share}
    named = spelled if len(missing) * _MANY >= len(content) else names
    lacking = [word for word in named if missing.intersection(spoken.words(word))] if is_plain(question) else []
    return _lacking_note(lacking), bool(best >= _MIN_SHARE_OF_LANGUAGE.get(spoken.code, _MIN_SHARE_OF_WORDS))


def _shares_of_hits(content: Sequence[str], words_of_hits: Sequence[Sequence[str]], spoken: Language) -> FloatArray:
    """Share of each word that each hit has, `[hits, words]`: 1 for a form or a compound, less for a similar word."""
    every = {word: column for column, word in enumerate(dict.fromkeys(chain(*words_of_hits)))}
    likeness = gram_vectors(content) @ gram_vectors(list(every)).T
    likeness[likeness < MIN_ALIKE_COSINE] = 0.0
    stems = np.array(spoken.stems(list(every)))
    compounds = CompoundWords.of(every if spoken.min_part else (), spoken.min_part)
    for row, (word, stem_of_word) in enumerate(zip(content, spoken.stems(content), strict=True)):
        likeness[row, stems == stem_of_word] = 1.0
        likeness[row, [every[holder] for holder in compounds.holding(word)]] = 1.0
    columns = ([every[word] for word in words] for words in words_of_hits)
    return np.array([likeness[:, numbers].max(axis=1, initial=0.0) for numbers in columns])


def _judge_english(question: str, hits: Sequence[Hit], spoken: Language) -> tuple[str, bool]:
    """As `judge_hits`, by how rare words are in English."""
    if not is_plain(question):  # scripts without spaces have no words to compare
        return "", True
    question = _DEGREE.sub("", question)
    idle = FUNCTION_WORDS | language(find_language(question)).listed_words
    exact = not question.isupper()
    every = _whole_stems(question, spoken, idle, exact=exact)
    asked = every - _vague_stems() or every
    if not asked:
        return _NO_WORDS, False
    keywords = every - _whole_stems(question, spoken, idle)
    shares = [every & words for words in _words_of_hits(question, hits, keywords, spoken)]
    missing = asked.difference(*shares)
    first, *_ = spelled = list(dict.fromkeys(word.strip(_MARKS) for word in question.split()))
    lacking = [word for word in spelled if _whole_stems(word, spoken, idle, exact=exact) & missing]
    names = [word for word in lacking if not is_everyday(word) or (word[0].isupper() and word != first)]
    rarities = [*map(rarity, asked), *(rarity(word.lower()) for word in names)]
    best = max(sum(map(rarity, share & asked)) for share in shares)
    is_answered = best >= MIN_SHARE * min(sum(rarities), MAX_RARITY)
    note = _lacking_note(lacking if len(missing) * _MANY >= len(asked) else names)
    if not any(shares):
        note = _NO_SHARED_WORD
    elif not note and len(asked) > 1 and max(map(len, shares)) == 1:
        note = "No hit has more than one word of the question; these are only the nearest."
    return note, is_answered


def _lacking_note(words: Sequence[str]) -> str:
    return f"No hit mentions {' or '.join(map(repr, words[:_MAX_NAMED]))}." if words else ""


def _words_of_hits(
    question: str, hits: Sequence[Hit], keywords: frozenset[str], spoken: Language
) -> Iterator[frozenset[str]]:
    """Stems of each hit's text, title and path, and of words of the question that begin a word there."""
    either = "|".join(map(re.escape, find_words(question)))
    begins = re.compile(rf"\b(?i:{either})(?=[A-Z])")  # `PostgreSQL` has the word `Postgres`
    for hit in hits:
        text = _text_of(hit)
        text = f"{text}\n{text.replace('_', ' ')}" if "_" in text else text
        yield (
            _whole_stems(text, spoken)
            | keywords.intersection(map(str.lower, find_words(text)))
            | _whole_stems(" ".join(begins.findall(text)), spoken)
        )


def _text_of(hit: Hit) -> str:
    return "\n".join([hit.unit.title, hit.unit.text, *(step.sentence for step in hit.path)])


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
