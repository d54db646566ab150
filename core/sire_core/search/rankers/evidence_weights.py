"""Weights of `EvidencePaths` by name of the feature: learned once by `benchmarks/evidence_weights.py`, then fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OWN_WEIGHTS", "STEP_WEIGHTS", "TARGET_WEIGHTS"]

OWN_WEIGHTS: Mapping[str, float] = {
    "vector": -0.13,
    "words": 0.08,
    "coverage": 1.2,
    "sentence": 1.12,
    "titled": 0.84,
    "names": 0.52,
    "rarest name": 1.77,
    "title words": 1.55,
    "fused": 1.57,
    "heading words": 1.19,
    "heading": 0.36,
    "phrases": 0.74,
    "near vector": -0.57,
    "near words": -0.33,
    "source vector": -0.46,
    "source words": -0.36,
    "unsure vector": 0.4,
    "unsure words": -0.19,
    "unsure coverage": 0.82,
    "unsure sentence": 0.55,
    "unsure titled": 0.38,
    "unsure names": -0.17,
    "unsure rarest name": -0.02,
    "unsure title words": 0.24,
    "unsure fused": -0.51,
    "unsure heading words": 1.05,
    "unsure heading": 0.09,
    "unsure phrases": 1.28,
    "unsure near vector": 0.38,
    "unsure near words": 0.43,
    "unsure source vector": 0.67,
    "unsure source words": 0.48,
}
"""A passage by itself."""

TARGET_WEIGHTS: Mapping[str, float] = {
    "vector": -0.03,
    "words": 0.16,
    "coverage": -0.6,
    "sentence": -0.24,
    "titled": 0.87,
    "names": -0.2,
    "rarest name": -0.21,
    "title words": 0.11,
    "fused": 0.09,
    "heading words": -0.49,
    "heading": -0.02,
    "phrases": -0.44,
    "near vector": 0.25,
    "near words": 0.23,
    "source vector": -0.47,
    "source words": -0.17,
    "unsure vector": 0.11,
    "unsure words": 0.42,
    "unsure coverage": -0.92,
    "unsure sentence": -0.61,
    "unsure titled": 0.18,
    "unsure names": -0.3,
    "unsure rarest name": -0.44,
    "unsure title words": -0.02,
    "unsure fused": -0.28,
    "unsure heading words": -0.38,
    "unsure heading": -0.01,
    "unsure phrases": -0.29,
    "unsure near vector": 0.52,
    "unsure near words": 0.25,
    "unsure source vector": -0.22,
    "unsure source words": -0.11,
}
"""A passage at the end of a step."""

STEP_WEIGHTS: Mapping[str, float] = {
    "from": 3.89,
    "sentence": 2.34,
    "new words": 1.76,
    "both": 2.71,
    "to title": 0.83,
    "rarity": 3.08,
    "asked": -0.95,
    "from title": 1.44,
    "alike": -0.08,
    "single title": 2.38,
    "few names": 0.43,
    "new in sentence": 1.72,
    "few holders": 1.75,
    "bias": -1.13,
}
"""A step."""
