"""A reasoning chain as a tool for agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# Needed at run time: LangChain reads the annotations of the tool's functions.
from langchain_core.callbacks import Callbacks
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langchain_sire.steps import question_of
from sire_core.errors import ConfigurationError, NoAnswerError, QueryError
from sire_core.reason import Answer, ReasoningStep
from sire_core.serve.arguments import AnswerArguments, explain_mistakes
from sire_core.serve.outputs import answer_text

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable
    from pydantic import BaseModel

__all__ = ["ANSWERS", "chain_tool", "tool_errors"]

ANSWERS = (
    "Answers a question from the documents, in few words, with the ids of the documents it cites in brackets, and "
    "says whether the evidence is sufficient. For questions that need several documents, too."
)
"""What the tool tells a model of itself."""


def chain_tool(
    chain: Runnable[Any, Any],
    name: str,
    description: str,
    args_schema: type[BaseModel] | None = None,
    cite_key: str = "",
) -> BaseTool:
    """A tool that answers by a `ReasoningChain`; see `create_sire_answer_tool`.

    Raises:
        ConfigurationError: The schema has arguments that the tool does not take.
    """
    if args_schema is not None:
        known = {"question", "input", "query", "k", "filter", "show_steps"}
        unknown = sorted(set(args_schema.model_fields) - known)
        if unknown:
            raise ConfigurationError(f"The tool takes {', '.join(sorted(known))}, not {', '.join(unknown)}.")
    answerer = _Answerer(chain, cite_key)
    return StructuredTool(
        name=name,
        description=description,
        func=answerer.answer,
        coroutine=answerer.aanswer,
        args_schema=args_schema or AnswerArguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=explain_mistakes,
    )


class _Answerer:
    """The tool's functions."""

    def __init__(self, chain: Runnable[Any, Any], cite_key: str) -> None:
        self._chain = chain
        self._cite_key = cite_key

    def answer(self, callbacks: Callbacks = None, **given: Any) -> tuple[str, dict[str, Any]]:
        """Answer, from sync code."""
        kept: list[ReasoningStep] = []
        with _reported(kept, given, self._cite_key):
            result = self._chain.invoke(question_of(given), {"callbacks": callbacks}, kept=kept, **_narrowing(given))
        return _text(kept, given, self._cite_key), result

    async def aanswer(self, callbacks: Callbacks = None, **given: Any) -> tuple[str, dict[str, Any]]:
        """Answer."""
        kept: list[ReasoningStep] = []
        with _reported(kept, given, self._cite_key):
            result = await self._chain.ainvoke(
                question_of(given), {"callbacks": callbacks}, kept=kept, **_narrowing(given)
            )
        return _text(kept, given, self._cite_key), result


@contextmanager
def _reported(kept: Sequence[ReasoningStep], given: Mapping[str, Any], cite_key: str) -> Iterator[None]:
    """Report what the model can put right, and what was found where there is no answer; other errors are raised."""
    with tool_errors():
        try:
            yield
        except NoAnswerError as error:
            raise ToolException(_text([*kept, error.answer or Answer("", "model_failed")], given, cite_key)) from error


@contextmanager
def tool_errors() -> Iterator[None]:
    """Report what the model can put right; other errors are raised."""
    try:
        yield
    except (ConfigurationError, QueryError) as error:
        raise ToolException(str(error)) from error


def _narrowing(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: given[key] for key in ("k", "filter") if given.get(key) is not None}


def _text(steps: Sequence[ReasoningStep], given: Mapping[str, Any], cite_key: str) -> str:
    *rest, answer = steps
    assert isinstance(answer, Answer)
    return answer_text(answer, rest if given.get("show_steps") else (), cite_key)
