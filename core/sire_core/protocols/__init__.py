"""The public protocols. Nobody has to inherit from anything here."""

from __future__ import annotations

from sire_core.protocols.building import BuildView as BuildView
from sire_core.protocols.building import Change as Change
from sire_core.protocols.building import ChunkInContext as ChunkInContext
from sire_core.protocols.building import Delta as Delta
from sire_core.protocols.building import Extractor as Extractor
from sire_core.protocols.building import Mirror as Mirror
from sire_core.protocols.building import MirroredUnit as MirroredUnit
from sire_core.protocols.building import Organizer as Organizer
from sire_core.protocols.building import Progress as Progress
from sire_core.protocols.building import Recipe as Recipe
from sire_core.protocols.building import RecordDecoder as RecordDecoder
from sire_core.protocols.building import Runner as Runner
from sire_core.protocols.building import Summarizer as Summarizer
from sire_core.protocols.building import TableChange as TableChange
from sire_core.protocols.building import UnitStore as UnitStore
from sire_core.protocols.models import BoolArray as BoolArray
from sire_core.protocols.models import Completion as Completion
from sire_core.protocols.models import DoubleArray as DoubleArray
from sire_core.protocols.models import Embedder as Embedder
from sire_core.protocols.models import Fittable as Fittable
from sire_core.protocols.models import FloatArray as FloatArray
from sire_core.protocols.models import HashArray as HashArray
from sire_core.protocols.models import IdArray as IdArray
from sire_core.protocols.models import Int32Array as Int32Array
from sire_core.protocols.models import IntArray as IntArray
from sire_core.protocols.models import LanguageModel as LanguageModel
from sire_core.protocols.models import ModelRequest as ModelRequest
from sire_core.protocols.models import Prompt as Prompt
from sire_core.protocols.models import StreamingModel as StreamingModel
from sire_core.protocols.models import WrapModel as WrapModel
from sire_core.protocols.searching import CarriedArrays as CarriedArrays
from sire_core.protocols.searching import ContextProvider as ContextProvider
from sire_core.protocols.searching import PreparedRanker as PreparedRanker
from sire_core.protocols.searching import RankedSource as RankedSource
from sire_core.protocols.searching import Ranker as Ranker
from sire_core.protocols.searching import Ranking as Ranking
from sire_core.protocols.searching import ReadableRanking as ReadableRanking
from sire_core.protocols.searching import Selector as Selector
from sire_core.protocols.searching import Similarities as Similarities
from sire_core.protocols.searching import VectorIndex as VectorIndex
from sire_core.protocols.searching import View as View
