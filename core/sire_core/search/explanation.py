"""Hits and their reasons as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.types import Hit, Unit, UnitKind

if TYPE_CHECKING:
    from sire_core.protocols import View

__all__ = ["explain_hits", "text_below_title"]

_SHOWN = 6


def explain_hits(query: str, hits: Sequence[Hit], view: View) -> str:
    """One block per hit: score, kind, documents, the steps that led to it, and for summaries the way down the tree.

    Args:
        query: The question.
        hits: What a search returned.
        view: The pool it was searched in.
    """
    lines = [f"Question: {query}", f"{len(hits):,} of {count(view.size, 'unit')}"]
    for number, hit in enumerate(hits, 1):
        unit = hit.unit
        name = f" {unit.title!r}" if unit.title else ""
        lines.append(f"\n[{number}] {hit.score:.4f}  {unit.kind}{name}  documents: {_some(hit.doc_ids)}")
        lines += [f"    {step.step}: {step.note}" + (f" <- {_some(step.ids)}" if step.ids else "") for step in hit.path]
        lines += [f"    {line}" for line in _route(hit, view)]
        lines += [f"    | {line}" for line in text_below_title(unit).splitlines()]
    return "\n".join(lines)


def text_below_title(unit: Unit) -> str:
    """The text, without a first line (or Markdown heading) that only repeats the title."""
    first, _, rest = unit.text.partition("\n")
    return rest.lstrip("\n") if rest.strip() and first.lstrip("#").strip() == unit.title.strip() else unit.text


def _route(hit: Hit, view: View) -> list[str]:
    """What a summary stands on, one level down."""
    if hit.unit.kind is UnitKind.CHUNK:
        return []
    children = [edge.target for edge in view.edges() if edge.kind == "child" and edge.source == hit.unit.id]
    return [f"summarises: {_some(children)}"] if children else []


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_SHOWN])
    return f"{shown}, and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else shown
