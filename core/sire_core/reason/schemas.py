"""Schemas of what a model answers while it reasons. Strict about what matters, lenient about slips."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pydantic import Field, field_validator

from sire_core.models.structured import LenientAnswer

__all__ = ["FollowUps", "Reading", "ReportReading", "SearchThought"]


class SearchThought(LenientAnswer):
    """One sentence of reasoning and what to search for next, or DONE (IndexRAG, figure 8)."""

    shape: ClassVar[str] = '{"reasoning":"","search":"query or DONE"}'

    reasoning: str = ""
    search: str

    @field_validator("search", mode="before")
    @classmethod
    def _nothing(cls, value: Any) -> Any:
        """`null` searches for nothing."""
        return "DONE" if value is None else value


class FollowUp(LenientAnswer):
    """A follow-up question and its answer."""

    q: str
    a: str = ""


class FollowUps(LenientAnswer):
    """The decomposition of a question (SiReRAG, appendix B)."""

    shape: ClassVar[str] = '{"followups":[{"q":"","a":""}]}'

    followups: list[FollowUp]


class Reading(LenientAnswer):
    """The reader's answer."""

    shape: ClassVar[str] = '{"answer":"","citations":[1],"sufficient":true}'

    answer: str
    citations: list[int] = Field(default_factory=list)
    sufficient: bool = True

    @field_validator("citations", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """Numbers in any dress: `"[2]"`, `"2"`, `2.0`; what is none is left out."""
        items = value if isinstance(value, list) else [value]
        digits = ("".join(filter(str.isdigit, str(item).split(".")[0])) for item in items)
        return [int(text) for text in digits if text and len(text) < 6]


class ReportReading(Reading):
    """The reader's answer where reports with numbered findings are among the passages (SMART, table 6)."""

    shape: ClassVar[str] = '{"answer":"","citations":[1],"findings":["1.2"],"sufficient":true}'

    findings: list[str] = Field(default_factory=list)

    @field_validator("findings", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        """Pairs of numbers in any dress: `"[3.2]"`, `3.2`; what is none is left out."""
        items = value if isinstance(value, list) else [value]
        found = (re.search(r"(\d{1,3})\.(\d{1,2})(?!\d)", str(item)) for item in items)
        return [f"{int(pair[1])}.{int(pair[2])}" for pair in found if pair]
