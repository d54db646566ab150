"""`MixRecall`: entities, relations and passages recalled together vote for passages (MS-RAG, section 3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from sire_core.extend import (
    EntityGraph,
    IdPositions,
    PathStep,
    Prompt,
    ScoredRanking,
    answer_or_reason,
    best_first,
    check_settings,
    cosine_step,
    refuse_unused,
    setting,
    with_failure,
)
from sire_core.papers.msrag.element_graph import RelationGraph, RelationWalk, nearby_entities, nearby_relations

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, Filter, FloatArray, IntArray, LanguageModel, Ranking, View

_RECALL_INSTRUCTIONS = (
    "The data is a question. List the named entities it names (people, places, works, organizations, dates) and the "
    "relations it asks about, each relation as a short statement of head, predicate and tail with the unknown end as a "
    "plain noun, for example: The Long Tide directed by person."
)
_MAX_ITEMS = 10  # Maximum entities, and relations, that are used of an answer


class QuestionItems(BaseModel):
    """Entities and relations that a model finds in a question (MS-RAG, table 7)."""

    shape: ClassVar[str] = '{"entities":[""],"relations":[""]}'

    entities: list[str] = Field(default_factory=list)
    relations: list[str] = Field(default_factory=list)


async def find_items(query: str, model: LanguageModel) -> QuestionItems:
    """Ask a model for the entities and relations of a question; one call, and a second one if it is unreadable."""
    answer = await model.complete(Prompt(_RECALL_INSTRUCTIONS, query), schema=QuestionItems, max_tokens=300)
    return QuestionItems(entities=_clean(answer.parsed.entities), relations=_clean(answer.parsed.relations))


def _clean(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(" ".join(item.split()) for item in items if item.strip()))[:_MAX_ITEMS]


_MAX_PATH_VOTES = 5  # Maximum votes in a path
_TIE = 1e-4  # Weight of the cosine among passages with equal votes


@dataclass(frozen=True, slots=True)
class MixRecall:
    """Ranks passages by the votes of entities, relations and passages similar to the question and of their neighbours.

    Needs `KnowledgeGraph(index_units=True)`. Passages without a vote follow by cosine, then entities and relations.
    Entities and relations that a filter forbids are neither recalled nor walked through.

    Attributes:
        entities: Number of entities retrieved by vector (the paper's lambda 1); 0 turns it off.
        relations: Number of relations retrieved (lambda 2).
        chunks: Number of passages retrieved (lambda 3).
        entity_hops: Hops from the retrieved entities; the paper does not say.
        relation_hops: Hops from the retrieved relations (lambda h).
        fanout: Number of relations kept at every hop, those most similar to the question; with PageRank, of entities
            and relations; None keeps all.
        vote: `count` (every vote has its full weight, as published) or `similarity` (weight times cosine).
        hop_decay: The vote of an item h hops away is multiplied by this to the power of h; 1 is as published.
        fusion: `vote`; or `priority`: passages of entities, then of relations, then those retrieved directly (the
            paper's row without voting).
        extraction: How entities and relations are retrieved: `vector`, by the whole question, as in the paper; or
            `llm`, by what a language model extracts from the question (no effect without a model).
        link: Whether entities named in the question, by title, name or alias, are retrieved before similar ones (not in
            the paper). If d passages name an entity, its vote has the weight `d ** -0.5`.
        expand: `nearby`, `none`, or `ppr`: instead of neighbours, add what PageRank from the retrieved entities
            reaches, as if one hop away (MS-RAG, Table 7).
        damping: Probability of following an edge instead of restarting, with `expand=ppr`.
    """

    entities: int = setting(5, low=0)
    relations: int = setting(10, low=0)
    chunks: int = setting(10, low=0)
    entity_hops: int = setting(1, low=0, high=20)
    relation_hops: int = setting(4, low=0, high=20)
    fanout: int | None = setting(10, low=1)
    vote: str = setting("similarity", choices=("count", "similarity"))
    hop_decay: float = setting(0.5, low=0.0, high=1.0)
    fusion: str = setting("vote", choices=("vote", "priority"))
    extraction: str = setting("vector", choices=("vector", "llm"))
    link: bool = True
    expand: str = setting("nearby", choices=("nearby", "ppr", "none"))
    damping: float = setting(0.5, low=0.0, high=0.99)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.expand == "ppr":
            refuse_unused(self, "expand='ppr'", ("entity_hops", "relation_hops"))
        else:
            refuse_unused(self, f"expand={self.expand!r}", ("damping",))
        if self.expand == "none":
            refuse_unused(self, "expand='none'", ("entity_hops", "relation_hops", "fanout", "hop_decay"))
        if self.fusion != "vote":
            refuse_unused(self, f"fusion={self.fusion!r}", ("vote", "hop_decay"))

    async def rank(self, query: str, n: int, view: View, where: Filter | None = None) -> Ranking:  # noqa: ARG002 - every unit gets a score anyway
        """Rank the units that pass the filter."""
        question = await view.embed_query(query)
        named, failure = await self._named(query, view) if view.size else (None, "")
        allowed = view.allowed(where)
        cosines = await view.cosines(query, question, where)
        ranking = await asyncio.to_thread(self._rank, query, cosines, named, view, allowed)
        return with_failure(ranking, "question", "read as it is", failure)

    async def _named(self, query: str, view: View) -> tuple[tuple[FloatArray, FloatArray] | None, str]:
        """Vectors of the entities and of the relations that the model finds (None: use the question), and its error."""
        if self.extraction != "llm" or view.language_model is None:
            return None, ""

        items, failure = await answer_or_reason(
            find_items(query, view.language_model), "the question's own vector decides"
        )
        if items is None or not (items.entities or items.relations):
            return None, failure
        both = (*items.entities, *items.relations)
        vectors = await view.embed_queries(both) if both else np.empty((0, view.matrix.shape[1]), dtype=np.float32)
        return (vectors[: len(items.entities)], vectors[len(items.entities) :]), ""

    def _rank(
        self,
        query: str,
        cosines: FloatArray,
        named: tuple[FloatArray, FloatArray] | None,
        view: View,
        allowed: BoolArray | None,
    ) -> Ranking:
        if not view.size:
            return ScoredRanking(np.zeros(0, dtype=np.float32), None, lambda _: ())
        graph = RelationGraph.of(view)
        closed = slice(0) if allowed is None else ~allowed
        measured, cosines = cosines, cosines.copy()  # named units count as nearer than they are
        nearest = None if named is None else self._nearest(graph, cosines, named, view, closed)
        spelled = _spelled(query, view, allowed) if self.link and self.entities and nearest is None else {}
        for position, passages in spelled.items():
            cosines[position] = max(cosines[position], passages**-0.5)
        open_cosines = cosines.copy()
        open_cosines[closed] = -np.inf
        entities, relations = nearest or (
            _top(graph.entities, open_cosines, self.entities),
            _top(graph.relations, open_cosines, self.relations),
        )
        seeds = list(dict.fromkeys((*spelled, *entities))), relations
        walk = RelationWalk.of(view, graph) if self.expand == "ppr" else None
        reached = walk.nearby(seeds[0], self.fanout, self.damping, allowed) if walk else ([], [])
        recalled = self._recall(graph, open_cosines, *seeds, *reached)
        weights = {item: self._weight(hop, float(cosines[item])) for item, (_, hop) in recalled.items()}
        voters: dict[int, list[int]] = {}
        for item in recalled:
            for passage in graph.passages(item, view):
                voters.setdefault(passage, []).append(item)
        scores = cosines - 5.0  # entities and relations
        scores[graph.chunks] = cosines[graph.chunks] - 2.0  # passages without a vote
        if self.fusion == "priority":
            scores[list(voters)] = np.arange(len(voters), 0, -1)
        else:
            for passage, items in voters.items():
                if (vote := sum(weights[item] for item in items)) > 0:
                    scores[passage] = vote + _TIE * max(float(cosines[item]) for item in items)
        return ScoredRanking(scores, allowed, _Reasons(view, measured, cosines, recalled, voters).path)

    def _nearest(
        self,
        graph: RelationGraph,
        cosines: FloatArray,
        named: tuple[FloatArray, FloatArray],
        view: View,
        closed: BoolArray | slice,
    ) -> tuple[list[int], list[int]]:
        """The nearest unit of every item that the model named; raises `cosines` to those of the items."""
        nearest: list[list[int]] = []
        for kind, vectors, limit in zip(
            (graph.entities, graph.relations), named, (self.entities, self.relations), strict=True
        ):
            similarities = np.asarray(view.matrix @ vectors.T)
            if len(vectors):
                cosines[kind] = np.maximum(cosines[kind], similarities[kind].max(axis=1))
            similarities[closed] = -np.inf
            nearest.append(graph.nearest(kind, similarities) if limit else [])
        return nearest[0], nearest[1]

    def _recall(
        self,
        graph: RelationGraph,
        cosines: FloatArray,
        entities: list[int],
        relations: list[int],
        walked_entities: list[int],
        walked_relations: list[int],
    ) -> dict[int, tuple[str, int]]:
        """Kind and distance of every recalled unit: entities, relations, passages, each by distance and cosine."""
        near_by = self.expand == "nearby"
        hops = (self.entity_hops, self.relation_hops) if near_by else (0, 0)
        near, on_the_way = nearby_entities(entities, graph.incidence, hops[0], self.fanout, cosines)  # type: ignore[arg-type]  # an array is indexed like a sequence
        linked = nearby_relations(relations, graph.incidence, hops[1], self.fanout, cosines)  # type: ignore[arg-type]  # as above
        on_the_way |= dict.fromkeys(walked_relations, 1)
        for relation, hop in on_the_way.items():
            linked[relation] = min(hop, linked.get(relation, hop))
        near = {**near, **{item: 1 for item in walked_entities if item not in near}}  # recalled ones first
        recalled = {item: ("entity", hop) for item, hop in near.items()}
        for relation in sorted(linked, key=lambda item: linked[item]):
            recalled[relation] = ("relation", linked[relation])
        recalled.update((chunk, ("chunk", 0)) for chunk in _top(graph.chunks, cosines, self.chunks))
        return recalled

    def _weight(self, hop: int, cosine: float) -> float:
        return float(self.hop_decay**hop * (max(0.0, cosine) if self.vote == "similarity" else 1.0))


def _top(positions: IntArray, cosines: FloatArray, n: int) -> list[int]:
    """The `n` positions with the highest cosine, best first."""
    if n < 1 or not len(positions):
        return []
    best: list[int] = positions[best_first(cosines[positions], n)].tolist()
    return best


def _spelled(query: str, view: View, allowed: BoolArray | None) -> dict[int, int]:
    """Positions of the allowed entities that a question names, with their numbers of passages."""
    graph = EntityGraph.of(view)
    linked = list(graph.link(query, None if allowed is None else allowed[graph.chunk_positions]))
    positions = IdPositions.of(view).find(np.array([graph.entity_ids[entity] for entity in linked], dtype="S24"))
    return {
        position: max(1, graph.frequency(entity))
        for position, entity in zip(positions.tolist(), linked, strict=True)
        if position >= 0 and (allowed is None or allowed[position])
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Reasons:
    """Paths of hits: the votes for a passage."""

    view: View
    cosines: FloatArray
    raised: FloatArray
    recalled: Mapping[int, tuple[str, int]]
    voters: Mapping[int, list[int]]

    def path(self, position: int) -> tuple[PathStep, ...]:
        """Return a step per vote, then the cosine."""
        view = self.view
        steps = []
        ordered = sorted(self.voters.get(position, ()), key=lambda item: self.recalled[item][1])[:_MAX_PATH_VOTES]
        for item, unit in zip(ordered, view.units(ordered), strict=True):
            kind, hop = self.recalled[item]
            what = "itself" if item == position else repr(unit.text)
            distance = f", {hop} hops from what the question recalls" if hop else ""
            named = f", named there and worth {self.raised[item]:.3f}" if self.raised[item] > self.cosines[item] else ""
            note = f"vote of {what}, cosine {self.cosines[item]:.3f} with the question{named}{distance}"
            steps.append(PathStep(f"vote:{kind}", (unit.id,), note))
        return (*steps, cosine_step(view, position, self.cosines[position]))
