"""Answers of a language model to the questions of a data set, from what an index finds, and how good they are."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import fmean
from string import punctuation
from typing import IO, TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.evaluate.bootstrap import mean_interval
from sire_core.evaluate.datasets import document_text
from sire_core.evaluate.retrieval import CLOSED_ANSWERS, all_at_k, provenance_ranking, recall_at_k
from sire_core.evaluate.runner import scope_of
from sire_core.models.usage import CostRange, estimate_tokens
from sire_core.progress import ProgressLike, progress_of
from sire_core.reason import collect, reason
from sire_core.reason.answer_reader import UNSUPPORTED, ReadAnswer, ReaderConfig, read
from sire_core.reason.model_calls import ModelCalls, ReasoningLimits, StoppedError
from sire_core.reason.prompts import READ_FOLLOW_UP, prompt
from sire_core.reason.steps import Answer, ReasoningUsage
from sire_core.reason.strategies import settings_of
from sire_core.text.words import normalize_answer
from sire_core.types import Hit, Unit, UnitKind
from sire_core.worker_pool import map_all

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.questions import Question
    from sire_core.reason.steps import StopReason
    from sire_core.types import Document

_KS = (2, 5, 10, 20)
_LIMITS = {"call_limit": "calls", "token_limit": "tokens"}
_CITATION = re.compile(r"(?<!\s)\s*\[\d+\]")
CLOSED_BOOK = "closed-book"
"""The way to answer that searches nothing."""
GOLDEN = "golden"
"""The way to answer that reads the gold passages: what a reader could do with a perfect search."""


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


def _words_as_written(text: str) -> str:
    return " ".join(filter(None, (word.strip(punctuation) for word in text.split())))


def _normalized_pair(prediction: str, gold: str) -> tuple[str, str]:
    """Both texts in the first form that leaves something of the gold answer."""
    for form in (normalize_answer, _words_as_written, _single_spaced):
        if wanted := form(gold):
            return form(prediction), wanted
    return _single_spaced(prediction), ""


def exact_match(prediction: str, gold: str) -> float:
    """EM: 1 when both are equal after normalisation."""
    predicted, wanted = _normalized_pair(prediction, gold)
    return float(predicted == wanted)


def f1(prediction: str, gold: str) -> float:
    """Harmonic mean of token precision and recall over multisets. Both empty gives 1, one empty 0."""
    predicted, wanted = (text.split() for text in _normalized_pair(prediction, gold))
    if not predicted or not wanted:
        return float(predicted == wanted)
    shared = sum((Counter(predicted) & Counter(wanted)).values())
    return 2.0 * shared / (len(predicted) + len(wanted))


def f1_hotpot(prediction: str, gold: str) -> float:
    """`f1`, but 0 whenever either side is yes, no or noanswer and they differ (HotpotQA and 2WikiMultihopQA)."""
    predicted, wanted = _normalized_pair(prediction, gold)
    if predicted != wanted and (predicted in CLOSED_ANSWERS or wanted in CLOSED_ANSWERS):
        return 0.0
    return f1(prediction, gold)


def acc(prediction: str, gold: str) -> float:
    """Acc (IndexRAG eq. 4): 1 when the gold answer is a substring of the prediction, character by character."""
    predicted, wanted = _normalized_pair(prediction, gold)
    return float(wanted in predicted if normalize_answer(gold) else f" {wanted} " in f" {predicted} ")


def word_coverage(prediction: str, gold: str) -> float:
    """Share of the gold answer's different words that the prediction has (SMART). 1 for an empty gold answer."""
    predicted, wanted = (set(text.split()) for text in _normalized_pair(prediction, gold))
    return len(wanted & predicted) / len(wanted) if wanted else 1.0


def word_precision(prediction: str, gold: str) -> float:
    """Share of the prediction's different words that the gold answer has. 0 for an empty prediction."""
    return word_coverage(gold, prediction) if normalize_answer(prediction) else 0.0


def acc_at(prediction: str, gold: str, threshold: float) -> float:
    """Acc@t (SMART): 1 when `word_coverage` reaches the threshold; the paper reports .25 and .5."""
    return float(word_coverage(prediction, gold) >= threshold)


def perspective_coverage(prediction: str, perspectives: object) -> float | None:
    """Share of reference perspectives of whose words the prediction has half (SMART, table 3); None without any."""
    if not isinstance(perspectives, list) or not perspectives:
        return None
    return fmean(acc_at(prediction, str(perspective), 0.5) for perspective in perspectives)


def best_over_golds(metric: Callable[[str, str], float], prediction: str, golds: Sequence[str]) -> float:
    """The best value of a metric over all accepted answers of a question; blank ones accept nothing."""
    if not golds:
        raise ValueError("best_over_golds needs at least one gold answer; leave the question out")
    return max((metric(prediction, gold) for gold in golds if gold.strip()), default=0.0)


def task_of(question: Question) -> Mapping[str, Any]:
    """The form of a question's answer, as fields of `ReaderConfig`: options, or a long answer."""
    options = question.metadata.get("options")
    if isinstance(options, list) and options:
        return {"options": tuple(str(option) for option in options)}
    return {"prompt": "long"} if question.metadata.get("pairs") else {}


def string_match(prediction: str, golds: Sequence[Sequence[str]]) -> float:
    """STR-EM (ASQA): share of the readings of which the answer holds a short answer, letter by letter."""
    matches = [any(acc(prediction, answer) for answer in answers if answer.strip()) for answers in golds]
    return sum(matches) / len(matches) if matches else 0.0


def rouge_l(prediction: str, gold: str) -> float:
    """ROUGE-L: F1 of the longest common subsequence of words."""
    one, other = normalize_answer(prediction).split(), normalize_answer(gold).split()
    if not one or not other:
        return float(one == other)
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for column, wanted in enumerate(other, 1):
            above = row[column]
            row[column] = before + 1 if word == wanted else max(row[column], row[column - 1])
            before = above
    return 2.0 * row[-1] / (len(one) + len(other))


async def task_scores(text: str, question: Question, model: LanguageModel | None) -> tuple[dict[str, float], int]:
    """Scores of an answer that its data set alone has, 0 to 1; empty for others."""
    if question.metadata.get("options"):
        return {"accuracy": float(text in question.answers)}, 0
    pairs = question.metadata.get("pairs")
    if not isinstance(pairs, list):
        return {}, 0
    scores = {"STR-EM": string_match(text, [pair["answers"] for pair in pairs])}
    long = question.metadata.get("long")
    if isinstance(long, list) and long:
        scores["ROUGE-L"] = best_over_golds(rouge_l, text, long)
    if model is None:
        return scores, 0
    read = [await _read(text, pair, model) for pair in pairs] if text else []
    scores["D-F1"] = sum(score or 0.0 for score in read) / max(len(read), 1)
    return scores, read.count(None)


async def _read(text: str, pair: Mapping[str, Any], model: LanguageModel) -> float | None:
    """F1 of what a model reads from a long answer for one reading of the question; None when it failed."""
    follow_up = prompt(READ_FOLLOW_UP, pair["question"], passage=text)
    try:
        reply = (await model.complete(follow_up, max_tokens=60)).text.strip()
    except ModelError:
        return None
    return 0.0 if reply.casefold() == "unknown" else best_over_golds(f1, reply, pair["answers"])


def with_dr(means: Mapping[str, float]) -> dict[str, float]:
    """The means with ASQA's DR: the geometric mean of ROUGE-L and Disambig-F1."""
    if "ROUGE-L" not in means or "D-F1" not in means:
        return dict(means)
    return {**means, "DR": sqrt(means["ROUGE-L"] * means["D-F1"])}


@dataclass(frozen=True, slots=True)
class AnswerConfig:
    """How answers are made."""

    via: str = "single"  # A strategy of `sire_core.reason`, or `closed-book`, or `golden`, which reads gold passages
    flavor: str | None = None  # Of the strategy; see `settings_of`. None takes its first
    k: int = 10  # Hits that an answer is read from
    workers: int = 8  # Questions under way at once
    reader: ReaderConfig = field(default_factory=ReaderConfig)  # The prompt, and how much context is read
    model: LanguageModel | None = None  # None takes the index's own model
    examples: str = ""  # Solved examples for every step of `ircot` and `self-ask`


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """How good an answer is; every rate 0 to 1, the best over the accepted answers."""

    question: Question
    text: str  # The answer without its citations; empty when there is none
    stop: str  # Why the reasoning ended
    em: float  # Exact match
    f1: float  # Token F1; on HotpotQA and 2WikiMultihopQA with the official rule for yes and no
    acc: float  # Whether the accepted answer is inside the answer (IndexRAG)
    coverage: float  # Share of the accepted answer's words (SMART)
    precision: float  # Share of the answer's words that an accepted answer has
    calls: int  # Requests to the model
    retrievals: int
    # Share of the question's reference perspectives (`perspectives`, a list of texts in the question's record) whose
    # words the answer covers by half; None without any
    perspectives: float | None = None
    tokens: int = 0  # Of the prompts and the answers, those of answers from a file too
    # Documents of the final context in order, each once: of several searches after they were merged
    documents: tuple[str, ...] = ()
    seconds: float = 0.0  # Wall seconds of searches and calls
    # Share of its citations that are reports (SMART, table 6); None where no report was read, or nothing was cited
    findings: float | None = None
    # Scores that the question's data set alone has; see `task_scores`
    task: Mapping[str, float] = field(default_factory=dict)
    unread: int = 0  # Readings of the question for which the model that scores the answer failed; they count as 0
    # Whether a model was asked now, so that `seconds` are its own; not where a file held all that it said
    asked: bool = True
    closed: bool = False  # Whether `f1` has the official rule for yes and no


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
    rates = {"EM": "em", "F1": "f1", "Acc": "acc", "coverage": "coverage"}
    scores: dict[str, Any] = {
        name: round(100 * fmean(getattr(a, field) for a in answered), 1) for name, field in rates.items()
    }
    for suffix, field_name in (("", "coverage"), (" precision", "precision")):
        for name, threshold in (("Acc@.25", 0.25), ("Acc@.5", 0.5)):
            reached = [getattr(a, field_name) >= threshold for a in answered]
            scores[name + suffix] = round(100 * fmean(reached), 1)
    for name in ("calls", "retrievals", "tokens"):
        scores[name] = round(fmean(getattr(a, name) for a in answered), 2)
    scores["F1 rule"] = "hotpot" if any(a.closed for a in answered) else "words"
    timed = [a.seconds for a in answered if a.asked and a.tokens]  # what was answered before took no time
    if timed:
        scores["TPQ"] = round(fmean(timed), 3)
    for name in ("findings", "perspectives"):
        if known := [share for a in answered if (share := getattr(a, name)) is not None]:
            scores[name] = round(100 * fmean(known), 1)
    intervals = {name: mean_interval([getattr(a, rates[name]) for a in answered]).as_json() for name in ("EM", "F1")}
    scores["interval"] = {name: [interval["low"], interval["high"]] for name, interval in intervals.items()}
    types = sorted({a.question.type for a in answered})
    for name in ("EM", "F1", "Acc"):
        means = {t: fmean(getattr(a, rates[name]) for a in answered if a.question.type == t) for t in types}
        scores[f"{name} by type"] = {t: round(100 * value, 1) for t, value in means.items()}
    own = {name: fmean(a.task[name] for a in answered if name in a.task) for a in answered for name in a.task}
    scores |= {name: round(100 * value, 1) for name, value in with_dr(own).items()}
    if failed := sum(a.unread for a in answered):
        scores["unread"] = failed
    return scores | _context_recall(answered)


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
    task, unread = await task_scores(text, question, config.model or index.language_model)

    def best(metric: Callable[[str, str], float]) -> float:
        return best_over_golds(metric, text, question.answers)

    return AnsweredQuestion(
        question,
        text,
        stop=answer.stop,
        em=best(exact_match),
        f1=best(f1_hotpot if closed else f1),
        acc=best(acc),
        coverage=best(word_coverage),
        precision=best(word_precision),
        calls=answer.usage.calls,
        retrievals=answer.usage.retrievals,
        perspectives=perspective_coverage(text, question.metadata.get("perspectives")),
        tokens=used + answer.usage.stored_tokens,
        asked=used > 0,
        closed=closed,
        documents=tuple(provenance_ranking(answer.hits)),
        seconds=seconds,
        findings=_findings(answer),
        task=task,
        unread=unread,
    )


def _findings(answer: Answer) -> float | None:
    """Share of the citations that name a report."""
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


class AnswerFile:
    """Answers by the digest of everything that was asked; an `AnswerStore` for `CachedModel`.

    A line is `{"key", "answer", "input_tokens", "output_tokens"}`; no prompt and no passage is written. Every answer is
    on disk before the next question is asked. A last line that was cut off is asked for again. The first answer makes
    the file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._answers: dict[str, tuple[str, int, int]] = {}
        self._file: IO[str] | None = None
        try:
            self._whole = self._read()
            if self._path.exists():
                self._open()
            elif not os.access(self._path.absolute().parent, os.W_OK):
                raise PermissionError("its folder is missing or not writable")
        except OSError as error:
            reason = error.strerror or error
            raise ConfigurationError(f"{path} cannot store answers ({reason}); name a file you may write.") from error

    def _open(self) -> IO[str]:
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
            if not self._whole:
                self._file.write("\n")
        return self._file

    def _read(self) -> bool:
        """Take over what is there; whether it ends with a whole line."""
        if not self._path.exists():
            return True
        # A run that was killed may have written half of a letter, which must not cost the lines before.
        text = self._path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                tokens = int(row.get("input_tokens", 0)), int(row.get("output_tokens", 0))
                self._answers[str(row["key"])] = str(row["answer"]), *tokens
            except (ValueError, KeyError, TypeError) as error:
                if line.startswith('{"key"'):  # a run that was killed wrote half of it
                    continue
                message = f"{self._path}:{number} is not a recorded answer; name another file."
                raise ConfigurationError(message) from error
        return not text or text.endswith("\n")

    def answer(self, key: str) -> str | None:
        """A recorded answer."""
        return self._answers[key][0] if key in self._answers else None

    def tokens(self, key: str) -> tuple[int, int]:
        """Tokens of the prompt and of a recorded answer."""
        return self._answers.get(key, ("", 0, 0))[1:]

    def put_answer(
        self,
        key: str,
        answer: str,
        *,
        sources: Sequence[str] = (),  # noqa: ARG002 - part of the protocol; questions have no passages to be purged by
        stage: str = "",  # noqa: ARG002 - as above
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Record an answer."""
        row = {"key": key, "answer": answer, "input_tokens": input_tokens, "output_tokens": output_tokens}
        with self._lock:
            self._answers[key] = answer, input_tokens, output_tokens
            file = self._open()
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
