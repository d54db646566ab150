"""A library of Markdown files for an agent: loader, splitter, record manager, ensemble, agent and chain of LangChain.

    python langchain_library.py FOLDER "What does the manual say about health checks?"

Run it again after files have changed: only what changed is indexed, and what was deleted is gone. With OPENAI_API_KEY
(and `pip install langchain langchain-openai langchain-classic langchain-text-splitters`) an agent answers; without a
key the passages are shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_classic.indexes import SQLRecordManager
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.indexing import index
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter

from langchain_sire import SireMiddleware, SireRetriever, create_ircot_chain, create_sire_tool

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

HEADINGS = ["Header 1", "Header 2"]


class MarkdownFolder(BaseLoader):
    """Loads the sections of all Markdown files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lazy_load(self) -> Iterator[Document]:
        """Yield one document per section, with its file as `source`."""
        splitter = MarkdownHeaderTextSplitter([("#", HEADINGS[0]), ("##", HEADINGS[1])], strip_headers=False)
        for file in sorted(self.folder.rglob("*.md")):
            for section in splitter.split_text(file.read_text(encoding="utf-8")):
                section.metadata["source"] = str(file.relative_to(self.folder))
                yield section


class Library:
    """The files of a folder, kept in step with it.

    Args:
        folder: Where the files are.
        store: Folder of the index; the record manager's file is beside it.
    """

    def __init__(self, folder: Path, store: Path) -> None:
        self.loader = MarkdownFolder(folder)
        self.documents = SireRetriever.open(store, title_key=HEADINGS, k=4)
        self.records = SQLRecordManager("library", db_url=f"sqlite:///{store.with_suffix('.records.sqlite')}")
        self.records.create_schema()

    def sync(self) -> dict[str, Any]:
        """Index what changed since the last call; returns how much that was."""
        return dict(index(self.loader, self.records, self.documents, cleanup="full", key_encoder="sha256"))

    def ensemble(self, embeddings: Embeddings) -> EnsembleRetriever:
        """Our retriever beside LangChain's own vector store over the same sections."""
        theirs = InMemoryVectorStore(embeddings)
        theirs.add_documents(list(self.loader.lazy_load()))
        return EnsembleRetriever(retrievers=[self.documents, theirs.as_retriever()], weights=[0.7, 0.3])

    def agent(self, model: BaseChatModel) -> Any:
        """An agent that is shown evidence for every message and can search for more."""
        return create_agent(model, [create_sire_tool(self.documents)], middleware=[SireMiddleware(self.documents)])

    def chain(self, model: BaseChatModel) -> Any:
        """A chain that reasons in several searches."""
        return create_ircot_chain(self.documents, model, max_steps=3)


def main(folder: str, question: str) -> None:
    """Sync, then answer."""
    library = Library(Path(folder), Path(folder, ".sire"))
    print(library.sync())
    if os.environ.get("OPENAI_API_KEY"):
        from langchain.chat_models import init_chat_model

        model = init_chat_model("openai:gpt-4o-mini")
        state = library.agent(model).invoke({"messages": [{"role": "user", "content": question}]})
        print(state["messages"][-1].text)
        return
    for found in library.documents.invoke(question):
        print(f"[{found.metadata['source']}] {found.page_content[:100]!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
