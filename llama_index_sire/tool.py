"""`create_sire_tool`: search as a tool for agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.tools import FunctionTool

from llama_index_sire.retriever import SireRetriever
from sire_core.errors import ConfigurationError
from sire_core.index import Index
from sire_core.serve.arguments import SearchArguments, read_arguments

__all__ = ["cite", "create_sire_tool"]


def create_sire_tool(
    source: SireRetriever | Index,
    name: str = "search_documents",
    description: str = "Finds passages that answer a question, with the documents they come from in brackets.",
) -> FunctionTool:
    """Create a search tool for agents over a retriever or an index.

    The model reads `[doc_id] text` blocks; the nodes are in `raw_output`. The question reaches the retriever as the
    model wrote it (`RetrieverTool` of LlamaIndex passes on "input is ..."). Invalid arguments raise a `QueryError` with
    a message that an agent can act on.

    Args:
        source: A `SireRetriever`, whose `similarity_top_k` and `filters` apply (a call's filter can only narrow it), or
            an `Index`.
        name: Name of the tool.
        description: Tells the model when to call it.

    Raises:
        ConfigurationError: It is neither.
    """
    retriever = SireRetriever(source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        raise ConfigurationError(f"{type(source).__name__} is neither a SireRetriever nor an Index.")

    def asked(given: Mapping[str, Any]) -> tuple[str, SireRetriever]:
        """The question, and the retriever as one call wants it; shared state is not touched."""
        arguments = read_arguments(SearchArguments, given)
        return arguments.query, retriever.narrowed(arguments.k, arguments.filter)

    def search(**given: Any) -> list[NodeWithScore]:
        query, narrowed = asked(given)
        return narrowed.retrieve(query)

    async def asearch(**given: Any) -> list[NodeWithScore]:
        query, narrowed = asked(given)
        return await narrowed.aretrieve(query)

    async def acite(nodes: Sequence[NodeWithScore]) -> str:
        return cite(nodes)

    return FunctionTool.from_defaults(
        fn=search,
        async_fn=asearch,
        name=name,
        description=description,
        fn_schema=SearchArguments,
        callback=cite,
        async_callback=acite,
    )


def cite(nodes: Sequence[NodeWithScore]) -> str:
    """Retrieved nodes as text for a model, each with the ids of its documents: `[doc_id] text`."""
    blocks = []
    for found in nodes:
        documents = json.loads(found.node.metadata.get("sire_doc_ids", "[]")) or [found.node.node_id]
        blocks.append(f"[{', '.join(documents)}] {found.node.get_content(MetadataMode.NONE)}")
    return "\n\n".join(blocks) or "Nothing was found."
