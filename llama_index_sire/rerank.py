"""`SireRerank`: the core's reranking by a language model as a node postprocessor."""

from __future__ import annotations

import logging
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from llama_index_sire.opening import LLMLike, resolve_llm
from sire_core.documents.validation import check_list
from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.sync import run_sync
from sire_core.protocols import LanguageModel
from sire_core.search.selectors.rerank import ask_order

dispatcher = get_dispatcher(__name__)

_logger = logging.getLogger(__name__)


class SireRerank(BaseNodePostprocessor):
    """Moves the nodes that a language model selects to the front, with one short model call.

    Works after any retriever. Scores stay in descending order: each position keeps its score. The given nodes are not
    modified. The order stays as it is without a model, without a question, if the call fails (which is logged), or if
    the answer contains no numbers.

    Attributes:
        top_n: Number of nodes returned; None means all.
        pool: Number of first nodes that the model sees.
        llm: A LlamaIndex LLM, a `LanguageModel` of the core, `"settings"` for `Settings.llm`, or None. It is not saved
            (`to_dict`, pickles); pass it again: `SireRerank.from_dict(saved, llm=...)`.
        asks: Name of the model, to detect a restored object that lost its model.

    Raises:
        ConfigurationError: `llm` is another string; or, at the first use, the object was restored without its model.
    """

    top_n: int | None = Field(default=None, ge=1, description="How many nodes come back; None means all.")
    pool: int = Field(default=5, ge=1, description="How many of the first nodes the model sees.")
    llm: Any = Field(default=None, exclude=True, description="An LLM, a LanguageModel, 'settings' or None.")
    asks: str = Field(default="", description="Name of the model, which is not saved.")

    _model: LanguageModel | None = PrivateAttr(default=None)

    def __init__(
        self,
        *,
        llm: LLMLike = None,
        top_n: int | None = None,
        pool: int = 5,
        asks: str = "",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        fields: dict[str, Any] = {"llm": llm, "top_n": top_n, "pool": pool, "asks": asks}
        super().__init__(callback_manager=callback_manager or CallbackManager(), **fields)
        self._model = resolve_llm(llm)
        if self._model is not None:
            self.asks = self._model.fingerprint

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized pipelines."""
        return "SireRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_sync(self._reranked(nodes, query_bundle))

    # The base class gives a span to abstract methods only, and runs the sync method in a thread.
    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await self._reranked(nodes, query_bundle)

    async def _reranked(self, nodes: list[NodeWithScore], query: QueryBundle | None) -> list[NodeWithScore]:
        check_list(nodes, (NodeWithScore,), "llama_index.core.schema.NodeWithScore objects")
        model, head = self._model, nodes[: self.pool]
        if model is None and self.asks:
            raise ConfigurationError(
                f"This SireRerank was restored without its model ({self.asks}), which is not saved with it. Give it "
                "again: SireRerank.from_dict(saved, llm=...)."
            )
        if model is None or query is None or len(head) < 2:
            return nodes[: self.top_n]
        count = len(nodes) if self.top_n is None else self.top_n
        dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=count, model_name=model.fingerprint))
        texts = [scored.node.get_content(metadata_mode=MetadataMode.LLM) for scored in head]
        try:
            order = await ask_order(model, query.query_str, texts)
        except ModelError as error:
            _logger.warning("The order of %d nodes stays as it is: %s", len(nodes), error)
            order = list(range(len(head)))
        first = [NodeWithScore(node=head[at].node, score=hit.score) for at, hit in zip(order, head, strict=True)]
        result = [*first, *nodes[len(head) :]][: self.top_n]
        dispatcher.event(ReRankEndEvent(nodes=result))
        return result
