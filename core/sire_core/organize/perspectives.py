"""`Perspectives`: several different hierarchies of the entities and reports on their clusters (SMART; ALGORITHMS 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.protocols import Delta
from sire_core.types import Unit, UnitKind, digest

if TYPE_CHECKING:
    from sire_core.algorithms.encoding_tree import EncodingTree
    from sire_core.algorithms.undirected import UndirectedGraph
    from sire_core.organize.entity_network import EntityNetwork
    from sire_core.protocols import BuildView, Change

__all__ = ["Perspectives"]

_FEWEST = 4
"""Smaller graphs have no clusters worth a report (ALGORITHMS 6.5)."""


@dataclass(frozen=True, slots=True)
class Perspectives:
    """Trees over the entities of the knowledge graph, each informative and different from the others.

    After a change, entities that stay keep their clusters and new ones join their neighbours'; the trees are made anew
    when one of them explains less than `1 - drift` of the share of the graph's entropy that it explained when it was
    made, or when a `drift` share of the entities is new. A report is written again only when its evidence changed.

    Attributes:
        abstractor: `greedy`, or `neural` (extra `torch`).
        kappa: Trees.
        levels: Levels of each.
        diversity: Weight of being different (the paper's lambda); 0 leaves it out.
        edge_weight: `strength` or `binary`.
        loss: Of the neural abstractor, `se` or `modularity`.
        report_tokens: Length of a report that a model writes.
        extract_tokens: Length of the sentences of a report without a model, and of one on fewer than three entities.
        context_tokens: Most tokens of what a model is shown for one report.
        drift: See above.

    Raises:
        ConfigurationError: A setting is unknown or too small.
    """

    abstractor: str = "greedy"
    kappa: int = 3
    levels: int = 3
    diversity: float = 1.0
    edge_weight: str = "strength"
    loss: str = "se"
    report_tokens: int = 300
    extract_tokens: int = 54
    context_tokens: int = 4_000
    drift: float = 0.1

    def __post_init__(self) -> None:
        choices = (
            ("abstractor", ("greedy", "neural")),
            ("edge_weight", ("strength", "binary")),
            ("loss", ("se", "modularity")),
        )
        for name, known in choices:
            if getattr(self, name) not in known:
                raise ConfigurationError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}.")
        if min(self.kappa, self.levels, self.report_tokens, self.extract_tokens) < 1 or self.diversity < 0:
            raise ConfigurationError(
                "Perspectives need kappa, levels, report_tokens and extract_tokens of at least 1 and diversity >= 0."
            )
        if self.context_tokens < 2 * self.report_tokens or not 0 <= self.drift <= 1:
            raise ConfigurationError("context_tokens must hold two reports of report_tokens, and drift be in [0, 1].")

    @property
    def name(self) -> str:
        """Short name."""
        return "perspectives"

    @property
    def requires(self) -> tuple[str, ...]:
        """Reads entities and who names them from the knowledge graph."""
        return ("knowledge_graph",)

    @property
    def needs_records(self) -> bool:
        """Reads relations and statements."""
        return True

    @property
    def needs_summaries(self) -> bool:
        """Has its reports written by the model, where there is one."""
        return True

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        from dataclasses import asdict

        return {**asdict(self), "version": "v1"}

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            f"{self.kappa} hierarchies of {self.levels} levels over the entities, and a report on every cluster that "
            "several passages speak of; with a language model one call per report, without one no calls."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring trees and reports up to date with the change."""
        if not change:
            return Delta()
        import asyncio

        from sire_core.organize.entity_network import read_network
        from sire_core.organize.perspective_quality import describe_trees, information
        from sire_core.organize.perspective_reports import ReportWriter
        from sire_core.organize.perspective_trees import graph_of, labels_by_key

        edges = view.required("knowledge_graph")[1]
        network = await asyncio.to_thread(
            read_network, view.chunk_units, edges, view.records(), edge_weight=self.edge_weight
        )
        graph = graph_of(network)
        trees, built = await self._trees(network, graph, view)
        writer = ReportWriter(network, view, self.report_tokens, self.extract_tokens, self.context_tokens)
        written = await writer.write(trees)
        state = {
            "labels": labels_by_key(trees, network),
            "built": built or {"information": information(graph, trees), "new": 0},
            "figures": {"perspectives": describe_trees(graph, trees)},
        }
        return written.delta(view, state)

    async def _trees(
        self, network: EntityNetwork, graph: UndirectedGraph, view: BuildView
    ) -> tuple[Sequence[EncodingTree], Mapping[str, Any] | None]:
        """Trees, and what is noted of how they were made; None when they are made now."""
        import asyncio

        from sire_core.organize.perspective_quality import information
        from sire_core.organize.perspective_trees import carried_over

        if network.size < _FEWEST or not len(graph.edges):
            return (), None
        before = view.state()
        stored, built = before.get("labels", {}), before.get("built", {})
        new = built.get("new", 0) + sum(key not in stored for key in network.keys)
        if stored and new <= self.drift * network.size:
            trees = await asyncio.to_thread(carried_over, stored, network, graph)
            now = information(graph, trees)
            if all(n >= (1 - self.drift) * then for n, then in zip(now, built["information"], strict=True)):
                return trees, {**built, "new": new}
        return await self._abstract(network, graph, view), None

    async def _abstract(
        self, network: EntityNetwork, graph: UndirectedGraph, view: BuildView
    ) -> Sequence[EncodingTree]:
        import asyncio

        seed = int(view.rng("perspectives").integers(2**31))
        view.progress("perspectives", 0, self.kappa)
        if self.abstractor == "greedy":
            from sire_core.algorithms.perspectives import abstract_greedy

            trees = await asyncio.to_thread(
                abstract_greedy, graph, kappa=self.kappa, levels=self.levels, diversity=self.diversity, seed=seed
            )
        else:
            from sire_core.abstractors.neural import NeuralSettings, abstract_neural

            features = await view.vectors(_described(network))
            settings = NeuralSettings(loss=self.loss, diversity=self.diversity)
            trees = await asyncio.to_thread(
                abstract_neural, graph, features, kappa=self.kappa, levels=self.levels, settings=settings, seed=seed
            )
        view.progress("perspectives", self.kappa, self.kappa)
        return tuple(trees)


def _described(network: EntityNetwork) -> list[Unit]:
    """Entities as texts to embed: name and description. They are not stored."""
    texts = []
    for vertex, key in enumerate(network.keys):
        name = key.split("\0")[0]
        description = network.about.get(vertex, ("", 0))[0]
        texts.append(f"{name}: {description}" if description else name)
    return [Unit(digest("entity text", text), UnitKind.ENTITY, text, ("",)) for text in texts]
