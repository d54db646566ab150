"""Small corpora of stated triples for the formulas of papers: texts, triples, names, questions, and an index over them."""

import json
import zlib

import numpy as np

from sire_core import Document, Index
from sire_core.extend import tokenize
from sire_core.extraction.record import RecordedExtractor
from sire_core.recipes import recipe_by_name
from sire_core.testing.doubles import HashEmbedder

FIRST, LAST = ("Ansel", "Brida", "Corin", "Dagny", "Elwin", "Fenna"), ("Marsh", "Tarn", "Voss", "Lund", "Hale")
VERBS = ("met", "taught", "followed")


def stated_triples(seed):
    """Documents without titles, and per document its triples; ends are names or common nouns."""
    rng = np.random.default_rng(seed)
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    nouns = ["glass maker", "harbour pilot", "bell tower"]
    rows, seen = [], []
    for number in range(14):
        triples = []
        for _ in range(int(rng.integers(1, 4))):
            head, tail = (names[i] for i in rng.choice(len(names), 2, replace=False))
            triple = [head, str(rng.choice(VERBS)), tail if rng.random() < 0.8 else str(rng.choice(nouns))]
            if sorted(triple) not in seen:  # statements of equal words have equal vectors, and their order is no matter
                triples.append(triple)
                seen.append(sorted(triple))
        listed = dict.fromkeys(end for head, _, tail in triples for end in (head, tail) if end in names)
        rows.append((f"d{number}", [" ".join(triple) + "." for triple in triples], triples, list(listed)))
    return rows


def questions_about(seed):
    """Six questions about two names each."""
    rng = np.random.default_rng(100 + seed)
    for _ in range(6):
        one, other = (f"{rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(2))
        yield f"Whom did {one} meet after {other} taught the glass maker?"


class DistinctVectors(HashEmbedder):
    """Hashed words and a little noise, the same for texts of the same words: no two texts are equally near to another."""

    fingerprint = "distinct"

    async def embed(self, texts, kind="document"):
        seeds = [zlib.crc32(" ".join(tokenize(text)).encode()) for text in texts]
        noise = [np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds]
        vectors = await super().embed(texts, kind) + 0.02 * np.array(noise, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def opener(rows, file):
    """A function that opens a recipe over triples, which it writes to a file."""
    lines = [{"id": i, "entities": listed, "triples": triples} for i, _, triples, listed in rows]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def opened(name, **settings):
        index = Index(
            recipe=recipe_by_name(name, **settings),
            embedder=DistinctVectors(192),
            extractor=RecordedExtractor(file, link_titles=False),
        )
        index.build([Document(i, " ".join(sentences)) for i, sentences, *_ in rows])
        return index

    return opened
