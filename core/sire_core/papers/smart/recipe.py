"""`smart`: perspectives by structural entropy above any base ranker (SMART)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sire_core.extend import (
    Component,
    ConfigurationError,
    Recipe,
    ResolvedSettings,
    check_settings,
    recipe_by_name,
    register,
    register_edge_note,
    setting,
)
from sire_core.papers.smart import REPORTS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings, Edge, Organizer, Ranker


_TYPES = re.compile(r"[\w -]{1,40}(,[\w -]{1,40})*")


@dataclass(frozen=True, slots=True)
class SmartBase:
    """The ranker of passages below SMART, and what its own prompts ask for.

    Attributes:
        base: The ranker of the passages: `dense`, `bm25`, `hybrid`, `pagerank`, `mix_recall`, `sire` or `iier` (with
            the defaults of that recipe).
        entity_types: Types of entities that `extraction="native"` asks a model for, separated by commas; empty for
            those of the paper. Another extraction does not use it.

    Raises:
        ConfigurationError: A value is not allowed.
    """

    base: str = setting("dense", choices=("dense", "bm25", "hybrid", "pagerank", "mix_recall", "sire", "iier"))
    entity_types: str = setting("", wording=True)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.entity_types and not _TYPES.fullmatch(self.entity_types):
            raise ConfigurationError(
                "entity_types are names of at most 40 letters, digits, spaces and hyphens each, separated by commas, "
                f"such as 'Disease, Drug', not {self.entity_types!r}."
            )


@register
def smart(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """SMART: reports on clusters of entities, from several perspectives, join the passages of any base ranker.

    `kappa`, `levels` and `diversity` have the paper's values; `cap=None` is as published: every report above the hits.

    Args:
        **settings: Those of `Perspectives`, `KnowledgeGraph`, `ReportSelector` and `SmartBase`. `base` may also be a
            `Ranker` of your own, over what SMART and the passages bring; an index that is opened by its name alone then
            ranks with `dense`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.extend import KnowledgeGraph
    from sire_core.papers.smart.derive import Perspectives
    from sire_core.papers.smart.select import ReportLines, ReportSelector

    base = settings.get("base")
    if base is not None and not isinstance(base, str) and callable(getattr(base, "rank", None)):
        others = settings.copy()
        del others["base"]
        return replace(smart(**others), ranker=base)
    chosen = ResolvedSettings(
        settings,
        Component(SmartBase),
        Component(ReportSelector),
        Component(Perspectives),
        Component(KnowledgeGraph, without=("index_units", "index_relations", "summaries")),
    )
    passages = chosen.make(SmartBase)
    ranker, below = _base(passages.base)
    graph = chosen.make(KnowledgeGraph, index_units=passages.base == "mix_recall")
    return Recipe(
        name="smart",
        summary="passages of a base ranker, and reports on the entities they name from several perspectives",
        paper="SMART",
        organizers=(*below, graph, chosen.make(Perspectives)),
        ranker=ranker,
        selectors=(chosen.make(ReportSelector),),
        context=ReportLines(),
        native=f"strengths:{passages.entity_types}" if passages.entity_types else "strengths",
        config=chosen.config,
        texts=chosen.texts,
    )


def _base(name: str) -> tuple[Ranker, tuple[Organizer, ...]]:
    """Return a base ranker as its recipe has it, and the organizers it needs besides the knowledge graph."""
    if name in ("bm25", "hybrid"):
        from sire_core.extend import ExcludeKinds, Flat, Hybrid, Lexical

        # Passages are ranked as if there were no reports: neither their words nor their ranks count.
        lexical = Lexical(leave_out=("report",))
        return (lexical if name == "bm25" else Hybrid((ExcludeKinds(Flat(), ("report",)), lexical))), ()
    from sire_core.extend import KnowledgeGraph

    recipe = recipe_by_name({"dense": "flat", "mix_recall": "msrag"}.get(name, name))
    return recipe.ranker, tuple(
        organizer for organizer in recipe.organizers if not isinstance(organizer, KnowledgeGraph)
    )


def _stored_edges(_: str, note: bytes) -> Iterable[Edge]:
    from sire_core.papers.smart.report_nodes import ReportTable

    return ReportTable.from_note(note)


register_edge_note(REPORTS, _stored_edges)
