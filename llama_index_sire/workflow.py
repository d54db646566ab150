"""`ReasoningWorkflow`: reasoning as a LlamaIndex workflow that streams its steps as events."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from llama_index.core.schema import QueryBundle
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step

from llama_index_sire.events import add_step, empty_response, to_event
from llama_index_sire.query_engines import ReasoningQueryEngine


class QuestionEvent(StartEvent):
    """What a reasoning starts with."""

    query: str


class ReasoningWorkflow(Workflow):
    """Runs a query engine as a workflow: `handler = workflow.run(query="...")`.

    `handler.stream_events()` gives `ThoughtEvent`, `SubQuestionEvent`, `RetrievedEvent`, `IntermediateAnswerEvent` and
    `AnswerEvent` as they happen, and for a `streaming` engine also `AnswerPieceEvent`s; `await handler` gives the
    response with the whole answer. Cancelling the run, or its timeout, stops further model calls.

    Args:
        engine: An `IRCoTQueryEngine` or `SelfAskQueryEngine`.
        timeout: Seconds for a run; None means no limit. (The engine's `limits` end a run with an answer from what was
            found so far.)
        **options: Further arguments of `Workflow`.
    """

    def __init__(self, engine: ReasoningQueryEngine[Any], timeout: float | None = None, **options: Any) -> None:
        super().__init__(timeout=timeout, **options)
        self.engine = engine

    @step
    async def reason(self, ctx: Context, ev: QuestionEvent) -> StopEvent:
        """The whole reasoning; its rounds are the core's."""
        response = empty_response()
        async with aclosing(self.engine.steps(QueryBundle(ev.query), stream=self.engine.streaming)) as walk:
            async for event in walk:
                add_step(event, response)
                ctx.write_event_to_stream(to_event(event))
        return StopEvent(result=response)
