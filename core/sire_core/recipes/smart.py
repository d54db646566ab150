"""`smart`: perspectives by structural entropy above any base ranker (SMART; ALGORITHMS 6)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.organize.knowledge_graph import KnowledgeGraph
from sire_core.organize.perspectives import Perspectives
from sire_core.recipes.base import Recipe, configure, register

if TYPE_CHECKING:
    from sire_core.protocols import Ranker

__all__ = ["SmartConfig", "smart"]


@dataclass(frozen=True, slots=True)
class SmartConfig:
    """Settings of `smart`; those of the trees and reports are explained at `Perspectives`.

    `kappa`, `levels` and `diversity` have the paper's values; `cap=None` is its letter: every report above the hits.

    Attributes:
        base: What ranks the passages: `dense`, `bm25`, `hybrid`, `pagerank` or `mix_recall`.
        cap: Most reports of a context; see `Comprehensive`.
        abstractor: `greedy` or `neural`.
        kappa: Trees.
        levels: Levels of each.
        diversity: Weight of being different.
        edge_weight: `strength` or `binary`.
        loss: Of the neural abstractor.
        report_tokens: Length of a report that a model writes.
        extract_tokens: Length of the sentences of a report without a model.
        context_tokens: Most tokens of what a model is shown for one report.
        drift: When trees are made anew.
        disambiguate: Whether aliases are merged.
    """

    base: str = "dense"
    cap: int | str | None = "third"
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
    disambiguate: bool = True


@register
def smart(config: SmartConfig | None = None, /, **settings: Any) -> Recipe:
    """SMART: reports on clusters of entities, from several perspectives, join the passages of any base ranker.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `SmartConfig`.

    Raises:
        ConfigurationError: A setting is unknown or impossible.
    """
    from sire_core.search.comprehensive import Comprehensive

    c = configure(SmartConfig, config, settings)
    perspectives = Perspectives(
        abstractor=c.abstractor,
        kappa=c.kappa,
        levels=c.levels,
        diversity=c.diversity,
        edge_weight=c.edge_weight,
        loss=c.loss,
        report_tokens=c.report_tokens,
        extract_tokens=c.extract_tokens,
        context_tokens=c.context_tokens,
        drift=c.drift,
    )
    graph = KnowledgeGraph(index_units=c.base == "mix_recall", disambiguate=c.disambiguate)
    return Recipe(
        name="smart",
        summary="passages of a base ranker, and reports on the entities they name from several perspectives",
        paper="SMART",
        organizers=(graph, perspectives),
        ranker=_base(c.base),
        selectors=(Comprehensive(c.cap),),
        config=asdict(c),
    )


def _base(name: str) -> Ranker:
    if name == "pagerank":
        from sire_core.search.pagerank import PageRank

        return PageRank()
    if name == "mix_recall":
        from sire_core.search.mix_recall import MixRecall

        return MixRecall()
    if name == "dense":
        from sire_core.search.flat import Flat

        return Flat()
    if name not in ("bm25", "hybrid"):
        raise ConfigurationError(f"base is 'dense', 'bm25', 'hybrid', 'pagerank' or 'mix_recall', not {name!r}.")
    from sire_core.search.hybrid import Hybrid
    from sire_core.search.lexical import Lexical
    from sire_core.search.without_kinds import WithoutKinds

    # Passages are ranked as if there were no reports: neither their words nor their ranks count.
    lexical = Lexical(leave_out=("report",))
    return lexical if name == "bm25" else Hybrid((WithoutKinds(_base("dense"), ("report",)), lexical))
