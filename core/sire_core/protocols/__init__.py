"""The seams of the house, as `typing.Protocol`s. Nobody has to inherit from anything here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.protocols.building import (
    BuildView,
    Change,
    ChunkInContext,
    Delta,
    Extractor,
    Organizer,
    Progress,
    Summarizer,
)
from sire_core.protocols.models import Completion, Embedder, Fittable, LanguageModel, Prompt, StreamingModel
from sire_core.protocols.searching import Background, RankedSource, Ranker, Ranking, Selector, View
from sire_core.protocols.storing import AskableMirror, BufferedMirror, Mirror, MirroredUnit

if TYPE_CHECKING:
    from sire_core.protocols.arrays import BoolArray as BoolArray
    from sire_core.protocols.arrays import FloatArray as FloatArray
    from sire_core.protocols.arrays import IntArray as IntArray

__all__ = [
    "AskableMirror",
    "Background",
    "BufferedMirror",
    "BuildView",
    "Change",
    "ChunkInContext",
    "Completion",
    "Delta",
    "Embedder",
    "Extractor",
    "Fittable",
    "LanguageModel",
    "Mirror",
    "MirroredUnit",
    "Organizer",
    "Progress",
    "Prompt",
    "RankedSource",
    "Ranker",
    "Ranking",
    "Selector",
    "StreamingModel",
    "Summarizer",
    "View",
]
