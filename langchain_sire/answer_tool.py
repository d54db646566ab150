"""`create_sire_answer_tool`: answers with their sources as a tool for agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

# Needed at run time: LangChain reads the annotations of the tool's functions.
from langchain_core.callbacks import Callbacks
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langchain_sire.reasoner import make_reasoner
from langchain_sire.reasoning_chain import ReasoningChain
from langchain_sire.steps import question_of
from sire_core.errors import ConfigurationError, QueryError
from sire_core.index import Index
from sire_core.reason import Answer, ReasoningStep
from sire_core.serve.arguments import AnswerArguments, explain_mistakes
from sire_core.serve.texts import answer_text

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from pydantic import BaseModel

    from sire_core.protocols import LanguageModel

__all__ = ["create_sire_answer_tool"]


def create_sire_answer_tool(
    source: ReasoningChain | BaseRetriever | Index,
    llm: BaseChatModel | LanguageModel | None = None,
    name: str = "answer_from_documents",
    description: str = (
        "Answers a question from the documents, in few words, with the ids of the documents it cites in brackets, and "
        "says whether the evidence is sufficient. For questions that need several documents, too."
    ),
    *,
    via: str = "ircot",
    args_schema: type[BaseModel] | None = None,
    **options: Any,
) -> BaseTool:
    """Make a tool that answers questions.

    The model reads a short answer that cites documents as `[doc_id]`, the sources with their titles, whether the
    evidence suffices and, with `show_steps`, the steps. The artifact is what the chain's `invoke` returns. Arguments
    that make no sense are told to the model, which can correct them; everything else that fails raises.

    Args:
        source: A chain (`create_ircot_chain`, `create_self_ask_chain`), any retriever, or an index.
        llm: Thinks and answers; LangChain's or ours. None takes the index's own. Not with a chain, which has its own.
        name: How the model calls it.
        description: When to call it.
        via: `ircot`, `self-ask` or `single` (one search, one call), where the source is no chain.
        args_schema: In the place of `question`, `k`, `filter` and `show_steps`; it may leave some of them out, and call
            the question `input` or `query`.
        **options: See `create_ircot_chain`, where the source is no chain.

    Raises:
        ConfigurationError: The source is nothing to ask, or an option is unknown or impossible.
    """
    if isinstance(source, ReasoningChain):
        if llm is not None or options:
            given = ", ".join([*(["llm"] if llm is not None else []), *options])
            raise ConfigurationError(f"The chain has its own {given}: give it to the chain.")
        chain = source
    else:
        if via not in ("single", "ircot", "self-ask"):
            raise ConfigurationError(f"via is 'ircot', 'self-ask' or 'single', not {via!r}.")
        chain = ReasoningChain(make_reasoner(via, source, llm, options), via)
    if args_schema is not None:
        known = {"question", "input", "query", "k", "filter", "show_steps"}
        unknown = sorted(set(args_schema.model_fields) - known)
        if unknown:
            raise ConfigurationError(f"The tool takes {', '.join(sorted(known))}, not {', '.join(unknown)}.")
    answerer = _Answerer(chain)
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

    def __init__(self, chain: ReasoningChain) -> None:
        self._chain = chain

    def answer(self, callbacks: Callbacks = None, **given: Any) -> tuple[str, dict[str, Any]]:
        """Answer, from sync code."""
        kept: list[ReasoningStep] = []
        try:
            result = self._chain.invoke(question_of(given), {"callbacks": callbacks}, kept=kept, **_narrowing(given))
        except (ConfigurationError, QueryError) as error:
            raise ToolException(str(error)) from error
        return _text(kept, given), result

    async def aanswer(self, callbacks: Callbacks = None, **given: Any) -> tuple[str, dict[str, Any]]:
        """Answer."""
        kept: list[ReasoningStep] = []
        try:
            result = await self._chain.ainvoke(
                question_of(given), {"callbacks": callbacks}, kept=kept, **_narrowing(given)
            )
        except (ConfigurationError, QueryError) as error:
            raise ToolException(str(error)) from error
        return _text(kept, given), result


def _narrowing(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: given[key] for key in ("k", "filter") if given.get(key) is not None}


def _text(steps: Sequence[ReasoningStep], given: Mapping[str, Any]) -> str:
    *rest, answer = steps
    assert isinstance(answer, Answer)
    return answer_text(answer, rest if given.get("show_steps") else ())
