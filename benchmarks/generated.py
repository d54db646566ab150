"""Passages of any number with the statistics of real ones, for measuring how cost grows.

A real corpus is written out again and again. In every round after the first, rare words are exchanged, the same word
always for the same other one, so that a passage still names the title of another passage of its round:

- a word that stands in one to three passages becomes a new word, as large corpora bring new names without end;
- a word of up to half a percent of the passages becomes another word of about the same frequency, written alike;
- everything else stays, so that countries, months and function words become as frequent as the corpus is large.

`statistics` says how close that comes: passages by entity, entities by passage, cosine of the nearest passage.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from sire_core import Document
from sire_core.evaluate.datasets import load_dataset

__all__ = ["generated", "statistics"]

SETS = ("2wikimultihopqa", "hotpotqa", "musique-more")
_WORD = re.compile(r"[^\W\d_]+")
_FEW = 3
_COMMON = 0.005


def generated(data: Path, count: int, sets: Sequence[str] = SETS) -> Iterator[Document]:
    """Yield `count` documents: first the real ones, spread over their sets, then round after round.

    Args:
        data: The folder of the sets.
        count: How many.
        sets: Names of folders.
    """
    real = [document for name in sets for document in load_dataset(data / name).documents]
    order = np.random.default_rng(0).permutation(len(real))
    real = [real[place] for place in order]
    bands = _bands([f"{document.title} {document.text}" for document in real])
    return islice(_rounds(real, bands), count)


def _rounds(real: Sequence[Document], bands: Sequence[Sequence[str]]) -> Iterator[Document]:
    yield from real
    number = 1
    while True:
        other = _exchange(bands, number)
        for document in real:
            title, text = _rewritten(document.title, other), _rewritten(document.text, other)
            yield Document(f"{document.id}-{number}", text, title=title)
        number += 1


def _rewritten(text: str, other: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: other.get(match[0], match[0]), text)


def _bands(texts: Sequence[str]) -> list[list[str]]:
    """Words that are exchanged, in bands of like frequency and spelling; the first two hold those that become new."""
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(set(_WORD.findall(text)))
    bands: dict[tuple[int, bool], list[str]] = {}
    for word, count in sorted(seen.items()):
        if len(word) > 2 and count <= _COMMON * len(texts):
            band = 0 if count <= _FEW else int(2 * np.log2(count))
            bands.setdefault((band, word[0].isupper()), []).append(word)
    few = [bands.pop((0, upper), []) for upper in (True, False)]
    return [*few, *bands.values()]


def _exchange(bands: Sequence[Sequence[str]], number: int) -> dict[str, str]:
    """What every exchanged word becomes in a round."""
    rng = np.random.default_rng(number)
    other: dict[str, str] = {}
    for band in bands[2:]:
        other.update(zip(band, [band[place] for place in rng.permutation(len(band))], strict=True))
    for band in bands[:2]:
        # The first half of a word with the last half of another one: as long, as easy to say, and in no other round.
        for word, ending in zip(band, [band[place] for place in rng.permutation(len(band))], strict=True):
            mark = hashlib.blake2b(f"{word}/{number}".encode(), digest_size=2).hexdigest()
            letters = "".join("aeioulnrstmdkbpg"[int(digit, 16)] for digit in mark[:3])
            other[word] = word[: (len(word) + 1) // 2] + letters + ending[len(ending) // 2 :].lower()
    return other


def statistics(documents: Sequence[Document], sample: int = 2000) -> dict[str, float]:
    """Entities and nearest passages of some documents, by the extractor and the embedder that need no model."""
    import asyncio

    from sire_core.arrays.nearest_neighbors import nearest_neighbors
    from sire_core.extraction.rules import RulesExtractor
    from sire_core.models.lexical_embedder import LexicalEmbedder
    from sire_core.text.words import name_key
    from sire_core.types import Chunk

    chunks = [Chunk(d.id, d.id, 0, d.title, d.text) for d in documents]
    named: Counter[str] = Counter()
    per_passage = []
    for record in RulesExtractor().records(chunks):
        keys = {name_key(entity.name) for entity in record.entities}
        named.update(keys)
        per_passage.append(len(keys))
    sizes = np.array(list(named.values()))
    texts = [f"{d.title}\n{d.text}" for d in documents]
    vectors = asyncio.run(LexicalEmbedder().fit(texts).embed(texts))
    rows = np.arange(0, len(texts), max(1, len(texts) // sample))
    _, cosines = nearest_neighbors(vectors, 5, rows=rows)
    return {
        "passages": len(documents),
        "words per passage": float(np.mean([len(text.split()) for text in texts])),
        "entities per passage": float(np.mean(per_passage)),
        "entities per 1,000 passages": 1000 * len(sizes) / len(documents),
        "% of entities in one passage": 100 * float(np.mean(sizes == 1)),
        "% in 2 to 10": 100 * float(np.mean((sizes > 1) & (sizes <= 10))),
        "% in more than 10": 100 * float(np.mean(sizes > 10)),
        "% of passages that name the most frequent": 100 * float(sizes.max()) / len(documents),
        "cosine of the nearest, median": float(np.median(cosines[:, 0])),
        "cosine of the fifth, median": float(np.median(cosines[:, 4])),
    }
