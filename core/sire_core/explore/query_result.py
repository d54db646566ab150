"""`QueryResult`: a question with its hits, the reasons for each and their picture. It does not need the index."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from sire_core.documents.document_names import documents_of
from sire_core.explore.highlight import first_words
from sire_core.explore.paths import Reason, path_picture, reasons
from sire_core.explore.picture import Picture
from sire_core.explore.short_titles import short_title
from sire_core.filters import filter_text
from sire_core.search.explanation import text_below_title
from sire_core.search.extracts import Extract, extract_with_note
from sire_core.search.snapshot import SearchSnapshot
from sire_core.text.words import count_tokens
from sire_core.types import Hit


@dataclass(frozen=True, slots=True)
class ResultHit:
    """A hit as pages show it."""

    rank: int  # Rank among the hits, from 1
    id: str  # Id of the unit
    kind: str  # Kind of the unit
    title: str  # Its title, without what the titles of its folder share; may be empty
    score: float  # Larger is better
    doc_ids: tuple[str, ...]  # Documents it comes from
    text: str  # Its text without the title
    names: tuple[str, ...]  # Names on the path to it, which pages highlight
    reasons: tuple[Reason, ...]  # The path from the question to it
    page: int | None = None  # Page of a PDF that it begins on; None elsewhere
    led_by: str = ""  # The sentence that led to it; may be empty
    documents: str = ""  # What its documents are called: ids, or sources where ids are digests

    @property
    def name(self) -> str:
        """Its title, or its first words."""
        return self.title or first_words(self.text)


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult:
    """A question and its hits, as a page, a picture or a file. Notebooks display it.

    Attributes:
        question: The question.
        recipe: Name of the recipe that searched.
        filter: The filter, as text; empty for none.
        hits: Best first.
        picture: The paths to the hits.
        seconds: Duration of the search.
        units: Number of units that were searched.
        tokens: Tokens of the hits' texts together.
        extracts: The sentences of the hits that answer best.
        settings: Settings of the search that were given with the question, as `key=value` words.
        note: A warning if the hits hardly share a word with the question; empty for none.
        is_first: Whether the search also loaded what later ones find loaded.
    """

    question: str
    recipe: str
    filter: str
    hits: tuple[ResultHit, ...]
    picture: Picture
    seconds: float
    units: int
    tokens: int
    extracts: tuple[Extract, ...] = ()
    settings: str = ""
    note: str = ""
    is_first: bool = False

    @property
    def search(self) -> str:
        """The recipe, with the settings."""
        return f"{self.recipe} {self.settings}".strip()

    def __repr__(self) -> str:
        titles = ", ".join(hit.name for hit in self.hits)
        return f"QueryResult({self.question!r}, {self.recipe}: {titles or 'no hits'}; save('FILE.html') writes it)"

    def _repr_html_(self) -> str:
        """For Jupyter and marimo."""
        from sire_core.explore.result_page import fragment

        return fragment(self)

    def html(self) -> str:
        """One page that works offline: no script, nothing from elsewhere."""
        from sire_core.explore.result_page import page

        return page(self)

    def svg(self) -> str:
        """The picture alone."""
        from sire_core.explore.drawing import document

        return document(self.picture)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `html`, or `svg` if the file's name ends in `.svg`."""
        target = Path(path)
        text = self.svg() if target.suffix.lower() == ".svg" else self.html()
        target.write_text(text, encoding="utf-8")


async def query_result(
    snapshot: SearchSnapshot, question: str, k: int = 5, *, returns: str = "passages"
) -> QueryResult:
    """Search, and explain the hits.

    Args:
        snapshot: What is searched; its filter applies to everything that is shown.
        question: The question.
        k: Number of hits.
        returns: As in `Index.search`.
    """
    started = time.perf_counter()
    hits = await snapshot.asearch(question, k, returns=returns)
    seconds = time.perf_counter() - started
    return await asyncio.to_thread(_result, snapshot, question, hits, seconds)


def _result(snapshot: SearchSnapshot, question: str, hits: list[Hit], seconds: float) -> QueryResult:
    extracts, note = extract_with_note(question, hits)
    return QueryResult(
        question=question,
        recipe=snapshot.recipe.name,
        filter="" if snapshot.where is None else filter_text(snapshot.where),
        hits=tuple(_hit(snapshot, rank, hit) for rank, hit in enumerate(hits, 1)),
        picture=path_picture(snapshot, question, hits),
        seconds=seconds,
        units=snapshot.size,
        tokens=sum(count_tokens(hit.unit.text) for hit in hits),
        extracts=tuple(extracts),
        note=note,
    )


def _hit(snapshot: SearchSnapshot, rank: int, hit: Hit) -> ResultHit:
    path = reasons(snapshot, hit)
    names = [label for reason in path if reason.step in ("question", "entity", "passage") for _, label in reason.over]
    return ResultHit(
        rank=rank,
        id=hit.unit.id,
        kind=hit.unit.kind.value,
        title=short_title(snapshot, hit.unit.title),
        score=float(hit.score),
        doc_ids=hit.doc_ids,
        text=text_below_title(hit.unit),
        names=tuple(names),
        reasons=tuple(path),
        page=hit.page,
        led_by=hit.led_by,
        documents=documents_of(hit),
    )
