"""`iier`: evidence chains over a graph of passages (IIER)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sire_core.errors import ConfigurationError
from sire_core.protocols import Recipe
from sire_core.recipes.ablations import Ablation, register_ablations
from sire_core.recipes.iier import GRAPH_NOTE
from sire_core.recipes.registry import register
from sire_core.settings import Component, ResolvedSettings, UnusedSettingError, check_settings, setting
from sire_core.storage.edge_notes import register_edge_note
from sire_core.untrusted_settings import is_from_folder

if TYPE_CHECKING:
    from sire_core.recipes.iier.scorers import ChainScorer
    from sire_core.types import Edge

__all__ = ["DENSITIES", "SCORERS", "ChainScoring", "iier", "make_scorer"]

SCORERS = ("neural", "heuristic", "llm", "random")
"""Names that `make_scorer` knows."""


@dataclass(frozen=True, slots=True)
class ChainScoring:
    """Who chooses the next passage of a chain.

    Attributes:
        scorer: `heuristic`, `neural`, `llm` or `random`.
        checkpoint: File of the trained scorer, for `neural`, written by `sire train-chains`.
        seed: Of the scorer `random` and of the order `shuffle`.

    Raises:
        ConfigurationError: A setting is not allowed, or does not go with the scorer.
    """

    scorer: str = setting("heuristic", choices=SCORERS)
    checkpoint: str = ""
    seed: int = setting(0, low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.checkpoint and self.scorer != "neural":
            raise UnusedSettingError(
                "checkpoint", f"A checkpoint is the neural scorer's; say scorer='neural', not {self.scorer!r}."
            )


@register
def iier(**settings: Any) -> Recipe:
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
    from sire_core.recipes.iier.derive import InteractionGraph
    from sire_core.recipes.iier.rank import ChainLines, EvidenceChains

    chosen = ResolvedSettings(settings, Component(InteractionGraph), Component(ChainScoring), Component(EvidenceChains))
    scoring = chosen.make(ChainScoring)
    ranker = chosen.make(EvidenceChains, scorer=make_scorer(scoring.scorer, scoring.checkpoint, scoring.seed))
    if scoring.scorer != "random" and ranker.order != "shuffle":
        chosen.refuse_unused(ChainScoring, f"scorer={scoring.scorer!r} and order={ranker.order!r}", "seed")
    return Recipe(
        name="iier",
        summary="chains of passages that start at the question's keywords",
        paper="IIER, Guo et al. 2024",
        organizers=(chosen.make(InteractionGraph),),
        ranker=ranker,
        context=ChainLines() if ranker.order == "chain" else None,
        native="iier",
        config=chosen.config,
        texts=chosen.texts,
    )


def make_scorer(name: str, checkpoint: str = "", seed: int = 0) -> ChainScorer:
    """A scorer by name."""
    from sire_core.recipes.iier.scorers import HeuristicScorer, RandomScorer

    if name == "heuristic":
        return HeuristicScorer()
    if name == "random":
        return RandomScorer(seed)
    if name == "llm":
        from sire_core.recipes.iier.scorers import ModelScorer

        return ModelScorer()
    if name == "neural":
        if not checkpoint:
            raise ConfigurationError(
                "The neural scorer needs a checkpoint; train one with `sire train-chains DATASET --to FILE`, or use "
                "scorer='heuristic'."
            )
        if is_from_folder(checkpoint):
            from sire_core.recipes.iier.scorers import UnreadScorer

            return UnreadScorer(checkpoint)
        from sire_core.recipes.iier.neural import load_chain_scorer

        return load_chain_scorer(checkpoint)
    raise ConfigurationError(f"The scorer is one of {', '.join(SCORERS)}, not {name!r}.")


# The rows of IIER's tables 1, 2 and 3 and of its figure 3, with the paper's accuracies.
#
# The paper's rows ask for an answer (`sire eval --ablations --llm MODEL --answer ...`); recall and the evidence match
# rate need none. Figure 3 prints no numbers. Scorer, reader and embedder are
# others, so only differences compare.


def _accuracy(hotpotqa: float, two_wiki: float, musique: float) -> Mapping[str, Mapping[str, float]]:
    return {"hotpotqa": {"Acc": hotpotqa}, "2wiki": {"Acc": two_wiki}, "musique": {"Acc": musique}}


_PAPER = {"order": "chain", "similar_seeds": 0, "fill": False}
"""Chains alone, read one after the other."""


def _table_1(*rows: tuple[float, float, float]) -> Mapping[str, Mapping[str, float]]:
    """A row of table 1 on HotpotQA, 2WikiMultihopQA, IIRC and MuSiQue."""
    names = ("hotpotqa", "2wiki", "iirc", "musique")
    return {name: dict(zip(("Acc", "F1", "EM"), row, strict=True)) for name, row in zip(names, rows, strict=True)}


_FULL = _table_1((93.5, 76.4, 63.6), (84.8, 53.0, 47.3), (64.8, 45.1, 38.6), (62.5, 49.5, 35.0))

DENSITIES: tuple[Mapping[str, Any], ...] = (
    *({"n_sim": neighbors} for neighbors in (1, 2, 3, 8, 12)),
    *({"kw_min": shared} for shared in (2, 3, 4)),
    {"n_sim": 1, "kw_min": 4},
    {"n_sim": 12, "kw_df_cap": 200},
)
"""Settings of figure 3 beside the recipe's own: sparser and denser graphs."""

register_ablations(
    "iier",
    (
        Ablation("ours", "the recipe's defaults", "iier"),
        Ablation(
            "T1",
            "no retrieval",
            "flat",
            {},
            _table_1((57.4, 39.9, 30.1), (45.5, 19.9, 32.5), (35.6, 16.5, 17.3), (35.0, 15.9, 5.5)),
            answer={"via": "closed-book"},
        ),
        Ablation(
            "T1",
            "TF-IDF",
            "flat",
            {"ranker": "tfidf"},
            _table_1((81.2, 65.2, 50.0), (62.4, 49.1, 43.0), (56.1, 41.2, 36.4), (45.2, 38.2, 20.7)),
        ),
        Ablation(
            "T1",
            "golden passages",
            "flat",
            {},
            _table_1((97.8, 76.7, 64.5), (92.3, 59.4, 52.5), (85.7, 56.0, 42.9), (76.7, 54.6, 31.9)),
            answer={"via": "golden"},
        ),
        Ablation("T1, T2, T3", "chain by chain, length 5", "iier", _PAPER, _FULL),
        Ablation("T2", "iterative", "iier", _PAPER | {"order": "iterative"}, _accuracy(92.1, 83.9, 57.4)),
        Ablation("T2", "shuffle", "iier", _PAPER | {"order": "shuffle"}, _accuracy(89.6, 79.0, 56.1)),
        Ablation("T3", "length 1", "iier", _PAPER | {"max_length": 1}, _accuracy(89.0, 82.1, 58.6)),
        Ablation("T3", "length 3", "iier", _PAPER | {"max_length": 3}, _accuracy(90.9, 83.0, 59.0)),
        Ablation("T3", "length 7", "iier", _PAPER | {"max_length": 7}, _accuracy(94.0, 84.2, 63.1)),
        *(
            Ablation("F3", ", ".join(f"{name} {value}" for name, value in settings.items()), "iier", settings)
            for settings in DENSITIES
        ),
        Ablation("ours", "no structural edges", "iier", {"use_struc": False}),
        Ablation("ours", "no semantic edges", "iier", {"use_sim": False}),
        Ablation("ours", "no keyword edges", "iier", {"use_kw": False}),
        Ablation("ours", "titles are no keywords", "iier", {"title_keywords": False}),
        Ablation("ours", "strict seeds", "iier", {"seed_match": "strict"}),
        Ablation("ours", "random scorer", "iier", {"scorer": "random"}),
        Ablation("ours", "scored by the language model", "iier", {"scorer": "llm"}, needs="model"),
        Ablation(
            "ours",
            "as published",
            "iier",
            _PAPER | {"kw_min": 3, "kw_df_cap": 1_000_000, "title_keywords": False, "seed_match": "strict"},
        ),
    ),
    context=20,  # all chains: as many as there are seeds, of five passages at most
)


def _stored_edges(_: str, note: bytes) -> Iterable[Edge]:
    from sire_core.recipes.iier.table import InteractionTable

    return InteractionTable.from_note(note) or ()


register_edge_note(GRAPH_NOTE, _stored_edges)
