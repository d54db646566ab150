"""What the graph of a recipe is missing, and what its misses come from (MS-RAG table 14 and appendix M)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from sire_core.algorithms.worker_pool import map_all
from sire_core.errors import ModelError
from sire_core.models.base import concurrency_of
from sire_core.models.structured import LenientAnswer
from sire_core.protocols import Prompt
from sire_core.types import UnitKind

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow, QuestionResult
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel, Progress

__all__ = ["classify_error", "graph_errors", "missing_triples"]

_TOP = 2
_POOL = 5

_NEEDED = """\
The data holds a question, a passage that its answer needs, and the relations that a graph has of this passage. Do the \
relations hold what the question needs from the passage? Answer with yes or no alone."""

_ANNOTATE = """\
The data holds a passage and numbered relations that were read from it. List the numbers of the relations that the \
passage states (correct), and every relation that it states and the list lacks, as head, predicate, tail (missing)."""


class _Annotation(LenientAnswer):
    shape: ClassVar[str] = '{"correct":[0],"missing":[["head","predicate","tail"]]}'

    correct: list[int] = Field(default_factory=list)
    missing: list[list[str]] = Field(default_factory=list)


def classify_error(
    result: QuestionResult, stated: Mapping[str, Sequence[str]], *, complete: Mapping[str, bool] | None = None
) -> str:
    """Why not every gold passage of a question stands among the first two.

    Args:
        result: What the question found.
        stated: Relations of the graph by document.
        complete: By gold document whether its relations hold what the question needs, where a model was asked;
            otherwise a document with relations counts as complete.

    Returns:
        Empty where nothing is missed; `graph` where a passage that is missed stands not among the first five and
        its relations are missing; `recall` where the graph has them; `rerank` where all stand among the first five.
    """
    if len(set(result.gold)) > _TOP:
        missed = [doc for doc in dict.fromkeys(result.gold) if doc not in result.passages[: len(set(result.gold))]]
    else:
        missed = [doc for doc in dict.fromkeys(result.gold) if doc not in result.passages[:_TOP]]
    if not missed:
        return ""
    outside = [doc for doc in missed if doc not in result.passages[: max(_POOL, len(set(result.gold)))]]
    if not outside:
        return "rerank"
    known = complete or {doc: bool(stated.get(doc)) for doc in outside}
    return "recall" if all(known.get(doc, bool(stated.get(doc))) for doc in outside) else "graph"


async def graph_errors(index: Index, dataset: DataSet, row: EvalRow, model: LanguageModel | None) -> dict[str, Any]:
    """Kinds of errors of a row, in percent of its errors (table 14), and their number.

    Args:
        index: With a recipe whose pool holds relations.
        dataset: What was asked.
        row: What it found.
        model: Says whether the relations of a missed passage hold what the question needs; None takes any relation.

    Returns:
        Empty for a recipe without relations.
    """
    stated = await relations_by_document(index)
    if not stated:
        return {}
    questions = {question.id: question for question in dataset.questions}
    texts = dataset.texts
    counts = {"graph": 0, "recall": 0, "rerank": 0}
    for result in row.with_gold:
        complete = None
        if model is not None and classify_error(result, stated) in ("recall", "graph"):
            complete = {}
            for doc in dict.fromkeys(result.gold):
                data = {"question": questions[result.id].question, "passage": texts[doc], "relations": stated.get(doc)}
                asked = Prompt(_NEEDED, json.dumps(data, ensure_ascii=False, indent=1))
                try:
                    said = (await model.complete(asked, max_tokens=5)).text
                    complete[doc] = said.strip().casefold().startswith("yes")
                except ModelError:
                    complete[doc] = bool(stated.get(doc))
        if kind := classify_error(result, stated, complete=complete):
            counts[kind] += 1
    total = sum(counts.values())
    shares = {name: round(100 * number / total, 1) if total else 0.0 for name, number in counts.items()}
    return {**shares, "errors": total, "questions": len(row.with_gold)}


async def missing_triples(
    index: Index,
    dataset: DataSet,
    model: LanguageModel,
    limit: int = 50,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """How many relations that passages state the graph lacks or has wrong (appendix M), by a model as annotator.

    Args:
        index: With a recipe whose pool holds relations.
        dataset: Its passages.
        model: One call per passage.
        limit: So many passages, drawn at random.
        seed: Of the draw.
        progress: Called as `progress("missing relations", done, total)`.

    Returns:
        `missing` and `wrong`, shares in percent; counts. Empty for a recipe without relations.
    """
    import numpy as np

    stated = await relations_by_document(index)
    if not stated:
        return {}
    texts = list(dataset.texts.items())
    drawn = np.sort(np.random.default_rng(seed).permutation(len(texts))[:limit]).tolist()

    async def one(number: int) -> tuple[int, int, int] | None:
        name, text = texts[number]
        relations = stated.get(name, [])
        numbered = [{"number": i, "text": relation} for i, relation in enumerate(relations, 1)]
        data = json.dumps({"passage": text, "relations": numbered}, ensure_ascii=False, indent=1)
        try:
            said = (await model.complete(Prompt(_ANNOTATE, data), schema=_Annotation)).parsed
        except ModelError:
            return None
        right = len({i for i in said.correct if 1 <= i <= len(relations)})
        return right, len(said.missing), len(relations) - right

    workers = concurrency_of(model)
    counts = await map_all(one, drawn, workers, progress and partial(progress, "missing relations"))
    found = [counted for counted in counts if counted is not None]
    right, missing, wrong = (sum(counted[i] for counted in found) for i in range(3))
    return {
        "missing": round(100 * missing / (right + missing), 1) if right + missing else 0.0,
        "wrong": round(100 * wrong / (right + wrong), 1) if right + wrong else 0.0,
        "passages": len(found),
        "failed": len(drawn) - len(found),
        "relations": right + wrong,
    }


async def relations_by_document(index: Index) -> dict[str, list[str]]:
    """Texts of the relation units of a pool by document; empty without any."""
    import numpy as np

    view = (await index.asnapshot()).view
    kinds = list(view.kind_names)
    positions = np.flatnonzero(view.kinds == kinds.index(UnitKind.RELATION.value))
    names, numbers = view.pool.document_ids(), view.pool.chunk_documents[view.pool.indices]
    found: dict[str, list[str]] = {}
    for position, unit in zip(positions.tolist(), view.units(positions), strict=True):
        bounds = view.pool.indptr[position : position + 2]
        for number in dict.fromkeys(numbers[bounds[0] : bounds[1]].tolist()):
            found.setdefault(names[number], []).append(unit.text)
    return found
