"""`create_sire_tool`: search as a tool for agents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Union

from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, Field
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.tools import FunctionTool

from llama_index_sire.retriever import SireRetriever
from sire_core.errors import ConfigurationError
from sire_core.index import Index

__all__ = ["SireToolInput", "cite", "create_sire_tool"]

_MOST = 50


class SireToolInput(BaseModel):
    """What an agent passes to the tool."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="The question to find evidence for, in full words.", min_length=1)
    k: Union[int, None] = Field(default=None, ge=1, le=_MOST, description="How many passages to return.")
    filter: Union[dict[str, Any], str, None] = Field(
        default=None,
        description=(
            "Conditions on document metadata that must all hold, "
            'for example {"year": {"gt": 1990}, "lang": {"in": ["en", "de"]}} or "year>1990, lang=en".'
        ),
    )


def create_sire_tool(
    source: SireRetriever | Index,
    name: str = "search_documents",
    description: str = "Finds passages that answer a question, with the documents they come from in brackets.",
) -> FunctionTool:
    """Make a tool over a retriever or an index.

    The model reads `[doc_id] text` blocks, the nodes are `raw_output`. The question reaches the retriever as the model
    wrote it (`RetrieverTool` of LlamaIndex passes on "input is ..."). Arguments that make no sense raise, which agents
    tell the model.

    Args:
        source: A `SireRetriever` (its `similarity_top_k` and `filters` hold; a call's filter narrows further) or an
            `Index`.
        name: How the model calls it.
        description: When to call it.

    Raises:
        ConfigurationError: It is neither.
    """
    retriever = SireRetriever(source) if isinstance(source, Index) else source
    if not isinstance(retriever, SireRetriever):
        raise ConfigurationError(f"{type(source).__name__} is neither a SireRetriever nor an Index.")

    def narrowed(k: int | None, where: Any) -> SireRetriever:
        """The retriever as one call wants it; shared state is not touched."""
        return retriever.narrowed(min(retriever.similarity_top_k if k is None else k, _MOST), where)

    def search(query: str, k: int | None = None, filter: Any = None) -> list[NodeWithScore]:  # noqa: A002 - the name that the model sees
        return narrowed(k, filter).retrieve(query)

    async def asearch(query: str, k: int | None = None, filter: Any = None) -> list[NodeWithScore]:  # noqa: A002 - as above
        return await narrowed(k, filter).aretrieve(query)

    async def acite(nodes: Sequence[NodeWithScore]) -> str:
        return cite(nodes)

    return FunctionTool.from_defaults(
        fn=search,
        async_fn=asearch,
        name=name,
        description=description,
        fn_schema=SireToolInput,
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
