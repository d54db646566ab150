"""`TreeSettings`: how a summary tree grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sire_core.errors import ConfigurationError

__all__ = ["TreeSettings"]


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How a tree grows.

    Attributes:
        depth: Summary levels above the leaves (RAPTOR and SiReRAG: 3).
        clustering: `leiden` (neighbour graph, fast) or `paper` (UMAP and Gaussian mixtures, the reference).
        max_cluster_tokens: A cluster with more text is clustered again on its own.
        summary_tokens: Length of a summary.
        stop_rule: `default` stops below two nodes or when a level does not shrink; `official` when a level has at most
            11 nodes; `none` never (the released SiReRAG code, which summarises a single summary again).
    """

    depth: int = 3
    clustering: str = "leiden"
    max_cluster_tokens: int = 3500
    summary_tokens: int = 200
    stop_rule: str = "default"

    def __post_init__(self) -> None:
        if self.depth < 0 or self.max_cluster_tokens < 1 or self.summary_tokens < 1:
            raise ConfigurationError("A tree needs depth >= 0, max_cluster_tokens >= 1 and summary_tokens >= 1.")
        if self.clustering not in ("leiden", "paper"):
            raise ConfigurationError(f"clustering is 'leiden' or 'paper', not {self.clustering!r}.")
        if self.stop_rule not in ("default", "official", "none"):
            raise ConfigurationError(f"stop_rule is 'default', 'official' or 'none', not {self.stop_rule!r}.")

    def as_mapping(self) -> Mapping[str, Any]:
        """The settings as JSON-serialisable values."""
        return asdict(self)
