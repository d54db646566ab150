"""Entities and relations that a language model finds in a question (MS-RAG, Table 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, Field

from sire_core.protocols import Prompt

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel

__all__ = ["QuestionItems", "find_items"]

_INSTRUCTIONS = (
    "The data is a question. List the named entities it names (people, places, works, organizations, dates) and the "
    "relations it asks about, each relation as a short statement of head, predicate and tail with the unknown end as a "
    "plain noun, for example: The Long Tide directed by person."
)
_MOST = 10
"""Items of either kind that are followed; a longer list is a model that rambles."""


class QuestionItems(BaseModel):
    """What the model finds in the question."""

    shape: ClassVar[str] = '{"entities":[""],"relations":[""]}'

    entities: list[str] = Field(default_factory=list)
    relations: list[str] = Field(default_factory=list)


async def find_items(query: str, model: LanguageModel) -> QuestionItems:
    """Ask a model what a question names; one call, and a repair when the answer cannot be read.

    Returns:
        The items without empty ones.

    Raises:
        ModelError: The model declined, the call failed, or its answer cannot be read.
    """
    answer = await model.complete(Prompt(_INSTRUCTIONS, query), schema=QuestionItems, max_tokens=300)
    return QuestionItems(entities=_clean(answer.parsed.entities), relations=_clean(answer.parsed.relations))


def _clean(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(" ".join(item.split()) for item in items if item.strip()))[:_MOST]
