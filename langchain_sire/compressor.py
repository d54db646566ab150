"""`EvidenceCompressor`: the evidence in the documents of any retriever, within a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, field_validator

from langchain_sire.documents import evidence_text, evidence_to_langchain, foreign
from sire_core.documents.validation import check_list
from sire_core.search.context import ContextOptions, check_options, ranked, select_context


class EvidenceCompressor(BaseDocumentCompressor):
    """Keeps the blocks of documents that answer a question; for LangChain's `ContextualCompressionRetriever`.

    Works on the documents of any retriever, best first, without a model. Let the retriever return 20 to 40 documents.
    The page contents, joined by empty lines, have at most `max_tokens` tokens. Each document keeps its id and metadata;
    `metadata["sire"]["spans"]` says which characters of the document it quotes.

    Attributes:
        max_tokens: Tokens of all page contents together.
        title_key: Metadata key with the title of a document, or a list of keys with its headings, outermost first.
        context_options: A reranker of blocks, or another way to count tokens; see `ContextOptions`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    max_tokens: int = Field(default=2000, gt=0)
    title_key: str | list[str] = "title"
    context_options: Any = ContextOptions()

    _check_context_options = field_validator("context_options")(check_options)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> Sequence[Document]:
        """Return the evidence in documents: sources by their best evidence, passages in the order of their source."""
        check_list(documents, (Document,), "langchain_core.documents.Document objects")
        hits = [foreign(document, rank, self.title_key) for rank, document in enumerate(documents, 1)]
        options = replace(self.context_options, write=evidence_text, head=lambda _: "")
        starts = [start if isinstance(start := d.metadata.get("start_index"), int) else None for d in documents]
        context = select_context(query, ranked(hits, starts), self.max_tokens, options)
        return [evidence_to_langchain(one) for one in context.evidence]
