"""Score of an embedder: whether it ranks paraphrases before sentences with the same words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows

if TYPE_CHECKING:
    from sire_core.protocols import Embedder


@cache
def _sentences() -> tuple[Sequence[str], ...]:
    """English questions, a paraphrase of the answer of each, and a sentence about something else in its words."""
    text = files("sire_core.data").joinpath("paraphrases.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return tuple([row[name] for row in rows] for name in ("question", "paraphrase", "other"))


async def paraphrase_score(embedder: Embedder) -> float:
    """Mean reciprocal rank of the paraphrase that answers a question, from 0 to 1, by the cosine with the question.

    There are 32 questions in English, and 64 sentences to rank: of each question a paraphrase of its answer, and a
    sentence about something else that shares more words with it. Random vectors have .1, words and letters .2, averaged
    vectors of words up to .45, small sentence embedders .65 and more. Takes two calls of the embedder.
    """
    questions, paraphrases, others = _sentences()
    vectors = await embedder.embed(questions, "query"), await embedder.embed([*paraphrases, *others], "document")
    question_vectors, sentence_vectors = (unit_rows(np.asarray(rows, dtype=np.float32)) for rows in vectors)
    cosines = question_vectors @ sentence_vectors.T
    better = np.count_nonzero(cosines > cosines.diagonal()[:, None], axis=1)
    return float(np.mean(1.0 / (1.0 + better)))
