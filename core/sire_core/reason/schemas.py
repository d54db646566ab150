"""Schemas of what a model answers while it reasons. Strict about what matters, lenient about slips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, field_validator, model_validator

__all__ = ["FollowUps", "Reading", "SearchThought"]


class _Lenient(BaseModel):
    """Drops nulls where there is a default, and writes numbers as text where text is due."""

    shape: ClassVar[str] = ""
    """An example of the answer, for servers that do not enforce a schema."""

    @model_validator(mode="before")
    @classmethod
    def _tidy(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        tidy = {}
        for name, value in data.items():
            known = cls.model_fields.get(name)
            if value is None and known is not None and not known.is_required():
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            tidy[name] = str(value) if is_number and known is not None and known.annotation is str else value
        return tidy


class SearchThought(_Lenient):
    """One sentence of reasoning and what to search for next, or DONE (IndexRAG, figure 8)."""

    shape: ClassVar[str] = '{"reasoning":"","search":"query or DONE"}'

    reasoning: str = ""
    search: str


class FollowUp(_Lenient):
    """A follow-up question and its answer."""

    q: str
    a: str = ""


class FollowUps(_Lenient):
    """The decomposition of a question (SiReRAG, appendix B)."""

    shape: ClassVar[str] = '{"followups":[{"q":"","a":""}]}'

    followups: list[FollowUp]


class Reading(_Lenient):
    """The reader's answer."""

    shape: ClassVar[str] = '{"answer":"","citations":[1],"sufficient":true}'

    answer: str
    citations: list[int] = []
    sufficient: bool = True

    @field_validator("citations", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """Numbers in any dress: `"[2]"`, `"2"`, `2.0`; what is none is left out."""
        items = value if isinstance(value, list) else [value]
        digits = ("".join(filter(str.isdigit, str(item).split(".")[0])) for item in items)
        return [int(text) for text in digits if text and len(text) < 6]
