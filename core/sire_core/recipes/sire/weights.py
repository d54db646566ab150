"""Weights of `EvidencePaths`, from `weights.toml`: learned once, then fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sire_core.models.lexical_embedder import is_lexical
from sire_core.recipes.published import read_toml
from sire_core.recipes.sire.question import OWN, STEP
from sire_core.recipes.sire.trust import GATES, Gates, vector_reliability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sire_core.protocols import View
    from sire_core.recipes.sire.index import EvidenceIndex


@cache
def learned_weights() -> dict[str, dict[str, float]]:
    """Return the tables of `weights.toml`."""
    return read_toml(__package__, "weights.toml")


@dataclass(frozen=True, slots=True)
class DocumentWeights:
    """Weights of passages that longer documents were cut into; learned by `benchmarks/left_out.py --learn`."""

    own: NDArray[np.float64]  # of their evidence by themselves, `[len(OWN)]`
    path: float = 6.4  # of the share of the question in the path, file name or address of the document
    step: float = 1.9  # of what the best sentence of the best step adds, and of how few passages have its name
    repeat: float = 0.5  # what a passage loses for every passage of its document that ranks before it

    def lift(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """What steps with some features add to the passages they lead to, `[steps]`."""
        return self.step * (features[:, _NEW] + _FEW_HOLDERS * features[:, _FEW])


_NEW, _FEW = STEP.index("new in sentence"), STEP.index("few holders")
_FEW_HOLDERS = 0.5


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights in the order of the features."""

    own: NDArray[np.float64]  # of a passage by itself, `[len(OWN)]`
    step: NDArray[np.float64]  # of a step, `[len(STEP)]`
    target: NDArray[np.float64]  # of a passage at the end of a step, `[len(OWN)]`
    document: DocumentWeights  # of parts of longer documents
    gates: Gates | None = None  # of how far vectors are trusted beside that; None for vectors of words
    reliability: float = 1.0  # of the vectors, 0 to 1

    @classmethod
    def of(cls, view: View, index: EvidenceIndex) -> Weights:
        """Weights for the vectors of an index: those of words alone say less beside the words than neural ones."""
        if is_lexical(view.embedder_fingerprint):
            return weights_of(neural=False)
        reliability = view.derived("vector reliability", lambda: vector_reliability(index, view.matrix))
        return _between(weights_of(neural=False), weights_of(neural=True), reliability)

    def trust(self, gates: NDArray[np.float64]) -> float:
        """What a standard score of a cosine adds to the score of a passage, for the gates of a question."""
        return 0.0 if self.gates is None else self.reliability * self.gates.trust(gates)


def _between(lexical: Weights, neural: Weights, reliability: float) -> Weights:
    """Weights for vectors whose reliability is between none and that of a neural embedder."""
    if reliability in {0.0, 1.0}:
        return replace(neural if reliability else lexical, reliability=reliability)

    def mix(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        return first + reliability * (second - first)

    own, target = mix(lexical.own, neural.own), mix(lexical.target, neural.target)
    document = replace(neural.document, own=mix(lexical.document.own, neural.document.own))
    return replace(neural, own=own, target=target, document=document, reliability=reliability)


@cache
def weights_of(*, neural: bool) -> Weights:
    """Return the weights, once for each kind of embedder."""
    tables = learned_weights()

    def table(name: str, features: Sequence[str]) -> NDArray[np.float64]:
        added = tables.get(f"neural_{name}", {}) if neural else {}
        return np.array([tables[name].get(feature, 0.0) + added.get(feature, 0.0) for feature in features])

    gates = Gates(*(table(name, GATES) for name in ("trust", "trust_means", "trust_spreads"))) if neural else None
    document = DocumentWeights(table("document", OWN))
    return Weights(table("own", OWN), table("step", STEP), table("target", OWN), document, gates)
