"""A question-answering service: FastAPI in front, a LangGraph graph inside, answers streamed as they are written.

Start it with `uvicorn langchain_service:app`, after `pip install "sire-rag[langchain,langgraph]" fastapi uvicorn`; then
`curl "localhost:8000/ask?question=..."`. POST documents to `/documents`. The model here repeats the best passage and
its source; put your own chat model in its place.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypedDict

from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from langchain_sire import SireRetriever
from sire_core.data import demo_documents
from sire_core.errors import SireError


class FirstPassage(SimpleChatModel):
    """A stand-in for a chat model: answers with the first passage of the context, word by word."""

    @property
    def _llm_type(self) -> str:
        return "first-passage"

    def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
        return str(messages[-1].content).split("\n\n")[1]

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for word in self._call(messages).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))


class State(TypedDict, total=False):
    """What travels through the graph."""

    question: str
    documents: list[Document]
    answer: str


class Given(BaseModel):
    """A document that somebody posts."""

    id: str
    text: str
    source: str = ""


def make_app(retriever: SireRetriever, model: BaseChatModel) -> FastAPI:  # noqa: C901 - its routes
    """The service over a retriever and a chat model."""

    async def retrieve(state: State) -> State:
        return {"documents": await retriever.ainvoke(state["question"])}

    async def answer(state: State) -> State:
        context = "\n\n".join(f"[{d.metadata['source']}] {d.page_content}" for d in state["documents"])
        reply = await model.ainvoke(f"Answer from the context and cite it.\n\n{context}\n\n{state['question']}")
        return {"answer": str(reply.content)}

    steps = StateGraph(State).add_node("retrieve", retrieve).add_node("answer", answer)
    graph = steps.add_edge(START, "retrieve").add_edge("retrieve", "answer").add_edge("answer", END).compile()
    app = FastAPI(title="Questions")

    @app.get("/ask")
    async def ask(question: str) -> StreamingResponse:
        """The passages first, then the answer word by word: one JSON object per line."""
        if not question.strip():
            raise HTTPException(422, "Ask something.")

        async def lines() -> AsyncIterator[str]:
            async for mode, part in graph.astream({"question": question}, stream_mode=["updates", "messages"]):
                if mode == "updates" and "retrieve" in part:
                    sources = [[d.id, d.metadata["source"]] for d in part["retrieve"]["documents"]]
                    yield json.dumps({"sources": sources}) + "\n"
                elif mode == "messages" and part[0].content:
                    yield json.dumps({"answer": part[0].content}) + "\n"

        return StreamingResponse(lines(), media_type="application/jsonl")

    @app.post("/documents")
    async def add(given: list[Given]) -> dict[str, list[str]]:
        """Add documents or replace those with the same id; searchable when this returns."""
        documents = [Document(id=d.id, page_content=d.text, metadata={"source": d.source}) for d in given]
        try:
            return {"added": await retriever.aadd_documents(documents)}
        except SireError as error:
            raise HTTPException(409, str(error)) from error

    @app.delete("/documents/{name:path}")
    async def delete(name: str) -> dict[str, str]:
        """Delete a document and everything derived from it."""
        try:
            await retriever.adelete_documents([name])
        except SireError as error:
            raise HTTPException(404, str(error)) from error
        return {"deleted": name}

    return app


def demo_retriever(path: str | None = None) -> SireRetriever:
    """Our sample corpus, in a folder or in memory."""
    documents = [
        Document(id=d.id, page_content=d.text, metadata={"title": d.title, "source": f"{d.id}.md"})
        for d in demo_documents()
    ]
    return SireRetriever.from_documents(documents, path=path, k=4)


app = make_app(demo_retriever(), FirstPassage())
