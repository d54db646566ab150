"""Summaries of entities and relations by a language model (MS-RAG, section 3.2.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from pydantic import BaseModel, Field

from sire_core.errors import ModelError
from sire_core.models.base import ask_all, with_sources
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import BuildView, Delta, LanguageModel, Prompt
from sire_core.types import Failure, Unit

BATCH = 20  # Maximum elements of a call
_TOKENS = 6_000  # Maximum tokens of the passages of a call, estimated
SHOWN_PASSAGES = 4  # Maximum passages of an element in a prompt
_ELEMENT_INSTRUCTIONS = """\
The input lists elements of a knowledge graph, entities and relations, each with a number, a name and the numbers of \
the passages that speak of it; the passages follow. For each element write one or two sentences that say what these \
passages state about it: who or what it is, with names and dates in full. Leave out what they do not state. Use their \
language."""


class _Summary(BaseModel):
    id: int
    summary: str


class ElementSummaries(BaseModel):
    """The answer of the model."""

    shape: ClassVar[str] = '{"summaries":[{"id":0,"summary":""}]}'

    summaries: list[_Summary] = Field(default_factory=list)


async def summarize_elements(
    elements: Sequence[Unit],
    texts: Mapping[str, str],
    model: LanguageModel,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, str], list[Failure]]:
    """Ask a model to summarise entities and relations by id, up to twenty a call, several calls at a time."""
    by_key: dict[str, str] = {}
    failures: list[Failure] = []

    async def one(batch: list[Unit]) -> tuple[dict[str, str], Failure | None]:
        try:
            return await _ask(batch, texts, model), None
        except ModelError as error:
            what = f"summaries of {len(batch)} elements, first {batch[0].text!r}"
            return {}, Failure(what, f"{type(error).__name__}: {error}"[:500])

    for summaries, failure in await ask_all(model, one, _batches(elements, texts), progress):
        by_key.update(summaries)
        failures += [failure] if failure else []
    return {element.id: by_key[element.id] for element in elements if element.id in by_key}, failures


def _batches(elements: Sequence[Unit], texts: Mapping[str, str]) -> list[list[Unit]]:
    """Group elements so that the distinct passages of a group fit into a call."""
    batches: list[list[Unit]] = []
    chunk_ids: set[str] = set()
    tokens = 0
    for element in elements:
        new = [chunk for chunk in element.chunk_ids[:SHOWN_PASSAGES] if chunk not in chunk_ids]
        size = sum(estimate_tokens(texts[chunk]) for chunk in new)
        if not batches or len(batches[-1]) == BATCH or (tokens and tokens + size > _TOKENS):
            batches.append([])
            chunk_ids, tokens = set(), 0
            size = sum(estimate_tokens(texts[chunk]) for chunk in element.chunk_ids[:SHOWN_PASSAGES])
        batches[-1].append(element)
        chunk_ids.update(element.chunk_ids[:SHOWN_PASSAGES])
        tokens += size
    return batches


async def _ask(batch: Sequence[Unit], texts: Mapping[str, str], model: LanguageModel) -> dict[str, str]:
    chunks = list(dict.fromkeys(chunk for element in batch for chunk in element.chunk_ids[:SHOWN_PASSAGES]))
    number = {chunk: index for index, chunk in enumerate(chunks)}
    data = {
        "elements": [
            {"id": i, "name": element.text, "passages": [number[chunk] for chunk in element.chunk_ids[:SHOWN_PASSAGES]]}
            for i, element in enumerate(batch)
        ],
        "passages": [texts[chunk] for chunk in chunks],
    }
    bound = with_sources(model, chunks)
    answer = await bound.complete(
        Prompt(_ELEMENT_INSTRUCTIONS, json.dumps(data, ensure_ascii=False)), schema=ElementSummaries
    )
    summaries = {item.id: " ".join(item.summary.split()) for item in answer.parsed.summaries}
    return {element.id: summaries[i] for i, element in enumerate(batch) if summaries.get(i)}


async def with_summaries(delta: Delta, view: BuildView) -> Delta:
    """Add summaries of new units, and of those whose summaries an earlier change could not get."""
    assert view.language_model is not None
    removed = set(delta.drop_units)
    added = {unit.id: unit for unit in delta.put_units}
    forgotten = view.forgotten()
    again = {unit.id for unit in view.units() if not forgotten.isdisjoint(unit.chunk_ids)} if forgotten else set()
    waiting = dict.fromkeys([*view.state().get("missing_summaries", ()), *sorted(again)])
    missing = [name for name in waiting if name not in removed and name not in added]
    stored = {unit.id: unit for unit in view.units([*added, *missing])}
    unchanged = {
        name: _with_summary(unit, stored[name].metadata["summary"])
        for name, unit in added.items()
        if name in stored.keys() - again
        and stored[name].metadata.get("summary")
        and _prompt_part(unit) == _prompt_part(stored[name])
    }
    to_summarize = [unit for name, unit in added.items() if name not in unchanged]
    to_summarize += [stored[name] for name in missing if name in stored]
    texts = {chunk.id: chunk.index_text for chunk in view.chunks} if to_summarize else {}
    say = partial(view.progress, "summaries of elements")
    written, failures = await summarize_elements(to_summarize, texts, view.language_model, say)
    new = {unit.id: _with_summary(unit, written[unit.id]) for unit in to_summarize if written.get(unit.id)}
    return replace(
        delta,
        put_units=tuple((added | unchanged | new).values()),
        state={**(delta.state or {}), "missing_summaries": [u.id for u in to_summarize if u.id not in new]},
        failures=(*delta.failures, *failures),
    )


def _prompt_part(unit: Unit) -> tuple[str, tuple[str, ...]]:
    return unit.text, unit.chunk_ids[:SHOWN_PASSAGES]


def _with_summary(unit: Unit, summary: str) -> Unit:
    return replace(unit, metadata={**unit.metadata, "summary": summary})
