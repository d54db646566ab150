"""`SireTranslator`: filters of LangChain's self-query retriever as filters of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)

from sire_core.filters import Condition, Filter, FilterGroup

_COMPARISONS = {Comparator(name): name for name in ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")}
_COMPARISONS[Comparator("contain")] = "contains"


class SireTranslator(Visitor):
    """Translates the structured query that a model wrote into a filter of `SireVectorStore`.

    `SelfQueryRetriever.from_llm(llm, store, ..., structured_query_translator=SireTranslator())`. A condition on the
    attribute of a document is one on its metadata; dates compare as ISO texts.
    """

    allowed_comparators: Sequence[Comparator] | None = tuple(_COMPARISONS)
    allowed_operators: Sequence[Operator] | None = tuple(Operator)

    def visit_operation(self, operation: Operation) -> Filter:
        """Translate `and`, `or` and `not`."""
        self._validate_func(operation.operator)
        parts = tuple(self._filter(argument) for argument in operation.arguments)
        return FilterGroup(operation.operator.value, parts)

    def visit_comparison(self, comparison: Comparison) -> Filter:
        """Translate one comparison."""
        self._validate_func(comparison.comparator)
        value = comparison.value
        if isinstance(value, dict) and "date" in value:  # as the query parser writes dates
            value = value["date"]
        return Condition(comparison.attribute, _COMPARISONS[comparison.comparator], value)

    def visit_structured_query(self, structured_query: StructuredQuery) -> tuple[str, dict[str, Any]]:
        """Return the query, and the keyword arguments of the search."""
        wanted = structured_query.filter
        return structured_query.query, {} if wanted is None else {"filter": self._filter(wanted)}

    def _filter(self, directive: FilterDirective) -> Filter:
        translated: Filter = directive.accept(self)
        return translated
