"""`smart`: perspectives by structural entropy above any base ranker (SMART)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sire_core.organize.knowledge_graph import KnowledgeGraph
from sire_core.organize.perspectives import Perspectives
from sire_core.protocols import Recipe
from sire_core.recipes.base import register
from sire_core.settings import Chosen, Part, check_settings, setting

if TYPE_CHECKING:
    from sire_core.protocols import Organizer, Ranker

__all__ = ["SmartBase", "smart"]


@dataclass(frozen=True, slots=True)
class SmartBase:
    """What SMART's reports stand beside.

    Attributes:
        base: The ranker of the passages: `dense`, `bm25`, `hybrid`, `pagerank`, `mix_recall`, `sire` or `iier` (with
            the defaults of that recipe).
    """

    base: str = setting("dense", choices=("dense", "bm25", "hybrid", "pagerank", "mix_recall", "sire", "iier"))

    def __post_init__(self) -> None:
        check_settings(self)


@register
def smart(**settings: Any) -> Recipe:
    """SMART: reports on clusters of entities, from several perspectives, join the passages of any base ranker.

    `kappa`, `levels` and `diversity` have the paper's values; `cap=None` is as published: every report above the hits.

    Args:
        **settings: Those of `Perspectives`, `KnowledgeGraph`, `ReportSelector` and `base`: `dense`, `bm25`, `hybrid`,
            `pagerank`, `mix_recall`, `sire` or `iier`; or a `Ranker` of your own, over what SMART and the passages
            bring. An index that is opened by its name alone then ranks with `dense`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.search.selectors.report_lines import ReportLines
    from sire_core.search.selectors.reports import ReportSelector

    own = settings.get("base")
    if own is not None and callable(getattr(own, "rank", None)):
        made = smart(**{name: value for name, value in settings.items() if name != "base"})
        return replace(made, ranker=own)
    chosen = Chosen(
        settings,
        Part(SmartBase),
        Part(ReportSelector),
        Part(Perspectives),
        Part(KnowledgeGraph, without=("index_units", "summaries")),
    )
    base = chosen.make(SmartBase).base
    graph = chosen.make(KnowledgeGraph, index_units=base == "mix_recall")
    return Recipe(
        name="smart",
        summary="passages of a base ranker, and reports on the entities they name from several perspectives",
        paper="SMART",
        organizers=(*_below(base), graph, chosen.make(Perspectives)),
        ranker=_base(base),
        selectors=(chosen.make(ReportSelector),),
        context=ReportLines(),
        config=chosen.config,
        texts=chosen.texts,
    )


def _below(base: str) -> tuple[Organizer, ...]:
    """What a base ranker needs beside the knowledge graph."""
    if base != "iier":
        return ()
    from sire_core.organize.interaction_graph import InteractionGraph

    return (InteractionGraph(),)


def _base(name: str) -> Ranker:
    if name == "iier":
        from sire_core.search.chains.evidence_chains import EvidenceChains
        from sire_core.search.chains.scorers import HeuristicScorer

        return EvidenceChains(scorer=HeuristicScorer())
    if name == "pagerank":
        from sire_core.search.rankers.pagerank import PageRank

        return PageRank()
    if name == "sire":
        from sire_core.search.rankers.evidence_paths import EvidencePaths

        return EvidencePaths()
    if name == "mix_recall":
        from sire_core.search.rankers.mix_recall import MixRecall

        return MixRecall()
    if name == "dense":
        from sire_core.search.vectors.flat import Flat

        return Flat()
    from sire_core.search.rankers.hybrid import ExcludeKinds, Hybrid
    from sire_core.search.rankers.lexical import Lexical

    # Passages are ranked as if there were no reports: neither their words nor their ranks count.
    lexical = Lexical(leave_out=("report",))
    return lexical if name == "bm25" else Hybrid((ExcludeKinds(_base("dense"), ("report",)), lexical))
