"""An answer without a model: the sentences of hits that answer a question.

Sentences, rows and pieces of code are scored by features of `context` and some of their own (`extracts.toml`); the best
for each part of the question are taken in turn, with what stands beside them, until a budget of tokens is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.products import row_products
from sire_core.documents.block_reading import stored_blocks
from sire_core.documents.blocks import CODE, ITEM, QUOTE, ROW
from sire_core.search.context import are_parts
from sire_core.search.name_links import NameLinks
from sire_core.search.pieces import line_above
from sire_core.search.scored_sentences import FEATURES, ROW_WITHIN, TERM, ScoredSentences
from sire_core.search.unanswered import judge_hits
from sire_core.settings import read_toml
from sire_core.text.snippets import Sentence, cut_around, identifiers, read_sentences, stems
from sire_core.text.words import count_tokens, joined_parts

if TYPE_CHECKING:
    from sire_core.protocols import DoubleArray
    from sire_core.types import Hit

PASSAGES = 24
"""Hits that sentences are chosen from."""
MAX_TOKENS = 280
"""Tokens of all quotes."""
_DOUBTED_PART = 2  # Of so many parts of the tokens one where it is doubted that the hits answer
_WITHIN = {"parts": 4.0, "whole": 3.5}  # By how much less than the best a sentence may score
_BESIDE = {(True, False): (1.5, 3.0), (True, True): (0.5, inf), (False, False): (0.5, inf), (False, True): (0.3, inf)}
"""Bonus of a sentence beside a chosen one, and how much less than that one at most; by whether they share a
paragraph, and whether it stands before; in parts of documents. Chosen on judged questions, as are the other numbers."""
_FIRST_WITHIN = 1.5  # By how much less than a chosen one the first sentence of its paragraph scores at most
_MAX_BETWEEN_TOKENS = 40  # Of a sentence between two chosen ones of its paragraph that is quoted with them
_MAX_SENTENCE_LETTERS = 600  # Of a sentence that is quoted; longer ones are cut
_CELL = 40  # Characters of a cell that needs the head of its column
_EMPTY = "(empty)"
_CODE_MARGIN = "    "


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
    judged = judge_hits(question, hits)
    if not judged.is_near:
        return [], judged.note
    quotes = _best_sentences(question, hits, max_tokens if judged.is_answered else max_tokens // _DOUBTED_PART)
    return quotes, judged.note or judged.note_of([quote.hit - 1 for quote in quotes])


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
        (row, piece), words, tokens = scored.piece(position), scored.words(position), scored.tokens(position)
        is_weak = weak[position] or value[position] < best_rows.get((row, piece.header), -inf) - ROW_WITHIN
        alike = [other for other in chosen if _says_no_more(words, scored.words(other))]
        if is_weak or tokens > room or any(scored.denies(position) == scored.denies(other) for other in alike):
            continue
        room -= tokens
        chosen.append(position)
        if piece.kind == ROW:
            best_rows.setdefault((row, piece.header), value[position])
        named_rows = list(links.named_rows(position))
        linked = [*links.rows(position), *links.named(position), *scored.asked_beside(position)]
        linked += [row for row, _ in named_rows]
        is_open[[row for row, _ in named_rows if row not in chosen]] = True  # though it has nothing of the question
        for weak in weak_rows:
            weak[[row for _, rows in named_rows for row in rows]] = True
            weak[linked] = False
        beside = _beside(scored, position) if kind == "parts" else ()
        for other, bonus, least in (*((one, 0.0, ROW_WITHIN) for one in linked), *beside):
            for each in waiting:
                each[other] = max(each[other] + bonus, value[position] - least)
        for between in _between(scored, position, chosen) if kind == "parts" else ():
            if is_open[between] and scored.tokens(between) <= min(_MAX_BETWEEN_TOKENS, room):
                is_open[between] = False
                room -= scored.tokens(between)
                chosen.append(between)
    nowhere = {one for one in chosen[1:] if scored.leads_on(one) and one + 1 not in chosen and not scored.denies(one)}
    return [one for one in chosen if one not in nowhere]


def _beside(scored: ScoredSentences, position: int) -> Iterator[tuple[int, float, float]]:
    """Sentences around a chosen one, each with its bonus, and how much less than that one it scores at most."""
    first = scored.first_of_paragraph(position)
    if first < position:
        yield first, 0.0, _FIRST_WITHIN
    owner = scored.candidates.owner
    for is_before, beside in ((False, position + 1), (True, position - 1)):
        if 0 <= beside < len(owner) and owner[beside] == owner[position]:
            yield (beside, *_BESIDE[scored.share_paragraph(position, beside), is_before])


def _between(scored: ScoredSentences, position: int, chosen: Sequence[int]) -> Iterator[int]:
    """Single sentences between a chosen one and another of its paragraph."""
    for other in (position - 2, position + 2):
        if other in chosen and scored.in_one_paragraph(min(position, other), max(position, other)):
            yield (position + other) // 2


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
    term = TERM.match(text)
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
