"""`EncoderChainScorer`: the paper's scorer with a trained text encoder, which reads passages as texts (IIER 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.recipes.iier.graph import ChainGraph
    from sire_core.recipes.iier.scorers import WalkState

__all__ = ["EncoderChainScorer"]

_KEPT = 50_000
"""Vectors of passages that are kept between questions; more are forgotten together."""


@dataclass(frozen=True, slots=True, eq=False)
class EncoderChainScorer:
    """Question, path, candidate and edge as four vectors, and an MLP over them. Needs torch and transformers.

    It reads texts, so that an index of any embedder can walk with it. A passage is encoded once per snapshot.

    Attributes:
        model: An `EncoderScorer` of `sire_core.recipes.iier.chain_encoder`, ready to walk with.
        card: See `checkpoint`; without a digest, as in training, no vector is kept.
    """

    model: Any
    card: Mapping[str, Any]

    @classmethod
    def of(cls, weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]) -> EncoderChainScorer:
        """The scorer of a checkpoint.

        Raises:
            ConfigurationError: torch or transformers is missing.
            StorageError: The weights are not those of its encoder, or no numbers.
        """
        if not all(np.isfinite(array).all() for array in weights.values()):
            raise StorageError("holds weights that are no numbers: its training failed. Train it again.")
        try:
            from sire_core.recipes.iier.chain_encoder import EncoderScorer
        except ImportError as error:
            raise ConfigurationError(
                'A scorer with a text encoder walks with torch: pip install "sire-rag[torch,local]"'
            ) from error
        return cls(EncoderScorer.from_checkpoint(weights, card.get("encoder", {})), card)

    @property
    def fingerprint(self) -> str:
        """Digest of weights and card."""
        return f"encoder/1:{self.card.get('digest', '')}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates of all chains: one pass of the encoder for the paths, one for passages not seen yet."""
        import asyncio

        return await asyncio.to_thread(self._scores, state, graph, view)

    def _scores(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        question: FloatArray = self.model.vectors([state.query])[0]
        paths = ["\n".join(_texts(graph, view, chain)) for chain in state.chains]
        found: FloatArray = self.model.scores(
            question,
            self.model.vectors(paths, keep_end=True),
            self._passages(state.candidates, graph, view),
            state.features.astype(np.float32),
            state.owners,
        )
        return found

    def _passages(self, nodes: IntArray, graph: ChainGraph, view: View) -> FloatArray:
        """Vectors of passages, `[c, size]`."""
        digest = self.card.get("digest", "")
        kept: dict[int, FloatArray] = view.derived(f"chain encoder {digest}", dict) if digest else {}
        wanted = np.unique(nodes).tolist()
        known = {node: kept[node] for node in wanted if node in kept}
        new = [node for node in wanted if node not in known]
        if new:
            known.update(zip(new, self.model.vectors(_texts(graph, view, np.array(new))), strict=True))
            if len(kept) + len(new) > _KEPT:
                kept.clear()
            kept.update((node, known[node]) for node in new)
        return np.stack([known[node] for node in nodes.tolist()])


def _texts(graph: ChainGraph, view: View, nodes: IntArray) -> list[str]:
    return [unit.index_text for unit in view.units(graph.positions[nodes])]
