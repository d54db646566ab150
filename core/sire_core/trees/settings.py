"""`TreeSettings`: how a summary tree grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sire_core.settings import check_settings, setting

__all__ = ["TreeSettings"]


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How a tree grows.

    Attributes:
        depth: Summary levels above the leaves (RAPTOR and SiReRAG: 3).
        clustering: `leiden` (neighbour graph, fast) or `paper` (UMAP and Gaussian mixtures, the reference).
        max_cluster_tokens: A cluster with more tokens is split further.
        summary_tokens: Maximum tokens of a summary.
        stop_rule: `default` stops below two nodes or when a level does not shrink; `official` when a level has at most
            11 nodes; `none` never (the released SiReRAG code, which summarises a single summary again).
    """

    depth: int = setting(3, low=0)
    clustering: str = setting("leiden", choices=("leiden", "paper"))
    max_cluster_tokens: int = setting(3500, low=1)
    summary_tokens: int = setting(200, low=1)
    stop_rule: str = setting("default", choices=("default", "official", "none"))

    def __post_init__(self) -> None:
        check_settings(self)

    def as_mapping(self) -> Mapping[str, Any]:
        """The settings as JSON-serialisable values."""
        return asdict(self)
