"""The last call: an answer from the final context, with citations, or the statement that it does not suffice."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal

from sire_core.arguments import check_choice
from sire_core.errors import ConfigurationError
from sire_core.models.answer_parsing import without_thinking
from sire_core.reason.citations import false_citations, tidy_citations, without_citations
from sire_core.reason.model_calls import ModelCalls, Reply, StoppedError
from sire_core.reason.output_parsing import AnswerText, abstains, numbered_findings
from sire_core.reason.prompts import (
    READ,
    READ_ALWAYS,
    READ_BRIEF,
    READ_FINDINGS,
    READ_LONG,
    READ_OPTIONS,
    Reading,
    ReportReading,
    prompt,
)
from sire_core.reason.steps import Answer, AnswerPiece, ReasoningUsage
from sire_core.search.context import ContextOptions, Evidence, ranked, select_context
from sire_core.search.extracts import extract_with_note
from sire_core.search.validity import superseded_mark
from sire_core.text.words import count_tokens, normalize_answer, truncate_tokens
from sire_core.types import Hit, UnitKind

_SHOWN_HITS = 10  # Of an extracted answer, beside those that are quoted
_SHORT_ANSWER_TOKENS = 200  # Maximum tokens of a short answer, without thinking

_LONG_ANSWER_TOKENS = 500  # Maximum tokens of a paragraph

_READER_INSTRUCTIONS = {"ours": READ, "paper": READ_ALWAYS, "brief": READ_BRIEF, "long": READ_LONG}

_AROUND = " .,;:!?\"'*()"  # Characters around an option

UNSUPPORTED = "The answer cites no passage, so it counts as unsupported."
"""End of the note on an answer without a valid citation."""

INSUFFICIENT = "insufficient evidence"  # The answer if the evidence does not contain it


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """Settings of the last call.

    Attributes:
        prompt: `ours` asks for citations and for an admission where the passages do not contain the answer; `paper`
            asks for an answer in any case, as the papers' readers do, and for nothing else: for comparisons with them;
            `brief` is the same in less than six words (IIER); `long` for a paragraph that covers every reading of the
            question (ASQA).
        options: The answer is one of these, chosen by its number in any case (QuALITY).
        tokens: Most tokens of the context; None reads all hits.
        border: What becomes of the hit that crosses that border: `cut` keeps what fits of it, `break` ends the context
            before it, as RAPTOR's code does, `skip` leaves it out and goes on to shorter ones. A first hit that does
            not fit is cut in any case. `choose` reads the parts of all hits that answer the question, as
            `Index.context` chooses them; the passages as they are written into the prompt have at most `tokens`.
    """

    prompt: Literal["ours", "paper", "brief", "long"] = "ours"
    tokens: int | None = None
    options: tuple[str, ...] = ()
    border: Literal["cut", "break", "skip", "choose"] = "cut"

    def __post_init__(self) -> None:
        check_choice("The reader's prompt", self.prompt, tuple(_READER_INSTRUCTIONS))
        if self.tokens is not None and self.tokens < 1:
            raise ConfigurationError(f"The reader needs at least 1 token of context, not {self.tokens}.")
        check_choice("The border of a context", self.border, ("cut", "break", "skip", "choose"))
        if self.border != "cut" and self.tokens is None:
            raise ConfigurationError(f"border={self.border!r} has no effect without a number of tokens.")


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """An answer, the numbers of the hits that it cites (from 1), whether they contain it, and findings it rests on.

    `note` says which citations were dropped, and that an answer without any valid one counts as unsupported.
    """

    text: str = ""
    citations: tuple[int, ...] = ()
    sufficient: bool = False
    findings: tuple[str, ...] = ()
    note: str = ""


async def read(
    calls: ModelCalls,
    question: str,
    hits: Sequence[Hit],
    notes: Sequence[Any] = (),
    background: Sequence[str] = (),
    *,
    config: ReaderConfig | None = None,
    stream: bool = False,
) -> AsyncGenerator[AnswerPiece | ReadAnswer, None]:
    """Ask for the answer; one call."""
    how = config or ReaderConfig()
    read_hits: Sequence[Hit | None] = hits
    if how.tokens is not None:
        choose = _chosen if how.border == "choose" else _within_budget
        read_hits = choose(question, hits, how.tokens, how.border)
    shown = [number for number, hit in enumerate(read_hits, 1) if hit is not None]  # what can be cited
    options = [{"number": number, "text": option} for number, option in enumerate(how.options, 1)]
    free = how.prompt != "ours" or bool(options)
    findings = frozenset() if free else _findings(read_hits)
    reading_prompt = prompt(
        READ_OPTIONS if options else _READER_INSTRUCTIONS[how.prompt] + READ_FINDINGS * bool(findings),
        question,
        [None if hit is None else hit.unit for hit in read_hits],
        notes=list(notes),
        background=list(background),
        options=options,
    )
    if free:
        reply = await calls.ask(
            reading_prompt, last=True, max_tokens=_LONG_ANSWER_TOKENS if how.prompt == "long" else _SHORT_ANSWER_TOKENS
        )
        answer = _option(reply, how.options) if options else _forced_answer(reply, shown, whole=how.prompt == "long")
        if stream and answer.text:
            yield AnswerPiece(answer.text)
        yield answer
        return
    schema = ReportReading if findings else Reading
    if not stream:
        yield _answer(await calls.ask(reading_prompt, schema=schema, last=True), shown, findings)
        return
    async with aclosing(_streamed(calls.stream(reading_prompt, schema=schema, last=True), shown, findings)) as parts:
        async for part in parts:
            yield part


def _findings(hits: Sequence[Hit | None]) -> frozenset[str]:
    """Names of the findings of the reports among the hits: 3.2 is finding 2 of hit 3."""
    return frozenset(
        f"{number}.{finding}"
        for number, hit in enumerate(hits, 1)
        if hit is not None and hit.unit.kind is UnitKind.REPORT
        for finding in numbered_findings(hit.unit.text)
    )


async def _streamed(
    parts: AsyncGenerator[str | Reply, None], shown: Collection[int], findings: frozenset[str]
) -> AsyncGenerator[AnswerPiece | ReadAnswer, None]:
    """Stream the answer in the model's output."""
    answer_text = AnswerText(shown)
    answer = ReadAnswer()
    try:
        async with aclosing(parts) as walk:
            async for part in walk:
                if isinstance(part, Reply):
                    answer = _answer(part, shown, findings)
                elif piece := answer_text.add(part):
                    yield AnswerPiece(piece)
    except StoppedError:
        yield ReadAnswer(answer_text.text, answer_text.citations)
        raise
    if not answer.text.startswith(answer_text.text):
        yield AnswerPiece(answer.text, restart=True)
    elif rest := answer.text[len(answer_text.text) :]:
        yield AnswerPiece(rest)
    yield answer


def _chosen(question: str, hits: Sequence[Hit], tokens: int, border: str) -> list[Hit | None]:  # noqa: ARG001 - as below
    """The parts of hits that answer a question in their order; None for hits that are left out."""

    def written(evidence: Sequence[Evidence]) -> str:
        return prompt("", "", [one.cut_hit().unit for one in evidence]).data

    options = ContextOptions(write=written, head=lambda hit: written([Evidence(hit, "", ((0, 0),))]))
    context = select_context(question, ranked(hits), tokens, options)
    parts = {one.hit.unit.id: one.cut_hit() for one in context.evidence}
    return [parts.get(hit.unit.id) for hit in hits]


def _within_budget(question: str, hits: Sequence[Hit], tokens: int, border: str) -> list[Hit | None]:  # noqa: ARG001 - hits are taken in their order
    """The first hits that fit a number of tokens; None for a hit that is skipped: the others keep their numbers."""
    selected: list[Hit | None] = []
    for hit in hits:
        length = count_tokens(hit.unit.text)
        if length <= tokens:
            selected.append(hit)
            tokens -= length
        elif border == "cut" or not selected:
            if tokens:
                selected.append(replace(hit, unit=replace(hit.unit, text=truncate_tokens(hit.unit.text, tokens))))
            break
        elif border == "break":
            break
        else:
            selected.append(None)
    return selected


def _option(reply: Reply, options: Sequence[str]) -> ReadAnswer:
    """The option in a reply: by the number at its start, else by its words."""
    text = without_thinking(reply.text).strip()
    whole = text.strip(_AROUND).casefold()
    led = re.match(r"\W*(\d{1,4})\b(?![.,]\d)", text)
    written = not whole.isdigit() and whole in {option.strip(_AROUND).casefold() for option in options}
    if led and not written and 1 <= int(led[1]) <= len(options):
        chosen = options[int(led[1]) - 1]
    else:
        spelled = [option for option in options if option.strip() and option.casefold() in text.casefold()]
        matching = [options[n - 1] for n in map(int, re.findall(r"\d{1,4}", text)) if 1 <= n <= len(options)]
        chosen = max(spelled, key=len, default=matching[0] if matching else "")
    return ReadAnswer(chosen, sufficient=bool(chosen))


def _forced_answer(reply: Reply, shown: Collection[int], *, whole: bool = False) -> ReadAnswer:
    """The first line, or all, of an answer that may not abstain."""
    reply_text = _without_done(without_thinking(reply.text)).strip()
    lines = [" ".join(reply_text.split())] if whole else reply_text.splitlines()
    text, cited = tidy_citations(lines[0] if lines else "", shown)
    return ReadAnswer(text.strip(), cited, sufficient=bool(text.strip()))


def _answer(reply: Reply, shown: Collection[int], findings: frozenset[str] = frozenset()) -> ReadAnswer:
    if reply.parsed is None:  # an answer in prose is an answer, unless it only says that there is none
        text = _without_done(without_thinking(reply.text))
        return cite(text, (), shown, sufficient=not abstains(text))
    text, cited = reply.parsed.answer.strip(), reply.parsed.citations
    text = text if cited else _without_done(text)
    # With a passage that it stands on, "I Don't Know" is the name of a song.
    says_nothing = not cited and abstains(text)
    answer = cite(text, cited, shown, sufficient=reply.parsed.sufficient and not says_nothing)
    used = tuple(dict.fromkeys(name for name in getattr(reply.parsed, "findings", ()) if name in findings))
    if used and answer.note.endswith(UNSUPPORTED):  # a finding is as good as a citation
        return replace(answer, sufficient=True, findings=used, note=answer.note.removesuffix(UNSUPPORTED).strip())
    return replace(answer, findings=used) if answer.sufficient else answer


def _without_done(text: str) -> str:
    """An answer; empty if it is only the word that ends the rounds of IRCoT."""
    return "" if normalize_answer(text) == "done" else text


def cite(text: str, cited: Sequence[int], shown: Collection[int], *, sufficient: bool) -> ReadAnswer:
    """Make text and citations consistent: all named passages are cited, and no missing ones.

    An answer that cites no passage is not sufficient.
    """
    false = dict.fromkeys([*false_citations(text, shown), *(number for number in cited if number not in shown)])
    note = f"Citations of passages that were not shown were dropped: {', '.join(map(str, false))}." if false else ""
    text, inside = tidy_citations(text, shown)
    text = text.strip()
    bare = normalize_answer(without_citations(text))
    if not sufficient or not bare or bare == INSUFFICIENT:
        return ReadAnswer(text if bare else INSUFFICIENT, inside, sufficient=False, note=note)
    missing = [number for number in dict.fromkeys(cited) if number in shown and number not in inside]
    if missing:
        text += " " * (not inside) + "".join(f"[{number}]" for number in missing)
    citations = (*inside, *missing)
    note = note if citations else f"{note} {UNSUPPORTED}".strip()
    return ReadAnswer(text, citations, sufficient=bool(citations), note=note)


def extract_answer(question: str, hits: Sequence[Hit]) -> Answer:
    """Answer with the sentences of `extract_sentences`, each with its citation; its stop reason is `extracted`.

    Give it 24 hits, of which the answer keeps those that are quoted, in the order of their quotes, then the others of
    the first ten, and what is superseded behind all others. No model has judged whether the sentences suffice, so
    `sufficient` is False; `note` says where the documents do not seem to answer.
    """
    quotes, note = extract_with_note(question, hits)
    read = dict.fromkeys([*(quote.hit for quote in quotes), *range(1, min(len(hits), _SHOWN_HITS) + 1)])
    in_order = sorted(read, key=lambda number: bool(superseded_mark(step.note for step in hits[number - 1].path)))
    numbers = {number: position for position, number in enumerate(in_order, 1)}
    return Answer(
        text="\n".join(f"{quote.quoted} [{numbers[quote.hit]}]" for quote in quotes),
        stop="extracted" if hits else "empty_index",
        hits=tuple(hits[number - 1] for number in in_order),
        citations=tuple(dict.fromkeys(numbers[quote.hit] for quote in quotes)),
        usage=ReasoningUsage(retrievals=1),
        note=note,
    )
