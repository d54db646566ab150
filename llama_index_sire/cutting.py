"""How documents of an index are cut: by the user's transformations or here, and never otherwise without a word."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from llama_index.core.ingestion import run_transformations
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.schema import BaseNode, NodeRelationship, TransformComponent
from llama_index.core.schema import Document as LlamaIndexDocument

from llama_index_sire.documents import CUT_KEY, NODE_KEY, to_documents
from sire_core.corpus.chunker import SentenceChunker
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.types import Document, Passage, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sire_core.index import Index


def fingerprint(transformations: Sequence[TransformComponent] | None) -> list[str] | None:
    """Classes of transformations with a digest of their settings, as LlamaIndex's own pipeline tells them apart."""
    if transformations is None:
        return None
    return [f"{type(each).__name__}:{get_transformation_hash([], each)[:16]}" for each in transformations]


def cut(
    nodes: Sequence[BaseNode],
    index: Index,
    title_key: str | Sequence[str],
    transformations: Sequence[TransformComponent] | None,
    *,
    saved: Sequence[str] | None,
    stored: Callable[[Collection[str]], Mapping[str, Document]],
    everything: bool,
) -> tuple[list[Document], list[str]]:
    """Documents of the core from what the user gives, and ids of those that stay as they are stored."""
    whole: dict[str, LlamaIndexDocument] = {}
    for node in nodes:
        if isinstance(node, LlamaIndexDocument) and whole.setdefault(node.node_id, node).hash != node.hash:
            raise CorpusError(f"Two different documents have the id {node.node_id!r}. Give each an id of its own.")
    known = stored(whole) if whole else {}
    mine = fingerprint(transformations)
    if whole:
        _refuse_another(mine, saved, everything)
    own = SentenceChunker() if index.chunker == "sentences" else index.chunker  # "sentences" is the only name
    convert = partial(to_documents, title_key=title_key, chunker=own, strict_metadata=index.strict_metadata)  # type: ignore[arg-type]  # no other text
    if transformations is None:
        _refuse_nodes(known)
        return convert(nodes), []
    marks = {name: digest(node.hash, str(title_key), *(mine or ())) for name, node in whole.items()}
    same = {name: document for name, document in known.items() if _mark(document) == marks[name]}
    pieces = {node.ref_doc_id or node.node_id for node in nodes if not isinstance(node, LlamaIndexDocument)}
    if both := sorted(pieces & whole.keys()):
        raise CorpusError(f"Given whole and in pieces, too: {', '.join(both[:10])}. Give the document or its nodes.")
    fresh = {name: document for name, document in whole.items() if name not in same}
    left = [n for n in nodes if not isinstance(n, LlamaIndexDocument) or n is fresh.get(n.node_id)]
    nodes_made = run_transformations(left, transformations)
    return convert(nodes_made, marks=marks), list(same)


def _refuse_another(mine: list[str] | None, saved: Sequence[str] | None, everything: bool) -> None:
    if not saved or mine == list(saved) or (everything and mine is not None):
        return
    names = ", ".join(each.partition(":")[0] for each in saved)
    how = "without transformations" if mine is None else "with others, or with other settings of them"
    raise ConfigurationError(
        f"The documents of this index were cut by transformations ({names}), and this retriever was made {how}: the "
        "new ones would be cut in another way. Give the same: SireRetriever.from_persist_dir(folder, "
        "transformations=[...]). To cut all of them again, give other ones ([] leaves it to the index) and call "
        "replace_all(documents)."
    )


def _refuse_nodes(known: Mapping[str, Document]) -> None:
    """Refuse documents that the index holds as nodes that were cut from them elsewhere."""
    nodes_found = [name for name, document in known.items() if _source(document) == name or _mark(document)]
    if nodes_found:
        raise ConfigurationError(
            f"In the index as nodes that were cut before: {', '.join(nodes_found[:10])}. Whole, a document would be "
            "cut in another way. Give its nodes (splitter.get_nodes_from_documents), or name what cuts it: "
            "SireRetriever.from_persist_dir(folder, transformations=[...]); [] leaves it to the index."
        )


def _mark(document: Document) -> str:
    """What `cut` noted with the passages of a document; empty where the index cut it, or the user did."""
    return str(_about(document).get(CUT_KEY, ""))


def _source(document: Document) -> str:
    """The document that the first node says it is from."""
    related = _about(document).get("relationships", {}).get(NodeRelationship.SOURCE.value)
    return str(related[0]) if related else ""


def _about(document: Document) -> dict[str, Any]:
    first = document.chunks[0] if document.chunks else ""
    metadata = first.metadata if isinstance(first, Passage) else {}
    about: dict[str, Any] = json.loads(metadata.get(NODE_KEY, "{}"))
    return about
