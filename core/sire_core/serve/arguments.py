"""What an agent may say to each tool: the schemas it is shown, and what it is told when it does not keep to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sire_core.errors import QueryError

__all__ = ["AskArguments", "ExplainArguments", "SearchArguments", "read_arguments"]

Filter = Union[dict[str, Any], str, None]

_K = Field(default=10, ge=1, le=50, description="How many passages and facts to return.")
_FILTER = Field(
    default=None,
    description=(
        "Only evidence from documents whose metadata meets all of these conditions, "
        'for example {"year": {"gt": 1990}, "lang": {"in": ["en", "de"]}} or "year>1990, lang=en". '
        "Comparisons: eq, ne, in, lt, gt; to combine conditions: and, or, not. Leave it out to search everything."
    ),
)


class SearchArguments(BaseModel):
    """Arguments of `search`."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, description="What to find evidence for: a whole question, with names spelled out.")
    k: int = _K
    filter: Filter = _FILTER


class ExplainArguments(SearchArguments):
    """Arguments of `explain`: the same as of the search that it explains."""


class AskArguments(BaseModel):
    """Arguments of `ask`."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, description="A whole question, with names spelled out.")
    via: Literal["single", "ircot", "self-ask"] = Field(
        default="single",
        description=(
            "How to reason. single: one search, one answer; quick. ircot: search, think a sentence, search for what is "
            "missing, and so on; for questions that need several documents. self-ask: answer follow-up questions first."
        ),
    )
    k: int = _K
    filter: Filter = _FILTER


Arguments = TypeVar("Arguments", bound=BaseModel)


def read_arguments(schema: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """Check what an agent has sent.

    Raises:
        QueryError: It does not fit; the message names every argument at fault and the ones that there are.
    """
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc'][:1]))}: {fault['msg']}" for fault in error.errors())
        known = ", ".join(schema.model_fields)
        raise QueryError(f"{'; '.join(dict.fromkeys(faults))}. The arguments are {known}.") from None
