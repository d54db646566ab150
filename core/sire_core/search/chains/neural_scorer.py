"""`NeuralScorer`: the trained scorer of chain steps, in numpy: searching needs no torch (IIER section 3.2, eq. 2-3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError, EmbedderMismatchError, StorageError
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

__all__ = [
    "FORMAT",
    "NeuralScorer",
    "load_neural_scorer",
    "read_checkpoint",
    "score_features",
    "scorer_digest",
    "write_checkpoint",
]

FORMAT = "chain-scorer/1"
"""`format` of every card; another one is another meaning of the weights."""
_CARD = "card"
_AGAIN = "Train it again with `sire train-chains DATASET --to FILE`."


def scorer_digest(weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]) -> str:
    """Digest of the weights and of all that the card says besides it; the same training gives the same one."""
    rest = {name: value for name, value in card.items() if name != "digest"}
    found = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16)
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name], dtype="<f4")
        found.update(f"\0{name}\0{array.shape}\0".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def write_checkpoint(
    path: str | Path, weights: Mapping[str, NDArray[np.float32]], card: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a scorer; the file appears whole or not at all.

    Args:
        path: Where to; an existing file is replaced.
        weights: float32 arrays by name.
        card: JSON values: data, config, metrics, and what the weights need.

    Returns:
        The card as it was written, with `format` and `digest`.

    Raises:
        ConfigurationError: The library is missing.
        StorageError: The file cannot be written.
    """
    library = _safetensors()
    full = {**json.loads(json.dumps(card)), "format": FORMAT}
    full["digest"] = scorer_digest(weights, full)
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    arrays = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in weights.items()}
    try:
        try:
            # One entry: with several, the library writes them in no fixed order.
            library.save_file(arrays, str(part), metadata={_CARD: json.dumps(full, sort_keys=True)})
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, library.SafetensorError) as error:
        raise StorageError(f"{path} cannot be written ({error}). Name a file in a folder that exists.") from error
    return full


def read_checkpoint(path: str | Path) -> tuple[Mapping[str, NDArray[np.float32]], Mapping[str, Any]]:
    """Read a scorer: weights by name and the card.

    Raises:
        ConfigurationError: The library is missing.
        StorageError: The file is missing, damaged, or no scorer.
    """
    library = _safetensors()
    if not Path(path).is_file():
        raise StorageError(
            f"There is no checkpoint {Path(path).absolute()}. Give its full path, or train one: `sire train-chains`."
        )
    try:
        with library.safe_open(str(path), framework="numpy") as file:
            card = json.loads((file.metadata() or {})[_CARD])
            weights = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - no mapping
    except KeyError as error:
        raise StorageError(f"{path} is a safetensors file, but of no chain scorer: it has no card. {_AGAIN}") from error
    except (OSError, ValueError, library.SafetensorError) as error:
        raise StorageError(f"{path} is damaged or no checkpoint ({error}). {_AGAIN}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        found = card.get("format") if isinstance(card, dict) else card
        raise StorageError(f"{path} has the format {found!r}, this version reads {FORMAT!r}. {_AGAIN}")
    if any(array.dtype != np.float32 for array in weights.values()) or card.get("digest") != scorer_digest(
        weights, card
    ):
        raise StorageError(f"{path} is damaged: its weights are not those that its card was written for. {_AGAIN}")
    return MappingProxyType(weights), MappingProxyType(card)


class _Library:
    """The three names of safetensors that are used here."""

    def __init__(self) -> None:
        from safetensors import SafetensorError, safe_open
        from safetensors.numpy import save_file

        self.SafetensorError: type[Exception] = SafetensorError
        self.safe_open: Any = safe_open
        self.save_file: Any = save_file


def _safetensors() -> _Library:
    try:
        return _Library()
    except ImportError as error:
        raise ConfigurationError('Trained scorers need safetensors: pip install "sire-rag[torch]"') from error


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
        card: See `scorer_checkpoint`; `embedder`, `dimension` and `digest` are used.
    """

    weights: Mapping[str, NDArray[np.float32]]
    card: Mapping[str, Any]

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


def load_neural_scorer(path: str | Path) -> NeuralScorer:
    """Read a trained scorer.

    Raises:
        ConfigurationError: safetensors is missing.
        StorageError: The file is missing, damaged, or of another version.
    """
    weights, card = read_checkpoint(path)
    known = (list(PAIR_FEATURES), list(EDGE_FEATURES))
    if card.get("kind") != "light" or (card.get("pair_features"), card.get("edge_features")) != known:
        raise StorageError(
            f"{path} was trained on other features than this version computes. Train it again with `sire train-chains "
            "DATASET --to FILE`."
        )
    shapes = {name: array.shape for name, array in weights.items()}
    if not _fits(shapes) or not all(np.isfinite(array).all() for array in weights.values()):
        raise StorageError(f"{path} does not hold the weights of a chain scorer ({shapes}). Train it again.")
    return NeuralScorer(weights, card)


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
