"""`ShownQuestion` and `ShownHit`: what the pages show of a question and of what was found."""

from __future__ import annotations

from dataclasses import dataclass

from sire_core.explore.marks import Piece
from sire_core.explore.paths import Reason
from sire_core.explore.picture import Picture

__all__ = ["ShownHit", "ShownQuestion"]


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit as it is shown.

    Attributes:
        place: Among the hits, from 1.
        id: Of the unit.
        kind: Of the unit.
        title: Its title; may be empty.
        score: Larger is better.
        doc_ids: Documents it comes from.
        pieces: Its text, with marks.
        reasons: The path from the question to it.
    """

    place: int
    id: str
    kind: str
    title: str
    score: float
    doc_ids: tuple[str, ...]
    pieces: tuple[Piece, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """A question and what was found.

    Attributes:
        question: The question.
        recipe: Name of the recipe that searched.
        where: The filter, as text; empty for none.
        hits: Best first.
        picture: The paths to the hits.
        seconds: How long the search took.
        units: How many units there are.
        tokens: Of the hits' texts together.
    """

    question: str
    recipe: str
    where: str
    hits: tuple[ShownHit, ...]
    picture: Picture
    seconds: float
    units: int
    tokens: int
