"""Weights of `EvidencePaths` by name of the feature: learned once by `benchmarks/evidence_weights.py`, then fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OWN_WEIGHTS", "STEP_WEIGHTS", "TARGET_WEIGHTS"]

OWN_WEIGHTS: Mapping[str, float] = {
    "vector": -0.03,
    "words": -0.02,
    "coverage": 1.1,
    "sentence": 1.92,
    "titled": 0.79,
    "names": 0.56,
    "rarest name": 1.7,
    "title words": 1.52,
    "fused": 1.64,
    "unsure vector": 0.21,
    "unsure words": 0.1,
    "unsure coverage": 0.68,
    "unsure sentence": 1.37,
    "unsure titled": 0.23,
    "unsure names": -0.4,
    "unsure rarest name": -0.38,
    "unsure title words": -0.16,
    "unsure fused": -0.44,
}
"""A passage by itself."""

TARGET_WEIGHTS: Mapping[str, float] = {
    "vector": 0.03,
    "words": 0.05,
    "coverage": -0.56,
    "sentence": -0.4,
    "titled": 1.08,
    "names": -0.24,
    "rarest name": -0.36,
    "title words": -0.07,
    "fused": 0.19,
    "unsure vector": 0.17,
    "unsure words": 0.37,
    "unsure coverage": -0.82,
    "unsure sentence": -0.65,
    "unsure titled": 0.59,
    "unsure names": -0.4,
    "unsure rarest name": -0.55,
    "unsure title words": -0.14,
    "unsure fused": -0.23,
}
"""A passage at the end of a step."""

STEP_WEIGHTS: Mapping[str, float] = {
    "from": 4.29,
    "sentence": 2.35,
    "new words": 2.12,
    "both": 3.0,
    "to title": 0.92,
    "rarity": 3.12,
    "asked": -0.87,
    "from title": 1.26,
    "alike": 0.12,
    "single title": 2.46,
    "few names": 0.57,
    "new in sentence": 1.97,
    "few holders": 2.01,
    "bias": -1.22,
}
"""A step."""
