"""`EvalRow`: what the evaluation of one recipe on one data set found, question by question."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arguments import similar_names
from sire_core.errors import ConfigurationError
from sire_core.evaluate.retrieval import (
    Gold,
    all_at_k,
    first_met,
    graded_ndcg_at_k,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank,
)
from sire_core.text.pluralize import count, shorten
from sire_core.types import Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.evaluate.answer_metrics import AnsweredQuestion
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index
    from sire_core.questions import Question
    from sire_core.search.view import PoolView

Needs = tuple[frozenset[str], ...]
"""For every need of a question the ids of the passages that meet it; an empty set where no passage does."""

MEASURES = (
    "R@K, `R@K prov` (units count as all that they were made from), `R@K literal`, nDCG@K, all@K, MRR, "
    "R@budget, answer@budget, tokens@N and context@N (within budgets of tokens), or of answers EM, F1 and Acc"
)
"""Measures of a question, in words."""
ANSWER_RATES = ("EM", "F1", "Acc")
_MEASURE = re.compile(
    r"(R|nDCG|all|tokens|context)@(\d{1,6})(?: (prov|literal))?|(MRR|R@budget|answer@budget|EM|F1|Acc)"
)
BASELINES = ("bm25", "dense", "hybrid")  # Rankers of the recipe `flat` that every recipe is compared with
OF_PIECES = ", pieces"  # Ending of the name of a baseline that ranks small pieces of passages
_ROLE = re.compile(r":[\w.+-]{1,40}:(?=`)")
_TARGET = re.compile(r"<[^<>\s]{1,500}>|(?<=\])\([^()\s]{0,500}\)")
_MARKDOWN_MARKS = str.maketrans(dict.fromkeys("*_`#>|~\\[]", "") | dict.fromkeys(',;"', " "))
"""Marks that do not count, and those between the values of a row, which are bars where a table is read."""


def fold(text: str) -> str:
    """Return a text in small letters with single spaces, without the marks of Markdown and RST and targets of links."""
    return " ".join(_TARGET.sub("", _ROLE.sub("", text)).translate(_MARKDOWN_MARKS).casefold().split())


def passage_names(passage: Unit, documents: Sequence[str]) -> set[str]:
    """Return what gold may call a passage: its ids, those of its documents, and the `source` of its metadata."""
    source = passage.metadata.get("source")
    sources = {source} if isinstance(source, str) else set()
    return {passage.id, *passage.source_ids, *documents, *sources} - {""}


def needs_of_copies(question: Question, copies: Mapping[str, frozenset[str]]) -> Needs:
    """For every gold document the ids that count as it; empty where none has a copy, or documents are graded."""
    if question.grades or not copies.keys() & question.supporting:
        return ()
    return tuple(copies.get(name, frozenset({name})) for name in dict.fromkeys(question.supporting))


async def passages_by_need(index: Index, dataset: DataSet) -> dict[str, Needs]:
    """Find the passages that meet the needs of the questions whose gold is finer than documents."""
    document_ids = {document.id for document in dataset.documents}
    finer = (q for q in dataset.questions if q.needs or not (q.grades or document_ids.issuperset(q.supporting)))
    alternatives = {question.id: _alternatives(question) for question in finer}
    if not alternatives:
        return {}
    quotes: dict[str, set[str]] = {}
    for name, quote in (pair for needs in alternatives.values() for need in needs for pair in need):
        quotes.setdefault(name, set()).add(quote)
    met: dict[tuple[str, str], set[str]] = {}
    for passage, documents in _passages((await index.asnapshot()).view):
        names = passage_names(passage, documents) & quotes.keys()
        text = fold(passage.text) if names else ""
        for name in names:
            for quote in quotes[name]:
                if quote in text:
                    met.setdefault((name, quote), set()).add(passage.id)
    if not met:
        raise ConfigurationError(_why_unmet(dataset, document_ids))
    return {
        question: tuple(frozenset().union(*(met.get(pair, ()) for pair in need)) for need in needs)
        for question, needs in alternatives.items()
    }


def _why_unmet(dataset: DataSet, document_ids: Collection[str]) -> str:
    """Why no passage meets the first need of a data set, and what to do about it."""
    first = next(question for question in dataset.questions if question.needs or question.supporting)
    name, quote = (first.needs[0][0].doc, first.needs[0][0].text) if first.needs else (first.supporting[0], "")
    wanted = f"{shorten(quote, 60)!r} in {name!r}" if quote else repr(name)
    problem = f"No passage of the index meets a need of a question, such as {wanted}."
    if name in document_ids and quote:
        return f"{problem} No passage of {name!r} holds the quote: copy it from `sire documents INDEX ID`."
    near = similar_names(name, sorted(document_ids)) or sorted(document_ids)[:2]
    ids = "The 'doc' of a need and ids in 'supporting' must be ids of documents or passages"
    return f"{problem} {ids}, such as {', '.join(map(repr, near))}."


def _alternatives(question: Question) -> list[list[tuple[str, str]]]:
    """For every need the pairs of a name and a folded quote that meet it; an id in `supporting` has an empty quote."""
    if question.needs:
        return [[(quote.doc, fold(quote.text)) for quote in need] for need in question.needs]
    return [[(name, "")] for name in dict.fromkeys(question.supporting)]


def _passages(view: PoolView) -> Iterator[tuple[Unit, Sequence[str]]]:
    """The passages of an index, each with the ids of its documents."""
    if UnitKind.CHUNK.value not in view.kind_names:
        return
    for position in np.flatnonzero(view.kinds == view.kind_names.index(UnitKind.CHUNK.value)).tolist():
        yield view.pool.unit(position)


def corpus_size(documents: int, passages: int) -> str:
    """Size of a corpus in words: documents that are one passage each are called passages."""
    if passages and documents in (0, passages):
        return count(passages, "passage")
    return count(documents, "document") + (f" in {count(passages, 'passage')}" if passages else "")


@dataclass(frozen=True, slots=True)
class Setup:
    """Description of the index under test; copied into the row."""

    recipe: str  # Name of the recipe, as the reader should see it (`flat bm25`)
    embedder: str = ""  # Fingerprint or name of the embedder
    extraction: str = ""  # Where the records came from: none, the LLM-free extractor, a model, a recording
    pool: int = 0  # Number of units
    build_s: float = 0.0  # Wall seconds of the build
    # Table of a paper and the figures that it prints for this row, if it is one
    paper: Mapping[str, Any] = field(default_factory=dict)
    # Figures of the trees of entities, where there are any; see `describe_trees`
    perspectives: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # Settings of the recipe that were asked for
    family: str = ""  # Name of the recipe in the registry, where `recipe` is a row's label
    # Requests to the model at indexing, by stage, beyond what earlier rows had asked; under `search` those of one
    # search (MS-RAG table 15)
    calls: Mapping[str, int] = field(default_factory=dict)
    storage: Mapping[str, int] = field(default_factory=dict)  # Bytes of vectors and texts by kind of unit (table 16)
    note: str = ""  # What people should know of how it was made; empty if nothing
    passages: int = 0  # Passages that the index holds; 0 where they are those of the data set

    def with_note(self, note: str) -> Setup:
        """The setup with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))))


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """Results of one question."""

    id: str  # The question's id
    type: str  # The question's type, or empty
    gold: tuple[str, ...]  # Gold document ids, of quotes the document of each need; empty when only an answer is known
    # The ranking by provenance: documents of the hits in order, each once. Where gold is finer than documents, this and
    # the other rankings hold ids of passages.
    documents: tuple[str, ...]
    brought_by: tuple[str, ...]  # Kind of the first unit that brought each of `documents`
    literal: tuple[str | None, ...]  # The ranking by `literal_ranking`; None marks the slot of a synthetic unit
    kinds: tuple[str, ...]  # Kind of every hit, in rank order
    seconds: float  # Wall time of the search, the embedding of the question included
    recall_at_budget: float | None = None  # 0..1, or None without gold or without a budget
    answer_in_context: float | None = None  # 0 or 1, or None when the question is left out
    # The document of every passage that a search returns (`returns="passages"`); None for a further passage of a
    # document that is listed already
    passages: tuple[str | None, ...] = ()
    hops: int = 0  # Number of documents that the question combines, or 0
    # Where gold is finer than documents: for each need the passages that meet it; see `passages_by_need`. Where gold
    # documents have copies: for each the ids that count as it
    needs: Needs = ()
    sources: tuple[str, ...] = ()  # The document of every passage that a search returns, in rank order
    several: bool = False  # Whether no document meets all needs by itself
    grades: tuple[tuple[str, int], ...] = ()  # Relevance of the judged documents, where a set has grades
    scores: tuple[float | None, ...] = ()  # Score of the hit that brought each of `passages`
    # By budget of tokens the share of the needs that is delivered, 0..1, or None where nothing can be: by whole
    # passages in rank order, and by the context chosen from the first ones
    within: Mapping[int, float | None] = field(default_factory=dict)
    context_within: Mapping[int, float | None] = field(default_factory=dict)

    @property
    def wanted(self) -> Gold:
        """The needs that rankings are compared with."""
        return self.needs or self.gold

    def recall_passages(self, k: int) -> float:
        """R@k of the passages that a search returns, 0..1."""
        return recall_at_k(self.passages, self.wanted, k)

    def value(self, measure: str) -> float | None:
        """A measure of `MEASURES`, 0..1; None where the question has no gold for it.

        Raises:
            ConfigurationError: There is no such measure.
        """
        match = _MEASURE.fullmatch(measure)
        if match is None:
            raise ConfigurationError(f"There is no measure {measure!r}: it is {MEASURES}.")
        name, k, ranking = match[1], int(match[2] or 0), self.passages
        if name in ("tokens", "context"):
            return (self.within if name == "tokens" else self.context_within).get(k)
        if match[4] in ("R@budget", "answer@budget"):
            return self.recall_at_budget if match[4] == "R@budget" else self.answer_in_context
        if not self.wanted or match[4] in ANSWER_RATES:  # rates of answers are of the row
            return None
        if match[3]:
            ranking = self.documents if match[3] == "prov" else self.literal
        if name is None:
            return reciprocal_rank(ranking, self.wanted)
        if name == "nDCG" and self.grades:
            return graded_ndcg_at_k(ranking, dict(self.grades), k)
        return {"R": recall_at_k, "nDCG": ndcg_at_k, "all": all_at_k}[name](ranking, self.wanted, k)

    def as_json(self, ks: Sequence[int]) -> dict[str, Any]:
        """The question in `sire eval --json`: recall of passages 0..100, and the first rank of a gold passage or 0."""
        first = reciprocal_rank(self.passages, self.wanted) if self.wanted else 0.0
        return {
            "id": self.id,
            **({"type": self.type} if self.type else {}),
            "recall": {str(k): _rounded(100 * self.recall_passages(k)) if self.wanted else None for k in ks},
            "first_rank": round(1 / first) if first else 0,
            "found": [name for name in self.passages[: max(ks)] if name is not None],
            "scores": [_rounded(score, 4) for score in self.scores[: max(ks)] if score is not None],
            "documents": list(self.sources[: max(ks)]),
        }

    @property
    def found(self) -> tuple[Any, ...]:
        """Everything that was found, without the time that it took."""
        return (self.id, self.documents, self.passages, self.literal, self.kinds)


@dataclass(frozen=True, slots=True)
class EvalRow:
    """Results of one recipe on one data set. The means are unrounded, 0..100; None when no question counts.

    Of repeated builds they are means over all builds; `results` are those of the first.

    Attributes:
        setup: How the index was made.
        dataset: Name of the data set.
        passages: Passages in the corpus: its documents, as they were cut.
        ks: Cut-offs.
        budget: Tokens of the budget metrics, or None.
        results: Every question, in the order of the data set.
        answers: Mean scores of a model's answers (`answer_scores`); empty when none were asked for.
        evidence_match: See `evidence_match`; None for recipes without chains.
        returns: What the searches returned; see `Index.search`. `recall_passages`, `all_at`, `mrr` and `ndcg` are of
            passages in any case.
        interval: How R@k differs from the baseline's; see `with_intervals`. None for the baseline.
        builds: The rows of repeated builds with other seeds, this one first; empty for a single one.
        answered: The answers themselves.
        analysis: What the modes `missing` and `judge` found, by name.
        same_as: The recipe of an earlier row that found exactly the same; see `mark_same`.
        documents: Documents in the corpus; 0 where only passages are known.
    """

    setup: Setup
    dataset: str
    passages: int
    ks: tuple[int, ...]
    budget: int | None
    results: tuple[QuestionResult, ...] = field(repr=False)
    answers: Mapping[str, Any] = field(default_factory=dict)
    evidence_match: float | None = None
    returns: str = "units"
    interval: Mapping[str, Any] | None = None
    builds: tuple[EvalRow, ...] = field(default=(), repr=False)
    same_as: str = ""
    answered: tuple[AnsweredQuestion, ...] = field(default=(), repr=False)
    analysis: Mapping[str, Any] = field(default_factory=dict)
    documents: int = 0

    @property
    def label(self) -> str:
        """The recipe and its preset, then the other settings that were asked for; of a paper's row its own name."""
        settings = {} if self.setup.family else dict(self.setup.settings)
        preset = f", {settings.pop('preset')}" if "preset" in settings else ""
        return self.setup.recipe + preset + "".join(f" {key}={value}" for key, value in settings.items())

    @property
    def with_gold(self) -> list[QuestionResult]:
        """Questions with gold passages: those that recall is a mean over."""
        return [result for result in self.results if result.wanted]

    @property
    def unmet(self) -> int:
        """Needs that no passage of the index meets, because their text was not read, or was cut in two."""
        return sum(not passages for result in self.results for passages in result.needs)

    @property
    def repeats(self) -> Mapping[str, Any]:
        """Mean and spread of R@k, and of EM, F1 and Acc, over repeated builds; empty for a single one."""
        if not self.builds:
            return {}
        recall = {str(k): spread(row.recall_passages(k) for row in self.builds) for k in self.ks}
        names = (name for name in ("EM", "F1", "Acc") if name in self.answers)
        answers = {name: spread(row.answers.get(name) for row in self.builds) for name in names}
        return {
            "builds": len(self.builds),
            "recall_passages": {k: values for k, values in recall.items() if values},
            **answers,
        }

    def per_question(self, measure: str) -> dict[str, float]:
        """Values of a measure, 0 to 1, by id of the question; of repeated builds their means.

        Args:
            measure: One of `MEASURES`, or another rate of answers. Questions without it are left out.

        Raises:
            ConfigurationError: There is no such measure.
        """
        values: dict[str, list[float]] = {}
        for row in self.builds or (self,):
            rates = {answer.question.id: answer.rates[measure] for answer in row.answered if measure in answer.rates}
            for name, value in rates.items() or ((result.id, result.value(measure)) for result in row.results):
                if value is not None:
                    values.setdefault(name, []).append(value)
        return {name: fmean(numbers) for name, numbers in values.items()}

    def mean(self, measure: str) -> float | None:
        """Mean of a measure, 0 to 100; see `per_question`."""
        return _percent(self.per_question(measure).values())

    def recall_passages(self, k: int) -> float | None:
        """Mean R@k of the passages that a search returns: what users of the adapters see."""
        return self.mean(f"R@{k}")

    @property
    def budgets(self) -> tuple[int, ...]:
        """Tokens within which recall of required evidence was measured."""
        return tuple(self.results[0].within) if self.results else ()

    def query_p50_ms(self) -> float:
        """Median wall milliseconds of a search, the embedding of the question included."""
        return 1000.0 * median(result.seconds for result in self.results)

    def by_type(self, k: int = 5) -> dict[str, float]:
        """Mean R@k of the passages for every question type, types in alphabetical order."""
        return self._grouped(lambda result: result.type, k)

    def by_hops(self, k: int = 5) -> dict[str, float]:
        """Mean R@k of the passages by the number of documents that a question combines ("0": unknown)."""
        return self._grouped(lambda result: str(result.hops), k)

    def by_documents(self, k: int = 5) -> dict[str, float]:
        """Mean R@k of the passages of questions that one document answers ("one"), and of the others ("several")."""
        return self._grouped(lambda result: "several" if result.several else "one", k)

    def by_kind(self) -> dict[str, dict[str, float]]:
        """Contribution of each kind of unit, kinds in alphabetical order."""
        names = sorted({kind for result in self.results for kind in result.kinds})
        return {
            name: {
                **{f"hits_{k}": fmean(result.kinds[:k].count(name) for result in self.results) for k in (5, 20)},
                **{f"gold_{k}": self._mean(_credit_of(name, k)) or 0.0 for k in (5, 20)},
            }
            for name in names
        }

    def as_json(self) -> dict[str, Any]:
        """The row as `sire eval --json` writes it: rates 0..100, rounded to one decimal."""
        optional = {name: getattr(self, name) for name in ("answers", "analysis", "repeats", "same_as")}
        of_setup = ("paper", "calls", "storage", "perspectives", "settings", "note")
        optional |= {name: getattr(self.setup, name) for name in of_setup}

        def rates(measure: str, ks: Iterable[int]) -> dict[str, float | None]:
            return {str(k): _rounded(self.mean(measure.format(k))) for k in ks}

        return {
            "recipe": self.setup.recipe,
            "embedder": self.setup.embedder,
            "extraction": self.setup.extraction,
            "questions": len(self.results),
            "passages": self.passages,
            "pool": self.setup.pool,
            "recall": rates("R@{} prov", self.ks),
            "recall_passages": rates("R@{}", self.ks),
            "recall_literal": rates("R@{} literal", self.ks),
            "returns": self.returns,
            "interval": None if self.interval is None else dict(self.interval),
            "all": rates("all@{}", self.ks),
            "mrr": _rounded(self.mean("MRR")),
            "recall_at_budget": _rounded(self.mean("R@budget")),
            "answer_in_context": _rounded(self.mean("answer@budget")),
            "build_s": round(self.setup.build_s, 1),
            "query_p50_ms": round(self.query_p50_ms(), 2),
            "dataset": self.dataset,
            "budget": self.budget,
            "ndcg": rates("nDCG@{}", self.ks),
            "documents": self.documents,
            **{name: value for name, value in optional.items() if value},
            **({} if self.evidence_match is None else {"evidence_match": round(self.evidence_match, 1)}),
            **{
                name: {group: _rounded(value) for group, value in getattr(self, name)().items()}
                for name in ("by_hops", "by_type", "by_documents")
            },
            **({"recall_within": rates("tokens@{}", self.budgets)} if self.budgets else {}),
            **({"context_within": rates("context@{}", self.budgets)} if self.budgets else {}),
            **({"unmet": self.unmet} if self.unmet else {}),
            "by_kind": {
                name: {key: round(value, 2) for key, value in counts.items()} for name, counts in self.by_kind().items()
            },
            "results": [result.as_json(self.ks) for result in self.results],
        }

    def _grouped(self, group: Callable[[QuestionResult], str], k: int) -> dict[str, float]:
        groups: dict[str, list[float]] = {}
        for result in self.with_gold:
            groups.setdefault(group(result), []).append(result.recall_passages(k))
        return {name: 100.0 * fmean(groups[name]) for name in sorted(groups)}

    def _mean(self, metric: Callable[[QuestionResult], float]) -> float | None:
        return _percent(metric(result) for row in self.builds or (self,) for result in row.with_gold)


def spread(values: Iterable[float | None]) -> dict[str, float]:
    """Mean and sample standard deviation (0 of a single value); empty when no value is known."""
    measured = [value for value in values if value is not None]
    if not measured:
        return {}
    sd = stdev(measured) if len(measured) > 1 else 0.0
    figures = {"mean": fmean(measured), "sd": sd, "min": min(measured), "max": max(measured)}
    return {name: round(value, 2) for name, value in figures.items()}


def _credit_of(kind: str, k: int) -> Callable[[QuestionResult], float]:
    def credit(result: QuestionResult) -> float:
        counts = first_met(result.documents[:k], result.wanted)
        return sum(n for n, by in zip(counts, result.brought_by[:k], strict=True) if by == kind) / len(result.wanted)

    return credit


def _percent(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return 100.0 * fmean(measured) if measured else None


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)
