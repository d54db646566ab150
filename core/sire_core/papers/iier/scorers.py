"""Scorers of chain steps: which passage comes next (IIER, section 3.2, equations 1-4).

The paper trains its scorer (`neural`); those of this file need no training.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sire_core.extend import GOLDEN, Prompt, ask_all, mixed, numbered, parse_order, untrusted_error

if TYPE_CHECKING:
    from sire_core.extend import DoubleArray, FloatArray, HashArray, IntArray, LanguageModel, Similarities, View
    from sire_core.papers.iier.chain_graph import ChainGraph


@dataclass(frozen=True, slots=True)
class ChainQuestion:
    """A question with its features."""

    query: str
    vector: FloatArray  # unit-length, float32 `[d]`
    cosines: Similarities  # with all nodes
    keywords: Sequence[str]  # at most 64
    coverage: HashArray  # `[n]`; bit j: the node has keyword j


@dataclass(frozen=True, slots=True)
class WalkState:
    """The chains, of one length, that can grow at a step of the walk, and their candidates; nodes as `ChainGraph`."""

    question: ChainQuestion
    chains: IntArray  # nodes of each chain so far, its seed first, int64 `[a, l]`, l >= 1
    owners: IntArray  # row of `chains` of every candidate, int64 `[c]`, ascending; every chain has at least one
    candidates: IntArray  # neighbours of the last node, int64 `[c]`, ascending within a chain
    features: FloatArray  # weights of the edge to the candidate, float32 `[c, 3]`, see `graph.FEATURES`


class ChainScorer(Protocol):
    """Scores candidates for the next passage of a chain; has settings and weights, but no state of a query."""

    @property
    def fingerprint(self) -> str:
        """Name of the method with everything that changes its scores."""

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates of all chains in one batch.

        A score depends on the question and the candidate's own chain only, not on the rest of the batch. The walk
        rounds scores to six decimals and takes the highest of a chain, ties by node number.

        Args:
            state: Chains and candidates.
            graph: Vectors and edges by node number.
            view: The pool, for texts (`view.units(graph.positions[nodes])`) and the language model. A model may see
                passages of the state only: a filter may forbid others.

        Returns:
            float32 `[c]`, finite, larger is better.
        """


@dataclass(frozen=True, slots=True)
class HeuristicScorer:
    """A weighted sum of similarities, newly covered keywords and edge weights (ours).

    The weight of shared keywords is high because an edge of one keyword is often the title of the other passage; it was
    chosen on the even questions of a development set of 2WikiMultihopQA, where 2.0 finds 10 points more of the evidence
    than 0.1.
    """

    question: float = 0.5  # weight of the cosine between question and candidate
    chain: float = 0.2  # weight of the cosine between the mean of the chain and the candidate
    coverage: float = 0.2  # weight of the share of the question's open keywords that the candidate covers
    structural: float = 0.05  # weight of a structural edge
    similarity: float = 0.05  # weight of the edge's cosine
    shared: float = 2.0  # weight of five shared keywords

    @property
    def fingerprint(self) -> str:
        """Name and weights."""
        weights = (self.question, self.chain, self.coverage, self.structural, self.similarity, self.shared)
        return "heuristic/1:" + ",".join(f"{weight:g}" for weight in weights)

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:  # noqa: ARG002 - the protocol's
        """Score all candidates."""
        structural, similarity, shared = state.features.T.astype(np.float64)
        scores = (
            self.question * state.question.cosines.at(state.candidates)
            + self.chain * _near_chain(state, graph.vectors)
            + self.structural * structural
            + self.similarity * np.maximum(similarity, 0.0)
            + self.shared / 5.0 * np.minimum(shared, 5.0)
        )
        if state.question.keywords:
            scores += self.coverage * newly_covered(state)
        return np.asarray(scores, dtype=np.float32)


def _near_chain(state: WalkState, vectors: FloatArray) -> FloatArray:
    """Cosine of every candidate with the mean of its chain, `[c]`; computed by chain, independent of the batch."""
    largest = np.empty(len(state.candidates), dtype=np.float32)
    bounds = np.searchsorted(state.owners, np.arange(len(state.chains) + 1)).tolist()
    for chain, (start, stop) in zip(state.chains, pairwise(bounds), strict=True):
        total = vectors[chain].sum(axis=0)
        length = math.sqrt(float(total @ total))
        largest[start:stop] = vectors[state.candidates[start:stop]] @ total / (length or 1.0)
    return largest


@dataclass(frozen=True, slots=True)
class DisabledScorer:
    """Replaces a checkpoint that only an index folder names, which is not read; a search raises an error."""

    checkpoint: str

    @property
    def fingerprint(self) -> str:
        """Name of the file."""
        return f"neural/1:unread:{self.checkpoint}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:  # noqa: ARG002 - the protocol's
        """Raise ConfigurationError."""
        raise untrusted_error("checkpoint", self.checkpoint)


@dataclass(frozen=True, slots=True)
class RandomScorer:
    """A hash of seed, question, chain and candidate: a repeatable lower bound for scorers."""

    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """Name and seed."""
        return f"random/1:{self.seed}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:  # noqa: ARG002 - the protocol's
        """Score all candidates in [0, 1)."""
        import hashlib

        start = hashlib.blake2b(f"{self.seed}\0{state.question.query}".encode(), digest_size=8).digest()
        walked = np.full(len(state.chains), int.from_bytes(start, "little"), dtype=np.uint64)
        for nodes in state.chains.T:
            walked = mixed((walked ^ nodes.astype(np.uint64)) + GOLDEN)
        values = mixed((walked[state.owners] ^ state.candidates.astype(np.uint64)) + GOLDEN)
        return np.asarray((values >> np.uint64(40)).astype(np.float64) / 2**24, dtype=np.float32)


def newly_covered(state: WalkState) -> DoubleArray:
    """Share of the keywords that the chain does not contain but the candidate does, `[c]`; 0 if none is open."""
    coverage = state.question.coverage
    holds = coverage[state.candidates]
    if not holds.any():
        return np.zeros(len(holds))
    covered = np.bitwise_or.reduce(coverage[state.chains], axis=1)
    open_ = len(state.question.keywords) - count_bits(covered)
    new = count_bits(holds & ~covered[state.owners])
    return np.asarray(new / np.maximum(open_[state.owners], 1))


def count_bits(bits: HashArray) -> IntArray:
    """Number of set bits of every value, `[n]`."""
    octets = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)
    return np.asarray(np.unpackbits(octets, axis=1).sum(axis=1), dtype=np.int64)


_SCORER_INSTRUCTIONS = (
    "The data holds a question, the passages of a chain of evidence found so far, and numbered passages. Name the "
    "number of the passage that continues the chain best towards the answer. Answer with the number only."
)


@dataclass(frozen=True, slots=True)
class ModelScorer:
    """Asks the language model once per chain and step (ours); without a model the heuristic scores."""

    shown: int = 8  # maximum candidates in a prompt, the best by the heuristic
    heuristic: HeuristicScorer = field(default_factory=HeuristicScorer)

    @property
    def fingerprint(self) -> str:
        """Name and settings; the model is the index's own."""
        return f"llm/1:{self.shown}:{self.heuristic.fingerprint}"

    async def score(self, state: WalkState, graph: ChainGraph, view: View) -> FloatArray:
        """Score all candidates by the heuristic, plus 1 for the choice of the model."""
        scores = np.array(await self.heuristic.score(state, graph, view))
        model = view.language_model
        if model is None:
            return scores
        bounds = np.searchsorted(state.owners, np.arange(len(state.chains) + 1))
        candidates = [
            chain_rows[np.lexsort((state.candidates[chain_rows], -scores[chain_rows]))][: self.shown]
            for chain_rows in (np.arange(start, stop) for start, stop in pairwise(bounds))
        ]

        async def choose(number: int) -> int:
            chain = state.chains[number]
            nodes = np.concatenate((chain, state.candidates[candidates[number]]))
            texts = [unit.index_text for unit in view.units(graph.positions[nodes])]
            return await _ask(model, state.question.query, texts[: len(chain)], texts[len(chain) :])

        choices = await ask_all(model, choose, range(len(candidates)))
        for rows, choice in zip(candidates, choices, strict=True):
            scores[rows[choice]] += 1.0
        return scores


async def _ask(model: LanguageModel, query: str, chain: Sequence[str], candidates: Sequence[str]) -> int:
    """Return the index of the candidate that the model chooses; one call."""
    data = {"question": query, "chain": list(chain), "passages": numbered(candidates)}
    text = json.dumps(data, ensure_ascii=False, indent=1)
    answer = await model.complete(Prompt(_SCORER_INSTRUCTIONS, text), max_tokens=10)
    return parse_order(answer.text, range(len(candidates)))[0]
