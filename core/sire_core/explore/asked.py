"""`AskedQuestion`: a question with its hits, why each was chosen and the picture of it; needs no index any more."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.algorithms.text import count_tokens
from sire_core.explore.marks import marked
from sire_core.explore.paths import path_picture, reasons
from sire_core.explore.shown import ShownHit, ShownQuestion
from sire_core.search.explanation import text_below_title

if TYPE_CHECKING:
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Hit

__all__ = ["AskedQuestion", "aask"]


@dataclass(frozen=True, slots=True, repr=False)
class AskedQuestion(ShownQuestion):
    """A question and what was found, as a page, as a picture or as a file. Notebooks display it."""

    def __repr__(self) -> str:
        found = ", ".join(hit.title or hit.id for hit in self.hits)
        return f"Asked({self.question!r}, {self.recipe}: {found or 'nothing found'}; save('FILE.html') writes it)"

    def _repr_html_(self) -> str:
        """For Jupyter and marimo."""
        from sire_core.explore.page import fragment

        return fragment(self)

    def html(self) -> str:
        """One page that works offline: no script, nothing from elsewhere."""
        from sire_core.explore.page import page

        return page(self)

    def svg(self) -> str:
        """The picture alone."""
        from sire_core.explore.svg import document

        return document(self.picture)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `html`, or `svg` when the file's name ends so."""
        target = Path(path)
        text = self.svg() if target.suffix.lower() == ".svg" else self.html()
        target.write_text(text, encoding="utf-8")


async def aask(snapshot: SearchSnapshot, question: str, k: int = 5, *, returns: str = "passages") -> AskedQuestion:
    """Search, and say why.

    Args:
        snapshot: What is searched; its filter holds for all that is shown.
        question: The question.
        k: How many hits.
        returns: As in `Index.search`.
    """
    import asyncio

    started = time.perf_counter()
    hits = await snapshot.asearch(question, k, returns=returns)
    seconds = time.perf_counter() - started
    return await asyncio.to_thread(_asked, snapshot, question, hits, seconds)


def _asked(snapshot: SearchSnapshot, question: str, hits: list[Hit], seconds: float) -> AskedQuestion:
    return AskedQuestion(
        question=question,
        recipe=snapshot.recipe.name,
        where="" if snapshot.where is None else str(snapshot.where),
        hits=tuple(_shown(snapshot, question, place, hit) for place, hit in enumerate(hits, 1)),
        picture=path_picture(snapshot, question, hits),
        seconds=seconds,
        units=snapshot.size,
        tokens=sum(count_tokens(hit.unit.text) for hit in hits),
    )


def _shown(snapshot: SearchSnapshot, question: str, place: int, hit: Hit) -> ShownHit:
    why = reasons(snapshot, hit)
    names = [label for reason in why if reason.step in ("question", "entity", "passage") for _, label in reason.over]
    return ShownHit(
        place=place,
        id=hit.unit.id,
        kind=hit.unit.kind.value,
        title=hit.unit.title,
        score=float(hit.score),
        doc_ids=hit.doc_ids,
        pieces=tuple(marked(text_below_title(hit.unit), question, names)),
        reasons=tuple(why),
    )
