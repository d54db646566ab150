"""`iier`: evidence chains over a graph of passages (IIER; ALGORITHMS 3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.recipes.base import Recipe, configure, register

__all__ = ["IierConfig", "iier"]


@dataclass(frozen=True, slots=True)
class IierConfig:
    """Settings of `iier`; the graph's are explained at `InteractionGraph`, those of the walk at `EvidenceChains`.

    The paper's letter is `kw_min=3, title_keywords=False, seed_match="strict", similar_seeds=0, order="chain"` with the
    scorer `neural`. By default one shared keyword makes an edge, and titles are keywords: the five keywords of a short
    passage rarely have three in common with those of another one, and its title is what other passages name.

    Attributes:
        n_sim: Nearest passages that every passage is joined to.
        links: `union` or `mutual` neighbours.
        exact_below: Larger corpora find the nearest passages approximately.
        kw_min: Shared keywords that make an edge.
        kw_df_cap: Keywords of more passages than this join nothing.
        title_keywords: Whether a passage's title is one of its keywords.
        raw_kw: Whether other edges know their number of shared keywords below `kw_min`.
        use_struc: Whether there are structural edges.
        use_sim: Whether there are semantic edges.
        use_kw: Whether there are keyword edges.
        scorer: `heuristic`, `neural`, `llm` or `random`.
        checkpoint: File of the trained scorer, for `neural`.
        max_length: Passages of a chain at most.
        keywords: Who finds the question's keywords: `model` or `rules`.
        seed_match: `keyword_then_text` or `strict`.
        fallback_seeds: Seeds when no keyword is found.
        similar_seeds: Most similar passages that are seeds in any case.
        order: `score`, `chain`, `iterative` or `shuffle`.
        seed_lift: Worth of being a seed.
        step_lift: Worth of being the first after a seed.
        decay: What a further step leaves of that.
        seed: Of `random` and `shuffle`.
    """

    n_sim: int = 5
    links: str = "union"
    exact_below: int = 50_000
    kw_min: int = 1
    kw_df_cap: int = 50
    title_keywords: bool = True
    raw_kw: bool = False
    use_struc: bool = True
    use_sim: bool = True
    use_kw: bool = True
    scorer: str = "heuristic"
    checkpoint: str = ""
    max_length: int = 5
    keywords: str = "model"
    seed_match: str = "keyword_then_text"
    fallback_seeds: int = 3
    similar_seeds: int = 1
    order: str = "score"
    seed_lift: float = 0.5
    step_lift: float = 0.4
    decay: float = 0.8
    seed: int = 0


@register
def iier(config: IierConfig | None = None, /, **settings: Any) -> Recipe:
    """IIER: chains of passages, from seeds that cover the question's keywords along links between passages.

    Args:
        config: Settings as an object.
        **settings: Or one by one; see `IierConfig`.

    Raises:
        ConfigurationError: Unknown setting, no checkpoint for the neural scorer, or one for another.
        StorageError: The checkpoint cannot be read.
    """
    from sire_core.organize.interaction_graph import InteractionGraph
    from sire_core.search.chain_scorer_names import make_scorer
    from sire_core.search.evidence_chains import EvidenceChains

    c = configure(IierConfig, config, settings)
    if c.checkpoint and c.scorer != "neural":
        raise ConfigurationError(f"A checkpoint is the neural scorer's; say scorer='neural', not {c.scorer!r}.")
    return Recipe(
        name="iier",
        summary="chains of passages, walked from those that hold the question's keywords",
        paper="IIER, Guo et al. 2024",
        organizers=(InteractionGraph(**_settings_of(InteractionGraph, c)),),
        ranker=EvidenceChains(
            scorer=make_scorer(c.scorer, c.checkpoint, c.seed), **_settings_of(EvidenceChains, c, "scorer")
        ),
        config=asdict(c),
    )


def _settings_of(kind: Any, config: IierConfig, *left_out: str) -> dict[str, Any]:
    """The settings that an organizer or ranker has by the same names."""
    return {field.name: getattr(config, field.name) for field in fields(kind) if field.name not in left_out}
