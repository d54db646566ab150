"""`NeuralScorer`: the trained scorer of chain steps, in numpy: searching needs no torch (IIER section 3.2, eq. 2-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import EmbedderMismatchError, StorageError
from sire_core.search.chains.features import (
    EDGE_FEATURES,
    PAIR_FEATURES,
    edge_features,
    pair_features,
    title_keywords,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import Embedder, FloatArray, View
    from sire_core.search.chains.graph import ChainGraph
    from sire_core.search.chains.scorers import WalkState

__all__ = ["NeuralScorer", "score_features"]

_PAIRS, _EDGES = len(PAIR_FEATURES), len(EDGE_FEATURES)


@dataclass(frozen=True, slots=True, eq=False)
class NeuralScorer:
    """The light scorer: an edge MLP and a scoring MLP over frozen vectors, beside a linear part.

    Of the paper's scorer it keeps both MLPs. The vectors of question, chain and candidate enter by how they lie to
    each other (`pair_features`), not as they are: a few hundred questions teach a network what a cosine is worth, but
    not 1,536 coordinates.

    Attributes:
        weights: `edge.0`, `edge.2` (MLP of the edge), `score.0`, `score.2` (MLP of the step), each with `.weight`
            `[out, in]` and `.bias` `[out]`, and `direct.weight` (linear part, `[1, pair + edge features]`).
        card: See `checkpoint`; `embedder`, `dimension` and `digest` are used.
    """

    weights: Mapping[str, NDArray[np.float32]]
    card: Mapping[str, Any]

    @classmethod
    def of(cls, weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]) -> NeuralScorer:
        """The scorer of a checkpoint.

        Raises:
            StorageError: Weights or features are others than this version computes, or the card names no embedder.
        """
        known = (list(PAIR_FEATURES), list(EDGE_FEATURES))
        if card.get("kind") != "light" or (card.get("pair_features"), card.get("edge_features")) != known:
            raise StorageError(
                "was trained on other features than this version computes. Train it again with `sire train-chains "
                "DATASET --to FILE`."
            )
        if not isinstance(card.get("embedder"), str) or type(card.get("dimension")) is not int:
            raise StorageError(
                "does not say on which embedder's vectors it was trained (`embedder` and `dimension` of its card), so "
                "that nobody can tell whether an index goes with it. Train it again with `sire train-chains DATASET "
                "--to FILE`."
            )
        shapes = {name: array.shape for name, array in weights.items()}
        if not _fits(shapes) or not all(np.isfinite(array).all() for array in weights.values()):
            raise StorageError(f"does not hold the weights of a chain scorer ({shapes}). Train it again.")
        return cls(weights, card)

    @property
    def fingerprint(self) -> str:
        """Digest of weights and card."""
        return f"neural/1:{self.card.get('digest', '')}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates of all chains; a few products of short matrices.

        Raises:
            EmbedderMismatchError: The scorer was trained on vectors of another embedder.
        """
        self._check(view.embedder_fingerprint, graph.vectors.shape[1])
        pair, edge = pair_features(state, graph), edge_features(state, graph, title_keywords(graph, view))
        return score_features(self.weights, pair, edge)

    def check_embedder(self, embedder: Embedder) -> None:
        """Refuse an embedder before anything is embedded.

        Raises:
            EmbedderMismatchError: The scorer was trained on vectors of another one.
        """
        self._check(embedder.fingerprint, embedder.dimension)

    def _check(self, given: str, found: int) -> None:
        trained, size = str(self.card["embedder"]), int(self.card["dimension"])
        if found != size or (given and _family(given) != _family(trained)):
            raise EmbedderMismatchError(
                f"The chain scorer was trained on vectors of {trained} ({size} numbers), not on those of "
                f"{given or 'another embedder'} ({found} numbers). Train one for this embedder with `sire train-chains "
                "DATASET --to FILE --embedder SPEC`, or use scorer='heuristic'."
            )


def score_features(weights: Mapping[str, NDArray[np.float32]], pair: FloatArray, edge: FloatArray) -> FloatArray:
    """Scores of feature rows, `[c]`; the forward pass of `sire_core.neural.chain_network.LightScorer`.

    Args:
        weights: See `NeuralScorer`.
        pair: From `pair_features`, `[c, p]`.
        edge: From `edge_features`, `[c, e]`.
    """
    joined = _linear(weights, "edge.2", np.maximum(_linear(weights, "edge.0", edge), 0.0))
    hidden = np.maximum(_linear(weights, "score.0", np.concatenate((pair, joined), axis=1)), 0.0)
    direct = np.einsum("cf,of->co", np.concatenate((pair, edge), axis=1), weights["direct.weight"].astype(np.float64))
    return np.asarray((_linear(weights, "score.2", hidden) + direct)[:, 0], dtype=np.float32)


def _linear(weights: Mapping[str, NDArray[np.float32]], name: str, rows: NDArray[Any]) -> NDArray[np.float64]:
    # Not a matrix product: einsum adds every row alone, so that a batch changes nothing.
    product = np.einsum("cf,of->co", rows, weights[f"{name}.weight"].astype(np.float64))
    return np.asarray(product + weights[f"{name}.bias"])


def _fits(shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether weights fit one another and the features."""
    try:
        (inner, edges), (outer, between) = shapes["edge.0.weight"], shapes["edge.2.weight"]
        (hidden, joined), (one, last) = shapes["score.0.weight"], shapes["score.2.weight"]
    except (KeyError, ValueError):
        return False
    biases = [shapes.get(f"{name}.bias") for name in ("edge.0", "edge.2", "score.0", "score.2")]
    return (
        (edges, between, joined, last, one) == (_EDGES, inner, _PAIRS + outer, hidden, 1)
        and biases == [(inner,), (outer,), (hidden,), (1,)]
        and shapes.get("direct.weight") == (1, _PAIRS + _EDGES)
    )


def _family(fingerprint: str) -> str:
    """What a scorer depends on: the default embedder is fitted to its corpus, and its digest is the corpus's."""
    return fingerprint.partition(":")[0] if fingerprint.startswith("lexical-") else fingerprint
