"""`IndexOptions`: the arguments of `Index` beside its folder, recipe and models, as typed keywords of the adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.filters import FilterLike
    from sire_core.models.usage import UsageLimits
    from sire_core.progress import ProgressLike
    from sire_core.protocols import Extractor, Mirror, Runner, UnitStore, WrapModel


WORKERS, MAX_FAILURE_RATIO = 8, 0.1
"""Defaults that `Index`, the command line and evaluations share: calls of a model at once, share of failed passages."""


class IndexOptions(TypedDict, total=False):
    """Arguments of `Index`; see there."""

    extractor: Extractor | None
    chunker: SentenceChunker | str | None
    seed: int
    workers: int
    max_failure_ratio: float
    progress: ProgressLike
    limits: UsageLimits | Mapping[str, int] | None
    extraction: str | None
    mirrors: Sequence[Mirror]
    store: UnitStore | None
    lock_timeout: float
    allow: FilterLike
    runner: Runner | str | None
    wrap_model: WrapModel | None
    strict_metadata: bool
    language: str
