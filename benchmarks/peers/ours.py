"""sire-rag as a peer among peers: the same interface, the same embedder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sire_core import Document, Index

__all__ = ["Flat", "PageRank", "PageRankModel", "Sire", "SireModel"]


class _Vectors:
    spec = ""
    fingerprint = "peers/1"

    def __init__(self, embed: Any) -> None:
        self._embed = embed
        self.dimension = embed.dimension

    async def embed(self, texts: Any, kind: str = "document") -> np.ndarray:
        """Embed on the caller's clock."""
        return np.asarray(self._embed(list(texts)))


class Sire:
    """The default recipe, without a language model."""

    recipe = "sire"
    model = False

    def __init__(self, folder: Path, embed: Any, url: str) -> None:
        model = None
        if self.model:
            from sire_core.models.openai.client import OpenAIChat

            model = OpenAIChat("scripted", base_url=url, api_key="none")
        self.index = Index(folder, recipe=self.recipe, embedder=_Vectors(embed), chunker=None, language_model=model)

    def build(self, passages: list[dict[str, Any]]) -> None:
        """Index them."""
        self.index.build(map(_document, passages))

    def add(self, passages: list[dict[str, Any]]) -> None:
        """Add some."""
        self.index.add(map(_document, passages))

    def search(self, question: str, k: int) -> list[str]:
        """Ids of the passages found."""
        return [found for hit in self.index.search(question, k) for found in hit.doc_ids]


class SireModel(Sire):
    """The default recipe, extraction by the model."""

    model = True


class PageRank(Sire):
    """PageRank over passages and entities."""

    recipe = "pagerank"


class PageRankModel(PageRank):
    """The same, extraction by the model."""

    model = True


class Flat(Sire):
    """Vectors alone."""

    recipe = "flat"


def _document(passage: dict[str, Any]) -> Document:
    return Document(passage["id"], passage["text"], title=passage["title"])
