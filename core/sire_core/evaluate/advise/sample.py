"""A part of a corpus in which what belongs together stays together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sire_core.extraction.subjects import base_title
from sire_core.extraction.titles import TitleLinker

if TYPE_CHECKING:
    from sire_core.types import Document

__all__ = ["sample"]

_WORDS = 150
"""Words of a typical passage: long documents count for several."""


def sample(documents: Sequence[Document], passages: int, seed: int = 0) -> list[Document]:
    """Documents of about so many passages: half of them by chance, the others because one of those names them.

    Args:
        documents: The corpus.
        passages: How many passages at most, about; a smaller corpus stays whole.
        seed: Of the choice.
    """
    sizes = [_passages(document) for document in documents]
    if sum(sizes) <= passages:
        return list(documents)
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    by_name = {base_title(d.title): place for place, d in enumerate(documents) if d.title}
    linker = TitleLinker(list(by_name))
    chosen: dict[int, None] = {}
    room = passages
    for place in order:
        if room <= 0:
            break
        named = [by_name[name] for name in linker.mentions(_text(documents[place])) if name in by_name]
        for found in (place, *named[:2]):
            if found not in chosen and (room > 0):
                chosen[found] = None
                room -= sizes[found]
    return [documents[place] for place in sorted(chosen)]


def _text(document: Document) -> str:
    return " ".join(passage.text for passage in document.passages) or document.text


def _passages(document: Document) -> int:
    return len(document.chunks) or 1 + len(document.text.split()) // (2 * _WORDS)
