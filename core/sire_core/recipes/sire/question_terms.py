"""Terms of a question: for each of its words the stems of an index that stand for it, in the index's languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.lists import word_keys
from sire_core.recipes.sire.passage_arrays import stem_keys
from sire_core.text.asking import asking_rules
from sire_core.text.languages import ENGLISH, Language, compound_parts, language, possible_parts, question_language

if TYPE_CHECKING:
    from sire_core.protocols import DoubleArray, HashArray, IntArray
    from sire_core.recipes.sire.evidence_index import EvidenceIndex


_PART_WEIGHT = 0.5  # Weight of a part of a compound of the question, which is a term by itself, too
_MAX_COMPOUNDS = 50  # Words that hold a word of the question, at most; a word that more hold is no part that tells


@dataclass(frozen=True, slots=True)
class QuestionTerm:
    """A word of a question and the stems that stand for it."""

    word: str  # as the question spells it
    stems: IntArray  # numbers in the index; the first is its own where the index has that
    shares: DoubleArray  # of the BM25 of each stem that counts, `[stems]`
    idf: float  # of all passages that have any of them

    @property
    def stem(self) -> int:
        """The first stem."""
        return int(self.stems[0])

    @classmethod
    def of(cls, word: str, stems: list[int], index: EvidenceIndex, weight: float = 1.0) -> QuestionTerm:
        """Make the term of a word that some stems stand for."""
        numbers = np.array(stems, dtype=np.int64)
        if len(stems) == 1 and weight == 1.0:
            return cls(word, numbers, np.ones(1), float(index.idf[stems[0]]))
        size, holders = len(index.chunks), len(np.unique(index.passages.take(numbers)[1]))
        idf = weight * float(np.log1p((size - holders + 0.5) / (holders + 0.5)))
        return cls(word, numbers, idf / np.maximum(1e-9, index.idf[numbers].astype(np.float64)), idf)


def question_terms(question: str, index: EvidenceIndex) -> tuple[list[QuestionTerm], HashArray]:
    """Return the terms of a question, and keys of the stems of its words that the index lacks.

    Function words of the question's language, one of those of the index, are left out. In languages with compounds a
    term stands for longer words that its word is a part of, and parts of the question's compounds are terms, too.
    """
    text = question.replace("&", " and ")
    languages = _languages(question, index)
    text = asking_rules(languages[0]).searched_text(text)
    spelled = [spoken.words(text) for spoken in languages]
    alike = [number for number, words in enumerate(spelled) if len(words) == len(spelled[0])]
    words = spelled[0]
    keys = np.array([stem_keys(spelled[number], languages[number]) for number in alike]).reshape(len(alike), -1)
    rows = [row for word, row in {word: row for row, word in reversed(list(enumerate(words)))}.items() if keys[0, row]]
    rows.sort()
    stems = index.stems(keys.ravel()).reshape(keys.shape)
    terms: list[QuestionTerm] = []
    taken: set[int] = set()
    lacked: list[Any] = []

    def add(word: str, numbers: list[int], weight: float = 1.0) -> None:
        if numbers and taken.isdisjoint(numbers[:1]):
            taken.update(numbers)
            terms.append(QuestionTerm.of(word, numbers, index, weight))

    compounds = languages[0].min_part
    for row in rows:
        own_stems = [int(stem) for stem in stems[:, row] if stem >= 0]
        if compounds:
            own_stems += _stems_of(index.words_holding(words[row], languages[0]), languages[0], index)
        if own_stems:
            add(words[row], list(dict.fromkeys(own_stems)))
        else:
            lacked.append(keys[0, row])
    if compounds:
        for row in rows:
            for part in _parts(words[row], languages[0], index):
                longer = _stems_of(index.words_holding(part, languages[0]), languages[0], index)
                add(part, list(dict.fromkeys([*_stems_of([part], languages[0], index), *longer])), _PART_WEIGHT)
    return terms, np.unique(np.array(lacked, dtype=np.uint64))


def foreign_stems(question: str, index: EvidenceIndex, words: Sequence[str]) -> Iterator[HashArray]:
    """Keys of the stems of a question's words in each of the index's languages but English."""
    for spoken in map(language, index.language_codes):
        spelled = spoken.words(question.replace("&", " and "))
        if spoken.code != ENGLISH and len(spelled) == len(words):
            stems = stem_keys(spelled, spoken)
            yield np.where(stems != 0, stems, word_keys(list(words)))


def _languages(question: str, index: EvidenceIndex) -> list[Language]:
    codes = index.language_codes
    return [language(code) for code in dict.fromkeys((question_language(question, codes), *codes))]


def _stems_of(words: list[str], spoken: Language, index: EvidenceIndex) -> list[int]:
    if not words or len(words) > _MAX_COMPOUNDS:
        return []
    numbers = index.stems(stem_keys(words, spoken))
    return [number for number in numbers.tolist() if number >= 0]


def _parts(word: str, spoken: Language, index: EvidenceIndex) -> tuple[str, ...]:
    possible = possible_parts(word, spoken.min_part)
    if not possible:
        return ()
    numbers = index.stems(stem_keys(possible, spoken))
    lengths = index.passages.lengths(np.maximum(numbers, 0))
    held = {part: int(count) for part, count, number in zip(possible, lengths, numbers, strict=True) if number >= 0}
    return compound_parts(word, spoken.min_part, held)
