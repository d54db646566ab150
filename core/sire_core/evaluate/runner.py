"""`evaluate`: asks an index every question of a data set and measures what comes back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.evaluate.datasets import check_measurable
from sire_core.evaluate.delivered import recalls_within
from sire_core.evaluate.retrieval import BudgetedContext, BudgetScorer, literal_ranking, passage_ranking
from sire_core.evaluate.rows import (
    EvalRow,
    Needs,
    QuestionResult,
    Setup,
    fold,
    needs_of_copies,
    passage_names,
    passages_by_need,
)
from sire_core.progress import ProgressLike, progress_of
from sire_core.search.search_options import check_returns
from sire_core.types import Hit, UnitKind

if TYPE_CHECKING:
    from sire_core.evaluate.answer_eval import AnswerConfig
    from sire_core.evaluate.datasets import DataSet
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.questions import Question


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """Settings of an evaluation.

    Attributes:
        ks: Cut-offs of recall, recall_literal and all.
        budget: Tokens of context for the budget metrics; None leaves them out.
        limit: Ask only a seeded sample of this many questions, in the data set's order.
        seed: Seed of the sample.
        depth: Hits per question, the largest of `ks` unless given. What is measured is then what a search with that k
            returns; a pool whose first 20 hits stand on fewer than 20 documents has a shorter ranking by provenance.
        answer: How a language model answers the questions, too; None leaves that out.
        returns: What the timed search returns, which the metrics by provenance, the literal ones and those of a budget
            are of; see `Index.search`. The metrics of passages come from a second search where that is "units".
        missing: In so many passages a model counts the relations that the graph lacks; see `missing_triples`.
        budgets: Tokens within which recall of required evidence is measured, of whole passages and of contexts; see
            `delivered`.
        model: Counts these relations, and is asked by searches that ask a model; None takes the index's own.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    ks: tuple[int, ...] = (2, 5, 10, 20)
    budget: int | None = 1500
    limit: int | None = None
    seed: int = 0
    depth: int | None = None
    answer: AnswerConfig | None = None
    returns: str = "units"
    missing: int = 0
    budgets: tuple[int, ...] = ()
    model: LanguageModel | None = None

    def __post_init__(self) -> None:
        check_returns(self.returns)
        if not self.ks or min(self.ks) < 1:
            raise ConfigurationError(f"ks needs one or more cut-offs of at least 1, not {self.ks!r}.")
        if any(budget < 1 for budget in self.budgets):
            raise ConfigurationError(f"budgets are numbers of tokens of at least 1, not {self.budgets!r}.")
        for name in ("budget", "limit", "depth"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} must be at least 1 or None, not {value!r}.")

    @property
    def hits(self) -> int:
        """Hits to ask for per question."""
        return self.depth or max(self.ks)


async def evaluate(
    index: Index,
    dataset: DataSet,
    config: EvalConfig | None = None,
    *,
    setup: Setup | None = None,
    progress: ProgressLike = None,
) -> EvalRow:
    """Ask every question and measure the hits.

    A document with the text of a gold one counts as it, but not where documents are graded: there all rankings are of
    documents, each once at its best rank, and measures are those of trec_eval.
    """
    config = config or EvalConfig()
    check_measurable(dataset.questions, dataset.name)
    questions = dataset.sample(config.limit, config.seed).measurable
    say = progress_of(progress)
    needs = await passages_by_need(index, replace(dataset, questions=questions))
    scorer = BudgetScorer(config.budget, dataset.texts) if config.budget else None
    copies = dataset.copies
    owners = {passage.id: document.id for document in dataset.documents for passage in document.passages}
    results = []
    for done, question in enumerate(questions, start=1):
        result = await _ask(index, question, config, scorer, needs.get(question.id, ()))
        if not result.needs:
            result = replace(result, needs=needs_of_copies(question, copies))
        results.append(replace(result, several=_takes_several(question, owners, copies)))
        say("questions", done, len(questions))
    return EvalRow(
        setup=setup or Setup(recipe=type(index).__name__),
        dataset=dataset.name,
        passages=setup.passages if setup is not None and setup.passages else dataset.passages,
        documents=len(dataset.documents),
        ks=tuple(sorted(set(config.ks))),
        budget=config.budget,
        returns=config.returns,
        results=tuple(results),
    )


def scope_of(question: Question) -> Mapping[str, Any] | None:
    """The filter that a question brings along: one that is asked about a single document searches that alone."""
    filter = question.metadata.get("filter")
    return filter if isinstance(filter, dict) else None


async def _search(index: Index, question: Question, k: int, returns: str) -> Sequence[Hit]:
    filter = scope_of(question)
    scope: dict[str, Any] = {} if filter is None else {"filter": filter}
    return await index.asearch(question.question, k, returns=returns, **scope)


async def _ask(
    index: Index, question: Question, config: EvalConfig, scorer: BudgetScorer | None, needs: Needs
) -> QuestionResult:
    def ids(hit: Hit) -> Sequence[str]:
        return hit.unit.chunk_ids if needs else hit.doc_ids

    start = time.perf_counter()
    hits = await _search(index, question, config.hits, config.returns)
    seconds = time.perf_counter() - start
    passages = hits
    if config.returns != "passages":
        passages = await _search(index, question, config.hits, "passages")
    if question.grades:
        passages = await _best_passages(index, question, passages, config.hits)
    brought: dict[str, str] = {}
    for hit in hits:
        for name in ids(hit):
            brought.setdefault(name, str(hit.unit.kind))
    scores: dict[str, float] = {}
    for hit in passages:
        for name in ids(hit):
            scores.setdefault(name, hit.score)
    ranked = tuple(passage_ranking(passages, ids))[: config.hits]
    budget: dict[str, Any] = {}
    if scorer is not None:
        read, context = await _fill(index, question, hits, config, scorer)
        budget["answer_in_context"] = scorer.answer(context, question.answers)
        if question.has_gold:
            budget["recall_at_budget"] = _recall_at_budget(question, read, context, scorer)
    whole, chosen = (
        await recalls_within(index, question, config.budgets, scope_of(question)) if config.budgets else ({}, {})
    )
    return QuestionResult(
        id=question.id,
        type=question.type,
        gold=tuple(need[0].doc for need in question.needs) or tuple(dict.fromkeys(question.supporting)),
        documents=tuple(brought),
        brought_by=tuple(brought.values()),
        literal=tuple(literal_ranking(hits, ids)),
        kinds=tuple(str(hit.unit.kind) for hit in hits),
        seconds=seconds,
        passages=ranked,
        grades=() if needs else question.grades,
        scores=tuple(None if name is None else scores[name] for name in ranked),
        hops=question.hops or len(question.needs),
        needs=needs,
        sources=tuple(hit.doc_ids[0] for hit in passages),
        within=whole,
        context_within=chosen,
        **budget,
    )


async def _best_passages(index: Index, question: Question, hits: Sequence[Hit], documents: int) -> list[Hit]:
    """The best passage of each of the first documents; searches further until there are so many, or no more hits."""
    k = documents
    while len(best := {name: hit for hit in reversed(hits) for name in hit.doc_ids}) < documents and len(hits) >= k:
        k *= 2
        hits = await _search(index, question, k, "passages")
    return [hit for hit in hits if any(best[name] is hit for name in hit.doc_ids)]


def _takes_several(question: Question, owners: Mapping[str, str], copies: Mapping[str, frozenset[str]]) -> bool:
    """True if no document meets all needs of a question by itself."""
    needs = [{quote.doc for quote in need} for need in question.needs] or [{name} for name in question.supporting]
    documents = [{owners.get(name, name) for name in need} for need in needs]
    same_documents = [{same for name in need for same in copies.get(name, {name})} for need in documents]
    return bool(same_documents) and not set.intersection(*same_documents)


def _recall_at_budget(question: Question, hits: Sequence[Hit], context: BudgetedContext, scorer: BudgetScorer) -> float:
    """The share of the needs whose quote is read, or of the gold ids of which a whole passage is read."""
    read = [(passage_names(hit.unit, hit.doc_ids), text, hit) for hit, text in zip(hits, context.parts, strict=False)]
    if not question.needs:
        whole = [
            names for names, text, hit in read if hit.unit.kind is UnitKind.CHUNK and len(text) == len(hit.unit.text)
        ]
        return scorer.recall(context, question.supporting, set().union(*whole))
    texts = [(names, fold(text)) for names, text, _ in read]
    return fmean(
        any(quote.doc in names and fold(quote.text) in text for quote in need for names, text in texts)
        for need in question.needs
    )


async def _fill(
    index: Index, question: Question, hits: Sequence[Hit], config: EvalConfig, scorer: BudgetScorer
) -> tuple[Sequence[Hit], BudgetedContext]:
    """Context of the first hits, asking for more hits until the budget is full or the pool is exhausted."""
    k = config.hits
    context = scorer.context(hit.unit.text for hit in hits)
    while context.tokens < scorer.budget and len(hits) >= k:
        # A tenth more than the mean length suggests, and at least one and a half times as many: two rounds at most
        # in practice, and an end in any case.
        k = max(ceil(1.1 * k * scorer.budget / max(context.tokens, 1)), ceil(1.5 * k))
        hits = await _search(index, question, k, config.returns)
        context = scorer.context(hit.unit.text for hit in hits)
    return hits, context
