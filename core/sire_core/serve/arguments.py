"""Arguments of the tools for agents, and the errors for invalid ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, create_model

from sire_core.clean_text import clean_value
from sire_core.errors import IndexMissingError, QueryError, SireError

if TYPE_CHECKING:
    from sire_core import filters
    from sire_core.index import Index

Filter = Union[dict[str, Any], str, None]

_KEYS, _SAMPLES, _LONGEST = 30, 3, 40
"""Most metadata keys, values of each and characters of a value that a schema names."""

_K = Field(
    default=None, ge=1, le=50, description="How many passages and facts to look at; leave it out for the usual number."
)
_CONDITIONS = (
    "Only evidence from documents whose metadata meets all of these conditions, "
    'for example {"year": {"gt": 1990}, "lang": {"in": ["en", "de"]}} or "year>=1990 and lang=en". '
    "Comparisons: eq, ne, in, nin, lt, lte, gt, gte, contains, exists; to combine conditions: and, or, not. "
    "Leave it out to search everything."
)
_FILTER = Field(default=None, description=_CONDITIONS)


class SearchArguments(BaseModel):
    """Arguments of `search`."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, description="The question to find evidence for: complete, with names spelled out.")
    k: int | None = _K
    filter: Filter = _FILTER


class ExplainArguments(SearchArguments):
    """Arguments of `explain`: those of the search that it explains."""


class AnswerArguments(BaseModel):
    """Arguments of a tool that answers."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, description="A complete question, with names spelled out.")
    k: int | None = _K
    filter: Filter = _FILTER
    show_steps: bool = Field(
        default=False, description="Also return the steps: thoughts, searches and what they found."
    )


class AskArguments(AnswerArguments):
    """Arguments of `ask`."""

    via: Literal["single", "ircot", "self-ask"] = Field(
        default="single",
        description=(
            "How to reason. single: one search, one answer; quick. ircot: search, think a sentence, search for what is "
            "missing, and so on; for questions that need several documents. self-ask: answer follow-up questions first."
        ),
    )
    flavor: Literal["indexrag", "hipporag", "original", "search", "two_call"] | None = Field(
        default=None,
        description=(
            "Of ircot: indexrag (default), hipporag or original. Of self-ask: search (default) or two_call. Leave it "
            "out unless you compare them."
        ),
    )
    max_steps: int | None = Field(default=None, ge=0, le=20, description="Most rounds of thinking and searching.")
    timeout: float | None = Field(default=None, gt=0, le=3600, description="Most seconds for everything.")


class FetchArguments(BaseModel):
    """Arguments of `fetch`."""

    model_config = ConfigDict(extra="forbid")

    doc_id: str = Field(
        min_length=1,
        description="A document, as results name it in brackets; also as `id`.",
        validation_alias=AliasChoices("doc_id", "id"),
    )
    start: int = Field(default=0, ge=0, description="The character to begin with; see next_start of the result.")
    length: int = Field(default=20_000, ge=1, le=100_000, description="How many characters to return at most.")


class OpenArguments(BaseModel):
    """Arguments of `open`."""

    model_config = ConfigDict(extra="forbid")

    doc_id: str = Field(min_length=1, description="A document, as results name it in brackets.")
    start: int = Field(default=1, ge=1, description="Number of the first passage to list; see next_start.")


class NeighborsArguments(BaseModel):
    """Arguments of `neighbors`."""

    model_config = ConfigDict(extra="forbid")

    doc_id: str = Field(min_length=1, description="A document, as results name it in brackets.")
    passage: int | str = Field(description="Number of a passage, as `open` lists it, or the id of a result.")
    before: int = Field(default=1, ge=0, le=20, description="How many passages before it.")
    after: int = Field(default=1, ge=0, le=20, description="How many passages after it.")


Arguments = TypeVar("Arguments", bound=BaseModel)


def read_arguments(schema: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """Validate the arguments of an agent."""
    try:
        return schema.model_validate({key: clean_value(value) for key, value in arguments.items()})
    except ValidationError as error:
        raise QueryError(f"{explain_mistakes(error)} The arguments are {', '.join(schema.model_fields)}.") from None


def without_blank_filter(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop a blank filter: agents fill in every optional field."""
    filter = arguments.get("filter")
    blank = filter in ({}, []) or (isinstance(filter, str) and filter.strip().lower() in ("", "null", "none", "{}"))
    return {key: value for key, value in arguments.items() if key != "filter"} if blank else arguments


def with_known_keys(schema: type[Arguments], metadata: Iterable[Mapping[str, Any]]) -> type[Arguments]:
    """A schema whose filter lists the metadata keys of an index with sample values."""
    values: dict[str, dict[str, None]] = {}
    for row in metadata:
        for key, value in row.items():
            if not key.startswith("sire_"):
                samples = values.setdefault(key, {})
                if len(samples) < _SAMPLES and isinstance(value, (str, int, float)):
                    samples[_sample(value)] = None
    if not values:
        return schema
    keys = [f"{key} ({', '.join(samples)}, ...)" if samples else key for key, samples in sorted(values.items())]
    field = Field(default=None, description=f"{_CONDITIONS} Metadata keys here: {'; '.join(keys[:_KEYS])}.")
    return create_model(schema.__name__, __base__=schema, __doc__=schema.__doc__, filter=(Filter, field))


def _sample(value: Any) -> str:
    """A metadata value as JSON; the beginning of a long text."""
    cut = isinstance(value, str) and len(value) > _LONGEST
    return json.dumps(f"{value[:_LONGEST]}..." if cut else value, ensure_ascii=False)


def search_arguments(index: Index, visible: filters.Filter | None) -> type[BaseModel]:
    """`SearchArguments` with the metadata keys of what a filter shows; without them while nothing is built."""
    try:
        return with_known_keys(SearchArguments, index.snapshot(filter=visible).metadata())
    except SireError:
        return SearchArguments


async def explain_filter(index: Index, visible: filters.Filter | None, wanted: filters.Filter | None) -> str:
    """What may be wrong with the filter of a call, said of what a filter shows only; empty if there is nothing."""
    try:
        return "" if wanted is None else (await index.asnapshot(filter=visible)).filter_hint(wanted)
    except IndexMissingError:
        return ""


def explain_mistakes(error: Any) -> str:
    """All invalid arguments and the reasons, in a sentence."""
    faults = (f"{'.'.join(map(str, fault['loc'][:1]))}: {fault['msg']}" for fault in error.errors(include_url=False))
    return f"{'; '.join(dict.fromkeys(faults))}."
