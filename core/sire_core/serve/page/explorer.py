"""`Explorer`: what the page of `sire explore` asks of an index, without any page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from sire_core.errors import CorpusError
from sire_core.explore.asked import AskedQuestion, aask
from sire_core.explore.shown import ShownQuestion

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
"""Indexes that are kept open, one for every recipe and its settings."""


@dataclass(frozen=True, slots=True)
class ExplorerQuery:
    """What is asked, and how.

    Attributes:
        question: The question.
        recipe: Name of a recipe that the folder holds; empty for the latest.
        k: How many hits.
        where: A filter; empty for none.
        settings: Settings of the search as `key=value` words.
        returns: As in `Index.search`.
    """

    question: str
    recipe: str = ""
    k: int = 5
    where: str = ""
    settings: str = ""
    returns: str = "passages"


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """A question that was measured.

    Attributes:
        id: Its id.
        question: The question.
        found: Per recipe, how many of its gold documents are among the documents of the first k hits.
        gold: How many gold documents it has.
    """

    id: str
    question: str
    found: tuple[int, ...]
    gold: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What recipes find of questions whose documents are known.

    Attributes:
        recipes: Their names, in order.
        k: How many hits counted.
        milliseconds: Per recipe, of a search, the median.
        questions: One by one, those that recipes differ on first.
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
    """Asks an index in all its recipes; reads, and never writes.

    Attributes:
        open: Opens the index for a recipe (empty for the latest) and settings as `key=value` words.
        model: Whom reasoning asks; None for evidence only.
        title: What the index is called.
    """

    open: Callable[[str, Sequence[str]], Index]
    model: LanguageModel | None = None
    title: str = "index"
    _opened: dict[tuple[str, str], Index] = field(default_factory=dict)

    def index(self, recipe: str = "", settings: str = "") -> Index:
        """The index as a recipe with some settings searches it."""
        key = (recipe, " ".join(settings.split()))
        if key not in self._opened:
            if len(self._opened) >= _KEPT:
                self._opened.pop(next(iter(self._opened)))  # not closed: somebody may be reading from it
            self._opened[key] = self.open(recipe, settings.split())
        return self._opened[key]

    def close(self) -> None:
        """Close what is open."""
        for index in self._opened.values():
            index.close()
        self._opened.clear()

    def recipes(self) -> list[str]:
        """Names of the recipes in the index, the latest first."""
        stats = self.index().stats()
        return list(dict.fromkeys([stats["recipe"], *reversed(stats["recipes"])]))

    async def snapshot(self, recipe: str = "", where: str = "", settings: str = "") -> SearchSnapshot:
        """The index as of now, as far as it may be seen."""
        # Opening one imports what its embedder needs: not on the loop that other people's pages wait for.
        index = await asyncio.to_thread(self.index, recipe, settings)
        return await index.asnapshot(filter=where or None)

    async def ask(self, asking: ExplorerQuery) -> AskedQuestion:
        """Search, and say why."""
        snapshot = await self.snapshot(asking.recipe, asking.where, asking.settings)
        return await aask(snapshot, asking.question, asking.k, returns=asking.returns)

    async def find(self, text: str) -> list[Unit]:
        """Passages by words, to be asked about with `why_not`."""
        from sire_core.explore.why_not import find_passages

        return await find_passages(await self.snapshot(), text)

    async def why_not(self, asking: ExplorerQuery, passage: str) -> WhyNot:
        """Why a passage is not among the hits."""
        from sire_core.explore.why_not import why_not

        snapshot = await self.snapshot(asking.recipe, asking.where, asking.settings)
        return await why_not(snapshot, asking.question, passage, asking.k)

    def questions(self, path: Path) -> tuple[Question, ...]:
        """Questions of a file with gold documents of this index."""
        from sire_core.corpus.benchmarks import read_questions

        found = tuple(question for question in read_questions(path) if question.supporting)
        if not found:
            raise CorpusError("No question of the file has gold documents ('supporting'); there is nothing to measure.")
        return found

    async def measure(
        self,
        questions: Sequence[Question],
        recipes: Sequence[str],
        k: int = 5,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> Measured:
        """Ask every question with every recipe."""
        snapshot = await self.snapshot()
        unknown = {name for question in questions for name in question.supporting} - set(snapshot.document_ids())
        if unknown:
            raise CorpusError(
                f"'supporting' names documents that are not in this index: {', '.join(sorted(unknown)[:3])}. It holds "
                "ids of documents, as `sire query --json` shows them."
            )
        found: list[list[int]] = []
        middle: list[float] = []
        for recipe in recipes:
            snapshot = await self.snapshot(recipe)
            hits, seconds = [], []
            for done, question in enumerate(questions, 1):
                started = time.perf_counter()
                documents = {name for hit in await snapshot.asearch(question.question, k) for name in hit.doc_ids}
                seconds.append(time.perf_counter() - started)
                hits.append(len(documents.intersection(question.supporting)))
                progress(recipe, done, len(questions))
            found.append(hits)
            middle.append(1000 * sorted(seconds)[len(seconds) // 2])
        rows = [
            MeasuredQuestion(question.id, question.question, tuple(per_recipe), len(set(question.supporting)))
            for question, *per_recipe in zip(questions, *found, strict=True)
        ]
        rows.sort(key=lambda row: min(row.found) - max(row.found))
        return Measured(tuple(recipes), k, tuple(middle), tuple(rows))


def compared(one: ShownQuestion, other: ShownQuestion) -> Iterator[tuple[str, int, int]]:
    """What two searches found: title, place in one and place in the other, 0 where it is not among the hits."""
    places = [{hit.id: hit.place for hit in asked.hits} for asked in (one, other)]
    titles = {hit.id: hit.title or hit.id for asked in (one, other) for hit in asked.hits}
    for name, title in titles.items():
        yield title, places[0].get(name, 0), places[1].get(name, 0)
