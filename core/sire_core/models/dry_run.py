"""`DryRunModel`: costs nothing and answers next to nothing; what it was asked tells what a real model would cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sire_core.errors import ModelError
from sire_core.models.base import ModelBase
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Completion, ModelRequest

_SUMMARY_WORDS = 100


class DryRunModel(ModelBase):
    """A `LanguageModel` for trials: summaries are the first words of the input, structured answers are empty."""

    @property
    def fingerprint(self) -> str:
        """A fixed name."""
        return "dry-run"

    async def answer(self, request: ModelRequest) -> Completion:
        """Answer at once."""
        prompt, schema = request.prompt, request.schema
        tokens = estimate_tokens(prompt.instructions) + estimate_tokens(prompt.data)
        if schema is None:
            return Completion(" ".join(prompt.data.split()[:_SUMMARY_WORDS]) or "nothing", None, tokens, _SUMMARY_WORDS)
        try:
            value = schema.model_validate(least_value(schema.model_json_schema()))
        except ValueError as error:
            raise ModelError(f"the schema {schema.__name__} takes no empty value: {error}") from error
        return Completion("{}", value, tokens, 1)


def least_value(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> Any:
    """The smallest JSON value of the types that a JSON schema asks for; ranges and patterns are not looked at."""
    known = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return least_value(known[schema["$ref"].rsplit("/", 1)[-1]], known)
    for choice in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        return least_value(choice, known)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("required", ())
        return {
            name: least_value(found, known) for name, found in schema.get("properties", {}).items() if name in wanted
        }
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(str(kind))
