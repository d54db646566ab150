"""A chat over a folder of Markdown and PDF files: every answer names the files that it stands on.

Start it with `python llama_index_chat.py FOLDER INDEX`, after `pip install "sire-rag[llama-index,files]"`. A second
start reads only what has changed in the folder. The model here repeats the context that it is given; put your own LLM
in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llama_index.core import SimpleDirectoryReader
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import LLM, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter

from llama_index_sire import SireReader, SireRetriever


class Repeats(CustomLLM):
    """A stand-in for a model: says the last part of what it is asked."""

    @property
    def metadata(self) -> LLMMetadata:
        """Its limits."""
        return LLMMetadata(context_window=8_000, num_output=256)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002 - the interface
        """Answer."""
        return CompletionResponse(text=prompt.strip()[-400:])

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Iterator[CompletionResponse]:  # noqa: ARG002 - the interface
        """Answer piece by piece."""
        text = ""
        for word in self.complete(prompt).text.split(" "):
            text += f"{word} "
            yield CompletionResponse(text=text, delta=f"{word} ")


def open_folder(folder: Path, index: Path) -> SireRetriever:
    """Index a folder, or bring its index up to date: changed files replace, deleted ones go."""
    files = SimpleDirectoryReader(
        str(folder),
        recursive=True,
        required_exts=[".md", ".pdf"],
        filename_as_id=True,
        file_extractor=SireReader.extractor(),
    )
    retriever = SireRetriever.from_documents(
        [], persist_dir=index, similarity_top_k=4, transformations=[SentenceSplitter(chunk_size=256)]
    )
    retriever.replace_all(files.load_data())
    return retriever


def chat_over(retriever: SireRetriever, llm: LLM) -> BaseChatEngine:
    """One conversation; the retriever may be shared by many."""
    return retriever.as_chat_engine(
        "context", llm=llm, memory=ChatMemoryBuffer.from_defaults(token_limit=3_000), system_prompt="Cite the files."
    )


def answer(chat: BaseChatEngine, question: str) -> tuple[str, list[str]]:
    """An answer and the files that its passages come from."""
    reply = chat.chat(question)
    files = [Path(str(found.node.metadata["file_path"])).name for found in reply.source_nodes]
    return str(reply), list(dict.fromkeys(files))


def main() -> None:
    """Ask until an empty line."""
    chat = chat_over(open_folder(Path(sys.argv[1]), Path(sys.argv[2])), Repeats())
    while question := input("? ").strip():
        text, files = answer(chat, question)
        print(f"{text}\n  from {', '.join(files)}")


if __name__ == "__main__":
    main()
