"""`iier`: evidence chains over a graph of passages (IIER)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.extend import (
    Component,
    ConfigurationError,
    Recipe,
    ResolvedSettings,
    UnusedSettingError,
    check_settings,
    is_from_folder,
    register,
    register_edge_note,
    setting,
)
from sire_core.papers.iier import GRAPH_NOTE

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings, Edge
    from sire_core.papers.iier.scorers import ChainScorer

SCORERS = ("neural", "heuristic", "llm", "random")  # Names that `make_scorer` knows


@dataclass(frozen=True, slots=True)
class ChainScoring:
    """Settings of the scorer that chooses the next passage of a chain.

    Attributes:
        scorer: `heuristic`, `neural`, `llm` or `random`.
        checkpoint: File of the trained scorer, for `neural`, written by `sire train-chains`.
        seed: Random seed of the scorer `random` and of the order `shuffle`.

    Raises:
        ConfigurationError: A setting is not allowed, or does not go with the scorer.
    """

    scorer: str = setting("heuristic", choices=SCORERS)
    checkpoint: str = ""
    seed: int = setting(0, low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.checkpoint and self.scorer != "neural":
            raise UnusedSettingError("checkpoint", f"checkpoint needs scorer='neural', not {self.scorer!r}.")


@register
def iier(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """IIER: chains of passages, from seeds that cover the question's keywords along links between passages.

    As published: `kw_min=3, title_keywords=False, seed_match="strict", similar_seeds=0, order="chain", fill=False` with
    the scorer `neural`. By default one shared keyword makes an edge, and titles are keywords: the five keywords of a
    short passage rarely have three in common with those of another one, and its title is what other passages name. An
    answer over `order="chain"` is told which passages form a chain.

    Args:
        **settings: Those of `InteractionGraph`, `EvidenceChains` and `ChainScoring`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect; no checkpoint for the neural scorer.
        StorageError: The checkpoint cannot be read.
    """
    from sire_core.papers.iier.derive import InteractionGraph
    from sire_core.papers.iier.rank import ChainLines, EvidenceChains

    resolved = ResolvedSettings(
        settings, Component(InteractionGraph), Component(ChainScoring), Component(EvidenceChains)
    )
    scoring = resolved.make(ChainScoring)
    ranker = resolved.make(EvidenceChains, scorer=make_scorer(scoring.scorer, scoring.checkpoint, scoring.seed))
    if scoring.scorer != "random" and ranker.order != "shuffle":
        resolved.refuse_unused(ChainScoring, f"scorer={scoring.scorer!r} and order={ranker.order!r}", "seed")
    return Recipe(
        name="iier",
        summary="chains of passages that start at the question's keywords",
        paper="IIER, Guo et al. 2024",
        organizers=(resolved.make(InteractionGraph),),
        ranker=ranker,
        context=ChainLines() if ranker.order == "chain" else None,
        native="keywords",
        config=resolved.config,
        texts=resolved.texts,
    )


def make_scorer(name: str, checkpoint: str = "", seed: int = 0) -> ChainScorer:
    """Return the scorer of one of the `SCORERS`."""
    from sire_core.papers.iier.scorers import DisabledScorer, HeuristicScorer, ModelScorer, RandomScorer

    if name == "random":
        return RandomScorer(seed)
    if name != "neural":
        return ModelScorer() if name == "llm" else HeuristicScorer()
    if not checkpoint:
        raise ConfigurationError(
            "The neural scorer needs a checkpoint; train one with `sire train-chains DATASET --to FILE`, or use "
            "scorer='heuristic'."
        )
    if is_from_folder(checkpoint):
        return DisabledScorer(checkpoint)
    from sire_core.papers.iier.neural import load_chain_scorer

    return load_chain_scorer(checkpoint)


def _stored_edges(_: str, note: bytes) -> Iterable[Edge]:
    from sire_core.papers.iier.table import InteractionTable

    return InteractionTable.from_note(note)


register_edge_note(GRAPH_NOTE, _stored_edges)
