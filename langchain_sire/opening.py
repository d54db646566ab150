"""From the words that LangChain's users write to an index and to the settings of a retriever over it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_sire.chat import as_language_model
from langchain_sire.embeddings import as_embedder
from langchain_sire.vector_store import VectorStoreMirror, over_vector_store
from sire_core.arguments import named, parameters
from sire_core.index import Index
from sire_core.recipes.registry import recipe_of, take_settings
from sire_core.storage.plain_files import read_optional, write_checked

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_core.vectorstores import VectorStore

_SETTINGS = "langchain.json"

SPELLINGS = {
    "embedder": "embedding",
    "embeddings": "embedding",
    "embed_model": "embedding",
    "language_model": "llm",
    "model": "llm",
    "extraction_llm": "llm",
    "vectorstore": "vector_store",
    "folder": "path",
    "persist_directory": "path",
    "persist_dir": "path",
    "top_k": "k",
    "similarity_top_k": "k",
    "filters": "filter",
}
"""Other words for arguments, as other classes of LangChain and LlamaIndex have them."""

_OURS = parameters(Index, without=("path", "recipe", "embedder", "language_model"))
_ARGUMENT_NAMES = ("path", "embedding", "llm", "recipe", "vector_store", "show_progress", *_OURS)


def open_index(called: str, arguments: Mapping[str, Any], others: Collection[str] = ()) -> tuple[Index, dict[str, Any]]:
    """An index with LangChain's models in the places of ours, and what was given beside its arguments."""
    words = {k: v for k, v in arguments.items() if v is not None}
    folder = next((words[word] for word in words if SPELLINGS.get(word, word) == "path"), None)
    words = take_settings(words, folder, {*_ARGUMENT_NAMES, *others, *SPELLINGS})
    named_arguments = named(called, words, (*_ARGUMENT_NAMES, *others), SPELLINGS)
    rest = {name: named_arguments.pop(name) for name in others if name in named_arguments}
    return make_index(**{**named_arguments, "chunker": arguments.get("chunker")}), rest


def make_index(
    path: Any = None,
    embedding: Any = None,
    llm: Any = None,
    recipe: Any = None,
    *,
    vector_store: VectorStore | VectorStoreMirror | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Index:
    """An index with LangChain's models in the places of ours; where the user has a vector store, searched in it."""
    if show_progress and "progress" not in options:
        from sire_core.progress import Bars

        options["progress"] = Bars()
    if vector_store is not None:
        mirror = vector_store if isinstance(vector_store, VectorStoreMirror) else VectorStoreMirror(vector_store)
        options["mirrors"] = (mirror, *options.get("mirrors", ()))
        recipe = over_vector_store(recipe or recipe_of(path), mirror.vector_store)
        embedding = mirror.vector_store.embeddings if embedding is None else embedding
    return Index(path, recipe=recipe, embedder=as_embedder(embedding), language_model=as_language_model(llm), **options)


def read_settings(folder: str | os.PathLike[str] | None) -> dict[str, Any]:
    """What a folder remembers of a retriever: `k` and `title_key`; empty where nothing was saved."""
    return read_optional(folder, _SETTINGS)


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Replace what is remembered."""
    folder.mkdir(parents=True, exist_ok=True)  # where there was nothing to index yet
    write_checked(folder / _SETTINGS, dict(settings))


def remember_title_key(folder: Path | None, title_key: str | list[str]) -> None:
    """Save a key of titles where the folder has none: who opens it next reads titles of documents in the same way.

    The file also says that documents are an app's, see `Folder.framework`.
    """
    if folder is None:
        return
    saved = read_settings(folder)
    if (title_key != "title" and "title_key" not in saved) or not (folder / _SETTINGS).exists():
        write_settings(folder, saved if title_key == "title" else {**saved, "title_key": title_key})
