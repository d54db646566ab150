"""Sentences, rows and pieces of code of hits, with features that say how well each answers a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np

from sire_core.documents.blocks import CODE, ITEM, PARAGRAPH, ROW
from sire_core.search.alike_words import AlikeWords
from sire_core.search.context import Candidates, ranked
from sire_core.search.name_links import rows_by_table
from sire_core.search.pieces import Piece, stem_set
from sire_core.text.asking import AskingRules, asking_rules
from sire_core.text.days import is_day
from sire_core.text.languages import language_among
from sire_core.text.snippets import identifiers, stems
from sire_core.text.words import UNSPACED, find_words

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, DoubleArray
    from sire_core.types import Hit

FEATURES = tuple("words title near rank meaning alike share tokens short code kind time leads reached via".split())
"""Features of a sentence: the first four are those of `context`; share of the question in words that only mean nearly
the same; share of its own words in the question, rare words counting more; logarithm of its tokens; whether it has few;
whether it is code that is not asked for; whether it has a number or a new name, or a time, where that is asked for;
whether it leads to one of the first hits; whether its hit is one that is led to, and the share of the linking sentence
in it."""
_SHORT_TOKENS = 8
_MAX_LED_CODE_TOKENS = 40  # Of code that is quoted behind a colon, whatever is asked for
_MAX_TOKENS = 120  # Of a sentence that is quoted; longer ones are cut
ROW_WITHIN = 0.5
"""By how much less than the best of its table a row may score."""
_DENIALS = frozenset("cannot never no none nor not without".split())  # They are no stems
_FOLLOWED = 3  # The first hits, to which links count
_PREFIX = 60  # Characters of a linking sentence that are compared; notes shorten long ones
_ITEM_MARK = re.compile(r"(?:[*+-]|\d+[.)])\s")
_MARKS_BEFORE = re.compile(r"(?:[>*+-]\s+)*")
_FRAGMENT = re.compile(
    rf"[?\uff1f]$|^[^.!?]{{0,30}}:$|^\W*\d*\W*$|^[\])}}>;,%\u2013\u2014]|^\([a-z]|^\. |(?: \.){{3}}"
    rf"|^\W*[^\W{UNSPACED}]+\W*$"
    r"|^(?:Figure|Fig\.|Table|Listing|Section) [\dA-Z][\d.-]*[.:,] |^\d+(?:\.\d+)+\.? [^.!?]*$"
    r"|^(?:Section|[Ss]ee) [^.!?]*\.?$|^(?:Copyright|\(c\)|\u00a9) |^\[(?:[^\]]*\d\d:\d\d|\d{1,3}\])"
)
"""No answers: labels, questions, entries of contents, notices, pointers, lines of a log, footnotes, captions,
single words, and what begins within a sentence or line."""
TERM = re.compile(r"[-*+\s]*[^:\n]{1,60}(?:[:\n]|\Z)")
"""The first words of an item or paragraph that says what it is about: `SuspendTime: Nodes are ...`."""

_VALUE = re.compile(r"[-*+\s]*([^:\n]{1,40}): ?[^\n]{1,60}\Z")
"""An item or paragraph that names a value: `Default: 60 s`."""
_LABEL = re.compile(r"(?<!\S)([A-Z][a-z]{2,20}): ")
_MIN_LABELS = 2  # Of a paragraph that names values: `Syntax: TimeoutIdle SECONDS Default: 600`


@dataclass(frozen=True, slots=True)
class ScoredSentences:
    """Sentences, rows and pieces of code of the hits that are read, with their features.

    Attributes:
        question: The question.
        asking: Rules of its language.
        numbers: Number of each hit that is read, from 1.
        candidates: The sentences.
        parts: Features for each part of the question, `[sentences, len(FEATURES)]`.
        is_value: True for items and paragraphs that name a value which is asked for: `Default: 60`, `[sentences]`.
        is_open: True for sentences that may be quoted, `[sentences]`.
    """

    question: str
    asking: AskingRules
    numbers: Sequence[int]
    candidates: Candidates
    parts: Sequence[DoubleArray]
    is_value: BoolArray
    is_open: BoolArray

    @classmethod
    def of(cls, question: str, hits: Sequence[Hit]) -> ScoredSentences:
        """Read hits and work out the features of their sentences."""
        numbers = [number for number, hit in enumerate(hits, 1) if not _follows_a_mention(hit)]
        numbers = numbers or list(range(1, len(hits) + 1))
        passages = ranked(hits[number - 1] for number in numbers)
        asking = asking_rules(language_among(question, (hit.unit.language for hit in hits)))
        question = asking.without_contractions(question)
        every = [Candidates.of(question, passages, by_sentence=True, part=part) for part in asking.parts(question)]
        own = _own_features(question, asking, every[0])
        parts = [np.concatenate([one.features[:, :5], own], axis=1) for one in every]
        words, title, near, meaning = map(FEATURES.index, ("words", "title", "near", "meaning"))
        for table, rows in rows_by_table(every[0]).items():
            for columns in parts if table else ():  # a row has its header's words and says nothing about the next, and
                columns[rows, words] += columns[rows, title]  # the names in it mean nothing
                columns[rows, title] = columns[rows, near] = 0.0
                columns[rows, meaning] = columns[rows, meaning].mean()
        read = [numbers[passage.rank] for passage in passages]
        is_value = _is_value(question, asking, every[0])
        is_open = _may_answer(question, every[0]) & (_is_related(parts) | is_value)
        return cls(question, asking, read, every[0], parts, is_value, is_open)

    def piece(self, position: int) -> tuple[int, Piece]:
        """Number of a sentence's passage, and where it stands there."""
        row = self.candidates.owner[position]
        return row, self.candidates.read[row].pieces[self.candidates.number[position]]

    def tokens(self, position: int) -> int:
        """Tokens of a sentence, which is cut if it is very long."""
        return min(
            self.candidates.read[self.candidates.owner[position]].tokens[self.candidates.number[position]], _MAX_TOKENS
        )

    def in_one_paragraph(self, first: int, second: int) -> bool:
        """True if two sentences stand in one paragraph or item of a list."""
        (row, before), (other, after) = self.piece(first), self.piece(second)
        text = self.candidates.read[row].text
        is_next = row == other and before.kind == after.kind and "\n\n" not in text[before.end : after.start]
        return is_next and not (after.kind == ITEM and _ITEM_MARK.match(text, after.start))

    def first_of_paragraph(self, position: int) -> int:
        """The sentence that a sentence's paragraph begins with; of a row the row itself."""
        first = position
        while first and self.piece(position)[1].kind != ROW and self.in_one_paragraph(first - 1, first):
            first -= 1
        return first

    def leads_on(self, position: int) -> bool:
        """True if a sentence ends in a colon, and what it leads to follows."""
        row, following = self.candidates.owner[position], position + 1
        if following == len(self.candidates.owner) or self.candidates.owner[following] != row:
            return False
        return bool(self.candidates.read[row].led[self.candidates.number[following]])

    def share_paragraph(self, position: int, beside: int) -> bool:
        """True if two sentences side by side stand in one paragraph or table, or one leads to code or to a list."""
        (row, first), (_, second) = sorted((self.piece(position), self.piece(beside)))
        each, number = self.candidates.read[row], self.candidates.number[max(position, beside)]
        if first.kind != CODE == second.kind:
            is_short = each.tokens[number] <= _MAX_LED_CODE_TOKENS
            if (is_short and each.led[number]) or self.asking.asks_code(self.question):
                return True
        return "\n\n" not in each.text[first.end : second.start]

    def asked_beside(self, position: int) -> list[int]:
        """Sentences that belong to one and are asked for.

        Of a row other rows of its table with an identifier of the question; else items and paragraphs of its section,
        and sentences of its own, that name a value.
        """
        row, piece = self.piece(position)
        if piece.kind == ROW:
            names = identifiers(self.question)
            rows = rows_by_table(self.candidates)[row, piece.header] if names else ()
            return [other for other in rows if self.is_open[other] and not names.isdisjoint(self.words(other))]
        first = self.first_of_paragraph(position)
        items = ((other, *self.piece(other)) for other in np.flatnonzero(self.is_value & self.is_open).tolist())
        beside = (other for other, owner, item in items if (owner, item.headings) == (row, piece.headings))
        return [other for other in beside if self.first_of_paragraph(other) in (other, first)]

    def weak_rows(self, values: DoubleArray) -> BoolArray:
        """True for rows where another one of their table is asked for, `[sentences]`.

        Asked for are those with most of the question's words that not all rows have; others only if they score as well
        as the best and have such a word, too.
        """
        is_weak, question_stems = np.zeros(len(values), dtype=bool), stems(self.question, self.candidates.spoken)
        for table, rows in rows_by_table(self.candidates).items():
            if table:
                shared = [self.words(row) & question_stems for row in rows]
                names = np.array([len(words - frozenset.intersection(*shared)) for words in shared])
                is_low = values[rows] < values[rows].max() - ROW_WITHIN
                is_weak[rows] = (names < names.max()) & (is_low | (names == 0)) if names.any() else is_low
        return is_weak

    def denies(self, position: int) -> bool:
        """True if a sentence has a word such as "not"."""
        return not _DENIALS.isdisjoint(map(str.lower, find_words(self.candidates.text(position))))

    def words(self, position: int) -> frozenset[str]:
        """Stems of a sentence."""
        return stem_set(self.candidates.read[self.candidates.owner[position]].words[self.candidates.number[position]])


def _own_features(question: str, asking: AskingRules, candidates: Candidates) -> DoubleArray:
    """Features that a context does not have, `[sentences, len(FEATURES) - 5]`."""
    spoken = candidates.spoken
    question_stems, names = stems(question, spoken), identifiers(question)
    counts = Counter(word for each in candidates.read for words in each.words for word in words.split())
    weight = {word: log(1 + len(candidates.owner) / count) for word, count in counts.items()}
    weight |= dict.fromkeys((word for word in counts if is_day(word)), 0.0)  # a roster has many
    hits = [passage.hit for passage in candidates.passages]
    steps = [step for hit in hits[:_FOLLOWED] for step in hit.path if step.step == "entity" and step.sentence]
    leading = [(step.ids[0], step.sentence.strip(". ")[:_PREFIX]) for step in steps]
    alike = AlikeWords(question, spoken, weight)
    rows = []
    for row, number in zip(candidates.owner, candidates.number, strict=True):
        each, hit = candidates.read[row], hits[row]
        words, tokens, piece = stem_set(each.words[number]), each.tokens[number], each.pieces[number]
        text, via = (
            each.text[piece.start : piece.end],
            stems(hit.led_by if row < _FOLLOWED and piece.kind != ROW else "", spoken),
        )
        is_asked_code = asking.asks_code(question) or names & identifiers(text)
        rows.append(
            (
                alike.share(text, words | stem_set(each.headings[number])),
                sum(weight[word] for word in words & question_stems) / (sum(weight[word] for word in words) or 1.0),
                log(1 + tokens),
                tokens < _SHORT_TOKENS,
                piece.kind == CODE and not is_asked_code,
                asking.has_kind_asked(question, question_stems, text),
                asking.has_time_asked(question, text),
                piece.kind != ROW and any(source == hit.unit.id and begin in text for source, begin in leading),
                bool(via),
                len(via & words) / (len(via) or 1),
            )
        )
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURES) - 5)


def _may_answer(question: str, candidates: Candidates) -> BoolArray:
    """True for sentences that may be quoted: no fragments, and where settings are asked for, none about others."""
    subjects = list(_subjects(candidates))
    explained = identifiers(question).intersection(frozenset().union(*subjects))
    asked_in = [explained - identifiers(one.hit.unit.title) for one in candidates.passages]  # `pgBackRest` is all of it
    may = []
    for position, subject in enumerate(subjects):
        text = _MARKS_BEFORE.sub("", " ".join(candidates.text(position).split()), count=1)
        setting = asked_in[candidates.owner[position]]
        is_foreign = setting and subject and not (subject | identifiers(text)) & setting
        may.append(not (is_foreign or _FRAGMENT.search(text)))
    return np.array(may, dtype=bool)


def _is_related(parts: Sequence[DoubleArray]) -> BoolArray:
    """True for sentences with something of the question, or of what led to them, in or around them, `[sentences]`."""
    related = [FEATURES.index(name) for name in ("words", "title", "near", "alike", "leads", "via")]
    return np.asarray(np.any([columns[:, related].any(axis=1) for columns in parts], axis=0), dtype=bool)


def _is_value(question: str, asking: AskingRules, candidates: Candidates) -> BoolArray:
    """True for items and paragraphs that name a value which a question asks for, `[sentences]`."""
    question_stems = stems(question, candidates.spoken)
    labels = (_labels(candidates.text(n), piece.kind) for n, piece in enumerate(candidates.pieces()))
    return np.array(
        [any(asking.is_value_asked(question, question_stems, one) for one in each) for each in labels], bool
    )


def _labels(text: str, kind: str) -> Sequence[str]:
    """Names of the values in an item or a paragraph: one that is nothing else, or several side by side."""
    if kind not in (ITEM, PARAGRAPH):
        return ()
    if only := _VALUE.match(text):
        return (only[1],)
    several = _LABEL.findall(text)
    return several if len(several) >= _MIN_LABELS else ()


def _subjects(candidates: Candidates) -> Iterator[frozenset[str]]:
    """Identifiers that each sentence is about: of its first words, else as before, else of the heading."""
    section: object = None
    subject: frozenset[str] = frozenset()
    for row, number in zip(candidates.owner, candidates.number, strict=True):
        text, piece = candidates.read[row].text, candidates.read[row].pieces[number]
        term = TERM.match(text, piece.start, piece.end)
        own = identifiers(term[0]) if term else frozenset()
        names_another = term and term[0].endswith(":") and _ITEM_MARK.match(text, piece.start)
        if own or names_another or section != (row, piece.headings):
            subject = own or identifiers("".join(text[slice(*span)] for span in piece.headings[-1:]))
        section = (row, piece.headings)
        yield subject


def _follows_a_mention(hit: Hit) -> bool:
    """True if the path goes on from a passage that was found as one of those that mention a name of the question."""
    named = {step.ids[0] for step in hit.path if step.step == "question"}
    steps = [step for step in hit.path if step.step == "entity"]
    return any(named.intersection(step.ids[1:-1]) for step in steps[:-1])
