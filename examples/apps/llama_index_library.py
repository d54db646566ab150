"""A library of files for an agent: pipeline, fusion, router, chat engine and agent of LlamaIndex.

    python llama_index_library.py FOLDER "What does the manual say about health checks?"

Run it again after files have changed: only what changed is indexed, and what was deleted is gone. With OPENAI_API_KEY
(and `pip install llama-index-llms-openai`) an agent answers; without a key the passages are shown.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.memory import Memory
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import RetrieverTool

from llama_index_sire import SireMemoryBlock, SireRetriever, create_sire_tool

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import LLM


class Library:
    """The Markdown files of a folder.

    Args:
        folder: Where the files are.
        store: Folder of the index.
    """

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder = folder
        self.pipeline = IngestionPipeline(transformations=[MarkdownNodeParser(), SentenceSplitter(chunk_size=256)])
        self.retriever = SireRetriever.from_documents([], persist_dir=store, similarity_top_k=4)
        self.retriever.replace_all(self.nodes())

    def nodes(self) -> list[Any]:
        """The files as nodes; their ids do not depend on the run."""
        files = sorted(self.folder.rglob("*.md"))
        documents = [
            Document(id_=name, text=file.read_text(encoding="utf-8"), metadata={"file_name": name})
            for file in files
            if (name := str(file.relative_to(self.folder)))
        ]
        nodes = list(self.pipeline.run(documents=documents))
        numbers = Counter[str]()
        for node in nodes:
            node.id_ = f"{node.ref_doc_id}#{numbers[node.ref_doc_id]}"
            numbers[node.ref_doc_id] += 1
        return nodes

    def fusion(self, other: BaseRetriever, llm: LLM) -> QueryFusionRetriever:
        """Our retriever beside another one over the same nodes."""
        return QueryFusionRetriever(
            [self.retriever, other],
            llm=llm,
            num_queries=1,
            mode="reciprocal_rerank",
            similarity_top_k=4,
            use_async=False,
        )

    def router(self, other: BaseRetriever, llm: LLM) -> RouterRetriever:
        """A model chooses which of two retrievers is asked."""
        tools = [
            RetrieverTool.from_defaults(self.retriever, description="Questions about several files."),
            RetrieverTool.from_defaults(other, description="Words that stand in one file."),
        ]
        return RouterRetriever(LLMSingleSelector.from_defaults(llm=llm), tools, llm=llm)

    def chat(self, llm: LLM) -> Any:
        """A chat engine that searches for every message."""
        return self.retriever.as_chat_engine("context", llm=llm)

    async def answer(self, llm: LLM, question: str) -> str:
        """An agent's answer: it is shown evidence and can search for more."""
        memory = Memory.from_defaults(memory_blocks=[SireMemoryBlock(retriever=self.retriever)])
        agent = FunctionAgent(tools=[create_sire_tool(self.retriever)], llm=llm)
        return str(await agent.run(question, memory=memory))


def main(folder: str, question: str) -> None:
    """Index what changed, then answer."""
    library = Library(Path(folder), Path(folder, ".sire"))
    if os.environ.get("OPENAI_API_KEY"):
        from llama_index.llms.openai import OpenAI

        print(asyncio.run(library.answer(OpenAI("gpt-4o-mini"), question)))
        return
    for found in library.retriever.retrieve(question):
        print(f"[{found.node.metadata['file_name']}] {found.node.get_content()[:100]!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
