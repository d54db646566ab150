"""`Perspectives`: several different hierarchies of the entities and reports on their clusters (SMART)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.extend import (
    ConfigurationError,
    Delta,
    OrganizerBase,
    Unit,
    UnitKind,
    check_settings,
    digest,
    need_torch,
    positions_in,
    refuse_unused,
    setting,
)

if TYPE_CHECKING:
    from sire_core.extend import BuildView, Change
    from sire_core.papers.smart.entity_network import EntityNetwork
    from sire_core.papers.smart.entity_views import EvidenceView
    from sire_core.papers.smart.perspectives import Perspective, StoredTrees

_TREES = "trees"
_RELATIONS = "relations"
_NEURAL = ("loss", "information", "assign", "nest", "mu", "sizes", "epochs", "polish")
_MIN_ENTITIES = 4  # Smaller graphs get no trees


@dataclass(frozen=True, slots=True)
class Perspectives(OrganizerBase):
    """Trees over the entities of the knowledge graph, each informative and different from the others.

    After a change, entities keep their clusters and new ones join those of their neighbours; the finest clusters with
    a changed entity are grouped again. All trees are made again when one of them explains less than `1 - drift` of the
    share of its view's entropy that it explained when it was made, or when a `drift` share of the entities is new. The
    graph is made anew from the stored records, and so are the reports; a model is asked for those whose evidence
    changed.

    Attributes:
        abstractor: `greedy`, or `neural` (extra `torch`).
        kappa: Number of perspectives (trees).
        levels: Levels of each tree.
        diversity: Weight of the difference between perspectives (the paper's lambda); 0 ignores it.
        info: Whether trees have to be informative, as in the paper; False requires only that they differ.
        edge_weight: `strength` or `binary`.
        views: The graphs in which trees are found: `all` (relations, also by kind; co-occurrence; shared neighbours,
            roles, descriptions), or `relations` only, as published.
        loss: Loss of the neural abstractor: `se` or `modularity`.
        information: What the neural abstractor minimises between trees: `mi`, in bits, or `nmi`.
        assign: Memberships of the neural abstractor: `softmax`, or `sigmoid` as published.
        nest: Levels of the neural abstractor: `chain` learns parents; `repair` makes levels nest afterwards, as
            published.
        mu: Weight of the balance term in the loss `modularity`; None is 1 over the sum of the matrix, the paper has
            0.001.
        sizes: Number of clusters per level of the neural abstractor, finest first; None derives it from the number of
            entities.
        epochs: Maximum training epochs of the neural abstractor.
        polish: Rounds in which the neural abstractor moves entities between learned clusters; 0 turns this off.
        min_passages: Passages that a report needs; the contents of a cluster with fewer go into the report above it.
            1 gives every cluster a report, as published.
        report_tokens: Maximum tokens of a report by a model.
        extract_tokens: Maximum tokens of a report without a model, or on fewer than three entities.
        context_tokens: Maximum tokens of the model's input for one report.
        drift: Rebuild the trees when they have lost this share of their quality, or after changes to this share of the
            graph.

    Raises:
        ConfigurationError: A setting is unknown or too small.
    """

    name: ClassVar[str] = "perspectives"
    requires = ("knowledge_graph",)  # has the entities and their mentions
    needs_summaries = True

    abstractor: str = setting("greedy", choices=("greedy", "neural"))
    kappa: int = setting(3, low=1)
    levels: int = setting(3, low=1, high=20)
    diversity: float = setting(1.0, low=0.0)
    info: bool = True
    edge_weight: str = setting("strength", choices=("strength", "binary"))
    views: str = setting("all", choices=("all", _RELATIONS))
    loss: str = setting("se", choices=("se", "modularity"))
    information: str = setting("mi", choices=("mi", "nmi"))
    assign: str = setting("softmax", choices=("softmax", "sigmoid"))
    nest: str = setting("chain", choices=("chain", "repair"))
    mu: float | None = setting(None, low=0.0)
    sizes: tuple[int, ...] | None = None
    epochs: int = setting(200, low=1, high=100_000)
    polish: int = setting(4, low=0, high=1000)
    min_passages: int = setting(2, low=1, high=2)
    report_tokens: int = setting(300, low=1)
    extract_tokens: int = setting(54, low=1)
    context_tokens: int = setting(4_000, low=2)
    drift: float = setting(0.1, low=0.0, high=1.0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.abstractor == "greedy":
            refuse_unused(self, "abstractor='greedy'", _NEURAL)
        else:
            refuse_unused(self, "abstractor='neural'", ("views",))
            if self.loss == "se":
                refuse_unused(self, "loss='se'", ("mu",))
        sizes = self.sizes or ()
        if self.sizes is not None and (
            len(sizes) != self.levels or not all(type(size) is int and size >= 1 for size in sizes)
        ):
            raise ConfigurationError(
                f"sizes are {self.levels} whole numbers of clusters, one per level, the finest first."
            )
        if self.context_tokens < 2 * self.report_tokens:
            raise ConfigurationError("context_tokens must hold two reports of report_tokens.")

    def check_installed(self) -> None:
        """Refuse to build learned trees without torch; a search does not need it."""
        if self.abstractor == "neural":
            need_torch("abstractor='neural'")

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that change what is built."""
        values = {**asdict(self), "version": "v3"}
        values["sizes"] = None if self.sizes is None else list(self.sizes)  # as JSON has it
        if self.min_passages == 2:
            del values["min_passages"]  # a later setting, whose default leaves ids of reports as they were
        return values

    def describe(self) -> str:
        """Describe what is built, and what it costs."""
        return (
            f"{self.kappa} hierarchies of {self.levels} levels over the entities, and a report on every cluster with "
            "several passages. Model calls: one per report with a language model, none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring trees and reports up to date with the change."""
        if not change:
            return Delta()
        from sire_core.papers.smart.entity_network import read_network
        from sire_core.papers.smart.perspectives import StoredTrees, describe_trees
        from sire_core.papers.smart.reports import ReportLimits, write_reports

        network = await asyncio.to_thread(read_network, view, edge_weight=self.edge_weight)
        perspectives, views, new = await self._perspectives(network, view)
        tokens = self.report_tokens, self.extract_tokens, self.context_tokens
        limits = ReportLimits(self.levels, self.min_passages, *tokens)
        delta = await write_reports(network, view, limits, perspectives, views)
        graphs = [one.graph for one in views]
        figures = await asyncio.to_thread(describe_trees, network.graph, perspectives, graphs)
        shares = {"information": [p.information for p in perspectives], "views": [p.view for p in perspectives]}
        built = {**shares, "new": 0} if new is None else {**view.state()["built"], "new": new}
        trees = StoredTrees.of([one.tree for one in perspectives], network)
        return replace(
            delta,
            state={"built": built, "figures": {"perspectives": figures}},
            notes={**delta.notes, _TREES: trees.to_note()},
        )

    async def _perspectives(
        self, network: EntityNetwork, view: BuildView
    ) -> tuple[Sequence[Perspective], Sequence[EvidenceView], int | None]:
        """Return trees, their views, and how many entities are new since the trees were made (None: just now)."""
        from sire_core.papers.smart.perspectives import StoredTrees

        if network.size < _MIN_ENTITIES or not len(network.graph.edges):
            return (), (), None
        stored, built = StoredTrees.from_note(view.notes([_TREES]).get(_TREES)), view.state().get("built", {})
        new = built.get("new", 0) + int((positions_in(stored.keys, network.keys) < 0).sum())
        if stored.labels.size and new <= self.drift * network.size:
            carried = await asyncio.to_thread(self._carry_over, stored, built, network)
            if carried is not None:
                return *carried, new
        views = await asyncio.to_thread(self._evidence_views, network)
        perspectives = await self._abstract(network, views, view)
        return perspectives, [views[one.view] for one in perspectives], None

    def _evidence_views(self, network: EntityNetwork) -> dict[str, EvidenceView]:
        from sire_core.papers.smart.entity_views import EvidenceView, evidence_views

        only_relations = self.views == _RELATIONS or self.abstractor == "neural"
        return {_RELATIONS: EvidenceView(network.graph)} if only_relations else evidence_views(network)

    def _carry_over(
        self, stored: StoredTrees, built: Mapping[str, Any], network: EntityNetwork
    ) -> tuple[Sequence[Perspective], Sequence[EvidenceView]] | None:
        """Return the stored trees; None if a view is gone or a tree explains too little of its view."""
        from sire_core.papers.smart.perspectives import Perspective, carried_over, information_share

        names = built["views"]
        available = self._evidence_views(network)
        if not all(name in available for name in names):
            return None
        views = [available[name] for name in names]
        trees = carried_over(stored, network, views)
        perspectives = [
            Perspective(tree, name, information_share(one.graph, tree))
            for tree, name, one in zip(trees, names, views, strict=True)
        ]
        least = [(1 - self.drift) * before for before in built["information"]]
        good = all(one.information >= bound for one, bound in zip(perspectives, least, strict=True))
        return (perspectives, views) if good else None

    async def _abstract(
        self, network: EntityNetwork, views: Mapping[str, EvidenceView], view: BuildView
    ) -> Sequence[Perspective]:
        from sire_core.papers.smart.perspectives import RELATIONS, Perspective, abstract_greedy, information_share

        graph = network.graph
        seed = int(view.rng("perspectives").integers(2**31))
        view.progress("perspectives", 0, self.kappa)
        if self.abstractor == "greedy":
            perspectives: Sequence[Perspective] = await asyncio.to_thread(
                abstract_greedy,
                graph,
                kappa=self.kappa,
                levels=self.levels,
                diversity=self.diversity,
                informative=self.info,
                views={name: one.graph for name, one in views.items() if name != RELATIONS},
                seed=seed,
            )
        else:
            from sire_core.papers.smart.soft_trees import abstract_neural

            features = await view.vectors(_entity_texts(network))
            trees = await asyncio.to_thread(abstract_neural, graph, features, self, seed)
            perspectives = [Perspective(tree, RELATIONS, information_share(graph, tree)) for tree in trees]
        view.progress("perspectives", self.kappa, self.kappa)
        return perspectives


def _entity_texts(network: EntityNetwork) -> list[Unit]:
    """Return entities as texts to embed, name and description; they are not stored."""
    names: dict[int, str] = {}
    spelled = (name for stated in network.stated for name in stated.names)
    for vertex, name in zip(network.mentions.tolist(), spelled, strict=True):
        names.setdefault(vertex, name)
    descriptions = network.descriptions(range(network.size))
    described = [f"{names[v]}: {descriptions[v][0]}" if v in descriptions else names[v] for v in range(network.size)]
    return [Unit(digest("entity text", text), UnitKind.ENTITY, text, ("",)) for text in described]
