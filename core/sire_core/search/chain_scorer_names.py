"""`make_scorer`: scorers of chain steps by the names that recipes and papers use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.errors import ConfigurationError
from sire_core.search.chain_scorers import HeuristicScorer, RandomScorer

if TYPE_CHECKING:
    from sire_core.search.chain_scorers import ChainScorer

__all__ = ["SCORERS", "make_scorer"]

SCORERS = ("neural", "heuristic", "llm", "random")
"""Names that `make_scorer` knows."""


def make_scorer(name: str, checkpoint: str = "", seed: int = 0) -> ChainScorer:
    """A scorer by name.

    Args:
        name: One of `SCORERS`.
        checkpoint: File of a trained scorer; `neural` needs it.
        seed: For `random`.

    Raises:
        ConfigurationError: Unknown name, or no checkpoint for `neural`.
        StorageError: The checkpoint cannot be read.
    """
    if name == "heuristic":
        return HeuristicScorer()
    if name == "random":
        return RandomScorer(seed)
    if name == "llm":
        from sire_core.search.model_scorer import ModelScorer

        return ModelScorer()
    if name == "neural":
        if not checkpoint:
            raise ConfigurationError(
                "The neural scorer needs a checkpoint; train one with `sire train-chains DATASET --to FILE`, or use "
                "scorer='heuristic'."
            )
        from sire_core.search.neural_scorer import load_neural_scorer

        scorer: ChainScorer = load_neural_scorer(checkpoint)
        return scorer
    raise ConfigurationError(f"The scorer is one of {', '.join(SCORERS)}, not {name!r}.")
