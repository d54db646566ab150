"""Refuse to quote hits that have too little of a question, and warn of words of it that they lack."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sire_core.arrays.products import all_products
from sire_core.extraction.headings import is_everyday, rarity
from sire_core.models.lexical_embedder import gram_vectors
from sire_core.models.word_vectors import is_english
from sire_core.search.alike_words import MIN_ALIKE_COSINE
from sire_core.search.context import FEATURES, Candidates, ranked
from sire_core.text.asking import asking_rules
from sire_core.text.languages import (
    ENGLISH,
    LANGUAGES,
    CompoundWords,
    Language,
    find_language,
    language,
    language_among,
)
from sire_core.text.lexicon import ABBREVIATIONS, FUNCTION_WORDS, VAGUE_NOUNS
from sire_core.text.snippets import identifiers, stem
from sire_core.text.words import find_words, is_plain, uncontracted

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray
    from sire_core.types import Hit

MIN_SHARE, MAX_RARITY = 0.4, 75.0
"""Share of a question that the best hit must have to be quoted. Words that are rare in English count more, names that
no hit has twice, and of long questions only so much, about nine rare words; see `benchmarks/extracts.py --refused`."""
SURE_SHARE, MIN_MEANING, MIN_IN_PIECE = 0.7, 0.45, 0.6
"""Share of an English question that is enough by itself. With less, and without a name that a hit has, a piece of the
first hits must mean what is asked (cosine) or have so much of its words: everyday words stand in every long text."""
SURE_MEANING, MIN_SHARE_OF_MEANT = 0.6, 0.3
"""Where a piece means so much of what is asked, a smaller share is enough: people ask in words of their own."""
NEAR = 0.75
"""With so much of the share that would answer, of an English question of `MIN_SHARE`, hits are quoted with a warning:
of 84 questions that four folders of manuals and office files answer 18 had less than the share, 17 of them not less
than this; of questions about other things nine in ten have less."""
_READ_HITS = 10  # Hits whose pieces are looked at, and that should have most of a question's words
_MIN_SHARE_OF_LANGUAGE = {"zh": 0.35, "th": 0.65, "lo": 0.65, "km": 0.65, "my": 0.65}
_MIN_SHARE_OF_WORDS = 0.42
"""Share of a question in another language that two hits must have to be quoted; of pairs of letters, which texts share
by chance more often the smaller the alphabet is. Chosen on XQuAD, see `benchmarks/languages.py --refused`."""
_SECOND_HIT = 0.5  # How much words count that only the second of the two hits has
_MAX_LETTERS = 12  # Words of so many letters or more count alike
_REFUSED, _DOUBTED = "The documents do not seem to answer this.", "The documents may not answer this."
_NO_WORDS = "The question has no word to search for; these are only the nearest passages."
_NO_SHARED_WORD = "No hit shares a word with the question."
_ONE_SHARED_WORD = "No hit has more than one word of the question; these are only the nearest."
_MARKS = "?!.,;:()[]{}<>\"'`\u2018\u2019\u201c\u201d"  # Around words of a question
_COMPOUND = re.compile(r"(?<![\w-])\w+(?:-\w+)+(?![\w-])")
_MAX_NAMED = 3  # Missing words that a warning names
_MAX_ENGLISH = 2  # Words of a compound that may be English and no name: `read-only`
_MANY = 3  # Everyday words are named, too, where no hit has one of so many words of the question
_KEYWORD = 3  # Letters of a word in capitals that is no form of another: `RETURNING`
_MIN_TOLD = 3  # Words that tell a language
_FEW_WORDS = 4  # In longer questions English words in small letters are no names, however rare they are
_BEFORE_NAMES = frozenset(ABBREVIATIONS.split("|"))
_DEGREE = re.compile(r"(?i)(?<=\bhow )(?:long|far|old|tall|high|deep|large|big|fast|soon)\b")


def unanswered_note(question: str, hits: Sequence[Hit]) -> str:
    """A warning if hits hardly answer a question or lack names of it; else empty."""
    return judge_hits(question, hits).note


class JudgedHits(NamedTuple):
    """Hits of a question, judged by `judge_hits`."""

    note: str  # The warning; else empty
    is_answered: bool  # Whether a hit has enough of the question to be quoted without a warning
    is_near: bool  # Whether it has enough to be quoted at all
    read: _ReadQuestion | None

    def note_of(self, quoted: Sequence[int]) -> str:
        """A warning if none of the hits that are quoted, numbered from 0, has a name of the question."""
        read = self.read
        named = [word for word in read.lacking(read.missing(quoted)) if word in read.proper] if read and quoted else []
        return _not_mentioned("quoted passage", named) if named else ""


def judge_hits(question: str, hits: Sequence[Hit]) -> JudgedHits:
    """Judge whether a hit has enough of the question to be quoted; it may lack a name, of which the note warns."""
    read = _read_question(question, hits)
    if read is None:
        return JudgedHits("", is_answered=True, is_near=True, read=None)
    if not len(read.words):
        return JudgedHits(_NO_WORDS, is_answered=False, is_near=False, read=read)
    share, note = read.share(), read.warning()
    is_answered = share >= read.sure_share or share >= read.min_share()
    is_near = is_answered or share >= read.near_share
    doubt = "" if is_answered else _DOUBTED if is_near else _REFUSED
    return JudgedHits(f"{doubt} {note}".strip(), is_answered, is_near, read)


def _not_mentioned(holder: str, words: Sequence[str]) -> str:
    return f"No {holder} mentions {' or '.join(map(repr, words[:_MAX_NAMED]))}."


def _read_question(question: str, hits: Sequence[Hit]) -> _ReadQuestion | None:
    """A question beside hits, unless they have no words that could be compared."""
    spoken = language_among(question, (hit.unit.language for hit in hits))
    if not hits or (spoken.is_english and not is_plain(question)):
        return None
    return (_read_english if spoken.is_english else _read)(question, hits, spoken)


@dataclass(frozen=True, slots=True)
class _ReadQuestion:
    """A question and hits, read in a language."""

    words: Sequence[str]  # Content words, each once
    weights: FloatArray  # Of the words, 0 for vague ones
    shares: FloatArray  # Share of each word that each hit has, `[hits, words]`: less than 1 for a similar word
    spelled: Sequence[str]  # All words as the question has them
    names: Collection[str]  # Those of these that are names
    proper: Collection[str]  # Those of these that are no English words in small letters
    words_of: Callable[[str], Collection[str]]  # Content words of one of these
    near_share: float  # Share that is quoted with a warning
    sure_share: float  # Share that is an answer whatever the hits mean
    min_share: Callable[[], float]  # Least share that is an answer, from what the hits mean, for which they are read
    max_weight: float = inf  # Of all words together
    second_hit: float = 0.0  # How much words count that only a second hit has

    def missing(self, hits: Sequence[int] | slice = slice(None)) -> set[str]:
        """Content words that none of some hits has, or none at all."""
        lacked = (self.weights > 0) & ~self.shares[hits].any(axis=0)
        return {self.words[number] for number in np.flatnonzero(lacked).tolist()}

    def lacking(self, missing: set[str]) -> list[str]:
        """Words as the question spells them that have missing ones."""
        return [word for word in self.spelled if not missing.isdisjoint(self.words_of(word))]

    def share(self) -> float:
        """Share of the question that the best hit has, with what a second one adds."""
        shares, weights = self.shares, self.weights
        added = np.array([(np.maximum(shares - share, 0.0) @ weights).max() for share in shares])
        best = (shares @ weights + self.second_hit * added).max()
        enough = min(weights.sum(), self.max_weight)
        return float(best / enough) if enough else float(shares.any())

    def warning(self) -> str:
        """Words that no hit has, as the question spells them; empty if there is nothing to say."""
        if not self.shares.any():
            return _NO_SHARED_WORD
        missing, missing_early = self.missing(), self.missing(slice(_READ_HITS))
        counted = np.count_nonzero(self.weights)
        named = [word for word in self.lacking(missing) if len(missing) * _MANY >= counted or word in self.names]
        if named:
            return _not_mentioned("hit", named)
        if len(missing_early) * _MANY >= counted and (named := self.lacking(missing_early)):
            return _not_mentioned("hit among the first ten", named)
        has_one = not self.second_hit and counted > 1 and np.count_nonzero(self.shares, axis=1).max() == 1
        return _ONE_SHARED_WORD if has_one else ""


def _read(question: str, hits: Sequence[Hit], spoken: Language) -> _ReadQuestion:
    """Words in the forms of a language; names and long ones count more, those similar to words of a hit less."""
    words = asking_rules(spoken).content_words(question)
    shares = _shares_of_hits(words, [spoken.words(_text_of(hit)) for hit in hits], spoken)
    spelled = list(dict.fromkeys(find_words(question)))
    names = [word for word in spelled[1:] if word[0].isupper() or word[0].isdigit()]
    in_names = {part for name in names for part in spoken.words(name)}
    letters = np.array([_MAX_LETTERS if word in in_names else min(len(word), _MAX_LETTERS) for word in words])
    least = _MIN_SHARE_OF_LANGUAGE.get(spoken.code, _MIN_SHARE_OF_WORDS)
    spelled = spelled if is_plain(question) else []
    borders = NEAR * least, least, lambda: least
    return _ReadQuestion(words, letters, shares, spelled, names, names, spoken.words, *borders, second_hit=_SECOND_HIT)


def _read_english(question: str, hits: Sequence[Hit], spoken: Language) -> _ReadQuestion:
    """Stems; rare ones count more, vague ones not beside others, those of names that no hit has twice."""
    question = uncontracted(_DEGREE.sub("", question))
    among = LANGUAGES if len(question.split()) >= _MIN_TOLD else ()  # "Ada" is a name, and a word of another language
    idle = FUNCTION_WORDS | language(find_language(question, among)).listed_words
    stems_of = partial(_whole_stems, spoken=spoken, idle=idle, exact=not question.isupper())
    stems = stems_of(question)
    words = sorted(stems)
    held = list(_words_of_hits(question, hits, stems - _whole_stems(question, spoken, idle), spoken))
    shares = np.array([[word in stems_of_hit for word in words] for stems_of_hit in held], dtype=np.float32)
    spelled = list(dict.fromkeys(word.strip(_MARKS) for word in question.split()))
    spelled = [word for word in spelled if word not in _BEFORE_NAMES and not word.isdigit()]
    is_long = len(words) > _FEW_WORDS
    prose = {word for word in spelled if is_everyday(word) or (is_long and word.islower() and is_english(word))}
    names = [word for word in spelled if word not in prose or (word[0].isupper() and word != spelled[0])]
    in_names = frozenset().union(*map(stems_of, names))
    weights = np.array([rarity(word) * (word not in _vague_stems() or stems <= _vague_stems()) for word in words])
    weights *= 1 + (np.array([word in in_names for word in words], dtype=bool) & ~shares.any(axis=0))
    proper = [name for name in names if not (name.islower() and is_english(name))]
    has_none = frozenset().union(*map(stems_of, proper)).isdisjoint(chain(*held))
    sure_share = SURE_SHARE if has_none else MIN_SHARE
    borders = NEAR * MIN_SHARE, sure_share, partial(_min_share, question, hits, sure_share)
    return _ReadQuestion(words, weights, shares, spelled, names, proper, stems_of, *borders, MAX_RARITY)


def _min_share(question: str, hits: Sequence[Hit], sure_share: float) -> float:
    """Least share of an English question that hits must have, by whether a piece of the first ones means what it asks.

    Everyday words alone are not enough.
    """
    features = Candidates.of(question, ranked(hits[:_READ_HITS])).features
    meaning, words = (features[:, FEATURES.index(name)].max(initial=0.0) for name in ("meaning", "words"))
    if meaning >= SURE_MEANING:
        return MIN_SHARE_OF_MEANT
    return MIN_SHARE if meaning >= MIN_MEANING or words >= MIN_IN_PIECE else sure_share


def _shares_of_hits(content: Sequence[str], words_of_hits: Sequence[Sequence[str]], spoken: Language) -> FloatArray:
    """Share of each word that each hit has, `[hits, words]`: 1 for a form or a compound, less for a similar word."""
    every = {word: column for column, word in enumerate(dict.fromkeys(chain(*words_of_hits)))}
    likeness = all_products(gram_vectors(content), gram_vectors(list(every)))
    likeness[likeness < MIN_ALIKE_COSINE] = 0.0
    stems = np.array(spoken.stems(list(every)))
    compounds = CompoundWords.of(every if spoken.min_part else (), spoken.min_part)
    for row, (word, stem_of_word) in enumerate(zip(content, spoken.stems(content), strict=True)):
        likeness[row, stems == stem_of_word] = 1.0
        likeness[row, [every[holder] for holder in compounds.holding(word)]] = 1.0
    columns = ([every[word] for word in words] for words in words_of_hits)
    return np.array([likeness[:, numbers].max(axis=1, initial=0.0) for numbers in columns])


def _words_of_hits(
    question: str, hits: Sequence[Hit], keywords: frozenset[str], spoken: Language
) -> Iterator[frozenset[str]]:
    """Stems of each hit's text, title and path, and of words of the question that begin a word there."""
    either = "|".join(map(re.escape, find_words(question)))
    begins = re.compile(rf"\b(?i:{either})(?=[A-Z])")  # `PostgreSQL` has the word `Postgres`
    for hit in hits:
        text = _text_of(hit)
        text = "\n".join(dict.fromkeys((text, text.replace("_", " "))))
        stems = _whole_stems(f"{text}\n{' '.join(begins.findall(text))}", spoken)
        yield stems | keywords.intersection(map(str.lower, find_words(text)))


def _text_of(hit: Hit) -> str:
    return "\n".join([hit.unit.title, hit.unit.text, *(step.sentence for step in hit.path)])


def _whole_stems(
    text: str, spoken: Language, idle: Collection[str] = FUNCTION_WORDS, *, exact: bool = False
) -> frozenset[str]:
    """As `stems`, but words that only begin alike are told apart (`Tonga`, `Tongann`); if exact, keywords are whole."""
    words = [word for word in find_words(text) if word.lower() not in idle]
    is_whole = [exact and word.isupper() and len(word) >= _KEYWORD for word in words]
    lower = zip(map(str.lower, words), is_whole, strict=True)
    names = identifiers(text).union(_compounds(text) if exact else map(str.lower, _COMPOUND.findall(text)))
    return names.union(word if whole else stem(word, spoken) for word, whole in lower)


def _compounds(question: str) -> Iterator[str]:
    """Words that hyphens join in a question and that are a name as a whole: `cache-stale-ttl`, but not `up-to-date`."""
    for compound in map(str.lower, _COMPOUND.findall(question)):
        words = compound.split("-")
        is_long = len(words) > _MAX_ENGLISH
        if FUNCTION_WORDS.isdisjoint(words) and (is_long or not all(map(is_english, words))):
            yield compound


@cache
def _vague_stems() -> frozenset[str]:
    english = language(ENGLISH)
    return _whole_stems(" ".join([*VAGUE_NOUNS, asking_rules(english).words["vague"]]), english)
