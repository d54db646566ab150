"""Steps from passages over a sentence and a name in it to other passages, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.algorithms.lists import Ints

    Floats = NDArray[np.float64]

__all__ = ["NO_LEADS", "STEP", "Leads"]

STEP = (
    *("from", "sentence", "new words", "both", "to title", "rarity", "asked", "from title", "alike", "single title"),
    *("few names", "new in sentence", "few holders", "bias"),
)
"""Evidence of a step from a passage over a sentence and a name to another passage: log share of the first among all
candidates, the sentence's share of the question, what the other adds to it and what both cover, whether the other is
about the name, how rare the name is, whether the question names it, whether the question names what the first is about,
cosine of both, 1 / how many passages are about the name, 1 / names of the first, what the other's best sentence adds,
1 / how many others mention it."""


@dataclass(frozen=True, slots=True)
class Leads:
    """Steps from first passages over a sentence and a name to other passages, `[steps]` each.

    Attributes:
        sources: Passage of the step's beginning.
        sentences: Sentence of it that has the name.
        entities: The name.
        targets: Where the step leads.
        features: See `STEP`, `[steps, len(STEP)]`.
    """

    sources: Ints
    sentences: Ints
    entities: Ints
    targets: Ints
    features: Floats


_NOWHERE = np.zeros(0, dtype=np.int64)
NO_LEADS = Leads(_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE, np.zeros((0, len(STEP))))
"""No steps."""
