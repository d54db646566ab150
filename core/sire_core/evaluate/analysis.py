"""Analyses by a model: what the graph lacks, which of two answers is better."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator

from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.models.answer_parsing import LenientAnswer
from sire_core.models.base import concurrency_of
from sire_core.protocols import LanguageModel, Progress, Prompt
from sire_core.text.pluralize import count
from sire_core.types import UnitKind
from sire_core.worker_pool import map_all

if TYPE_CHECKING:
    from sire_core.evaluate.answer_metrics import AnsweredQuestion
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.index import Index

_ANNOTATE = """\
The data holds a passage and numbered relations that were read from it. List the numbers of the relations that the \
passage states (correct), and every relation that it states and the list lacks, as head, predicate, tail (missing)."""


class _Annotation(LenientAnswer):
    shape: ClassVar[str] = '{"correct":[0],"missing":[["head","predicate","tail"]]}'

    correct: list[int] = Field(default_factory=list)
    missing: list[list[str]] = Field(default_factory=list)


async def missing_triples(
    index: Index,
    dataset: DataSet,
    model: LanguageModel,
    limit: int = 50,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Number of relations that passages state the graph lacks or has wrong (appendix M), by a model as annotator."""
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
            annotation = (await model.complete(Prompt(_ANNOTATE, data), schema=_Annotation)).parsed
        except ModelError:
            return None
        right = len({i for i in annotation.correct if 1 <= i <= len(relations)})
        return right, len(annotation.missing), len(relations) - right

    workers = concurrency_of(model)
    counts = await map_all(one, drawn, workers, progress and partial(progress, "missing relations"))
    judged = [counted for counted in counts if counted is not None]
    right, missing, wrong = (sum(counted[i] for counted in judged) for i in range(3))
    return {
        "missing": round(100 * missing / (right + missing), 1) if right + missing else 0.0,
        "wrong": round(100 * wrong / (right + wrong), 1) if right + wrong else 0.0,
        "passages": len(judged),
        "failed": len(drawn) - len(judged),
        "relations": right + wrong,
    }


async def relations_by_document(index: Index) -> dict[str, list[str]]:
    """Texts of the relation units of a pool by document; empty without any."""
    import numpy as np

    view = (await index.asnapshot()).view
    kinds = list(view.kind_names)
    positions = np.flatnonzero(view.kinds == kinds.index(UnitKind.RELATION.value))
    names, numbers = view.pool.document_ids(), view.pool.chunk_documents[view.pool.indices]
    relations: dict[str, list[str]] = {}
    for position, unit in zip(positions.tolist(), view.units(positions), strict=True):
        bounds = view.pool.indptr[position : position + 2]
        for number in dict.fromkeys(numbers[bounds[0] : bounds[1]].tolist()):
            relations.setdefault(names[number], []).append(unit.text)
    return relations


CRITERIA = ("correctness", "diversity", "comprehension", "overall")

_ANALYSIS_INSTRUCTIONS = """\
The data holds a question, the accepted answers, and two answers by others. Say for each criterion which of the two is \
better, 1 or 2:
correctness: which one answers the question rightly; an accepted answer decides.
diversity: which one shows more sides of what was asked.
comprehension: which one helps a reader more to understand the matter.
overall: which one is better, all three weighed together.
explanation: why, in one sentence. The order in which the two stand means nothing."""


class _Verdict(LenientAnswer):
    shape: ClassVar[str] = '{"correctness":1,"diversity":1,"comprehension":1,"overall":1,"explanation":""}'

    correctness: Literal[1, 2]
    diversity: Literal[1, 2]
    comprehension: Literal[1, 2]
    overall: Literal[1, 2]
    explanation: str = ""

    @field_validator(*CRITERIA, mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        """A number, a text that ends in one, or an object with a winner."""
        if isinstance(value, Mapping):
            value = next(iter(value.values()), "")
        text = str(value).strip(" .\"'")
        return int(text[-1]) if text[-1:] in ("1", "2") else value


async def judge_pair(
    question: str, golds: Sequence[str], one: str, other: str, model: LanguageModel
) -> dict[str, float]:
    """Share of wins of the first of two answers, by criterion: 1, .5 or 0 over both orders; two calls."""
    if one.strip() == other.strip():
        return dict.fromkeys(CRITERIA, 0.5)
    wins = dict.fromkeys(CRITERIA, 0.0)
    for first, second, number in ((one, other, 1), (other, one, 2)):
        data = {"question": question, "accepted": list(golds), "answer 1": first, "answer 2": second}
        prompt = Prompt(_ANALYSIS_INSTRUCTIONS, json.dumps(data, ensure_ascii=False, indent=1))
        verdict = (await model.complete(prompt, schema=_Verdict)).parsed
        for name in CRITERIA:
            wins[name] += 0.5 * (getattr(verdict, name) == number)
    return wins


async def compare_answers(
    ones: Sequence[AnsweredQuestion],
    others: Sequence[AnsweredQuestion],
    model: LanguageModel,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Share of wins of the first answers over the second, 0..100 by criterion."""
    theirs = {answered.question.id: answered.text for answered in others}
    if set(theirs) != {answered.question.id for answered in ones}:
        raise ConfigurationError("A judge needs two rows that answered the same questions.")

    left: list[str] = []

    async def one(answered: AnsweredQuestion) -> dict[str, float] | None:
        question = answered.question
        try:
            return await judge_pair(question.question, question.answers, answered.text, theirs[question.id], model)
        except LimitExceededError:
            left.append(question.id)
            return None
        except ModelError:
            return None

    workers = concurrency_of(model)
    judged = await map_all(one, ones, workers, progress and partial(progress, "judge"))
    wins = [verdict for verdict in judged if verdict is not None]
    shares = {name: round(100 * sum(win[name] for win in wins) / len(wins), 1) for name in CRITERIA if wins}
    counts = {"questions": len(wins), "failed": len(ones) - len(wins) - len(left)}
    return {**shares, **counts, **({"not judged": len(left)} if left else {})}


async def judge_rows(
    rows: Sequence[EvalRow],
    names: Sequence[str],
    model: LanguageModel,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
) -> list[EvalRow]:
    """Let a judge compare the answers of every row with those of the first recipe (MS-RAG table 4)."""
    first = next((row for row in rows if names and row.setup.recipe == names[0]), rows[0])
    judged = []
    for row in rows:
        if row is first or not row.answered:
            judged.append(row)
            continue
        shares = await compare_answers(row.answered, first.answered, model, progress)
        if log is not None and (left := int(shares.get("not judged", 0))):
            pairs = f"{len(row.answered) - left:,} of {count(len(row.answered), 'pair')}"
            log(f"{row.label}: the judge stopped after {pairs}, at --max-calls or --max-tokens")
        judged.append(replace(row, analysis={**row.analysis, "judge": {"against": first.label, **shares}}))
    return judged
