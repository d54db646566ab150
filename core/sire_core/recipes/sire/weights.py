"""Weights of `EvidencePaths` by name of the feature: learned once by `benchmarks/evidence_weights.py`, then fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sire_core.models.lexical_embedder import is_lexical
from sire_core.recipes.sire.question import OWN, STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

OWN_WEIGHTS: Mapping[str, float] = {
    "vector": -0.14,
    "words": 0.1,
    "coverage": 1.54,
    "sentence": 1.35,
    "titled": 0.56,
    "names": 0.26,
    "rarest name": 2.05,
    "title words": 1.4,
    "fused": 1.72,
    "heading words": 1.11,
    "heading": 0.54,
    "phrases": 0.51,
    "near vector": -0.79,
    "near words": -0.31,
    "source vector": -0.84,
    "source words": -0.36,
    "unsure vector": 0.24,
    "unsure words": -0.02,
    "unsure coverage": 0.9,
    "unsure sentence": 0.29,
    "unsure titled": 0.94,
    "unsure names": -0.18,
    "unsure rarest name": -0.02,
    "unsure title words": 0.42,
    "unsure fused": -0.88,
    "unsure heading words": 1.02,
    "unsure heading": -0.19,
    "unsure phrases": 2.17,
    "unsure near vector": 0.66,
    "unsure near words": 0.35,
    "unsure source vector": 1.01,
    "unsure source words": 0.49,
}
"""A passage by itself."""

TARGET_WEIGHTS: Mapping[str, float] = {
    "vector": 0.01,
    "words": 0.04,
    "coverage": -1.15,
    "sentence": 0.03,
    "titled": 0.72,
    "names": -0.01,
    "rarest name": -0.26,
    "title words": 0.15,
    "fused": 0.18,
    "heading words": -0.72,
    "heading": 0.44,
    "phrases": -0.89,
    "near vector": 0.38,
    "near words": 0.65,
    "source vector": -0.95,
    "source words": -0.46,
    "unsure vector": 0.04,
    "unsure words": 0.54,
    "unsure coverage": -1.63,
    "unsure sentence": -0.69,
    "unsure titled": -0.02,
    "unsure names": -0.39,
    "unsure rarest name": -0.76,
    "unsure title words": -0.23,
    "unsure fused": -0.28,
    "unsure heading words": -0.55,
    "unsure heading": 0.38,
    "unsure phrases": -0.6,
    "unsure near vector": 1.02,
    "unsure near words": 0.54,
    "unsure source vector": -0.27,
    "unsure source words": -0.44,
}
"""A passage at the end of a step."""

STEP_WEIGHTS: Mapping[str, float] = {
    "from": 4.98,
    "sentence": 2.87,
    "new words": 2.6,
    "both": 2.93,
    "to title": 0.45,
    "rarity": 5.3,
    "asked": -1.3,
    "from title": 1.08,
    "alike": -0.1,
    "single title": 2.63,
    "few names": 0.49,
    "new in sentence": 2.51,
    "few holders": 1.52,
    "bias": -2.4,
}
"""A step."""

NEURAL_OWN: Mapping[str, float] = {
    "vector": 0.23,
    "words": -0.26,
    "fused": -0.02,
    "sentence": -0.53,
    "coverage": -0.17,
    "unsure vector": 0.58,
    "unsure words": -0.15,
}
"""Added to `OWN_WEIGHTS` where the vectors come from a neural embedder."""

NEURAL_TARGET: Mapping[str, float] = {
    "vector": 0.62,
    "words": -0.16,
    "fused": -0.42,
    "sentence": -0.53,
    "coverage": -0.79,
    "unsure vector": -0.05,
    "unsure words": 0.14,
}
"""Added to `TARGET_WEIGHTS` there."""


DOCUMENT_WEIGHTS: Mapping[str, float] = {"words": 0.9, "fused": 1.0, "coverage": 1.7, "alike": 4.2}
"""A passage that a longer document was cut into."""

NEURAL_DOCUMENT_WEIGHTS: Mapping[str, float] = {"vector": 1.6}
"""Added to `DOCUMENT_WEIGHTS` where the vectors come from a neural embedder."""


@dataclass(frozen=True, slots=True)
class DocumentWeights:
    """Weights of passages that longer documents were cut into; learned by `benchmarks/left_out.py --learn`."""

    own: NDArray[np.float64]  # of their evidence by themselves, `[len(OWN)]`
    path: float = 6.7  # of the share of the question in the path, file name or address of the document
    step: float = 3.7  # of what the best sentence of the best step adds, and of how few passages have its name
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

    @classmethod
    def of(cls, embedder: str) -> Weights:
        """Weights for vectors of an embedder: those of words alone say less beside the words than neural ones."""
        return weights_of(neural=not is_lexical(embedder))


@cache
def weights_of(*, neural: bool) -> Weights:
    """Return the weights, once for each kind of embedder."""
    own, target, document = (
        np.array([first.get(name, 0.0) + (more.get(name, 0.0) if neural else 0.0) for name in OWN])
        for first, more in (
            (OWN_WEIGHTS, NEURAL_OWN),
            (TARGET_WEIGHTS, NEURAL_TARGET),
            (DOCUMENT_WEIGHTS, NEURAL_DOCUMENT_WEIGHTS),
        )
    )
    return Weights(own, np.array([STEP_WEIGHTS[name] for name in STEP]), target, DocumentWeights(document))
