"""What one door stores in an index folder, the others leave: command line, LangChain, LlamaIndex, Python and MCP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument

import langchain_sire
import llama_index_sire
from sire_core import Document, Index
from sire_core.documents.chunker import SentenceChunker
from sire_core.recipes import recipe_by_name
from sire_core.serve.tools import IndexTools
from sire_core.storage.index_files import read_manifest
from support.command import run
from support.tiny_onnx import write_tiny_embedder

LONG = " ".join(f"Sentence {number} says that pump {number} needs oil in year {1900 + number}." for number in range(60))
WORDS = {"pump": (1.0, 0.2), "oil": (0.1, 1.0), "note": (0.5, 0.5)}
SMALL = SentenceChunker(40, overlap_tokens=16)
OTHERS = [(f"note-{number}", f"Note {number} is about pumps, too.") for number in range(6)]
FILTER = {"lang": {"in": ["en"]}}
OF_SEARCHES = {"as_of": "2030-01-01", "returns": "units", "title_key": "heading"}
"""Settings of both adapters' retrievers beside the number of hits and the filter."""


def sources(folder: Path) -> Path:
    place = folder.parent / "sources"
    place.mkdir(exist_ok=True)
    for name, text in [("long", LONG), *OTHERS]:
        place.joinpath(f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    return place


def by_cli(folder: Path, chunker=None, embedder=None, recipe=None, **_) -> None:
    words = ["--chunk-tokens", str(chunker.max_tokens)] if chunker else []
    words += ["--embedder", embedder] if embedder else []
    words += ["--recipe", "raptor", "--set", "depth=2"] if recipe else []
    run("index", str(sources(folder)), "--to", str(folder), *words)


def by_python(folder: Path, k=None, filter=None, as_of=None, returns=None, title_key=None, **settings) -> None:
    with Index(folder, **settings) as index:
        index.build([Document(name, text, metadata={"lang": "en"}) for name, text in [("long", LONG), *OTHERS]])


def by_langchain(folder: Path, **settings) -> None:
    documents = [
        LangChainDocument(id=name, page_content=text, metadata={"lang": "en" if name < "note-3" else "de"})
        for name, text in [("long", LONG), *OTHERS]
    ]
    langchain_sire.SireRetriever.from_documents(documents, path=folder, **settings)


def by_llama_index(folder: Path, **settings) -> None:
    documents = [
        LlamaIndexDocument(id_=name, text=text, metadata={"lang": "en" if name < "note-3" else "de"})
        for name, text in [("long", LONG), *OTHERS]
    ]
    llama_index_sire.SireRetriever.from_documents(documents, persist_dir=folder, **settings)


def visit_cli(folder: Path) -> None:
    run("query", str(folder), "pumps in which year?")
    if not (folder / "langchain.json").exists() and not (folder / "llama_index.json").exists():  # else it is refused
        extra = folder.parent / "sources" / "extra-cli.md"
        extra.parent.mkdir(exist_ok=True)
        extra.write_text("Added by the command line.", encoding="utf-8")
        run("add", str(folder), str(extra))


def visit_python(folder: Path) -> None:
    with Index(folder) as index:
        index.add([Document("extra-python", "Added from Python.")])
        index.delete(["extra-python"])
        index.search("pumps")


def visit_langchain(folder: Path) -> None:
    retriever = langchain_sire.SireRetriever.load(folder)
    retriever.add_documents([LangChainDocument(id="extra-langchain", page_content="Added by LangChain.")])
    retriever.upsert([LangChainDocument(id="extra-upsert", page_content="Added by LangChain's index().")])
    retriever.invoke("pumps")


def visit_llama_index(folder: Path) -> None:
    retriever = llama_index_sire.SireRetriever.from_persist_dir(folder)
    retriever.insert([LlamaIndexDocument(id_="extra-llama", text="Added by LlamaIndex.")])
    retriever.retrieve("pumps")


def visit_mcp(folder: Path) -> None:
    async def silent(_: str) -> None: ...

    with Index(folder) as index:
        tools = IndexTools(index)
        asyncio.run(tools.call("search", {"query": "pumps"}, silent))
        name = next(document.id for document in index.documents() if "long" in document.id)
        reply = asyncio.run(tools.call("fetch", {"doc_id": name}, silent))
        assert LONG in " ".join(reply.split())  # no sentence twice


MAKERS = {"cli": by_cli, "python": by_python, "langchain": by_langchain, "llama_index": by_llama_index}
VISITORS = {
    "cli": visit_cli,
    "python": visit_python,
    "langchain": visit_langchain,
    "llama_index": visit_llama_index,
    "mcp": visit_mcp,
}


def stored(folder: Path, door: str) -> dict[str, object]:
    """What the folder says, and what the door does when it opens the folder again."""
    manifest = read_manifest(folder)
    state: dict[str, object] = {
        "chunker": manifest.chunker,
        "embedder": (manifest.embedder, manifest.embedder_spec),
        "recipe": (manifest.recipes[-1].name, dict(manifest.recipes[-1].config)),
    }
    with Index(folder) as index:
        passages = {document.id: len(document.chunks) for document in index.documents() if "extra" not in document.id}
    if door == "langchain":
        retriever = langchain_sire.SireRetriever.load(folder)
        ids = [document.id for document in retriever.invoke("Which pump?")]
        state |= {"k": (retriever.k, len(ids)), "filter": retriever.filter, "own": retriever.index.chunker}
        state |= {name: getattr(retriever, name) for name in OF_SEARCHES}
    if door == "llama_index":
        retriever = llama_index_sire.SireRetriever.from_persist_dir(folder)
        nodes = retriever.retrieve("Which pump?")
        state |= {"k": (retriever.similarity_top_k, len(nodes)), "filter": retriever.filters}
        state["own"] = retriever.index.chunker
        state |= {name: getattr(retriever, name) for name in OF_SEARCHES}
    return {**state, "passages": passages}


@pytest.mark.parametrize("door", MAKERS)
def test_settings_that_one_door_stores_survive_the_others(tmp_path, door):
    folder, model = tmp_path / "index", write_tiny_embedder(tmp_path / "model", WORDS)
    settings = {"chunker": SMALL, "embedder": f"onnx:{model}", "recipe": recipe_by_name("raptor", depth=2)}
    MAKERS[door](folder, **settings, k=3, filter=FILTER, **OF_SEARCHES)
    before = stored(folder, door)
    assert before["chunker"]["max_tokens"] == 40
    assert next(number for name, number in before["passages"].items() if "long" in name) > 5
    assert before["embedder"][0].startswith("onnx:")
    assert (before["recipe"][0], before["recipe"][1]["depth"]) == ("raptor", 2)
    if door in ("langchain", "llama_index"):
        assert (before["k"], before["filter"], before["own"]) == ((3, 3), FILTER, SMALL)
        assert {name: before[name] for name in OF_SEARCHES} == OF_SEARCHES
    for name, visit in VISITORS.items():
        if name != door:
            visit(folder)
            assert stored(folder, door) == before, name
    MAKERS[door](folder)  # again, without a setting
    assert stored(folder, door) == before


def test_a_folder_that_an_app_made_takes_its_documents_whole_and_splits_those_of_others(tmp_path):
    whole = LangChainDocument(id="a", page_content=LONG * 5)
    langchain_sire.SireRetriever.from_documents([whole], path=tmp_path / "i")
    with Index(tmp_path / "i") as index:
        index.add([Document("b", LONG * 5)])
        assert [len(document.passages) > 1 for document in index.documents()] == [False, True]
