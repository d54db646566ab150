"""Scorers of chain steps: which passage should come next (IIER section 3.2, equations 1-4)."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sire_core.algorithms.voting import parse_order
from sire_core.models.lexical_features import GOLDEN, mixed
from sire_core.models.prompt_format import numbered
from sire_core.protocols import Prompt
from sire_core.untrusted_settings import untrusted_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, IntArray, LanguageModel, View
    from sire_core.recipes.iier.graph import ChainGraph, NodeCosines

__all__ = ["ChainScorer", "DisabledScorer", "HeuristicScorer", "ModelScorer", "RandomScorer", "WalkState", "count_bits"]

_ONE, _TWO, _FOUR, _TOP = np.array([1, 2, 4, 56], dtype=np.uint64)
_PAIRS, _NIBBLES, _OCTETS, _SUM = np.array(
    [0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101], dtype=np.uint64
)
"""Shifts and masks that add bits in pairs, pairs in nibbles, nibbles in octets, and octets."""


@dataclass(frozen=True, slots=True)
class WalkState:
    """All chains that can still grow, at one step of the walk, and every node that each could take next.

    The chains of one state have the same length, because all seeds are walked together, one node at a time; a chain
    that came to a dead end is not in the state any more. Nodes are numbers of `ChainGraph`.

    Attributes:
        query: The question.
        question: Its unit-length vector, float32 `[d]`.
        cosines: Cosine of the question with every node, read like an array (`cosines[candidates]`), float32 `[n]`.
        coverage: Bit set of the question's keywords that a node covers, uint64 `[n]`.
        keywords: Number of the question's keywords, at most 64; bit j of `coverage` is keyword j.
        chains: Nodes of each chain so far, its seed first, int64 `[a, l]`, l >= 1.
        owners: Row of `chains` that a candidate would extend, int64 `[c]`, ascending; every chain has at least one.
        candidates: The node that would be added, int64 `[c]`: an allowed neighbour of the chain's last node that is not
            in the chain; ascending within a chain.
        features: The edge from the chain's last node to the candidate, float32 `[c, 3]`, see `chain_graph.FEATURES`.
    """

    query: str
    question: FloatArray
    cosines: NodeCosines
    coverage: NDArray[np.uint64]
    keywords: int
    chains: IntArray
    owners: IntArray
    candidates: IntArray
    features: FloatArray


class ChainScorer(Protocol):
    """Says how well each candidate continues its chain. Holds settings and weights, never the state of a query."""

    @property
    def fingerprint(self) -> str:
        """Names the method and everything that decides its scores."""

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates of all chains in one batch.

        The score of a candidate may depend on its own chain and on the question only, not on what else is in the batch:
        walking all seeds together gives what walking one by one gives. The walk rounds scores to six decimals and takes
        the largest of a chain, ties by node number; scores of different chains are not compared when walking, but the
        ranking shows them, so a probability or a similarity is better than a raw logit.

        Args:
            state: Chains and candidates.
            graph: Vectors and edges by node number; `graph.positions` leads to the view.
            view: The pool, for texts (`view.units(graph.positions[nodes])`) and the language model. No passage but
                those of the state may be shown to a model: others may be shut out by a filter.

        Returns:
            float32 `[c]`, finite, larger is better.
        """


@dataclass(frozen=True, slots=True)
class HeuristicScorer:
    """A weighted sum of similarities, newly covered keywords and edge weights; needs no training (IIER).

    The specification weighs shared keywords with 0.1. With edges of one shared keyword, a name that another passage is
    titled by, links of that kind have to win: 2.0 was chosen on the even questions of a development set of
    2WikiMultihopQA, where it finds 10 points more of the evidence.

    Attributes:
        question: Weight of the cosine between question and candidate.
        chain: Weight of the cosine between the mean of the chain and the candidate.
        coverage: Weight of the share of the question's open keywords that the candidate covers.
        structural: Weight of a structural edge.
        similarity: Weight of the edge's cosine.
        shared: Weight of five shared keywords.
    """

    question: float = 0.5
    chain: float = 0.2
    coverage: float = 0.2
    structural: float = 0.05
    similarity: float = 0.05
    shared: float = 2.0

    @property
    def fingerprint(self) -> str:
        """Name and weights."""
        weights = (self.question, self.chain, self.coverage, self.structural, self.similarity, self.shared)
        return "heuristic/1:" + ",".join(f"{weight:g}" for weight in weights)

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:  # noqa: ARG002 - the protocol's
        """Score all candidates; a few products of short matrices."""
        structural, similarity, shared = state.features.T.astype(np.float64)
        scores = (
            self.question * state.cosines[state.candidates]
            + self.chain * _near_chain(state, graph.vectors)
            + self.structural * structural
            + self.similarity * np.maximum(similarity, 0.0)
            + self.shared / 5.0 * np.minimum(shared, 5.0)
        )
        if state.keywords:
            scores += self.coverage * newly_covered(state)
        return np.asarray(scores, dtype=np.float32)


def _near_chain(state: WalkState, vectors: FloatArray) -> FloatArray:
    """Cosine of every candidate with the mean of its chain, `[c]`; chain by chain, so that a batch changes nothing."""
    near = np.empty(len(state.candidates), dtype=np.float32)
    bounds = np.searchsorted(state.owners, np.arange(len(state.chains) + 1)).tolist()
    for chain, (start, stop) in zip(state.chains, pairwise(bounds), strict=True):
        total = vectors[chain].sum(axis=0)
        length = math.sqrt(float(total @ total))
        near[start:stop] = vectors[state.candidates[start:stop]] @ total / (length or 1.0)
    return near


@dataclass(frozen=True, slots=True)
class DisabledScorer:
    """The scorer of a checkpoint that only an index folder names: changes and figures need none, a search says so.

    Attributes:
        checkpoint: The file.
    """

    checkpoint: str

    @property
    def fingerprint(self) -> str:
        """The file's name."""
        return f"neural/1:unread:{self.checkpoint}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:  # noqa: ARG002 - the protocol's
        """Raises ConfigurationError."""
        raise untrusted_error("checkpoint", self.checkpoint)


@dataclass(frozen=True, slots=True)
class RandomScorer:
    """Random but repeatable: a hash of seed, question, chain and candidate; the lower bound for scorers.

    Attributes:
        seed: Another seed, another walk.
    """

    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """Name and seed."""
        return f"random/1:{self.seed}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:  # noqa: ARG002 - the protocol's
        """Score all candidates in [0, 1)."""
        import hashlib

        start = hashlib.blake2b(f"{self.seed}\0{state.query}".encode(), digest_size=8).digest()
        walked = np.full(len(state.chains), int.from_bytes(start, "little"), dtype=np.uint64)
        for nodes in state.chains.T:
            walked = mixed((walked ^ nodes.astype(np.uint64)) + GOLDEN)
        values = mixed((walked[state.owners] ^ state.candidates.astype(np.uint64)) + GOLDEN)
        return np.asarray((values >> np.uint64(40)).astype(np.float64) / 2**24, dtype=np.float32)


def newly_covered(state: WalkState) -> NDArray[np.float64]:
    """Share of the question's keywords open in a candidate's chain that the candidate covers, `[c]`; 0 if none is."""
    holds = state.coverage[state.candidates]
    if not holds.any():
        return np.zeros(len(holds))
    covered = np.bitwise_or.reduce(state.coverage[state.chains], axis=1)
    open_ = state.keywords - count_bits(covered)
    new = count_bits(holds & ~covered[state.owners])
    return np.asarray(new / np.maximum(open_[state.owners], 1))


def count_bits(bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of set bits of every value, `[n]`."""
    pairs = bits - ((bits >> _ONE) & _PAIRS)
    nibbles = (pairs & _NIBBLES) + ((pairs >> _TWO) & _NIBBLES)
    octets = (nibbles + (nibbles >> _FOUR)) & _OCTETS
    return np.asarray((octets * _SUM) >> _TOP, dtype=np.int64)


_INSTRUCTIONS = (
    "The data holds a question, the passages of a chain of evidence found so far, and numbered passages. Name the "
    "number of the passage that continues the chain best towards the answer. Answer with the number only."
)


@dataclass(frozen=True, slots=True)
class ModelScorer:
    """Asks the language model once per chain and step; without a model the heuristic decides.

    Attributes:
        shown: Candidates that the model sees, the best by the heuristic; it ranks the others behind.
        heuristic: Chooses what is shown, and orders what the model does not name.
    """

    shown: int = 8
    heuristic: HeuristicScorer = field(default_factory=HeuristicScorer)

    @property
    def fingerprint(self) -> str:
        """Name and settings; the model is the index's own."""
        return f"llm/1:{self.shown}:{self.heuristic.fingerprint}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates: heuristic scores, and 1 more for what the model names."""
        scores = np.array(await self.heuristic.score(state, graph, view))
        model = view.language_model
        if model is None:
            return scores
        bounds = np.searchsorted(state.owners, np.arange(len(state.chains) + 1))
        shown = [
            own[np.lexsort((state.candidates[own], -scores[own]))][: self.shown]
            for own in (np.arange(start, stop) for start, stop in pairwise(bounds))
        ]
        calls = []
        for chain, places in zip(state.chains, shown, strict=True):
            nodes = np.concatenate((chain, state.candidates[places]))
            texts = [unit.index_text for unit in view.units(graph.positions[nodes])]
            calls.append(_ask(model, state.query, texts[: len(chain)], texts[len(chain) :]))
        for places, chosen in zip(shown, await _together(calls), strict=True):
            scores[places[chosen]] += 1.0
        return scores


async def _together(calls: Sequence[Awaitable[int]]) -> list[int]:
    """What all calls answer; when one of them fails nobody pays for the others."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _ask(model: LanguageModel, query: str, chain: Sequence[str], candidates: Sequence[str]) -> int:
    """Place of the candidate that the model chooses; one call."""
    data = {"question": query, "chain": list(chain), "passages": numbered(candidates)}
    text = json.dumps(data, ensure_ascii=False, indent=1)
    answer = await model.complete(Prompt(_INSTRUCTIONS, text), max_tokens=10)
    return parse_order(answer.text, range(len(candidates)))[0]
