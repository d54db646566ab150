"""`Explorer`: the queries of the pages of `sire explore`, without the pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from sire_core.errors import CorpusError
from sire_core.explore.query_result import QueryResult, query_result

if TYPE_CHECKING:
    from pathlib import Path

    from sire_core.corpus.benchmarks import Question
    from sire_core.explore.why_not import WhyNot
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Unit

__all__ = ["Explorer", "ExplorerQuery", "Measured", "MeasuredQuestion", "compared"]

_KEPT = 6
"""Maximum number of open indexes, one for each recipe with its settings."""


@dataclass(frozen=True, slots=True)
class ExplorerQuery:
    """A question and the options of its search.

    Attributes:
        question: The question.
        recipe: Name of a recipe that the folder holds; empty for the latest.
        k: Number of hits.
        filter: A filter; empty for none.
        settings: Settings of the search as `key=value` words.
        returns: As in `Index.search`.
    """

    question: str
    recipe: str = ""
    k: int = 5
    filter: str = ""
    settings: str = ""
    returns: str = "passages"


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """Result of a question.

    Attributes:
        id: Its id.
        question: The question.
        found: Per recipe, the number of its gold documents among the documents of the first k hits.
        gold: Number of its gold documents.
    """

    id: str
    question: str
    found: tuple[int, ...]
    gold: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Results of recipes on questions with gold documents.

    Attributes:
        recipes: Their names, in order.
        k: Number of hits that counted.
        milliseconds: Per recipe, the median time of a search.
        questions: The questions, those with the largest difference between recipes first.
    """

    recipes: tuple[str, ...]
    k: int
    milliseconds: tuple[float, ...]
    questions: tuple[MeasuredQuestion, ...]

    @property
    def recall(self) -> tuple[float, ...]:
        """Per recipe, mean share of the gold documents found, 0 to 100."""
        return self._mean(lambda found, gold: found / gold)

    @property
    def all_found(self) -> tuple[float, ...]:
        """Per recipe, share of the questions with all of them found, 0 to 100."""
        return self._mean(lambda found, gold: found == gold)

    def _mean(self, score: Callable[[int, int], float]) -> tuple[float, ...]:
        rows = self.questions
        return tuple(100 * fmean(score(row.found[i], row.gold) for row in rows) for i in range(len(self.recipes)))


@dataclass(slots=True)
class Explorer:
    """Searches an index with all its recipes; read only.

    Attributes:
        open: Opens the index for a recipe (empty for the latest) and settings as `key=value` words.
        model: Model of the reasoning; None for evidence only.
        title: Name of the index.
    """

    open: Callable[[str, Sequence[str]], Index]
    model: LanguageModel | None = None
    title: str = "index"
    _opened: dict[tuple[str, str], Index] = field(default_factory=dict)

    def index(self, recipe: str = "", settings: str = "") -> Index:
        """The index, opened with a recipe and settings."""
        key = (recipe, " ".join(settings.split()))
        if key not in self._opened:
            if len(self._opened) >= _KEPT:
                self._opened.pop(next(iter(self._opened)))  # not closed: a reader may still use it
            self._opened[key] = self.open(recipe, settings.split())
        return self._opened[key]

    def close(self) -> None:
        """Close all open indexes."""
        for index in self._opened.values():
            index.close()
        self._opened.clear()

    def recipes(self) -> list[str]:
        """Names of the recipes in the index, the latest first."""
        stats = self.index().stats()
        return list(dict.fromkeys([stats["recipe"], *reversed(stats["recipes"])]))

    async def snapshot(self, recipe: str = "", filter: str = "", settings: str = "") -> SearchSnapshot:
        """A snapshot of the latest generation, with a filter."""
        # Opening one imports what its embedder needs, which takes long: not on the event loop.
        index = await asyncio.to_thread(self.index, recipe, settings)
        return await index.asnapshot(filter=filter or None)

    async def ask(self, query: ExplorerQuery) -> QueryResult:
        """Search, and explain the hits."""
        snapshot = await self.snapshot(query.recipe, query.filter, query.settings)
        return await query_result(snapshot, query.question, query.k, returns=query.returns)

    async def find(self, text: str) -> list[Unit]:
        """Find passages by words, for `why_not`."""
        from sire_core.explore.why_not import find_passages

        return await find_passages(await self.snapshot(), text)

    async def why_not(self, query: ExplorerQuery, passage: str) -> WhyNot:
        """Why a passage is not among the hits."""
        from sire_core.explore.why_not import why_not

        snapshot = await self.snapshot(query.recipe, query.filter, query.settings)
        return await why_not(snapshot, query.question, passage, query.k)

    def questions(self, path: Path) -> tuple[Question, ...]:
        """Questions of a file with gold documents of this index."""
        from sire_core.corpus.benchmarks import read_questions

        questions = tuple(question for question in read_questions(path) if question.supporting)
        if not questions:
            raise CorpusError("No question of the file has gold documents ('supporting'); there is nothing to measure.")
        return questions

    async def measure(
        self,
        questions: Sequence[Question],
        recipes: Sequence[str],
        k: int = 5,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> Measured:
        """Search for every question with every recipe."""
        snapshot = await self.snapshot()
        unknown = {name for question in questions for name in question.supporting} - set(snapshot.document_ids())
        if unknown:
            raise CorpusError(
                f"'supporting' names documents that are not in this index: {', '.join(sorted(unknown)[:3])}. It holds "
                "ids of documents, as `sire query --json` shows them."
            )
        hits_by_recipe: list[list[int]] = []
        medians: list[float] = []
        for recipe in recipes:
            snapshot = await self.snapshot(recipe)
            hits, seconds = [], []
            for done, question in enumerate(questions, 1):
                started = time.perf_counter()
                documents = {name for hit in await snapshot.asearch(question.question, k) for name in hit.doc_ids}
                seconds.append(time.perf_counter() - started)
                hits.append(len(documents.intersection(question.supporting)))
                progress(recipe, done, len(questions))
            hits_by_recipe.append(hits)
            medians.append(1000 * sorted(seconds)[len(seconds) // 2])
        rows = [
            MeasuredQuestion(question.id, question.question, tuple(per_recipe), len(set(question.supporting)))
            for question, *per_recipe in zip(questions, *hits_by_recipe, strict=True)
        ]
        rows.sort(key=lambda row: min(row.found) - max(row.found))
        return Measured(tuple(recipes), k, tuple(medians), tuple(rows))


def compared(one: QueryResult, other: QueryResult) -> Iterator[tuple[str, int, int]]:
    """Title, rank in one result and rank in the other (0 if it is not among the hits) of every hit of two results."""
    ranks = [{hit.id: hit.rank for hit in result.hits} for result in (one, other)]
    titles = {hit.id: hit.title or hit.id for result in (one, other) for hit in result.hits}
    for name, title in titles.items():
        yield title, ranks[0].get(name, 0), ranks[1].get(name, 0)
