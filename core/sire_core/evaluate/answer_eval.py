"""Answers of a language model to the questions of a data set, from what an index finds, and how good they are."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.evaluate.answer_metrics import METRICS, AnsweredQuestion, answer_rates, best_over_golds, f1, with_dr
from sire_core.evaluate.bootstrap import mean_interval
from sire_core.evaluate.datasets import DataSet, document_text
from sire_core.evaluate.retrieval import all_at_k, provenance_ranking, recall_at_k
from sire_core.evaluate.runner import scope_of
from sire_core.models.usage import CostRange, estimate_tokens
from sire_core.progress import ProgressLike, progress_of
from sire_core.reason import collect, reason
from sire_core.reason.answer_reader import UNSUPPORTED, ReadAnswer, ReaderConfig, read
from sire_core.reason.model_calls import ModelCalls, ReasoningLimits, StoppedError
from sire_core.reason.prompts import READ_FOLLOW_UP, prompt
from sire_core.reason.steps import Answer, ReasoningUsage, StopReason
from sire_core.reason.strategies import settings_of
from sire_core.types import Document, Hit, Unit, UnitKind
from sire_core.worker_pool import map_all

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.questions import Question

_KS = (2, 5, 10, 20)
_LIMITS = {"call_limit": "calls", "token_limit": "tokens"}
_CITATION = re.compile(r"(?<!\s)\s*\[\d+\]")
CLOSED_BOOK = "closed-book"  # The way to answer that searches nothing
GOLDEN = "golden"  # The way to answer that reads the gold passages: what a reader could do with a perfect search


def task_of(question: Question) -> Mapping[str, Any]:
    """The form of a question's answer, as fields of `ReaderConfig`: options, or a long answer."""
    options = question.metadata.get("options")
    if isinstance(options, list) and options:
        return {"options": tuple(str(option) for option in options)}
    return {"prompt": "long"} if question.metadata.get("pairs") else {}


@dataclass(frozen=True, slots=True)
class AnswerConfig:
    """Settings of the answers."""

    via: str = "single"  # A strategy of `sire_core.reason`, or `closed-book`, or `golden`, which reads gold passages
    flavor: str | None = None  # Of the strategy; see `settings_of`. None takes its first
    k: int = 10  # Hits that an answer is read from
    workers: int = 8  # Questions under way at once
    reader: ReaderConfig = field(default_factory=ReaderConfig)  # The prompt, and how much context is read
    model: LanguageModel | None = None  # None takes the index's own model
    examples: str = ""  # Solved examples for every step of `ircot` and `self-ask`


async def answer_questions(
    index: Index, dataset: DataSet, config: AnswerConfig, progress: ProgressLike = None
) -> tuple[AnsweredQuestion, ...]:
    """Answer every question that has accepted answers."""
    questions = [question for question in dataset.measurable if question.answers]
    # The official scripts of these two give no credit to a wrong yes or no; in our own format the name tells them.
    closed = dataset.name.lower().startswith(("hotpot", "2wiki")) or any(question.closed for question in questions)
    documents = {document.id: document for document in dataset.documents} if config.via == GOLDEN else {}
    say = progress_of(progress)

    async def one(question: Question) -> AnsweredQuestion:
        return await _answer(index, question, config, documents, closed=closed)

    return tuple(await map_all(one, questions, config.workers, partial(say, "answers")))


_PROMPT_TOKENS = 150  # Instructions and question of a reader's prompt, roughly
_ANSWER_TOKENS = (5, 200)  # Of an answer or a step: a name, and the most that a short answer may have
_MOST_CALLS = {"ircot": 11, "self-ask": 9}
"""Calls of a question with as many steps as its longest flavor allows, and the answer."""
_PASSAGE = 512  # Most tokens of a passage that an index cuts


def answer_cost(dataset: DataSet, questions: int, rows: int, config: AnswerConfig) -> CostRange:
    """Estimate what answering questions in some rows asks of the model: calls, tokens; asks it nothing."""
    calls = (rows * questions, rows * questions * _MOST_CALLS.get(config.via, 1))
    texts = [passage.text for document in dataset.documents for passage in document.passages]
    texts = texts or [document.text for document in dataset.documents]
    sizes = [min(_PASSAGE, estimate_tokens(text)) for text in texts[:: max(1, len(texts) // 1000)]]
    size = 0 if config.via == CLOSED_BOOK or not sizes else min(config.k, len(texts)) * sum(sizes) // len(sizes)
    high = min(2 * size, config.reader.tokens or 2 * size)
    return CostRange(
        calls,
        (calls[0] * (_PROMPT_TOKENS + min(size // 2, high)), calls[1] * (_PROMPT_TOKENS + high)),
        (calls[0] * _ANSWER_TOKENS[0], calls[1] * _ANSWER_TOKENS[1]),
    )


def answer_scores(answered: Sequence[AnsweredQuestion]) -> dict[str, Any]:
    """Means in the terms of the papers: rates 0 to 100, calls, searches and tokens per question."""
    if not answered:
        return {}
    names = dict.fromkeys(name for a in answered for name in a.rates)
    rates = {name: [a.rates[name] for a in answered if name in a.rates] for name in names}
    means = {name: fmean(values) for name, values in rates.items()}
    scores: dict[str, Any] = {name: _percent(means[name]) for name in ("EM", "F1", "Acc", "coverage")}
    for name, suffix in (("coverage", ""), ("precision", " precision")):
        for threshold in (".25", ".5"):
            scores[f"Acc@{threshold}{suffix}"] = _percent(fmean(rate >= float(threshold) for rate in rates[name]))
    scores |= {name: round(fmean(getattr(a, name) for a in answered), 2) for name in ("calls", "retrievals", "tokens")}
    scores["F1 rule"] = "hotpot" if any(a.closed for a in answered) else "words"
    if timed := [a.seconds for a in answered if a.asked and a.tokens]:  # what was answered before took no time
        scores["TPQ"] = round(fmean(timed), 3)
    intervals = {name: mean_interval(rates[name]).as_json() for name in ("EM", "F1")}
    scores["interval"] = {name: [interval["low"], interval["high"]] for name, interval in intervals.items()}
    types = sorted({a.question.type for a in answered})
    for name in ("EM", "F1", "Acc"):
        by_type = {kind: fmean(a.rates[name] for a in answered if a.question.type == kind) for kind in types}
        scores[f"{name} by type"] = {kind: _percent(mean) for kind, mean in by_type.items()}
    scores |= {name: _percent(mean) for name, mean in with_dr(means).items() if name not in METRICS}
    if failed := sum(a.unread for a in answered):
        scores["unread"] = failed
    return scores | _context_recall(answered)


def _percent(share: float) -> float:
    return round(100 * share, 1)


def _context_recall(answered: Sequence[AnsweredQuestion]) -> dict[str, dict[str, float]]:
    """R@k and all@k of the final contexts; empty without gold passages."""
    rankings = [(a.documents, a.question.supporting) for a in answered if a.question.supporting]
    if not rankings:
        return {}
    longest = max(len(documents) for documents, _ in rankings)
    ks = [k for k in _KS if k <= longest] or [longest]
    return {
        name: {str(k): round(100 * fmean(metric(documents, gold, k) for documents, gold in rankings), 1) for k in ks}
        for name, metric in (("recall", recall_at_k), ("all", all_at_k))
    }


async def _answer(
    index: Index,
    question: Question,
    config: AnswerConfig,
    documents: Mapping[str, Document],
    *,
    closed: bool,
) -> AnsweredQuestion:
    reader = replace(config.reader, **task_of(question))
    start = time.perf_counter()
    if config.via in (CLOSED_BOOK, GOLDEN):
        passages = gold_passages(question, documents) if config.via == GOLDEN else []
        answer = await read_alone(question, passages, reader, config.model or index.language_model)
    else:
        settings = settings_of(config.via, config.flavor, config.examples)
        how: dict[str, Any] = {"model": config.model, "k": config.k, "filter": scope_of(question), "reader": reader}
        answer = (await collect(reason(config.via, index, question.question, **how, **settings))).answer
    seconds = time.perf_counter() - start
    if answer.stop in _LIMITS:  # the model's: the reasoning is given none
        bound = _LIMITS[answer.stop]
        raise LimitExceededError(
            f"The model's limit of {bound} was reached before every question was answered, and means over some of them "
            f"would be wrong. Raise the limit (--max-{bound}) or ask fewer questions.",
            bound,
        )
    text = _CITATION.sub("", answer.text).strip() if answer.sufficient or answer.note.endswith(UNSUPPORTED) else ""
    used = answer.usage.input_tokens + answer.usage.output_tokens
    readings, unread = await _readings(text, question, config.model or index.language_model)
    findings = _findings(answer)
    return AnsweredQuestion(
        question,
        text,
        stop=answer.stop,
        rates={
            **answer_rates(text, question, closed=closed),
            **({} if readings is None else {"D-F1": readings}),
            **({} if findings is None else {"findings": findings}),
        },
        calls=answer.usage.calls,
        retrievals=answer.usage.retrievals,
        tokens=used + answer.usage.stored_tokens,
        asked=used > 0,
        closed=closed,
        documents=tuple(provenance_ranking(answer.hits)),
        seconds=seconds,
        unread=unread,
    )


async def _readings(text: str, question: Question, model: LanguageModel | None) -> tuple[float | None, int]:
    """D-F1 (ASQA), read by a model from a long answer, and the number of readings for which it failed."""
    pairs = question.metadata.get("pairs")
    if model is None or not isinstance(pairs, list):
        return None, 0
    scores = [await _read(text, pair, model) for pair in pairs] if text else []
    return sum(score or 0.0 for score in scores) / max(len(scores), 1), scores.count(None)


async def _read(text: str, pair: Mapping[str, Any], model: LanguageModel) -> float | None:
    """F1 of what a model reads from a long answer for one reading of the question; None when it failed."""
    follow_up = prompt(READ_FOLLOW_UP, pair["question"], passage=text)
    try:
        reply = (await model.complete(follow_up, max_tokens=60)).text.strip()
    except ModelError:
        return None
    return 0.0 if reply.casefold() == "unknown" else best_over_golds(f1, reply, pair["answers"])


def _findings(answer: Answer) -> float | None:
    """Share of the citations that are reports (SMART, table 6); None where no report was read, or nothing cited."""
    if not answer.citations or all(hit.unit.kind is not UnitKind.REPORT for hit in answer.hits):
        return None
    return fmean(answer.hits[number - 1].unit.kind is UnitKind.REPORT for number in answer.citations)


async def read_alone(
    question: Question, passages: Sequence[Hit], reader: ReaderConfig, model: LanguageModel | None
) -> Answer:
    """The answer of a model that searches nothing: it sees no passage, or gold ones (SiReRAG T9, IIER T1)."""
    if model is None:
        raise ConfigurationError("Reading needs a language model: AnswerConfig(model=...).")
    calls = ModelCalls(model, ReasoningLimits(), keep=True)
    how = replace(reader, prompt="paper") if reader.prompt == "ours" and not passages else reader
    answer = ReadAnswer()
    stop: StopReason = "answered"
    try:
        async with contextlib.aclosing(read(calls, question.question, passages, config=how)) as parts:
            async for part in parts:
                if isinstance(part, ReadAnswer):
                    answer = part
    except StoppedError as stopped:
        stop = stopped.stop
    used = calls.usage
    usage = ReasoningUsage(used.calls, used.input_tokens, used.output_tokens, 0, used.stored_tokens)
    return Answer(answer.text, stop, tuple(passages), answer.citations, answer.sufficient, usage, "")


def gold_passages(question: Question, documents: Mapping[str, Document]) -> list[Hit]:
    """The gold passages, in the question's order."""
    if question.needs:
        quotes = [need[0] for need in question.needs]
        return [Hit(Unit(doc, UnitKind.CHUNK, text, (doc,)), 1.0, (doc,)) for doc, text in quotes]
    missing = [name for name in question.supporting if name not in documents]
    if missing:
        raise ConfigurationError(f"golden reads whole documents and quotes, and {missing[0]!r} is the id of a passage.")
    gold = [documents[name] for name in question.supporting]
    units = [Unit(one.id, UnitKind.CHUNK, document_text(one), (one.id,), title=one.title) for one in gold]
    return [Hit(unit, 1.0, (unit.id,)) for unit in units]
