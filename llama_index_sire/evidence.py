"""`EvidencePostprocessor`: the evidence in the nodes of any retriever, within a number of tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, field_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_sire.documents import evidence_content, evidence_head, evidence_node, foreign
from sire_core.documents.validation import check_list
from sire_core.search.context import ContextOptions, check_options, ranked, select_context


class EvidencePostprocessor(BaseNodePostprocessor):
    """Keeps the blocks of nodes that answer a question; works after any retriever, best first, without a model.

    Let the retriever return 20 to 40 nodes. The contents with metadata, as LlamaIndex writes them for a model, joined
    by empty lines, have at most `max_tokens` tokens; models do not read values of more than eight tokens, but titles
    (see `SireRetriever`). Each node keeps its id, metadata and relationships; its character offsets and
    `metadata["sire_spans"]` say what it quotes. The nodes that were given are not modified. Without a question they
    stay as they are.

    Attributes:
        max_tokens: Tokens of all nodes together.
        context_options: A reranker of blocks, or another way to count tokens; see `ContextOptions`. It is not saved.
    """

    model_config = ConfigDict(extra="forbid")

    max_tokens: int = Field(default=2000, gt=0, description="Tokens of all nodes together.")
    context_options: Any = Field(default=ContextOptions(), exclude=True, description="A reranker of blocks.")

    _check_context_options = field_validator("context_options")(check_options)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized pipelines."""
        return "EvidencePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            return nodes
        check_list(nodes, (NodeWithScore,), "llama_index.core.schema.NodeWithScore objects")
        hits = [foreign(scored, scored.score, rank) for rank, scored in enumerate(nodes, 1)]
        starts = [scored.node.start_char_idx if isinstance(scored.node, TextNode) else None for scored in nodes]
        options = replace(self.context_options, write=evidence_content, head=evidence_head)
        context = select_context(query_bundle.query_str, ranked(hits, starts), self.max_tokens, options)
        return [evidence_node(one) for one in context.evidence]
