"""An answer without a model: the sentences of hits that answer a question.

Sentences, rows and pieces of code are scored by features of `context` and some of their own (`extracts.toml`); the best
for each part of the question are taken in turn, with what stands beside them, until a budget of tokens is full.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.products import row_products
from sire_core.documents.block_reading import stored_blocks
from sire_core.documents.blocks import CODE, ITEM, QUOTE, ROW
from sire_core.search.alike_words import AlikeWords
from sire_core.search.context import Candidates, are_parts, ranked
from sire_core.search.name_links import NameLinks
from sire_core.search.pieces import Piece, line_above
from sire_core.search.unanswered import judge_hits
from sire_core.settings import read_toml
from sire_core.text.asking import AskingRules, asking_rules
from sire_core.text.languages import language_among
from sire_core.text.snippets import Sentence, cut_around, identifiers, read_sentences, stems
from sire_core.text.words import UNSPACED, count_tokens, find_words, joined_parts, uncontracted

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, DoubleArray
    from sire_core.types import Hit

PASSAGES = 24
"""Hits that sentences are chosen from."""
MAX_TOKENS = 280
"""Tokens of all quotes."""
FEATURES = tuple("words title near rank meaning alike share tokens short code kind time leads reached via".split())
"""Features of a sentence: the first four are those of `context`; share of the question in words that only mean nearly
the same; share of its own words in the question, rare words counting more; logarithm of its tokens; whether it has few;
whether it is code that is not asked for; whether it has a number or a new name, or a time, where that is asked for;
whether it leads to one of the first hits; whether its hit is one that is led to, and the share of the linking sentence
in it."""
_SHORT_TOKENS = 8
_MAX_LED_CODE_TOKENS = 40  # Of code that is quoted behind a colon, whatever is asked for
_WITHIN = {"parts": 4.0, "whole": 3.5}  # By how much less than the best a sentence may score
_BESIDE = {(True, False): (1.5, 3.0), (True, True): (0.5, inf), (False, False): (0.5, inf), (False, True): (0.3, inf)}
"""Bonus of a sentence beside a chosen one, and how much less than that one at most; by whether they share a
paragraph, and whether it stands before; in parts of documents. Chosen on judged questions, as is `_WITHIN`."""
_ROW_WITHIN = 0.5  # By how much less than the best of its table a row may score
_DENIALS = frozenset("cannot never no none nor not without".split())  # They are no stems
_MAX_SENTENCE_LETTERS, _MAX_SENTENCE_TOKENS = 600, 120  # Of a sentence that is quoted; longer ones are cut
_FOLLOWED = 3  # The first hits, to which links count
_PREFIX = 60  # Characters of a linking sentence that are compared; notes shorten long ones
_CELL = 40  # Characters of a cell that needs the head of its column
_EMPTY = "(empty)"
_CODE_MARGIN = "    "
_MARKS_BEFORE = re.compile(r"(?:[>*+-]\s+)*")
_FRAGMENT = re.compile(
    rf"[?\uff1f]$|^[^.!?]{{0,30}}:$|^\W*\d*\W*$|^[\])}}>;,%\u2013\u2014]|^\([a-z]|^\. |(?: \.){{3}}"
    rf"|^\W*[^\W{UNSPACED}]+\W*$"
    r"|^(?:Figure|Fig\.|Table|Listing|Section) [\dA-Z][\d.-]*[.:,] |^\d+(?:\.\d+)+\.? [^.!?]*$"
    r"|^(?:Section|[Ss]ee) [^.!?]*\.?$|^(?:Copyright|\(c\)|\u00a9) |^\[(?:[^\]]*\d\d:\d\d|\d{1,3}\])"
)
"""No answers: labels, questions, entries of contents, notices, pointers, lines of a log, footnotes, captions,
single words, and what begins within a sentence or line."""
_TERM = re.compile(r"[-*+\s]*[^:\n]{1,60}(?:[:\n]|\Z)")
"""The first words of an item or paragraph that says what it is about: `SuspendTime: Nodes are ...`."""

_VALUE = re.compile(r"[-*+\s]*([^:\n]{1,40}): ?[^\n]{1,60}\Z")
"""An item that names a value: `Default: 60 s`."""


@dataclass(frozen=True, slots=True)
class Extract:
    """Sentences of the evidence that stand side by side.

    Attributes:
        text: The sentences as people read them, without marks of Markdown; code and rows line by line.
        hit: Number of the hit that they stand in, from 1.
        label: The heading within the passage that they stand under, unless they say it; may be empty.
    """

    text: str
    hit: int
    label: str = ""

    @property
    def quoted(self) -> str:
        """The text, behind its label."""
        gap = "\n" if self.text.startswith(_CODE_MARGIN) else " "
        return f"{self.label}:{gap}{self.text}" if self.label else self.text


@cache
def learned_weights() -> dict[str, dict[str, float]]:
    """Weights by feature for `parts` of documents and `whole` ones, learned by `benchmarks/extracts.py --learn`."""
    weights: dict[str, dict[str, float]] = read_toml(__package__, "extracts.toml")
    return weights


def extract_sentences(question: str, hits: Sequence[Hit], max_tokens: int = MAX_TOKENS) -> list[Extract]:
    """Choose the sentences that answer a question: hits by their best sentence, sentences in the order of the text.

    Hits are read without those to which a passage leads that only mentions what the question names and is not about it,
    unless there are no others. Each part of a question gets its best sentences in turn; what fits much less than the
    best is left out. Hits that do not answer give none, see `judge_hits`.
    """
    return extract_with_note(question, hits, max_tokens)[0]


def extract_with_note(question: str, hits: Sequence[Hit], max_tokens: int = MAX_TOKENS) -> tuple[list[Extract], str]:
    """The sentences of `extract_sentences`, and the note of `unanswered_note`; the hits are judged once."""
    note, is_answered = judge_hits(question, hits)
    return (_best_sentences(question, hits, max_tokens) if is_answered else []), note


def _best_sentences(question: str, hits: Sequence[Hit], max_tokens: int) -> list[Extract]:
    scored = ScoredSentences.of(question, hits)
    kind = "parts" if are_parts(hits) else "whole"
    weights = np.array([learned_weights()[kind][name] for name in FEATURES])
    chosen = _chosen(scored, [row_products(columns, weights) for columns in scored.parts], max_tokens, kind)
    quotes = _quotes(scored, chosen)
    while len(chosen) > 1 and count_tokens("\n".join(one.quoted for one in quotes)) > max_tokens:
        chosen.pop()
        quotes = _quotes(scored, chosen)
    return quotes


@dataclass(frozen=True, slots=True)
class ScoredSentences:
    """Sentences, rows and pieces of code of the hits that are read, with their features.

    Attributes:
        question: The question.
        asking: Rules of its language.
        numbers: Number of each hit that is read, from 1.
        candidates: The sentences.
        parts: Features for each part of the question, `[sentences, len(FEATURES)]`.
        is_value: True for items that name a value which is asked for: `Default: 60`, `[sentences]`.
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
        question = uncontracted(question) if asking.spoken.is_english else question
        every = [Candidates.of(question, passages, by_sentence=True, part=part) for part in asking.parts(question)]
        own = _own_features(question, asking, every[0])
        parts = [np.concatenate([one.features[:, :5], own], axis=1) for one in every]
        words, title, near, meaning = map(FEATURES.index, ("words", "title", "near", "meaning"))
        for table, rows in _tables(every[0]).items():
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

    def share_paragraph(self, position: int, beside: int) -> bool:
        """True if two sentences side by side stand in one paragraph or table, or one leads to code or to a list."""
        (row, first), (_, second) = sorted((self.piece(position), self.piece(beside)))
        each, number = self.candidates.read[row], self.candidates.number[max(position, beside)]
        if first.kind != CODE == second.kind:
            is_short = each.tokens[number] <= _MAX_LED_CODE_TOKENS
            if (is_short and each.led[number]) or self.asking.asks_code(self.question):
                return True
        return "\n\n" not in each.text[first.end : second.start]

    def values_beside(self, position: int) -> list[int]:
        """Items of a sentence's section that name a value which is asked for."""
        row, piece = self.piece(position)
        items = ((other, *self.piece(other)) for other in np.flatnonzero(self.is_value & self.is_open).tolist())
        return [other for other, owner, item in items if (owner, item.headings) == (row, piece.headings)]

    def weak_rows(self, values: DoubleArray) -> BoolArray:
        """True for rows where another one of their table is asked for, `[sentences]`.

        Asked for are those with most of the question's words that not all rows have; others only if they score as well
        as the best and have such a word, too.
        """
        is_weak, question_stems = np.zeros(len(values), dtype=bool), stems(self.question, self.candidates.spoken)
        for table, rows in _tables(self.candidates).items():
            if table:
                shared = [self.words(row) & question_stems for row in rows]
                names = np.array([len(words - frozenset.intersection(*shared)) for words in shared])
                is_low = values[rows] < values[rows].max() - _ROW_WITHIN
                is_weak[rows] = (names < names.max()) & (is_low | (names == 0)) if names.any() else is_low
        return is_weak

    def denies(self, position: int) -> bool:
        """True if a sentence has a word such as "not"."""
        return not _DENIALS.isdisjoint(map(str.lower, find_words(self.candidates.text(position))))

    def words(self, position: int) -> frozenset[str]:
        """Stems of a sentence."""
        return self.candidates.read[self.candidates.owner[position]].words[self.candidates.number[position]]


def _tables(candidates: Candidates) -> dict[tuple[Any, ...], list[int]]:
    """Numbers of the sentences that are rows, by table; those of all others under an empty one."""
    tables: dict[tuple[Any, ...], list[int]] = {}
    for number, (row, piece) in enumerate(zip(candidates.owner, candidates.pieces(), strict=True)):
        tables.setdefault((row, piece.header) if piece.kind == ROW else (), []).append(number)
    return tables


def _own_features(question: str, asking: AskingRules, candidates: Candidates) -> DoubleArray:
    """Features that a context does not have, `[sentences, len(FEATURES) - 5]`."""
    spoken = candidates.spoken
    question_stems, names = stems(question, spoken), identifiers(question)
    counts = Counter(word for each in candidates.read for words in each.words for word in words)
    weight = {word: log(1 + len(candidates.owner) / count) for word, count in counts.items()}
    hits = [passage.hit for passage in candidates.passages]
    steps = [step for hit in hits[:_FOLLOWED] for step in hit.path if step.step == "entity" and step.sentence]
    leading = [(step.ids[0], step.sentence.strip(". ")[:_PREFIX]) for step in steps]
    alike = AlikeWords(question, spoken, weight)
    rows = []
    for row, number in zip(candidates.owner, candidates.number, strict=True):
        each, hit = candidates.read[row], hits[row]
        words, tokens, piece = each.words[number], each.tokens[number], each.pieces[number]
        text, via = (
            each.text[piece.start : piece.end],
            stems(hit.led_by if row < _FOLLOWED and piece.kind != ROW else "", spoken),
        )
        is_asked_code = asking.asks_code(question) or names & identifiers(text)
        rows.append(
            (
                alike.share(text, words | each.headings[number]),
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
    may = []
    for position, subject in enumerate(subjects):
        text = _MARKS_BEFORE.sub("", " ".join(candidates.text(position).split()), count=1)
        is_foreign = explained and subject and not (subject | identifiers(text)) & explained
        may.append(not (is_foreign or _FRAGMENT.search(text)))
    return np.array(may, dtype=bool)


def _is_related(parts: Sequence[DoubleArray]) -> BoolArray:
    """True for sentences with something of the question, or of what led to them, in or around them, `[sentences]`."""
    related = [FEATURES.index(name) for name in ("words", "title", "near", "alike", "leads", "via")]
    return np.asarray(np.any([columns[:, related].any(axis=1) for columns in parts], axis=0), dtype=bool)


def _is_value(question: str, asking: AskingRules, candidates: Candidates) -> BoolArray:
    """True for items that name a value which a question asks for, `[sentences]`."""
    question_stems, is_value = stems(question, candidates.spoken), []
    for position, piece in enumerate(candidates.pieces()):
        item = _VALUE.match(candidates.text(position)) if piece.kind == ITEM else None
        is_value.append(item is not None and asking.is_value_asked(question, question_stems, item[1]))
    return np.array(is_value, dtype=bool)


def _subjects(candidates: Candidates) -> Iterator[frozenset[str]]:
    """Identifiers that each sentence is about: of its first words, else as before, else of the heading."""
    section: object = None
    subject: frozenset[str] = frozenset()
    for row, number in zip(candidates.owner, candidates.number, strict=True):
        text, piece = candidates.read[row].text, candidates.read[row].pieces[number]
        own = identifiers(term[0]) if (term := _TERM.match(text, piece.start, piece.end)) else frozenset()
        if own or section != (row, piece.headings):
            subject = own or identifiers("".join(text[slice(*span)] for span in piece.headings[-1:]))
        section = (row, piece.headings)
        yield subject


def _chosen(scored: ScoredSentences, values: Sequence[DoubleArray], room: int, kind: str) -> list[int]:
    """Sentences for each part of the question in turn, with those beside them, as far as there is room for tokens."""
    is_open = scored.is_open.copy()
    waiting = [value - value[is_open].max() for value in values if is_open.any()]
    weak_rows = [scored.weak_rows(value) for value in waiting]
    chosen: list[int] = []
    links = NameLinks(scored.candidates)
    best_rows: dict[object, float] = {}  # by table
    while waiting:
        value, weak = waiting.pop(0), weak_rows.pop(0)
        position = int(np.argmax(np.where(is_open, value, -np.inf)))
        if not is_open[position] or value[position] < -_WITHIN[kind]:
            continue
        waiting.append(value)
        weak_rows.append(weak)
        is_open[position] = False
        (row, piece), words = scored.piece(position), scored.words(position)
        tokens = min(scored.candidates.read[row].tokens[scored.candidates.number[position]], _MAX_SENTENCE_TOKENS)
        is_weak = weak[position] or value[position] < best_rows.get((row, piece.header), -inf) - _ROW_WITHIN
        alike = [other for other in chosen if _says_no_more(words, scored.words(other))]
        if is_weak or tokens > room or any(scored.denies(position) == scored.denies(other) for other in alike):
            continue
        room -= tokens
        chosen.append(position)
        if piece.kind == ROW:
            best_rows.setdefault((row, piece.header), value[position])
        for linked in (*links.rows(position), *links.named(position), *scored.values_beside(position)):
            for each, is_weak_row in zip(waiting, weak_rows, strict=True):
                each[linked] = max(each[linked], value[position] - _ROW_WITHIN)
                is_weak_row[linked] = False
        for before, beside in ((False, position + 1), (True, position - 1)):
            if kind == "parts" and 0 <= beside < len(value) and scored.candidates.owner[beside] == row:
                bonus, least = _BESIDE[scored.share_paragraph(position, beside), before]
                for each in waiting:
                    each[beside] = max(each[beside] + bonus, value[position] - least)
    return chosen


def _says_no_more(words: frozenset[str], others: frozenset[str]) -> bool:
    """True if the words of a sentence are among those of another, or are those and one more."""
    more = words - others
    return not more or (len(more) == 1 and others <= words and not any(map(str.isdigit, more)))


def _quotes(scored: ScoredSentences, chosen: Sequence[int]) -> list[Extract]:
    """Sentences that stand side by side under one heading as one quote each; hits by their best sentence."""
    runs: list[list[int]] = []
    turns: dict[int, int] = {}
    for position in chosen:
        turns.setdefault(scored.piece(position)[0], len(turns))
    for position in sorted(chosen, key=lambda position: (turns[scored.piece(position)[0]], position)):
        row, piece = scored.piece(position)
        before, last = scored.piece(position - 1) if position else (-1, piece)
        is_other = scored.candidates.read[row].is_mail and (piece.kind == QUOTE) != (last.kind == QUOTE)
        if runs and runs[-1][-1] == position - 1 and (row, piece.headings) == (before, last.headings) and not is_other:
            runs[-1].append(position)
        else:
            runs.append([position])
    return [_quote(scored, run) for run in runs]


def _quote(scored: ScoredSentences, run: Sequence[int]) -> Extract:
    """Sentences of a passage as people read them, rows with the heads of their columns, items behind what leads on."""
    (row, first), (_, last) = scored.piece(run[0]), scored.piece(run[-1])
    each, unit = scored.candidates.read[row], scored.candidates.passages[row].hit.unit
    spans = [*first.headings[-1:], first.header, (first.start, last.end)]
    layout = stored_blocks(unit.text, unit.layout)
    blocks = [
        replace(block, start=max(block.start, start), end=min(block.end, end))
        for start, end in spans
        for block in layout
        if block.start < end and start < block.end
    ]
    sentences = read_sentences(unit.text, blocks=blocks)
    label = sentences[0].text.removesuffix(":") if first.headings and sentences else ""
    text, before, question_stems = "", "", stems(scored.question, scored.candidates.spoken)
    for one in (one for one in sentences[bool(label) :] if one.kind != "head"):
        words = _with_heads(one, sentences, question_stems)
        if len(words) > _MAX_SENTENCE_LETTERS:
            words = cut_around(words, scored.question, _MAX_SENTENCE_LETTERS, scored.candidates.spoken)
        is_line = one.kind in ("row", CODE) or before in ("row", CODE)
        gap = "\n" if is_line else "; " if before == ITEM and text[-1].isalnum() else " "
        margin = _CODE_MARGIN + " " * one.indent if one.kind == CODE else ""
        if text and gap == " ":
            above, line_end, line = text.rpartition("\n")
            text = f"{above}{line_end}{joined_parts((line, words))}"
        else:
            text = f"{text}{gap if text else ''}{margin}{words}"
        before = one.kind
    following = [piece for piece in each.pieces if piece.start >= last.end][:1]
    goes_on = any(piece.kind == last.kind and piece.header == last.header for piece in following)
    text += " ..." if goes_on and last.kind in (ITEM, CODE) and last.header[1] else ""
    label = line_above(unit.text, layout, first.start) or label
    term = _TERM.match(text)
    is_said = label.lower() in " ".join(f"{unit.title}\n{text}".lower().split())
    is_said |= bool(identifiers(label) and term and identifiers(term[0]))
    return Extract(text, scored.numbers[row], "" if is_said else label)


def _with_heads(sentence: Sentence, sentences: Sequence[Sentence], question_stems: frozenset[str]) -> str:
    """A sentence; of the row of a table each short cell behind the head of its column; empty ones if asked."""
    heads = sentences[sentence.head].cells if sentence.head >= 0 else ()
    if len(heads) != len(sentence.cells) or not all(sentence.cells[:1]) or not any(sentence.cells[1:]):
        return sentence.text
    cells = [
        value if len(value) > _CELL else f"{head} {value or _EMPTY}".lstrip()
        for head, value in zip(heads[1:], sentence.cells[1:], strict=True)
        if value or stems(head) & question_stems
    ]
    return f"{sentence.cells[0].removesuffix(':')}: {'; '.join(cells)}"


def _follows_a_mention(hit: Hit) -> bool:
    """True if the path goes on from a passage that was found as one of those that mention a name of the question."""
    named = {step.ids[0] for step in hit.path if step.step == "question"}
    steps = [step for step in hit.path if step.step == "entity"]
    return any(named.intersection(step.ids[1:-1]) for step in steps[:-1])
