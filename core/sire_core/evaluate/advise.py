"""`advise`: recipes measured on questions that a corpus itself gives, and one of them recommended."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.evaluate.bootstrap import interval_of
from sire_core.evaluate.datasets import DataSet, document_text
from sire_core.evaluate.experiment import Experiment
from sire_core.evaluate.made_questions import LinkedPassages, MadeQuestion, as_questions, made_questions, title_of
from sire_core.evaluate.runner import EvalConfig
from sire_core.extraction.headings import base_title
from sire_core.extraction.title_links import TitleLinker
from sire_core.index import Index
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.models.sync import run_sync
from sire_core.progress import ProgressLike, progress_of
from sire_core.recipes import recipe_by_name
from sire_core.text.languages import ENGLISH, UNDETERMINED, find_language
from sire_core.text.pluralize import count, count_units

if TYPE_CHECKING:
    from sire_core.evaluate.rows import EvalRow
    from sire_core.protocols import Embedder, IntArray
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Document, Unit

_TECHNICAL = re.compile(r"`[^`\n]+`|\b\w+\(\)|\B--[a-z][\w-]+|\b[a-z]+_[a-z_]+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_SPOKEN = 0.02
_READ_FOR_LANGUAGE = 20_000
_WORDS = 150  # Words of a typical passage: long documents count for several
POINTS = 2.0
"""Points of recall within which recipes count as equally good: questions of our own are not those of people."""
FEW = 20  # Questions below which nothing is measured: resamples of so few agree with one another
_RESAMPLED = 1000


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """Statistics of a corpus; shares are 0 to 1."""

    documents: int
    passages: int  # How many, equal ones once
    duplicates: float  # Share of the passages that say what another one says
    words: tuple[int, int]  # Words of a passage: the median and the 90 % quantile
    titled: float  # Share with a title of their own
    subjects: float  # Share that say what they are about, by a title or the name that they open with
    names: int  # Names in a passage, the median
    linked: float  # Share that name the subject of another passage
    technical: float  # Share with code, options or identifiers
    languages: Mapping[str, float]  # Share by language

    def lines(self) -> list[str]:
        """For people."""
        languages = ", ".join(f"{name} {share:.0%}" for name, share in self.languages.items())
        sizes = f"{self.words[0]:,} words (one in ten has over {self.words[1]:,})"
        subjects = f"{self.titled:.0%} have a title of their own, {self.subjects:.0%} say what they are about"
        return [
            f"{count(self.documents, 'document')}, {self._size()} of {sizes}; {languages}",
            f"{self.technical:.0%} of the passages hold code, options or identifiers",
            f"{subjects}; {self.names} names in a passage; {self.linked:.0%} name what another passage is about",
        ]

    def _size(self) -> str:
        """Number of passages, as other commands count them."""
        total = round(self.passages / max(1e-9, 1 - self.duplicates))
        return count_units({"chunk": self.passages}, total)


def corpus_stats(snapshot: SearchSnapshot, linked: LinkedPassages) -> CorpusStats:
    """Look at a corpus."""
    graph, view, units = EntityGraph.of(snapshot.view), snapshot.view, linked.units
    sizes = np.array([len(unit.text.split()) for unit in units] or [0])
    names_per_passage = np.bincount(graph.passages, minlength=max(1, len(units)))
    sources = np.asarray(view.chunk_documents[view.pool.indices[view.pool.indptr[graph.chunk_positions]]])
    languages = _languages(units, sources)
    total = max(1, len(units))
    return CorpusStats(
        documents=len(snapshot.document_ids()),
        passages=len(units),
        duplicates=1 - len(units) / max(1, len(view.pool.chunk_ids)),
        words=(int(np.median(sizes)), int(np.quantile(sizes, 0.9))),
        titled=sum(1 for unit in units if linked.titles.get(title_of(unit)) == 1) / total,
        subjects=sum(map(bool, linked.about)) / total,
        names=int(np.median(names_per_passage)),
        linked=len({link.passage for link in linked.links}) / total,
        technical=sum(bool(_TECHNICAL.search(unit.text)) for unit in units) / total,
        languages=languages,
    )


def _languages(units: Sequence[Unit], sources: IntArray) -> dict[str, float]:
    """Share of the passages by the language of their document: a passage of code or names alone shows none."""
    texts: dict[int, list[str]] = {}
    for unit, source in zip(units, sources.tolist(), strict=True):
        texts.setdefault(source, []).append(unit.text)
    numbers: Counter[str] = Counter()
    for parts in texts.values():
        code = find_language("\n".join(parts)[:_READ_FOR_LANGUAGE])
        numbers[ENGLISH if code == UNDETERMINED else code] += len(parts)
    total = max(1, len(units))
    return {name: number / total for name, number in numbers.most_common(3) if number > _SPOKEN * total}


def sample(documents: Sequence[Document], passages: int, seed: int = 0) -> list[Document]:
    """Documents of about so many passages: half of them by chance, the others because one of those names them."""
    sizes = [len(one.chunks) or 1 + len(one.text.split()) // (2 * _WORDS) for one in documents]
    if sum(sizes) <= passages:
        return list(documents)
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    by_name = {base_title(d.title): index for index, d in enumerate(documents) if d.title}
    linker = TitleLinker(list(by_name))
    chosen: dict[int, None] = {}
    room = passages
    for index in order:
        if room <= 0:
            break
        mentioned = [by_name[name] for name in linker.mentions(document_text(documents[index])) if name in by_name]
        for member in (index, *mentioned[:2]):
            if member not in chosen and (room > 0):
                chosen[member] = None
                room -= sizes[member]
    return [documents[index] for index in sorted(chosen)]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recipe that may be recommended."""

    recipe: str
    calls: str  # What a language model would be asked per 1,000 passages, if one builds it
    settings: tuple[tuple[str, Any], ...] = ()  # Names and values of settings that differ from its defaults
    # It is measured and never recommended: questions made of a text's own words favour words alone more than people's
    # questions do
    shown_only: bool = False

    @property
    def name(self) -> str:
        """As `sire` takes it."""
        return " ".join([self.recipe, *(f"--set {key}={value}" for key, value in self.settings)])


@dataclass(frozen=True, slots=True)
class Measure:
    """Result of a recipe.

    Attributes:
        candidate: The recipe.
        recall: Mean share of the two passages among the first k, 0 to 100.
        both: Share of the questions with both, 0 to 100.
        units: Size of its pool.
        build_s: Seconds of deriving what it needs; extraction and embedding count where they are needed first.
        query_ms: Median milliseconds of a search.
        shares: Recall of each question, 0 to 1.
    """

    candidate: Candidate
    recall: float
    both: float
    units: int
    build_s: float
    query_ms: float
    shares: tuple[float, ...]

    @classmethod
    def of(cls, candidate: Candidate, row: EvalRow, k: int) -> Measure:
        """Take the figures of a row."""
        shares = tuple(result.recall_passages(k) for result in row.with_gold)
        recall, both = row.recall_passages(k) or 0.0, row.mean(f"all@{k}") or 0.0
        return cls(candidate, recall, both, row.setup.pool, row.setup.build_s, row.query_p50_ms(), shares)


def recommend(measures: Sequence[Measure], seed: int = 0) -> Measure:
    """The first candidate that no other one beats by more than chance and a few points."""
    eligible = [measure for measure in measures if not measure.candidate.shown_only]
    best = max(eligible, key=lambda m: m.recall)
    return next((measure for measure in eligible if not any(_beats(other, measure, seed) for other in eligible)), best)


def _beats(one: Measure, other: Measure, seed: int) -> bool:
    """True if one finds more on nearly all resamples of the questions, by points that count."""
    if one.recall - other.recall <= POINTS:
        return False
    return interval_of(100 * (np.array(one.shares) - np.array(other.shares)), _RESAMPLED, seed).low > 0


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
    """A recommendation with what it stands on."""

    look: CorpusStats  # The corpus, or the sample of it that was looked at
    sampled: int  # Documents of the sample; 0 when the whole corpus was looked at
    questions: tuple[MadeQuestion, ...]  # The questions that could be made
    k: int  # Hits that counted
    measures: tuple[Measure, ...]  # The best first; empty where too few questions could be made
    recommended: Candidate  # The recipe; the default where `undecided`
    reasons: tuple[str, ...]  # In words
    # Whether it cannot tell: too few readable questions can be made, or words alone find clearly more than the recipe,
    # which says nothing of what people ask, since made questions reuse words of the text
    undecided: bool = False

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "recommended": self.recommended.recipe,
            "settings": dict(self.recommended.settings),
            "undecided": self.undecided,
            "reasons": list(self.reasons),
            "passages": self.look.passages,
            "sampled_documents": self.sampled,
            **{name: round(getattr(self.look, name), 3) for name in ("titled", "linked", "technical", "duplicates")},
            "questions": dict(Counter(question.kind for question in self.questions)),
            "k": self.k,
            "rows": [
                {
                    "recipe": measure.candidate.recipe,
                    "settings": dict(measure.candidate.settings),
                    **{name: round(getattr(measure, name), 1) for name in ("recall", "both", "build_s", "query_ms")},
                    "units": measure.units,
                    "model_calls_per_1000": measure.candidate.calls,
                }
                for measure in self.measures
            ],
        }


def advise(documents: Sequence[Document], **settings: Any) -> Advice:
    """See `aadvise`."""
    return run_sync(aadvise(documents, **settings))


async def aadvise(
    documents: Sequence[Document],
    *,
    embedder: Embedder | str | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    passages: int = 500,
    n: int = 100,
    k: int = 5,
    seed: int = 0,
    progress: ProgressLike = None,
) -> Advice:
    """Find the recipe that fits a corpus, without a model; measures nothing where too few questions can be made."""
    if all(candidate.shown_only for candidate in candidates):
        raise ConfigurationError("Name a candidate that may be recommended; see CANDIDATES.")
    chosen, say = sample(documents, passages, seed), progress_of(progress)
    say("recipes", 0, len(candidates))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "index")
        with Index(folder, recipe="sire", embedder=embedder, progress=say) as index:  # its graph links passages
            await index.abuild(chosen)
            snapshot = await index.asnapshot()
            linked = LinkedPassages.of(snapshot)
            statistics, questions = corpus_stats(snapshot, linked), made_questions(linked, n, seed)
        sampled = len(chosen) if len(chosen) < len(documents) else 0
        if len(questions) < FEW:
            default = next(candidate for candidate in candidates if not candidate.shown_only)
            return Advice(statistics, sampled, tuple(questions), k, (), default, (_too_few(questions),), undecided=True)
        done: list[EvalRow] = []

        def note(row: EvalRow) -> None:
            done.append(row)
            say("recipes", len(done), len(candidates))

        await Experiment(
            DataSet("text", tuple(chosen), as_questions(questions), whole=True),
            recipes=[recipe_by_name(candidate.recipe, **dict(candidate.settings)) for candidate in candidates],
            baselines=(),
            config=EvalConfig(ks=(k,), budget=None, returns="passages"),
            folder=folder,
            embedder=embedder,
            progress=say,
            on_row=note,
        ).arun()
    measures = [Measure.of(candidate, row, k) for candidate, row in zip(candidates, done, strict=True)]
    best = recommend(measures, seed)
    words = [measure for measure in measures if measure.candidate.shown_only]
    return Advice(
        look=statistics,
        sampled=sampled,
        questions=tuple(questions),
        k=k,
        measures=tuple(sorted(measures, key=lambda m: -m.recall)),
        recommended=best.candidate,
        reasons=_reasons(statistics, measures, best, k),
        undecided=any(_beats(measure, best, seed) for measure in words),
    )


def _too_few(questions: Sequence[MadeQuestion]) -> str:
    made = f"only {count(len(questions), 'question')}" if questions else "no question"
    return (
        f"The sentences of these documents rarely say how one thing is connected with another, so {made} could be made "
        f"from them. That is too few to tell recipes apart; at least {FEW} are needed."
    )


def _reasons(statistics: CorpusStats, measures: Sequence[Measure], best: Measure, k: int) -> tuple[str, ...]:
    plain = max((m for m in measures if m.candidate.recipe == "flat"), key=lambda m: m.recall, default=best)
    top = max(measures, key=lambda m: m.recall)
    reasons = [f"It finds {best.recall:.0f} % of the passages that the questions need among {k} hits."]
    if plain is not best and plain is not top:
        reasons.append(f"{plain.candidate.name}, the best without derived data, finds {plain.recall:.0f} %.")
    if top is not best:
        why = (
            "generated questions reuse words of the text, which favours keyword search"
            if top.candidate.shown_only
            else f"the difference is chance, or at most {POINTS:.0f} points, and {best.candidate.name} is preferred"
        )
        reasons.append(f"{top.candidate.name} finds {top.recall:.0f} %, but {why}.")
    if statistics.linked >= 0.3:
        reasons.append(
            f"{statistics.linked:.0%} of the passages mention the subject of another one: names connect passages."
        )
    elif statistics.subjects < 0.3:
        reasons.append("Few passages name their subject, so words and meaning have to find them.")
    if any(language != ENGLISH for language in statistics.languages):
        reasons.append("Extraction without a model works best for English; use a model for other languages.")
    return tuple(reasons)
