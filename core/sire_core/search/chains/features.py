"""What a trained scorer knows of a step: similarities of frozen vectors, and the edge (IIER section 3.2, eq. 1-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import name_key
from sire_core.extraction.headings import base_title
from sire_core.search.chains.scorers import count_bits, newly_covered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import FloatArray, IntArray, View
    from sire_core.search.chains.graph import ChainGraph
    from sire_core.search.chains.scorers import WalkState

__all__ = ["EDGE_FEATURES", "PAIR_FEATURES", "edge_features", "pair_features", "title_keywords"]

PAIR_FEATURES = (
    "question",  # cosine of question and candidate
    "chain",  # cosine of the chain's mean and the candidate
    "newly_covered",  # share of the question's open keywords that the candidate holds
    "covered_again",  # share of its keywords that chain and candidate both hold
    "closest",  # largest cosine of the candidate and a passage of the chain
    "question_chain",  # cosine of question and the chain's mean
    "length",  # passages of the chain, in fives
    "open",  # share of the question's keywords that the chain does not hold
)
"""Columns of `pair_features`."""
EDGE_FEATURES = (
    "structural",  # beside each other in a document
    "similarity",  # cosine of a semantic edge
    "keywords",  # shared keywords, in fives, five at most
    "rarity",  # of the rarest shared keyword: 1 / log2(1 + passages that hold it)
    "rarities",  # sum of that over the shared keywords
    "names_candidate",  # the last passage holds the candidate's title as a keyword
    "names_last",  # the candidate holds the last passage's title
    "same_title",  # both have one title
)
"""Columns of `edge_features`; the first three are those of equation 2."""


def pair_features(state: WalkState, graph: ChainGraph) -> FloatArray:
    """How question, chain and candidate lie to each other. A row depends on its own chain and candidate only.

    Args:
        state: Chains and candidates.
        graph: Their vectors.

    Returns:
        float32 `[c, len(PAIR_FEATURES)]`.
    """
    owners, candidates = state.owners, state.candidates
    chains, nodes = graph.vectors[state.chains], graph.vectors[candidates]
    means = chains.mean(axis=1, dtype=np.float64)
    means /= np.maximum(np.linalg.norm(means, axis=1), 1e-9)[:, None]
    # Not matrix products: einsum adds every row alone, so that a batch changes nothing.
    question_chain = np.einsum("ad,d->a", means, state.question)[owners]
    near_chain = np.einsum("cd,cd->c", means[owners], nodes)
    closest = np.einsum("cld,cd->cl", chains[owners], nodes).max(axis=1, initial=-1.0)
    covered = np.bitwise_or.reduce(state.coverage[state.chains], axis=1)
    keywords = max(1, state.keywords)
    columns = (
        state.cosines[candidates],
        near_chain,
        newly_covered(state),
        count_bits(state.coverage[candidates] & covered[owners]) / keywords,
        closest,
        question_chain,
        np.full(len(owners), state.chains.shape[1] / 5.0),
        (state.keywords - count_bits(covered))[owners] / keywords,
    )
    return np.stack(columns, axis=1).astype(np.float32)


def edge_features(state: WalkState, graph: ChainGraph, titles: IntArray) -> FloatArray:
    """What joins the last passage of a chain with a candidate.

    Args:
        state: Chains and candidates.
        graph: Their keywords.
        titles: See `title_keywords`.

    Returns:
        float32 `[c, len(EDGE_FEATURES)]`.
    """
    last, candidates = state.chains[state.owners, -1], state.candidates
    pairs, keywords = _shared_keywords(graph, last, candidates)
    rarity = 1.0 / np.log2(1.0 + graph.posting_indptr[keywords + 1] - graph.posting_indptr[keywords])
    rarest, names, named = np.zeros((3, len(candidates)))
    np.maximum.at(rarest, pairs, rarity)
    names[pairs[titles[candidates[pairs]] == keywords]] = 1.0
    named[pairs[titles[last[pairs]] == keywords]] = 1.0
    structural, similarity, shared = state.features.T
    columns = (
        structural,
        np.maximum(similarity, 0.0),
        np.minimum(shared, 5.0) / 5.0,
        rarest,
        np.bincount(pairs, weights=rarity, minlength=len(candidates)),
        names,
        named,
        (titles[candidates] >= 0) & (titles[candidates] == titles[last]),
    )
    return np.stack(columns, axis=1).astype(np.float32)


def title_keywords(graph: ChainGraph, view: View) -> IntArray:
    """The keyword that is a node's own title, `[n]`; -1 where no passage has that keyword. Made once per snapshot."""

    def find() -> IntArray:
        titles = [name_key(base_title(unit.title)) for unit in view.units(graph.positions)]
        return np.array([graph.keyword_of.get(title, -1) for title in titles], dtype=np.int64)

    found: IntArray = view.derived("title keywords", find)
    return found


def _shared_keywords(graph: ChainGraph, left: IntArray, right: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every keyword that both nodes of a pair hold: number of the pair, number of the keyword."""
    size = max(1, len(graph.keys))
    both = np.intersect1d(_codes(graph, left, size), _codes(graph, right, size))
    return both // size, both % size


def _codes(graph: ChainGraph, nodes: IntArray, size: int) -> NDArray[np.int64]:
    """`place * size + keyword` for every keyword of every node."""
    starts, counts = graph.keyword_indptr[nodes], graph.keyword_indptr[nodes + 1] - graph.keyword_indptr[nodes]
    places = np.repeat(np.arange(len(nodes)), counts)
    numbers = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return np.asarray(places * size + graph.keyword_numbers[numbers], dtype=np.int64)
