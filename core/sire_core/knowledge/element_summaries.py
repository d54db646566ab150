"""Summaries of a knowledge graph's elements, written as it changes (MS-RAG 3.2.2)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sire_core.knowledge.element_descriptions import SHOWN_PASSAGES, Element, summarize_elements

if TYPE_CHECKING:
    from sire_core.protocols import BuildView, Delta
    from sire_core.types import Unit

__all__ = ["with_summaries"]


async def with_summaries(delta: Delta, view: BuildView) -> Delta:
    """Ask the model about units that are new, and about those whose summaries are missing since an earlier change.

    Args:
        delta: The change, without summaries. What is missing after it is kept in its state.
        view: Of the organizer, with a language model.
    """
    assert view.language_model is not None
    gone = set(delta.drop_units)
    put = {unit.id: unit for unit in delta.put_units}
    missing = [found for found in view.state().get("missing_summaries", ()) if found not in gone and found not in put]
    stored = {unit.id: unit for unit in view.units([*put, *missing])}
    kept = {
        found: _with_summary(unit, stored[found].metadata["summary"])
        for found, unit in put.items()
        if found in stored and stored[found].metadata.get("summary") and _shown(unit) == _shown(stored[found])
    }
    asked = [unit for found, unit in put.items() if found not in kept]
    asked += [stored[found] for found in missing if found in stored]
    texts = {chunk.id: chunk.index_text for chunk in view.chunks} if asked else {}
    elements = [Element(unit.id, unit.text, unit.chunk_ids) for unit in asked]
    say = partial(view.progress, "summaries of elements")
    written, failures = await summarize_elements(elements, texts, view.language_model, say)
    new = {unit.id: _with_summary(unit, written[unit.id]) for unit in asked if written.get(unit.id)}
    return replace(
        delta,
        put_units=tuple((put | kept | new).values()),
        state={**(delta.state or {}), "missing_summaries": [u.id for u in asked if u.id not in new]},
        failures=(*delta.failures, *failures),
    )


def _shown(unit: Unit) -> tuple[str, tuple[str, ...]]:
    """What the model is shown of a unit."""
    return unit.text, unit.chunk_ids[:SHOWN_PASSAGES]


def _with_summary(unit: Unit, summary: str) -> Unit:
    return replace(unit, metadata={**unit.metadata, "summary": summary})
