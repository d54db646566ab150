"""`msrag`: entities, relations and passages recalled together (MS-RAG)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sire_core.extend import Component, Recipe, RerankSettings, ResolvedSettings, UnitKind, register, setting

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings, Hit, Unit, View

_VOTES = "vote:"
_MAX_ELEMENTS = 20  # summaries in a context


@dataclass(frozen=True, slots=True)
class ElementContext:
    """Lines of a context: summaries of the entities and relations in the paths of hits.

    Stored summaries are used; the language model writes the others, up to twenty in a call, and the snapshot caches
    them. Elements of a failed call are left out.
    """

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:
        """Return a line per element, in the order of the hits and their votes."""
        units = self._elements(hits, view)
        summaries: dict[str, str] = view.derived("element summaries", dict)
        summaries.update((unit.id, str(unit.metadata["summary"])) for unit in units if unit.metadata.get("summary"))
        missing = [unit for unit in units if unit.id not in summaries]
        if missing and view.language_model is not None:
            summaries.update(await self._summarize(missing, view))
        return [f"{unit.text}: {summaries[unit.id]}" for unit in units if summaries.get(unit.id)]

    def _elements(self, hits: Sequence[Hit], view: View) -> list[Unit]:
        """Entities and relations that are hits or voted for hits."""
        wanted: dict[str, None] = {}
        for hit in hits:
            hit_ids = [hit.unit.id] if hit.unit.kind in (UnitKind.ENTITY, UnitKind.RELATION) else []
            votes = [i for step in hit.path if step.step in (f"{_VOTES}entity", f"{_VOTES}relation") for i in step.ids]
            wanted.update(dict.fromkeys((*hit_ids, *votes)))
        positions = _positions(list(wanted)[:_MAX_ELEMENTS], view)
        return view.units(positions)

    async def _summarize(self, units: Sequence[Unit], view: View) -> dict[str, str]:
        from sire_core.extend import summarize_elements

        assert view.language_model is not None
        chunks = dict.fromkeys(chunk for unit in units for chunk in unit.chunk_ids)
        passages = view.units(_positions(list(chunks), view))
        texts = {chunk: passage.index_text for passage in passages for chunk in passage.chunk_ids}
        elements = [
            replace(unit, chunk_ids=tuple(chunk for chunk in unit.chunk_ids if chunk in texts)) for unit in units
        ]
        written, _ = await summarize_elements(elements, texts, view.language_model)
        return written


def _positions(ids: Sequence[str], view: View) -> list[int]:
    """Positions of units; unknown ids are left out."""
    positions = view.places()
    return [positions[name] for name in ids if name in positions]


@dataclass(frozen=True, slots=True)
class MsragContext(RerankSettings):
    """Settings of the rerank of voted passages, and of summaries for answers.

    Attributes:
        rerank: `model` (no effect without a model), `cross_encoder` or `none`.
        rerank_pool: Number of passages that the model sees (the paper's lambda 4).
        rerank_named: Number of passages that the model selects.
        rerank_model: Another model for `rerank="model"`; see `Rerank`. Empty means the model of the index.
        rerank_ms: Milliseconds that the cross-encoder may read: as many of the first passages as fit. 0 for all of
            `rerank_pool`.
        rerank_weight: Weight of the cross-encoder beside the ranking's own scores; see `RerankSettings`.
        rerank_characters: Characters of each passage that it reads; see `RerankSettings`.
        cross_encoder: The cross-encoder: `onnx:NAME_OR_FOLDER` (extra `onnx`), or name or folder of one for
            sentence-transformers (extra `rerank`).
        summaries: When a language model summarises an entity or relation, for answers only: `lazy`, when it is used in
            a prompt; `eager`, when the index is built; `none`.

    Raises:
        ConfigurationError: A setting is not allowed, or has no effect.
    """

    rerank: str = setting("model", choices=("model", "cross_encoder", "none"))
    rerank_pool: int = setting(5, low=1, high=1000)
    rerank_named: int = setting(2, low=1)
    summaries: str = setting("none", choices=("none", "lazy", "eager"))


@register
def msrag(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """MS-RAG: three recalls, neighbours in the graph, votes for passages, and a rerank.

    `vote="count", hop_decay=1.0, link=False, literals=True, skip_types=[]` is as published, with its hops read as a
    bounded fan-out (`fanout=None` is the text's letter); `fusion="priority", rerank="none"` its row without rerank;
    `entities=0, relations=0` its row without the graph; `expand="ppr"` and `extraction="llm"` rows of
    Table 7; `disambiguate=False` Table 13.

    Args:
        **settings: Those of `MixRecall`, `MsragContext` and `KnowledgeGraph`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.extend import KnowledgeGraph
    from sire_core.papers.msrag.rank import MixRecall

    resolved = ResolvedSettings(
        settings,
        Component(MixRecall),
        Component(MsragContext),
        Component(KnowledgeGraph, without=("index_units", "index_relations", "summaries")),
    )
    context = resolved.make(MsragContext)
    graph = resolved.make(KnowledgeGraph, index_units=True, summaries=context.summaries == "eager")
    return Recipe(
        name="msrag",
        summary="passages by votes of similar entities, relations and passages, and of their neighbours in a graph",
        paper="MS-RAG",
        organizers=(graph,),
        ranker=resolved.make(MixRecall),
        selectors=context.selectors(),
        context=None if context.summaries == "none" else ElementContext(),
        native="triples",
        config=resolved.config,
        texts=resolved.texts,
    )
