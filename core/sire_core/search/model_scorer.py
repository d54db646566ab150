"""`ModelScorer`: a language model chooses the next passage of each chain (IIER section 3.2, scorer `llm`)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.voting import parse_order
from sire_core.protocols import Prompt
from sire_core.search.chain_scorers import HeuristicScorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.protocols import FloatArray, LanguageModel, View
    from sire_core.search.chain_graph import ChainGraph
    from sire_core.search.chain_scorers import WalkState

__all__ = ["ModelScorer"]

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
        """Score all candidates: heuristic scores, and 1 more for what the model names.

        Raises:
            ModelError: A call failed.
        """
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
        for places, chosen in zip(shown, await asyncio.gather(*calls), strict=True):
            scores[places[chosen]] += 1.0
        return scores


async def _ask(model: LanguageModel, query: str, chain: Sequence[str], candidates: Sequence[str]) -> int:
    """Place of the candidate that the model chooses; one call."""
    found = "\n\n".join(chain)
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(candidates))
    data = f"Question: {query}\n\nChain so far:\n{found}\n\nPassages:\n{listed}"
    answer = await model.complete(Prompt(_INSTRUCTIONS, data), max_tokens=10)
    return parse_order(answer.text, range(len(candidates)))[0]
