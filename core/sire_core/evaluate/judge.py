"""A model compares two answers to one question: correctness, diversity, comprehension, overall (MS-RAG table 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from sire_core.algorithms.worker_pool import map_all
from sire_core.errors import ConfigurationError, LimitExceededError, ModelError
from sire_core.models.base import concurrency_of
from sire_core.models.structured import LenientAnswer
from sire_core.protocols import Prompt

if TYPE_CHECKING:
    from sire_core.evaluate.answered import AnsweredQuestion
    from sire_core.protocols import LanguageModel, Progress

__all__ = ["CRITERIA", "compare_answers", "judge_pair"]

CRITERIA = ("correctness", "diversity", "comprehension", "overall")

_INSTRUCTIONS = """\
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
    """How often the first of two answers wins, by criterion: 1, .5 or 0 over both orders; two calls.

    Two equal answers win half each without a call.

    Raises:
        ModelError: A call failed.
    """
    if one.strip() == other.strip():
        return dict.fromkeys(CRITERIA, 0.5)
    wins = dict.fromkeys(CRITERIA, 0.0)
    for first, second, own in ((one, other, 1), (other, one, 2)):
        data = {"question": question, "accepted": list(golds), "answer 1": first, "answer 2": second}
        asked = Prompt(_INSTRUCTIONS, json.dumps(data, ensure_ascii=False, indent=1))
        verdict = (await model.complete(asked, schema=_Verdict)).parsed
        for name in CRITERIA:
            wins[name] += 0.5 * (getattr(verdict, name) == own)
    return wins


async def compare_answers(
    ones: Sequence[AnsweredQuestion],
    others: Sequence[AnsweredQuestion],
    model: LanguageModel,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Share of wins of the first answers over the second, 0..100 by criterion.

    Args:
        ones: Answers of one row.
        others: Answers of another row to the same questions.
        model: The judge.
        progress: Called as `progress("judge", done, total)`.

    Returns:
        The shares, `questions` judged, and how many the judge `failed` on; `not judged`, how many a usage limit left
        out, where it did.

    Raises:
        ConfigurationError: The two did not answer the same questions.
    """
    theirs = {answered.id: answered.text for answered in others}
    if set(theirs) != {answered.id for answered in ones}:
        raise ConfigurationError("A judge needs two rows that answered the same questions.")

    left: list[str] = []

    async def one(answered: AnsweredQuestion) -> dict[str, float] | None:
        try:
            return await judge_pair(answered.question, answered.golds, answered.text, theirs[answered.id], model)
        except LimitExceededError:
            left.append(answered.id)
            return None
        except ModelError:
            return None

    workers = concurrency_of(model)
    judged = await map_all(one, ones, workers, progress and partial(progress, "judge"))
    wins = [found for found in judged if found is not None]
    shares = {name: round(100 * sum(win[name] for win in wins) / len(wins), 1) for name in CRITERIA if wins}
    counts = {"questions": len(wins), "failed": len(ones) - len(wins) - len(left)}
    return {**shares, **counts, **({"not judged": len(left)} if left else {})}
