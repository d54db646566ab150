"""`LenientAnswer`: what models get slightly wrong in a structured answer is put right before it is validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, model_validator

__all__ = ["LenientAnswer"]


class LenientAnswer(BaseModel):
    """Drops nulls where there is a default, and writes numbers as text where text is due."""

    shape: ClassVar[str] = ""
    """An example of the answer, for servers that do not enforce a schema; much shorter than its JSON schema."""

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
