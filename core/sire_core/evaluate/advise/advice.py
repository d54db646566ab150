"""`advise`: recipes measured on questions that a corpus itself gives, and one of them recommended."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.wording import count
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.advise.corpus_stats import ENGLISH, CorpusStats, corpus_stats
from sire_core.evaluate.advise.synthetic_questions import SyntheticQuestion, synthetic_questions
from sire_core.progress import ProgressLike, progress_of

if TYPE_CHECKING:
    from sire_core.protocols import Embedder, Progress
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Document

__all__ = ["CANDIDATES", "FEW", "POINTS", "Advice", "Candidate", "Measure", "aadvise", "advise", "recommend"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recipe that may be recommended.

    Attributes:
        recipe: Its name.
        calls: What a language model would be asked per 1,000 passages, if one builds it.
        settings: Names and values of settings that differ from its defaults.
        shown_only: It is measured and never recommended: questions made of a text's own words favour words alone more
            than people's questions do.
    """

    recipe: str
    calls: str
    settings: tuple[tuple[str, Any], ...] = ()
    shown_only: bool = False

    @property
    def name(self) -> str:
        """As `sire` takes it."""
        return " ".join([self.recipe, *(f"--set {key}={value}" for key, value in self.settings)])


POINTS = 2.0
"""Points of recall within which recipes count as equally good: questions of our own are not those of people."""

FEW = 20
"""Questions below which their shares say nothing."""

_RESAMPLED = 1000


@dataclass(frozen=True, slots=True)
class Measure:
    """What a recipe found.

    Attributes:
        candidate: The recipe.
        recall: Mean share of the two passages among the first k, 0 to 100.
        both: Share of the questions with both, 0 to 100.
        units: Size of its pool.
        build_s: CPU seconds of deriving what it needs; extraction and embedding count where they are needed first.
        query_ms: Milliseconds of a search, the mean.
        shares: Per question.
    """

    candidate: Candidate
    recall: float
    both: float
    units: int
    build_s: float
    query_ms: float
    shares: tuple[float, ...]


def recommend(measures: Sequence[Measure], seed: int = 0) -> Measure:
    """The first candidate that no other one beats by more than chance and a few points."""
    rng = np.random.default_rng(seed)
    eligible = [found for found in measures if not found.candidate.shown_only]
    if eligible and len(eligible[0].shares) < FEW:  # resamples of so few agree with one another, and say nothing
        return eligible[0]
    best = max(eligible, key=lambda m: m.recall)
    return next((found for found in eligible if not any(_beats(other, found, rng) for other in eligible)), best)


def _beats(one: Measure, other: Measure, rng: np.random.Generator) -> bool:
    """Whether one finds more on nearly all resamples of the questions, by points that count."""
    if one.recall - other.recall <= POINTS:
        return False
    differences = 100 * (np.array(one.shares) - np.array(other.shares))
    chosen = rng.integers(len(differences), size=(_RESAMPLED, len(differences)))
    return bool(np.quantile(differences[chosen].mean(axis=1), 0.025) > 0)


CANDIDATES = (
    Candidate("sire", "1,000"),
    Candidate("flat", "none", (("ranker", "hybrid"),)),
    Candidate("flat", "none", (("ranker", "bm25"),), shown_only=True),
    Candidate("flat", "none"),
    Candidate("pagerank", "1,000"),
    Candidate("iier", "1,000"),
    Candidate("indexrag", "1,600-1,900"),
    Candidate("sirerag", "1,200-1,300"),
    Candidate("raptor", "60-135"),
    Candidate("msrag", "1,000"),
)
"""In the order in which they are preferred when they find as much."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation with what it stands on.

    Attributes:
        look: The corpus, or the sample of it that was looked at.
        sampled: Documents of the sample; 0 when the whole corpus was looked at.
        questions: The questions that were asked.
        k: Hits that counted.
        measures: The best first.
        recommended: The recipe.
        reasons: In words.
    """

    look: CorpusStats
    sampled: int
    questions: tuple[SyntheticQuestion, ...]
    k: int
    measures: tuple[Measure, ...]
    recommended: Measure
    reasons: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        kinds = Counter(question.kind for question in self.questions)
        return {
            "recommended": self.recommended.candidate.recipe,
            "settings": dict(self.recommended.candidate.settings),
            "reasons": list(self.reasons),
            "passages": self.look.passages,
            "sampled_documents": self.sampled,
            "titled": round(self.look.titled, 3),
            "linked": round(self.look.linked, 3),
            "technical": round(self.look.technical, 3),
            "duplicates": round(self.look.duplicates, 3),
            "questions": dict(kinds),
            "k": self.k,
            "rows": [
                {
                    "recipe": found.candidate.recipe,
                    "settings": dict(found.candidate.settings),
                    "recall": round(found.recall, 1),
                    "both": round(found.both, 1),
                    "units": found.units,
                    "build_s": round(found.build_s, 1),
                    "query_ms": round(found.query_ms, 1),
                    "model_calls_per_1000": found.candidate.calls,
                }
                for found in self.measures
            ],
        }


def advise(documents: Sequence[Document], **settings: Any) -> Advice:
    """See `aadvise`."""
    from sire_core.models.sync import run_sync

    return run_sync(aadvise(documents, **settings))


async def aadvise(
    documents: Sequence[Document],
    *,
    embedder: Embedder | str | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    passages: int = 1500,
    n: int = 150,
    k: int = 5,
    seed: int = 0,
    progress: ProgressLike = None,
) -> Advice:
    """Find the recipe that fits a corpus, without a model, in a few minutes at most."""
    from sire_core.evaluate.advise.corpus_stats import sample

    if all(candidate.shown_only for candidate in candidates):
        raise ConfigurationError("Name a candidate that may be recommended; see CANDIDATES.")
    chosen, say = sample(documents, passages, seed), progress_of(progress)
    say("recipes", 0, len(candidates))
    with tempfile.TemporaryDirectory() as place, ExitStack() as opened:
        # The first candidate's graph says who names whom; what it costs is its own.
        built = {CANDIDATES[0]: await _built(opened, place, CANDIDATES[0], chosen, embedder, say)}
        first, _ = built[CANDIDATES[0]]
        found = corpus_stats(first)
        questions = synthetic_questions(found, first.view.matrix[: found.passages], n, seed)
        if not questions:
            raise CorpusError(
                "No question that needs two passages can be made from these documents: they are too few, or have "
                "nothing in common. With any recipe the hits will be much the same; take the default."
            )
        measures = []
        for done, candidate in enumerate(candidates, 1):
            snapshot, build_s = built.get(candidate) or await _built(opened, place, candidate, chosen, embedder, say)
            measures.append(await _measure(candidate, snapshot, questions, k, build_s))
            say("recipes", done, len(candidates))
    best = recommend(measures, seed)
    return Advice(
        look=found,
        sampled=len(chosen) if len(chosen) < len(documents) else 0,
        questions=tuple(questions),
        k=k,
        measures=tuple(sorted(measures, key=lambda m: -m.recall)),
        recommended=best,
        reasons=_reasons(found, measures, best, k),
    )


async def _built(
    opened: ExitStack,
    place: str,
    candidate: Candidate,
    documents: Sequence[Document],
    embedder: Embedder | str | None,
    progress: Progress,
) -> tuple[SearchSnapshot, float]:
    """The snapshot of a recipe, and the CPU seconds of its build; recipes share a folder and what was extracted."""
    from sire_core.index import Index
    from sire_core.recipes import recipe_by_name

    recipe = recipe_by_name(candidate.recipe, **dict(candidate.settings))
    index = opened.enter_context(Index(place, recipe=recipe, embedder=embedder, progress=progress))
    started = time.process_time()
    await index.abuild(documents)
    spent = time.process_time() - started
    return await index.asnapshot(), spent


async def _measure(
    candidate: Candidate, snapshot: SearchSnapshot, questions: Sequence[SyntheticQuestion], k: int, build_s: float
) -> Measure:
    await snapshot.asearch(questions[0].question, k)  # the first search reads what later ones share
    shares, started = [], time.perf_counter()
    for question in questions:
        hits = {hit.unit.id for hit in await snapshot.asearch(question.question, k)}
        shares.append(len(hits & set(question.passages)) / len(set(question.passages)))
    spent = time.perf_counter() - started
    return Measure(
        candidate=candidate,
        recall=100 * sum(shares) / len(shares),
        both=100 * sum(share == 1 for share in shares) / len(shares),
        units=snapshot.size,
        build_s=build_s,
        query_ms=1000 * spent / len(questions),
        shares=tuple(shares),
    )


def _reasons(found: CorpusStats, measures: Sequence[Measure], best: Measure, k: int) -> tuple[str, ...]:
    plain = max((m for m in measures if m.candidate.recipe == "flat"), key=lambda m: m.recall, default=best)
    top = max(measures, key=lambda m: m.recall)
    if len(best.shares) < FEW:
        asked = count(len(best.shares), "question")
        return (f"{asked} of its own: too few to tell recipes apart; {best.candidate.name} is preferred then.",)
    reasons = [f"It finds {best.recall:.0f} % of the passages that the questions need among {k} hits."]
    if plain is not best:
        reasons.append(f"{plain.candidate.name}, the best without derived data, finds {plain.recall:.0f} %.")
    if top is not best:
        why = (
            "questions made of the text's own words favour words alone more than people's questions do"
            if top.candidate.shown_only
            else f"that is chance, or no more than {POINTS:.0f} points, and {best.candidate.name} is preferred then"
        )
        reasons.append(f"{top.candidate.name} finds {top.recall:.0f} %, but {why}.")
    if found.linked >= 0.3:
        reasons.append(f"{found.linked:.0%} of the passages name what another one is about: names lead somewhere here.")
    elif found.subjects < 0.3:
        reasons.append("Few passages say what they are about: words and meaning have to find them.")
    if any(language != ENGLISH for language in found.languages):
        reasons.append("The rules that extract without a model read English best; a model reads the rest.")
    return tuple(reasons)
