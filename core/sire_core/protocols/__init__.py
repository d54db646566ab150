"""The public protocols. Nobody has to inherit from anything here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.protocols.building import (
    BlockEdges,
    BuildView,
    Change,
    ChunkInContext,
    Delta,
    Extractor,
    Mirror,
    MirroredUnit,
    Organizer,
    Progress,
    Recipe,
    RecordDecoder,
    Runner,
    Summarizer,
    TableChange,
    UnitStore,
)
from sire_core.protocols.models import (
    Completion,
    Embedder,
    Fittable,
    LanguageModel,
    ModelRequest,
    Prompt,
    StreamingModel,
    WrapModel,
)
from sire_core.protocols.searching import (
    CarriedFiles,
    ContextProvider,
    PreparedRanker,
    RankedSource,
    Ranker,
    Ranking,
    ReadableRanking,
    Selector,
    Similarities,
    VectorIndex,
    View,
)

if TYPE_CHECKING:
    from sire_core.protocols.models import BoolArray as BoolArray
    from sire_core.protocols.models import FloatArray as FloatArray
    from sire_core.protocols.models import IntArray as IntArray

__all__ = [
    "BlockEdges",
    "BuildView",
    "CarriedFiles",
    "Change",
    "ChunkInContext",
    "Completion",
    "ContextProvider",
    "Delta",
    "Embedder",
    "Extractor",
    "Fittable",
    "LanguageModel",
    "Mirror",
    "MirroredUnit",
    "ModelRequest",
    "Organizer",
    "PreparedRanker",
    "Progress",
    "Prompt",
    "RankedSource",
    "Ranker",
    "Ranking",
    "ReadableRanking",
    "Recipe",
    "RecordDecoder",
    "Runner",
    "Selector",
    "Similarities",
    "StreamingModel",
    "Summarizer",
    "TableChange",
    "UnitStore",
    "VectorIndex",
    "View",
    "WrapModel",
]
