"""Trained scorers of chain steps, and their checkpoints (IIER, section 3.2).

`EncoderChainScorer` is the paper's, with a trained text encoder. `NeuralScorer` is ours: MLPs over frozen vectors.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import ConfigurationError, EmbedderMismatchError, StorageError, base_title, name_key, replacing
from sire_core.papers.iier.scorers import ChainScorer, WalkState, count_bits, newly_covered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.extend import DoubleArray, Embedder, FloatArray, IntArray, View
    from sire_core.papers.iier.chain_graph import ChainGraph

PAIR_FEATURES = (
    "question",  # cosine of question and candidate
    "chain",  # cosine of the chain's mean and the candidate
    "newly_covered",  # share of the question's open keywords in the candidate
    "covered_again",  # share of its keywords in both chain and candidate
    "closest",  # largest cosine of the candidate and a passage of the chain
    "question_chain",  # cosine of question and the chain's mean
    "length",  # passages of the chain, in fives
    "open",  # share of the question's keywords that are not in the chain
)
"""Columns of `pair_features`."""
EDGE_FEATURES = (
    "structural",  # neighbours in a document
    "similarity",  # cosine of a semantic edge
    "keywords",  # shared keywords, in fives, five at most
    "rarity",  # of the rarest shared keyword: 1 / log2(1 + passages with it)
    "rarities",  # sum of that over the shared keywords
    "names_candidate",  # the candidate's title is a keyword of the last passage
    "names_last",  # the reverse
    "same_title",  # both have the same title
)
"""Columns of `edge_features`; the first three are those of equation 2."""


def pair_features(state: WalkState, graph: ChainGraph) -> FloatArray:
    """Features of question, chain and candidate, float32 `[c, len(PAIR_FEATURES)]`."""
    question, owners, candidates = state.question, state.owners, state.candidates
    chains, nodes = graph.vectors[state.chains], graph.vectors[candidates]
    means = chains.mean(axis=1, dtype=np.float64)
    means /= np.maximum(np.linalg.norm(means, axis=1), 1e-9)[:, None]
    # einsum, not matrix products: rows do not depend on the batch.
    question_chain = np.einsum("ad,d->a", means, question.vector)[owners]
    near_chain = np.einsum("cd,cd->c", means[owners], nodes)
    closest = np.einsum("cld,cd->cl", chains[owners], nodes).max(axis=1, initial=-1.0)
    covered = np.bitwise_or.reduce(question.coverage[state.chains], axis=1)
    keywords = max(1, len(question.keywords))
    columns = (
        question.cosines.at(candidates),
        near_chain,
        newly_covered(state),
        count_bits(question.coverage[candidates] & covered[owners]) / keywords,
        closest,
        question_chain,
        np.full(len(owners), state.chains.shape[1] / 5.0),
        (len(question.keywords) - count_bits(covered))[owners] / keywords,
    )
    return np.stack(columns, axis=1).astype(np.float32)


def edge_features(state: WalkState, graph: ChainGraph, titles: IntArray) -> FloatArray:
    """Features of the edge from the last passage of a chain to a candidate, float32 `[c, len(EDGE_FEATURES)]`."""
    last, candidates = state.chains[state.owners, -1], state.candidates
    pairs, keywords = _shared_keywords(graph, last, candidates)
    rarity = 1.0 / np.log2(1.0 + graph.postings.lengths(keywords))
    rarest, names, is_named = np.zeros((3, len(candidates)))
    np.maximum.at(rarest, pairs, rarity)
    names[pairs[titles[candidates[pairs]] == keywords]] = 1.0
    is_named[pairs[titles[last[pairs]] == keywords]] = 1.0
    structural, similarity, shared = state.features.T
    columns = (
        structural,
        np.maximum(similarity, 0.0),
        np.minimum(shared, 5.0) / 5.0,
        rarest,
        np.bincount(pairs, weights=rarity, minlength=len(candidates)),
        names,
        is_named,
        (titles[candidates] >= 0) & (titles[candidates] == titles[last]),
    )
    return np.stack(columns, axis=1).astype(np.float32)


def title_keywords(graph: ChainGraph, view: View) -> IntArray:
    """Keyword number of every node's title, `[n]`, -1 if it is no keyword; made once per snapshot."""

    def find() -> IntArray:
        titles = [name_key(base_title(unit.title)) for unit in view.units(graph.positions)]
        return np.array([graph.keyword_of.get(title, -1) for title in titles], dtype=np.int64)

    return view.derived("title keywords", find)


def _shared_keywords(graph: ChainGraph, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """All shared keywords of pairs of nodes: numbers of the pair and of the keyword, `[shared]` each."""
    size = max(1, len(graph.keys))
    both = np.intersect1d(_codes(graph, left, size), _codes(graph, right, size))
    return both // size, both % size


def _codes(graph: ChainGraph, nodes: IntArray, size: int) -> IntArray:
    """`row * size + keyword` for every keyword of every node."""
    rows, keywords = graph.keywords.take(nodes)
    return np.asarray(rows * size + keywords, dtype=np.int64)


_PAIRS, _EDGES = len(PAIR_FEATURES), len(EDGE_FEATURES)


@dataclass(frozen=True, slots=True, eq=False)
class NeuralScorer:
    """The light scorer: a linear model plus the paper's edge MLP and scoring MLP, over features of frozen vectors.

    Vectors enter through their cosines (`pair_features`): a few hundred questions are enough to learn what a cosine is
    worth, but not to learn from 1,536 coordinates.
    """

    weights: Mapping[str, FloatArray]  # of the MLPs `edge` and `score`, and the linear `direct`
    card: Mapping[str, Any]  # with `embedder`, `dimension` and `digest`

    @classmethod
    def of(cls, weights: Mapping[str, FloatArray], card: Mapping[str, Any]) -> NeuralScorer:
        """Load the scorer of a checkpoint."""
        features = (list(PAIR_FEATURES), list(EDGE_FEATURES))
        if card.get("kind") != "light" or (card.get("pair_features"), card.get("edge_features")) != features:
            raise StorageError(f"was trained on other features than this version computes. {_AGAIN}")
        if not isinstance(card.get("embedder"), str) or type(card.get("dimension")) is not int:
            raise StorageError(f"does not name the embedder it was trained with (in its card). {_AGAIN}")
        shapes = {name: array.shape for name, array in weights.items()}
        if not _shapes_match(shapes) or not all(np.isfinite(array).all() for array in weights.values()):
            raise StorageError(f"does not hold the weights of a chain scorer ({shapes}). Train it again.")
        return cls(weights, card)

    @property
    def fingerprint(self) -> str:
        """Digest of weights and card."""
        return f"neural/1:{self.card.get('digest', '')}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates of all chains."""
        self._check(view.embedder_fingerprint, graph.vectors.shape[1])
        pair, edge = pair_features(state, graph), edge_features(state, graph, title_keywords(graph, view))
        return score_features(self.weights, pair, edge)

    def check_embedder(self, embedder: Embedder) -> None:
        """Raise EmbedderMismatchError for another embedder than that of the training."""
        self._check(embedder.fingerprint, embedder.dimension)

    def _check(self, value: str, expected: int) -> None:
        trained, size = str(self.card["embedder"]), int(self.card["dimension"])
        if expected != size or (value and _family(value) != _family(trained)):
            raise EmbedderMismatchError(
                f"The chain scorer was trained on vectors of {trained} ({size} numbers), not on those of "
                f"{value or 'another embedder'} ({expected} numbers). Train one for this embedder with `sire "
                "train-chains DATASET --to FILE --embedder SPEC`, or use scorer='heuristic'."
            )


def score_features(weights: Mapping[str, FloatArray], pair: FloatArray, edge: FloatArray) -> FloatArray:
    """Scores `[c]` of rows of `pair_features` and `edge_features`."""
    joined = _linear(weights, "edge.2", np.maximum(_linear(weights, "edge.0", edge), 0.0))
    hidden = np.maximum(_linear(weights, "score.0", np.concatenate((pair, joined), axis=1)), 0.0)
    direct = np.einsum("cf,of->co", np.concatenate((pair, edge), axis=1), weights["direct.weight"].astype(np.float64))
    return np.asarray((_linear(weights, "score.2", hidden) + direct)[:, 0], dtype=np.float32)


def _linear(weights: Mapping[str, FloatArray], name: str, rows: NDArray[Any]) -> DoubleArray:
    # einsum, not a matrix product: rows do not depend on the batch.
    product = np.einsum("cf,of->co", rows, weights[f"{name}.weight"].astype(np.float64))
    return np.asarray(product + weights[f"{name}.bias"])


def _shapes_match(shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """True if shapes of weights match each other and the features."""
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
    """Fingerprint without the digest of the corpus, which the default embedder adds."""
    return fingerprint.partition(":")[0] if fingerprint.startswith("lexical-") else fingerprint


_CACHE_SIZE = 50_000  # Maximum vectors of passages in the cache between questions; then it is cleared


@dataclass(frozen=True, slots=True, eq=False)
class EncoderChainScorer:
    """The paper's scorer: question, path, candidate and edge as four vectors, and an MLP over them.

    Needs torch and transformers. It encodes texts, once per snapshot, and works with an index of any embedder.
    """

    model: Any  # an `EncoderScorer` of `sire_core.papers.iier.scorer_networks`
    card: Mapping[str, Any]  # card of the checkpoint; without a digest, as in training, no vector is cached

    @classmethod
    def of(cls, weights: Mapping[str, FloatArray], card: Mapping[str, Any]) -> EncoderChainScorer:
        """Load the scorer of a checkpoint."""
        if not all(np.isfinite(array).all() for array in weights.values()):
            raise StorageError("contains weights that are not numbers: its training failed. Train it again.")
        try:
            from sire_core.papers.iier.scorer_networks import EncoderScorer
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
        """Score all candidates: one pass of the encoder for the paths, one for passages that are not cached."""
        return await asyncio.to_thread(self._scores, state, graph, view)

    def _scores(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        question: FloatArray = self.model.vectors([state.question.query])[0]
        paths = ["\n".join(_texts(graph, view, chain)) for chain in state.chains]
        scores: FloatArray = self.model.scores(
            question,
            self.model.vectors(paths, keep_end=True),
            self._passages(state.candidates, graph, view),
            state.features.astype(np.float32),
            state.owners,
        )
        return scores

    def _passages(self, nodes: IntArray, graph: ChainGraph, view: View) -> FloatArray:
        """Vectors of passages, `[c, size]`."""
        digest = self.card.get("digest", "")
        cached: dict[int, FloatArray] = view.derived(f"chain encoder {digest}", dict) if digest else {}
        wanted = np.unique(nodes).tolist()
        vectors = {node: cached[node] for node in wanted if node in cached}
        new = [node for node in wanted if node not in vectors]
        if new:
            vectors.update(zip(new, self.model.vectors(_texts(graph, view, np.array(new))), strict=True))
            if len(cached) + len(new) > _CACHE_SIZE:
                cached.clear()
            cached.update((node, vectors[node]) for node in new)
        return np.stack([vectors[node] for node in nodes.tolist()])


def _texts(graph: ChainGraph, view: View, nodes: IntArray) -> list[str]:
    return [unit.index_text for unit in view.units(graph.positions[nodes])]


FORMAT = "chain-scorer/1"  # `format` of every card; it changes with the meaning of the weights
_CARD = "card"
_AGAIN = "Train it again with `sire train-chains DATASET --to FILE`."


def load_chain_scorer(path: str | Path) -> ChainScorer:
    """Load a trained scorer of either kind."""
    weights, card = read_checkpoint(path)
    try:
        return scorer_of(weights, card)
    except StorageError as error:
        raise StorageError(f"{path} {error}") from error


def scorer_of(weights: Mapping[str, FloatArray], card: Mapping[str, Any]) -> ChainScorer:
    """Make the scorer of weights and card."""
    return EncoderChainScorer.of(weights, card) if card.get("kind") == "encoder" else NeuralScorer.of(weights, card)


def scorer_digest(weights: Mapping[str, FloatArray], card: Mapping[str, Any]) -> str:
    """Digest of the weights and the rest of the card; equal for equal trainings."""
    rest = {name: value for name, value in card.items() if name != "digest"}
    digest = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=16)
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name], dtype="<f4")
        digest.update(f"\0{name}\0{array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_checkpoint(path: str | Path, weights: Mapping[str, FloatArray], card: Mapping[str, Any]) -> dict[str, Any]:
    """Write a scorer in one step, and return the card with `format` and `digest`."""
    _, save_file, safetensor_error = _safetensors()
    full = {**json.loads(json.dumps(card)), "format": FORMAT}
    full["digest"] = scorer_digest(weights, full)
    path = Path(path)
    arrays = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in weights.items()}
    try:
        with replacing(path) as partial:
            # One entry: the library writes several in random order.
            save_file(arrays, str(partial), metadata={_CARD: json.dumps(full, sort_keys=True)})
    except (OSError, safetensor_error) as error:
        raise StorageError(f"{path} cannot be written ({error}). Name a file in a folder that exists.") from error
    return full


def read_checkpoint(path: str | Path) -> tuple[Mapping[str, FloatArray], Mapping[str, Any]]:
    """Read and verify a scorer: weights by name, and the card."""
    if not Path(path).is_file():
        raise StorageError(
            f"There is no checkpoint {Path(path).absolute()}. Give its full path, or train one: `sire train-chains`."
        )
    safe_open, _, safetensor_error = _safetensors()
    try:
        with safe_open(str(path), framework="numpy") as file:
            card = json.loads((file.metadata() or {})[_CARD])
            weights = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - no mapping
    except KeyError as error:
        raise StorageError(f"{path} is a safetensors file, but not a chain scorer: it has no card. {_AGAIN}") from error
    except (OSError, ValueError, safetensor_error) as error:
        raise StorageError(f"{path} is damaged or not a checkpoint ({error}). {_AGAIN}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        format_name = card.get("format") if isinstance(card, dict) else card
        raise StorageError(f"{path} has the format {format_name!r}, this version reads {FORMAT!r}. {_AGAIN}")
    if any(array.dtype != np.float32 for array in weights.values()) or card.get("digest") != scorer_digest(
        weights, card
    ):
        raise StorageError(f"{path} is damaged: its weights are not those that its card was written for. {_AGAIN}")
    return MappingProxyType(weights), MappingProxyType(card)


def _safetensors() -> tuple[Any, Any, type[Exception]]:
    """Return the functions that open and save a file, and their error."""
    try:
        from safetensors import SafetensorError, safe_open
        from safetensors.numpy import save_file
    except ImportError as error:
        # Not the extra with torch: the light scorer is read and searched without.
        raise ConfigurationError("Trained scorers need safetensors: pip install safetensors") from error
    return safe_open, save_file, SafetensorError
