"""`advise`: recipes measured on questions that a corpus itself gives, and one of them recommended."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.algorithms.wording import count
from sire_core.bars import ProgressLike, progress_of
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.evaluate.advise.corpus_look import ENGLISH, CorpusLook, look
from sire_core.evaluate.advise.own_questions import OwnQuestion, own_questions
from sire_core.evaluate.advise.recommendation import FEW, POINTS, Candidate, Measure, recommend

if TYPE_CHECKING:
    from sire_core.protocols import Embedder, Progress
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Document

__all__ = ["CANDIDATES", "Advice", "aadvise", "advise"]


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

    look: CorpusLook
    sampled: int
    questions: tuple[OwnQuestion, ...]
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
    """Find the recipe that fits a corpus, without a model, in a few minutes at most.

    Args:
        documents: The corpus.
        embedder: As for `Index`; embeds a sample only.
        candidates: The recipes to choose from; the first is preferred.
        passages: About so many are looked at; of more, a sample that keeps documents together with those they name.
        n: How many questions are made.
        k: How many hits count.
        seed: Of every choice.
        progress: Told as `progress("recipes", done, total)`, and of each build as `Index` tells; True draws bars.

    Raises:
        ConfigurationError: No candidate may be recommended.
        CorpusError: The corpus is so small, or its passages have so little in common, that no question can be made.
    """
    from sire_core.evaluate.advise.corpus_look import sample

    if all(candidate.shown_only for candidate in candidates):
        raise ConfigurationError("Name a candidate that may be recommended; see CANDIDATES.")
    chosen, say = sample(documents, passages, seed), progress_of(progress)
    say("recipes", 0, len(candidates))
    with tempfile.TemporaryDirectory() as place, ExitStack() as opened:
        # The first candidate's graph says who names whom; what it costs is its own.
        built = {CANDIDATES[0]: await _built(opened, place, CANDIDATES[0], chosen, embedder, say)}
        first, _ = built[CANDIDATES[0]]
        found = look(first)
        questions = own_questions(found, first.view.matrix[: found.passages], n, seed)
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
    candidate: Candidate, snapshot: SearchSnapshot, questions: Sequence[OwnQuestion], k: int, build_s: float
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


def _reasons(found: CorpusLook, measures: Sequence[Measure], best: Measure, k: int) -> tuple[str, ...]:
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
