"""What a build will ask of a model, before it asks: exact for extraction, a range for summaries (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.corpus.changes import plan_build
from sire_core.corpus.units import chunks_after
from sire_core.extraction.stage import missing_chunks

if TYPE_CHECKING:
    from sire_core.models.prices import CostRange, Price
    from sire_core.models.usage import StageUsage
    from sire_core.pipeline.workers import Workers
    from sire_core.storage.index_files import IndexFiles
    from sire_core.types import Document

__all__ = ["Estimate", "estimate_build"]

_SAMPLE = 1000
"""Documents of the trial build that the range of summaries is drawn from; larger corpora are scaled up from it."""

_SPREAD = {"sim_summary": (0.6, 1.7), "rel_summary": (0.3, 3.0)}
"""How far the number of summaries of a model's facts may be from that of the trial's. A model names more or fewer
entities than the rules do, so aggregates vary far more than passages."""

_ORGANIZING = (0.3, 3.0)
"""The same of all else that organizers ask about entities."""
_ANSWER = (20, 600)
"""Fewest and most tokens of such an answer."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a build would cost now.

    Attributes:
        passages: Passages of the corpus after the build.
        stored: Distinct passages whose extraction is stored already and costs nothing.
        extraction: Calls, tokens and price of extraction.
        summaries: The same of summaries.
    """

    passages: int
    stored: int
    extraction: CostRange
    summaries: CostRange

    @property
    def total(self) -> CostRange:
        """Both together."""
        return self.extraction + self.summaries

    def describe(self) -> str:
        """A few lines for people."""
        lines = [f"{count(self.passages, 'passage')}, {self.stored:,} of them extracted already"]
        for name, cost in (("extraction", self.extraction), ("summaries", self.summaries), ("together", self.total)):
            lines.append(
                f"{name:>10}: {_range(cost.calls, 'call')}, {_range(cost.input_tokens, 'input token')}, "
                f"{_range(cost.output_tokens, 'output token')}, {_price(cost)}"
            )
        return "\n".join(lines)


async def estimate_build(
    library: IndexFiles | None, documents: Sequence[Document], workers: Workers, price: Price | None
) -> Estimate:
    """Estimate what `build(documents)` would ask of the model. Asks it nothing.

    Args:
        library: The index, whose stored records are deducted; None when there is none yet.
        documents: What would be built.
        workers: What the index is configured with.
        price: Price of the model; None looks it up in the packaged table.
    """
    from sire_core.extraction.model import ModelExtractor
    from sire_core.models.prices import CostRange, estimate_extraction, load_prices, price_of

    stored = library.store.documents() if library else {}
    change = plan_build(stored, documents, workers.chunker)
    old = library.store.chunks() if library else []
    chunks = chunks_after(old, change, stored)
    if workers.language_model is None:
        return Estimate(len(chunks), 0, CostRange(price=(0.0, 0.0)), CostRange(price=(0.0, 0.0)))
    price = price or price_of(workers.language_model.fingerprint, load_prices())
    extraction, known = CostRange().priced(price), set[str]()
    if workers.recipe.needs_records and workers.extractor is None:
        extractor = ModelExtractor(workers.language_model, native=workers.native)
        known = library.calls.known(extractor.fingerprint, [chunk.hash for chunk in chunks]) if library else known
        extraction = estimate_extraction(missing_chunks(chunks, known), extractor, price=price)
    summaries = await _summaries(documents, workers, price)
    texts = {chunk.hash for chunk in old}
    new = sum(chunk.hash not in texts for chunk in chunks) / max(1, len(chunks))
    summaries = CostRange(
        _at_best(summaries.calls, new), _at_best(summaries.input_tokens, new), _at_best(summaries.output_tokens, new)
    )
    return Estimate(len(chunks), len(known), extraction, summaries.priced(price))


async def _summaries(documents: Sequence[Document], workers: Workers, price: Price | None) -> CostRange:
    """Build a sample in memory with a model that costs nothing, and count what a real one would have been asked."""
    from sire_core.algorithms.text import count_tokens
    from sire_core.extraction.rules import RulesExtractor
    from sire_core.models.lexical_embedder import LexicalEmbedder
    from sire_core.models.prices import CostRange, estimate_summaries
    from sire_core.models.rehearsal import RehearsalModel
    from sire_core.pipeline.apply import apply_plan
    from sire_core.storage.index_files import IndexFiles

    organizers = [organizer for organizer in workers.recipe.organizers if organizer.needs_summaries]
    if not organizers or not documents:
        return CostRange().priced(price)
    step = max(1, -(-len(documents) // _SAMPLE))
    sample = documents[::step]
    trial = IndexFiles(None)
    try:
        plan = partial(plan_build, given=sample, chunker=workers.chunker)
        model, rules = RehearsalModel(), RulesExtractor()
        rehearsing = replace(workers, language_model=model, extractor=rules, embedder=LexicalEmbedder(), limits=None)
        report = await apply_plan(trial, plan, rehearsing)
        owners = trial.store.owners()
        units = {unit.id: unit for owner in owners for unit in trial.store.units(owner)}
        below: dict[str, int] = {}
        for edge in trial.store.edges(owners):
            if edge.kind == "child" and edge.source in units and edge.target in units:
                below[edge.source] = below.get(edge.source, 0) + count_tokens(units[edge.target].index_text)
    finally:
        trial.close()
    cost = CostRange().priced(price)
    for kind, (low, high) in _SPREAD.items():
        sizes = [tokens for found, tokens in below.items() if units[found].kind.value == kind]
        clusters = (round(low * step * len(sizes)), round(high * step * len(sizes)) + 2 * bool(sizes))
        tokens = (round(low * step * sum(sizes)), round(high * step * sum(sizes)))
        cost += estimate_summaries(clusters, tokens, max_tokens=_length(workers), price=price)
    return cost + _organizing(report.usage.get("organizing"), step, price)


def _at_best(pair: tuple[int, int], new: float) -> tuple[int, int]:
    """A range that begins at the share of the passages that are new: at best the summaries of all others are stored."""
    return int(pair[0] * new), pair[1]


def _organizing(asked: StageUsage | None, step: int, price: Price | None) -> CostRange:
    """What organizers ask beside summaries of trees: bridging facts, reports, summaries of entities."""
    from sire_core.models.prices import CostRange

    if asked is None or not asked.calls:
        return CostRange().priced(price)
    low, high = (spread * step for spread in _ORGANIZING)
    return CostRange(
        (round(low * asked.calls), round(high * asked.calls)),
        (round(low * asked.input_tokens), round(high * asked.input_tokens)),
        (round(low * asked.calls) * _ANSWER[0], round(high * asked.calls) * _ANSWER[1]),
    ).priced(price)


def _length(workers: Workers) -> int:
    return int(workers.recipe.config.get("summary_tokens", 200))


def _range(pair: tuple[int, int], noun: str) -> str:
    low, high = pair
    return count(high, noun) if low == high else f"{low:,} to {count(high, noun)}"


def _price(cost: CostRange) -> str:
    if cost.price is None:
        return "price unknown"
    low, high = cost.price
    return f"${low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"${low:.2f} to ${high:.2f}"
