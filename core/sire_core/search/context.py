"""Evidence within a budget of tokens: the blocks of the best passages that answer a question, joined into a context.

Passages are for finding; a model or a person reads a context. One linear model (`context.toml`) scores the pieces of
the first passages: blocks, long ones cut at sentences, short ones joined with what follows. The best are taken until
the budget is full and put back into the order of their documents: neighbors joined, each heading path once, an
ellipsis where something is left out, rows of a table below its header.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from sire_core.arrays.products import row_products
from sire_core.documents.blocks import CODE, FURNITURE, HEADING, ROW, Block, block_text
from sire_core.documents.document_names import documents_of
from sire_core.documents.heading_paths import is_path, title_path
from sire_core.errors import ConfigurationError
from sire_core.models.cross_encoder import CrossEncoder, load_cross_encoder
from sire_core.models.word_vectors import text_vectors
from sire_core.search.name_links import NameLinks
from sire_core.search.pieces import PassagePieces, Piece, passage_pieces, piece_vectors, sentence_spans
from sire_core.search.search_options import check_count
from sire_core.search.validity import version
from sire_core.settings import read_toml
from sire_core.text.asking import asking_rules
from sire_core.text.languages import Language, language_among
from sire_core.text.snippets import stems
from sire_core.text.words import count_tokens
from sire_core.types import Hit

if TYPE_CHECKING:
    from sire_core.protocols import BoolArray, DoubleArray, FloatArray

CountTokens = Callable[[str], int]
ScoreTexts = Callable[[str, Sequence[str]], "FloatArray"]
"""Scores texts for a question, higher is better: a reranker."""
Reranker = Union[str, CrossEncoder, ScoreTexts, None]
"""Scores texts again: `colbert:NAME_OR_FOLDER`, `onnx:NAME_OR_FOLDER` or a cross-encoder's name, or an object."""
Label = Callable[[int, "Hit"], str]
"""Label of a passage in a context, from its number (from 1) and the passage."""

GAP = "\u2026"  # one token; `[...]` is five, which cost one to two points of recall
POOL = 30
"""Passages whose blocks are looked at."""
FEATURES = (
    *("words", "title", "near", "rank", "meaning"),
    *("document", "furniture", "code", "links", "opening", "rerank"),
)
"""Features of a piece: share of the question's words in it, only in the title and headings above it, only in the pieces
beside it, rare words counting more; logarithm of the rank of its passage, negative; in English the cosine between what
its words and those of the question mean; logarithm of the rank of its document among the documents, negative; whether
it is furniture or code; links per 20 tokens; logarithm of its number in the passage, at most `_OPENING_PIECES`,
as of rows, negative; the reranker's score, in standard deviations of the others. A row has the words of its header,
and says nothing about the next. Density, length, identifiers, items, linking sentences and words of the rest of the
passage gave nothing more on left-out sets."""
SMALL_PASSAGE_CHARS = 1_200
"""Passages up to this length are joined with their neighbors in the document."""
_MIN_CUT_TOKENS = 12  # Less room is not worth a part of a block
_RERANKED = 40  # Pieces that a reranker scores
_OF_WHOLE = {"rank": 9.0, "opening": 4.0}
"""Weights where passages are documents by themselves: one may be the second step of a chain, without a word of the
question, and it opens with what it is about. Chosen on odd questions of HotpotQA, 2WikiMultiHopQA and MuSiQue."""
_OPENING_PIECES = 3  # Behind so many pieces a passage does not open any more: further ones are alike
_ELSEWHERE = 0.3  # How much a word of the question counts for a part of it that does not have the word
_UNREAD = -2.0  # Standardised score of pieces that the reranker did not read
_LED_WITHIN = 1.0  # By how much less than a piece that ends with a colon what it leads to scores at most
_MIN_COPY_CHARS = 80  # A text that says the same in two documents; shorter ones may say it of different things
_LINKING = 5  # The best pieces, whose rare names lead to rows of other passages
_LINKED_WITHIN = 1.0  # By how much less than such a piece the row scores at most
_BEFORE = 0.01  # By how much more than the other rows of its table
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_WELL = 0.8  # A document matches well if it has this share of the best value of words


@dataclass(frozen=True, slots=True)
class Evidence:
    """The part of one passage that a context quotes.

    Attributes:
        hit: The passage with its score, metadata and path.
        text: The quoted blocks, verbatim, without the heading path.
        spans: Start and end of each quoted run in the passage's text, in characters.
    """

    hit: Hit
    text: str
    spans: tuple[tuple[int, int], ...]

    @property
    def id(self) -> str:
        """Your id of the passage; ours if there is none."""
        return self.hit.unit.source_id

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """Documents of the passage."""
        return self.hit.doc_ids

    @property
    def title(self) -> str:
        """Heading path of the passage."""
        return self.hit.unit.title

    @property
    def page(self) -> int | None:
        """Page that the first quoted part begins on; see `Hit.page_at`."""
        return self.hit.page_at(self.spans[0][0])

    @property
    def pages(self) -> list[int]:
        """Pages that the quoted parts stand on; see `Hit.pages`."""
        return self.hit.pages(self.spans[0][0], self.spans[-1][1])

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the passage was found."""
        return tuple(step.note for step in self.hit.path)

    def cut_hit(self) -> Hit:
        """The hit with the quoted text in place of the whole one, and the page of that."""
        page = {} if self.page is None else {"page": self.page}
        return replace(self.hit, unit=replace(self.hit.unit, text=self.text), metadata={**self.hit.metadata, **page})

    def as_dict(self) -> dict[str, Any]:
        """The evidence for JSON."""
        return {
            "id": self.id,
            "doc_ids": list(self.doc_ids),
            "title": self.title,
            **({} if self.page is None else {"page": self.page}),
            "spans": [list(span) for span in self.spans],
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Context:
    """Evidence for a question as a model reads it, within a number of tokens.

    Attributes:
        text: The evidence, each part behind a label: `[number] heading path`.
        evidence: The quoted parts in the order of the text.
        tokens: Tokens of the text.
        max_tokens: The budget.
        left_out: Passages that were looked at and not quoted, best first, without the steps that led to them.
        more: Names of documents that match well and are not quoted.
    """

    text: str
    evidence: tuple[Evidence, ...]
    tokens: int
    max_tokens: int
    left_out: tuple[Hit, ...] = field(default=(), repr=False)
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage whose pieces may be quoted.

    Attributes:
        hit: The passage.
        rank: Its rank from 0; of a neighbour that of the hit that it stands beside.
        position: Its place in the corpus; -1 if unknown.
    """

    hit: Hit
    rank: int
    position: int = -1


# --- scores -----------------------------------------------------------------------------------------------------------


@cache
def learned_weights() -> dict[str, float]:
    """Weights by feature, from `context.toml`; learned by `benchmarks/evidence.py --learn`."""
    weights: dict[str, float] = read_toml(__package__, "context.toml")["weights"]
    return weights


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pieces of ranked passages, with their features.

    Attributes:
        question: The question.
        spoken: Its language, in which all words are compared.
        passages: The passages.
        read: Their pieces.
        owner: Number of each piece's passage, `[pieces]`.
        number: Number of each piece in its passage, `[pieces]`.
        sources: Document of each passage, see `source_of`.
        features: `[pieces, len(FEATURES)]`.
    """

    question: str
    spoken: Language
    passages: Sequence[RankedPassage]
    read: Sequence[PassagePieces]
    owner: Sequence[int]
    number: Sequence[int]
    sources: Sequence[str]
    features: DoubleArray

    @classmethod
    def of(
        cls, question: str, passages: Sequence[RankedPassage], *, by_sentence: bool = False, part: str = ""
    ) -> Candidates:
        """Read passages and work out the features of their pieces or sentences, all but the reranker's.

        Words of the question outside a `part` of it count less.
        """
        units = [passage.hit.unit for passage in passages]
        spoken = language_among(question, (unit.language for unit in units))
        read = [passage_pieces(unit.title, unit.text, unit.layout, spoken, by_sentence=by_sentence) for unit in units]
        owner = [row for row, each in enumerate(read) for _ in each.pieces]
        number = [candidate for each in read for candidate in range(len(each.pieces))]
        sources = [source_of(passage.hit) for passage in passages]
        features = _features(question, part, spoken, passages, read, sources)
        return cls(question, spoken, passages, read, owner, number, sources, features)

    def pieces(self) -> list[Piece]:
        """All pieces, in order."""
        return [piece for each in self.read for piece in each.pieces]

    def text(self, candidate: int) -> str:
        """Text of a piece."""
        piece = self.read[self.owner[candidate]].pieces[self.number[candidate]]
        return self.read[self.owner[candidate]].text[piece.start : piece.end]

    def values(self, weights: dict[str, float] | None = None) -> DoubleArray:
        """Score of every piece without a reranker, `[pieces]`."""
        weights = learned_weights() if weights is None else weights
        if not are_parts([passage.hit for passage in self.passages]):
            weights = {**weights, **_OF_WHOLE}
        values = row_products(self.features, np.array([weights.get(name, 0.0) for name in FEATURES]))
        led = np.flatnonzero([is_led for each in self.read for is_led in each.led])
        values[led] = np.maximum(values[led], values[led - 1] - _LED_WITHIN)
        return values

    def reranked(self, values: DoubleArray, score: ScoreTexts) -> DoubleArray:
        """Scores with those of a reranker of the best pieces; it reads each behind the last heading above it."""
        best = np.argsort(-values, kind="stable")[:_RERANKED]
        texts = [f"{self._heading(candidate)}\n{self.text(candidate)}".strip() for candidate in best.tolist()]
        scores = np.asarray(score(self.question, texts), dtype=np.float64)
        best = best[: len(scores)]  # a limit of time may have stopped it
        spread = float(scores.std()) if len(scores) else 0.0
        column = np.full(len(values), _UNREAD)
        column[best] = (scores - scores.mean()) / spread if spread else 0.0
        return values + learned_weights()["rerank"] * float(values[best].std() if len(best) else 0.0) * column

    def _heading(self, candidate: int) -> str:
        passage = self.passages[self.owner[candidate]].hit.unit
        above = self.read[self.owner[candidate]].pieces[self.number[candidate]].headings
        return block_text(passage.text, Block(HEADING, *above[-1])) if above else title_path(passage.title)[-1]


def score_function(rerank: Reranker, milliseconds: int = 0) -> ScoreTexts | None:
    """Return what scores texts; with a limit of time it scores as many of the first as fit.

    Raises:
        ConfigurationError: It scores nothing, or a limit of time is given and it knows none.
    """
    if isinstance(rerank, str):
        rerank = load_cross_encoder(rerank)
    if isinstance(rerank, CrossEncoder):
        return partial(rerank.scores_within, milliseconds=milliseconds) if milliseconds else rerank.scores
    if milliseconds:
        raise ConfigurationError("rerank_ms needs a model that can stop: rerank='colbert:FOLDER' or 'onnx:FOLDER'.")
    if rerank is not None and not callable(rerank):
        raise ConfigurationError(
            f"Expected a reranker, got {type(rerank).__name__}. Give 'colbert:NAME_OR_FOLDER', the name of a "
            "cross-encoder, or a function of a question and texts that returns a score for each text."
        )
    return rerank


def _features(
    question: str,
    part: str,
    spoken: Language,
    passages: Sequence[RankedPassage],
    read: Sequence[PassagePieces],
    sources: Sequence[str],
) -> DoubleArray:
    question_stems = sorted(stems(asking_rules(spoken).without_contractions(question), spoken))
    rows = [
        (passage, each.words[number], each, number)
        for passage, each in enumerate(read)
        for number in range(len(each.pieces))
    ]
    inside = _holding(question_stems, [words for _, words, _, _ in rows])
    above = _holding(question_stems, [each.headings[number] for _, _, each, number in rows])
    beside = np.zeros_like(inside)
    owner = np.array([passage for passage, *_ in rows])
    is_row = np.array([each.pieces[number].kind == ROW for _, _, each, number in rows], dtype=bool)
    same = (owner[1:] == owner[:-1]) & ~(is_row[1:] & is_row[:-1]) if rows else np.zeros(0, dtype=bool)
    beside[1:] |= inside[:-1] & same[:, None]
    beside[:-1] |= inside[1:] & same[:, None]
    counts = inside.sum(axis=0)
    weights = np.log(1 + (len(rows) - counts + 0.5) / (counts + 0.5))
    part_stems = stems(part, spoken) if part else question_stems
    weights *= [1.0 if word in part_stems else _ELSEWHERE for word in question_stems]
    weights /= weights.sum() or 1.0
    by_rank = sorted(range(len(passages)), key=lambda passage: passages[passage].rank)
    documents = {source: rank for rank, source in enumerate(dict.fromkeys(sources[one] for one in by_rank))}
    columns = np.zeros((len(rows), len(FEATURES)))
    columns[:, 0] = row_products(inside, weights)
    columns[:, 1] = row_products(above & ~inside, weights)
    columns[:, 2] = row_products(beside & ~inside & ~above, weights)
    facts = []
    for passage, _, each, number in rows:
        kind, links = each.pieces[number].kind, 20 * each.links[number] / (20 + each.tokens[number])
        opening = _OPENING_PIECES if kind == ROW else min(number, _OPENING_PIECES)
        ranks = passages[passage].rank, documents[sources[passage]], opening
        facts.append((*ranks, kind in (HEADING, FURNITURE), kind == CODE, links))
    if facts:
        columns[:, 4] = row_products(piece_vectors(read), text_vectors([question])[0])
        columns[:, 6:9] = np.array(facts, dtype=np.float64)[:, 3:]
        columns[:, [3, 5, 9]] = -np.log1p(np.array(facts, dtype=np.float64)[:, :3])
    return columns


def _holding(question_stems: Sequence[str], held: Sequence[str]) -> BoolArray:
    """Membership of the words of a question in some `stem_text`s, bool, `[len(held), words]`."""
    holds = np.zeros((len(held), len(question_stems)), dtype=bool)
    for column, word in enumerate(map(" {} ".format, question_stems)):
        holds[:, column] = [word in words for words in held]
    return holds


# --- filling a budget -------------------------------------------------------------------------------------------------


def check_options(options: Any) -> ContextOptions:
    """Refuse what are no options of a context."""
    if not isinstance(options, ContextOptions):
        raise ConfigurationError(f"Expected ContextOptions(rerank=..., count=...), got {type(options).__name__}.")
    return options


def number_label(number: int, hit: Hit) -> str:  # noqa: ARG001 - other labels name the documents of the hit
    """The label `[number]`."""
    return f"[{number}]"


def context_text(evidence: Sequence[Evidence], label: Label = number_label) -> str:
    """Evidence as one text, each part behind its label and heading path; a path is not repeated."""
    parts, last = [], ("", "")
    for number, one in enumerate(evidence, 1):
        source = (source_of(one.hit), one.title)
        title = one.title if source != last else ""
        parts.append(f"{label(number, one.hit)} {title}".rstrip() + f"\n{one.text}")
        last = source
    return "\n\n".join(parts)


def evidence_json(evidence: Sequence[Evidence]) -> str:
    """Evidence as a list in JSON."""
    return json.dumps([one.as_dict() for one in evidence], ensure_ascii=False)


def head_json(hit: Hit) -> str:
    """A passage without its text, as `evidence_json` writes it; near enough to count its tokens."""
    return evidence_json([Evidence(hit, "", ((0, 0),))])


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """Options of choosing a context and of counting its tokens.

    Attributes:
        rerank: A model or function that scores the best 40 blocks again: `colbert:NAME_OR_FOLDER` (late interaction),
            `onnx:NAME_OR_FOLDER`, the name of a cross-encoder, or a function of a question and texts. None for none.
        rerank_ms: Milliseconds that it may take, the best blocks first; 0 for all.
        pool: Passages whose blocks are looked at.
        count: Counts the tokens of a text; by default words and punctuation marks.
        write: Writes the payload that the budget holds for.
        head: Returns what the payload says of a passage beside its text, to estimate its tokens; None for what
            `context_text` does.
    """

    rerank: Reranker = None
    rerank_ms: int = 0
    pool: int = POOL
    count: CountTokens = count_tokens
    write: Callable[[Sequence[Evidence]], str] = context_text
    head: Callable[[Hit], str] | None = None


def select_context(
    question: str, passages: Sequence[RankedPassage], max_tokens: int, options: ContextOptions | None = None
) -> Context:
    """Choose the blocks of passages that answer a question within a number of tokens.

    Args:
        question: The question.
        passages: Passages in any order; see `ranked` for the hits of a retriever.
        max_tokens: Tokens that the payload may have, labels and headings counted.
        options: A reranker, the form of the payload, and how tokens are counted.

    Raises:
        QueryError: `max_tokens` is below one.
    """
    check_count("max_tokens", max_tokens)
    options = options or ContextOptions()
    candidates = Candidates.of(question, passages)
    values = candidates.values()
    score = score_function(options.rerank, options.rerank_ms)
    if score is not None and len(values):
        values = candidates.reranked(values, score)
    filling = _Filling(candidates, values, options)

    def written(spans: dict[int, tuple[int, int]]) -> tuple[list[Evidence], str, int]:
        best_first = {candidate: spans[candidate] for candidate in sorted(spans, key=lambda one: -values[one])}
        quoted = _evidence(candidates, best_first)
        text = options.write(quoted) if quoted else ""
        return quoted, text, options.count(text)

    taken, room = filling.filled(max_tokens), max_tokens
    quoted, text, tokens = written(taken)
    while taken and _MIN_CUT_TOKENS <= max_tokens - tokens < room:
        room = max_tokens - tokens  # labels and headings were estimated
        taken = filling.filled(room)
        quoted, text, tokens = written(taken)
    if tokens > max_tokens:
        quoted, text, tokens = written(_within_budget(candidates, values, taken, max_tokens, options))
    ids = {one.hit.unit.id for one in quoted}
    left_out = [one.hit for one in sorted(passages, key=lambda one: one.rank) if one.hit.unit.id not in ids]
    more = _more(candidates, quoted)
    return Context(text, tuple(quoted), tokens, max_tokens, tuple(left_out), more)


def _within_budget(
    candidates: Candidates,
    values: DoubleArray,
    taken: dict[int, tuple[int, int]],
    max_tokens: int,
    options: ContextOptions,
) -> dict[int, tuple[int, int]]:
    """Pieces whose payload fits: without the weakest where labels cost more than estimated, the last one cut."""

    def fits(spans: dict[int, tuple[int, int]]) -> bool:
        return options.count(options.write(_evidence(candidates, spans))) <= max_tokens

    chosen = sorted(taken, key=lambda candidate: -values[candidate])
    while len(chosen) > 1 and not fits({candidate: taken[candidate] for candidate in chosen}):
        chosen.pop()
    if len(chosen) == 1 and not fits({chosen[0]: taken[chosen[0]]}):
        [candidate] = chosen
        text, start = candidates.read[candidates.owner[candidate]].text, taken[candidate][0]
        end = _fitting_end(text, taken[candidate], lambda end: fits({candidate: (start, end)}))
        return {candidate: (start, end)} if start < end else {}
    return {candidate: taken[candidate] for candidate in chosen}


def source_of(hit: Hit) -> str:
    """Document that a passage is a part of; where a splitter made it one by itself, the source in its metadata."""
    return version(hit.metadata)[0] or next(iter(hit.doc_ids), hit.unit.id)


def are_parts(hits: Sequence[Hit]) -> bool:
    """True if more than a quarter of hits share a title or a source, or have a heading path or no title."""
    titles, sources = [hit.unit.title for hit in hits], list(map(source_of, hits))
    of_title, of_source = Counter(titles), Counter(sources)
    parts = [
        not title or is_path(title) or of_title[title] > 1 or of_source[source] > 1
        for title, source in zip(titles, sources, strict=True)
    ]
    return 4 * sum(parts) > len(parts)


def ranked(hits: Iterable[Hit], starts: Sequence[int | None] = ()) -> list[RankedPassage]:
    """Hits of any retriever, best first, each once; `starts` are their places in their documents, where known."""
    passages: dict[str, RankedPassage] = {}
    for rank, (hit, start) in enumerate(zip_longest(hits, starts)):
        passages.setdefault(hit.unit.id, RankedPassage(hit, rank, -1 if start is None else start))
    return list(passages.values())


class _Filling:
    """Takes pieces, best first, while there is room for them, their labels and headings."""

    def __init__(self, candidates: Candidates, values: DoubleArray, options: ContextOptions) -> None:
        self._candidates, self._options = candidates, options
        self._values, self._links = values.copy(), NameLinks(candidates)
        self._owner = np.array(candidates.owner, dtype=np.intp)
        self._room, self._gap = 0, options.count(GAP)
        self._taken: dict[int, tuple[int, int]] = {}
        self._texts: dict[str, list[str]] = {}  # of the pieces taken, by document
        self._labelled: set[object] = set()

    def filled(self, room: int) -> dict[int, tuple[int, int]]:
        """Take pieces as far as there is room; returns the span of each that is taken, which may be a part of it."""
        self._room = room
        is_waiting = np.ones(len(self._values), dtype=bool)
        is_waiting[list(self._taken)] = False
        while is_waiting.any() and (self._room >= _MIN_CUT_TOKENS or not self._taken):
            candidate = int(np.argmax(np.where(is_waiting, self._values, -np.inf)))
            is_waiting[candidate] = False
            self._take(candidate)
            if candidate in self._taken and len(self._taken) <= _LINKING:
                linked = list(self._links.rows(candidate))
                self._values[linked] = np.maximum(self._values[linked], self._values[candidate] - _LINKED_WITHIN)
                for row in linked:  # other rows of its passage come behind it
                    others = is_waiting & (self._owner == self._owner[row])
                    self._values[row] = self._values[others].max(initial=self._values[row]) + _BEFORE
        return self._taken

    def _take(self, candidate: int) -> None:
        candidates = self._candidates
        row = candidates.owner[candidate]
        hit, each = candidates.passages[row].hit, candidates.read[row]
        document, piece = candidates.sources[row], each.pieces[candidates.number[candidate]]
        count = self._options.count
        tokens = (
            each.tokens[candidates.number[candidate]]
            if count is count_tokens
            else count(each.text[piece.start : piece.end])
        )
        above = [slice(*span) for span in (*piece.headings, piece.header)]
        extra = self._head_tokens(hit, document) + self._gap
        extra += sum(count(each.text[span]) for span in above if span.start < min(piece.start, span.stop))
        if self._taken and self._room - extra < min(tokens, _MIN_CUT_TOKENS):
            return
        text = " ".join(each.text[piece.start : piece.end].split())
        if any(text in taken for taken in self._texts.get(document, ())):
            return  # passages of a document overlap
        if len(text) >= _MIN_COPY_CHARS and any(text in texts for texts in self._texts.values()):
            return  # a copy of the document
        span = (piece.start, piece.end)
        if tokens + extra > self._room:
            extra += sum(count(each.text[span]) for span in above if span.start >= piece.start)
            span = self._part(each.text, piece, self._room - extra)
            tokens = count(each.text[slice(*span)])
        if span[0] == span[1]:
            return
        self._taken[candidate] = span
        self._room -= tokens + extra
        self._texts.setdefault(document, []).append(" ".join(each.text[slice(*span)].split()))
        self._labelled |= {hit.unit.id, (document, hit.unit.title)}

    def _head_tokens(self, hit: Hit, document: str) -> int:
        """Tokens of the label and heading path of a passage, as far as they are not there yet."""
        if hit.unit.id in self._labelled:
            return 0
        if self._options.head is not None:
            return self._options.count(self._options.head(hit))
        label = self._options.count(number_label(len(self._labelled), hit))
        return label + (0 if (document, hit.unit.title) in self._labelled else self._options.count(hit.unit.title))

    def _part(self, text: str, piece: Piece, room: int) -> tuple[int, int]:
        """The sentences or lines of a piece around the best one that fit; words where nothing else was taken."""
        none = (piece.start, piece.start)
        if room < _MIN_CUT_TOKENS and (self._taken or room < 1):
            return none
        spans = sentence_spans(text, piece)
        spoken, count = self._candidates.spoken, self._options.count
        wanted = stems(self._candidates.question, spoken)
        heads = {start for start, end in (*piece.headings, piece.header) if end}  # said above what is taken
        shared = [-1 if span[0] in heads else len(stems(text[slice(*span)], spoken) & wanted) for span in spans]
        best = max(range(len(spans)), key=lambda number: (shared[number], -number))
        first, last = best, best
        if count(text[slice(*spans[best])]) > room:
            start = spans[best][0]
            end = _fitting_end(text, spans[best], lambda end: count(text[start:end]) <= room)
            return none if self._taken else (start, end)
        for _ in spans:
            wider = [(first, last + 1), (first - 1, last)]
            inside = [pair for pair in wider if pair[0] >= 0 and pair[1] < len(spans)]
            fits = [pair for pair in inside if count(text[spans[pair[0]][0] : spans[pair[1]][1]]) <= room]
            if not fits:
                break
            first, last = fits[0]
        part = spans[first][0], spans[last][1]
        return (
            part if any(map(str.isalpha, text[slice(*part)])) or not self._taken else none
        )  # not the number of an item


def _fitting_end(text: str, span: tuple[int, int], fits: Callable[[int], bool]) -> int:
    """End of as many words of a span as fit."""
    ends = [match.end() + span[0] for match in re.finditer(r"\S+", text[slice(*span)])]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(ends[middle - 1]) else (low, middle - 1)
    return ends[low - 1] if low else span[0]


# --- the context ------------------------------------------------------------------------------------------------------


def _evidence(candidates: Candidates, taken: dict[int, tuple[int, int]]) -> list[Evidence]:
    """Evidence of the pieces taken: documents by their best piece, passages and blocks in the order of the document."""
    by_passage: dict[int, list[int]] = {}
    documents: dict[str, list[int]] = {}
    for candidate in taken:  # best first
        row = candidates.owner[candidate]
        rows = documents.setdefault(candidates.sources[row], [])
        rows += [row] if row not in rows else []
        by_passage.setdefault(row, []).append(candidate)
    evidence = []
    for rows in documents.values():
        for row in sorted(rows, key=lambda row: (candidates.passages[row].position, candidates.passages[row].rank)):
            chosen = sorted(by_passage[row])
            text, spans = _quoted(
                candidates.read[row], [(candidates.number[candidate], taken[candidate]) for candidate in chosen]
            )
            evidence.append(Evidence(candidates.passages[row].hit, text, spans))
    return evidence


def _quoted(
    each: PassagePieces, quoted: Sequence[tuple[int, tuple[int, int]]]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Text of some pieces of a passage, and spans of its runs; headings and headers of tables above what they head."""
    runs: list[tuple[int, int]] = []
    heads: list[list[tuple[int, int]]] = []
    for number, (start, end) in quoted:
        piece, before = each.pieces[number], each.pieces[number - 1]
        if runs and runs[-1][1] == before.end and start == piece.start:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
            heads.append([*piece.headings, *([piece.header] if piece.header[1] else [])])
    shown: list[tuple[int, int]] = []
    lines: list[str] = []
    for run, above in zip(runs, heads, strict=True):
        lines += [GAP] if lines else []
        shown.append(run)
        missing = [span for span in above if not any(start <= span[0] and span[1] <= end for start, end in shown)]
        lines += [each.text[slice(*span)] for span in missing]
        lines.append(_fenced(each.text, *run))
        shown += missing
    return "\n".join(lines), tuple(runs)


def _fenced(text: str, start: int, end: int) -> str:
    """A part of a text whose fences of code are opened and closed."""
    run = text[start:end]
    fences = len(_FENCE.findall(run))
    is_inside = len(_FENCE.findall(text, 0, start)) % 2 == 1
    if not fences:
        return run
    return "```\n" * is_inside + run + "\n```" * ((fences + is_inside) % 2)


def _more(candidates: Candidates, quoted: Sequence[Evidence]) -> tuple[str, ...]:
    """Names of documents with a piece that has nearly as many words of the question as the best, but no quote."""
    if not len(candidates.features):
        return ()
    shares = candidates.features[:, FEATURES.index("words")] + candidates.features[:, FEATURES.index("title")]
    quoted_ids = {name for one in quoted for name in one.doc_ids}
    names: dict[str, None] = {}
    for candidate in np.flatnonzero(shares >= _WELL * shares.max()).tolist():
        hit = candidates.passages[candidates.owner[candidate]].hit
        if not quoted_ids.intersection(hit.doc_ids):
            names.setdefault(documents_of(hit))
    return tuple(names)
