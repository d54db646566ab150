"""Weights of `EvidencePaths`, from `weights.toml`: learned once, then fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sire_core.models.lexical_embedder import is_lexical
from sire_core.recipes.sire.question import OWN, STEP
from sire_core.recipes.sire.trust import GATES, Trust, embedder_reliability, vector_reliability
from sire_core.settings import read_toml

if TYPE_CHECKING:
    from sire_core.protocols import DoubleArray, View
    from sire_core.recipes.sire.evidence_index import EvidenceIndex


@cache
def learned_weights() -> dict[str, dict[str, float]]:
    """Return the tables of `weights.toml`."""
    return read_toml(__package__, "weights.toml")


@dataclass(frozen=True, slots=True)
class DocumentWeights:
    """Weights of passages that longer documents were cut into; learned by `benchmarks/left_out.py --learn`."""

    own: DoubleArray  # of their evidence by themselves, `[len(OWN)]`
    path: float  # of the share of the question in the path, file name or address of the document
    step: float  # of new words in the best sentence of a step, and of the rarity of its name
    repeat: float  # subtracted where one passage of the same document ranks before, twice that where three do

    def lift(self, features: DoubleArray) -> DoubleArray:
        """Score that steps add to the passages they lead to, `[steps]`."""
        return self.step * (features[:, _NEW] + _FEW_HOLDERS * features[:, _FEW])


_NEW, _FEW = STEP.index("new in sentence"), STEP.index("few holders")
_FEW_HOLDERS = 0.5


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights in the order of the features."""

    own: DoubleArray  # of a passage by itself, `[len(OWN)]`
    step: DoubleArray  # of a step, `[len(STEP)]`
    target: DoubleArray  # of a passage at the end of a step, `[len(OWN)]`
    document: DocumentWeights  # of parts of longer documents
    trust: Trust  # how far vectors and words are trusted beside that
    vector_share: float = 1.0  # factor of the vectors' scores

    @classmethod
    def of(cls, view: View, index: EvidenceIndex) -> Weights:
        """Weights for the vectors of an index: those of words alone say less beside the words than neural ones."""
        if is_lexical(view.embedder_fingerprint):
            return cls.of_words(index)
        if view.paraphrase_score is not None and index.is_english:
            reliability = embedder_reliability(view.paraphrase_score)
        else:
            reliability = view.derived("vector reliability", lambda: vector_reliability(index, view.matrix))
        weights = weights_for(reliability, (1.0 - reliability) * index.is_english)
        return replace(weights, vector_share=reliability)

    @classmethod
    def of_words(cls, index: EvidenceIndex) -> Weights:
        """Weights for vectors of words alone."""
        return weights_for(0.0, float(index.is_english))


@cache
def weights_for(reliability: float, meaning: float = 0.0) -> Weights:
    """Return the weights for vectors between those of words alone (0) and those of a reliable neural embedder (1).

    `meaning`, 0 to 1, of what English sentences mean by their words counts for parts of documents.
    """
    tables = learned_weights()

    def table(name: str, features: Sequence[str]) -> DoubleArray:
        shares = {name: 1.0, f"neural_{name}": reliability, f"meaning_{name}": meaning}
        values = [[tables.get(table, {}).get(each, 0.0) for each in features] for table in shares]
        return np.asarray(np.array(list(shares.values())) @ values)

    trust = Trust(table("trust_vectors", GATES), table("trust_words", GATES), reliability)
    document = DocumentWeights(table("document", OWN), *table("document", ("path", "step", "repeat")).tolist())
    return Weights(table("own", OWN), table("step", STEP), table("target", OWN), document, trust)
