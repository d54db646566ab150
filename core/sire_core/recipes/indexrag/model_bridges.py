"""`ModelBridges`: bridging facts written by a language model (IndexRAG, section 3.2.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, model_validator

from sire_core.algorithms.text import normalize_answer, tokenize
from sire_core.algorithms.worker_pool import map_all
from sire_core.errors import ModelError
from sire_core.models.base import concurrency_of, told_of
from sire_core.protocols import Prompt
from sire_core.recipes.indexrag.joined_facts import BridgeFact
from sire_core.types import Failure

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel
    from sire_core.recipes.indexrag.bridge_evidence import BridgeEvidence

__all__ = ["BridgesAnswer", "ModelBridges"]

_LONGEST = 400
"""A longer answer, in characters, is no bridging fact."""
_INSTRUCTIONS = """\
Several documents name the same entity. Write bridging facts: each is one sentence that joins what at least two of the \
documents say, so that a question whose answer needs both can be answered from the sentence alone. Name everybody and \
everything in full, no pronouns and no mention of the documents. State only what follows from the given facts, without \
guessing. Use their language. An empty list if the documents mean different things by the name or if their facts have \
nothing to do with each other."""


class BridgesAnswer(BaseModel):
    """What the model answers; a bare list of sentences is accepted too."""

    shape: ClassVar[str] = '{"facts":[""]}'

    facts: list[str]

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, data: Any) -> Any:
        return {"facts": data} if isinstance(data, list) else data


class ModelBridges:
    """Asks once per entity, several entities at a time.

    Args:
        language_model: Who writes. With `with_sources` (see `CachedModel`) it is told the chunks of each entity.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        self._model = language_model

    async def write(
        self, evidence: Sequence[BridgeEvidence], progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[BridgeFact, ...] | Failure]:
        """Bridging facts of each entity; an entity that fails gets a `Failure`.

        A fact stands on everything that the model was shown, since it may have used any of it.

        Args:
            evidence: What is known of each entity.
            progress: Called as `progress(done, total)`.

        Raises:
            LimitExceededError: A usage limit was reached.
        """
        return await map_all(self._one, evidence, concurrency_of(self._model), progress)

    async def _one(self, evidence: BridgeEvidence) -> tuple[BridgeFact, ...] | Failure:
        model = told_of(self._model, evidence.chunk_ids)
        try:
            answer = await model.complete(Prompt(_INSTRUCTIONS, _data(evidence)), schema=BridgesAnswer)
        except ModelError as error:
            return Failure(f"bridging facts about {evidence.name!r}", f"{type(error).__name__}: {error}"[:500])
        texts = [" ".join(text.split()) for text in answer.parsed.facts]
        return tuple(BridgeFact(text, _most_telling(text, evidence)) for text in self._valid(texts, evidence))

    def _valid(self, texts: Sequence[str], evidence: BridgeEvidence) -> list[str]:
        """Facts that are new and short; each once."""
        known = {normalize_answer(fact.text) for _, facts in evidence.documents for fact in facts} | {""}
        kept: dict[str, str] = {}
        for text in texts:
            said = normalize_answer(text)
            if said not in known and len(text) <= _LONGEST:
                kept.setdefault(said, text)
        return list(kept.values())


def _data(evidence: BridgeEvidence) -> str:
    documents = [{"title": title, "facts": [fact.text for fact in facts]} for title, facts in evidence.documents]
    return json.dumps({"entity": evidence.name, "documents": documents}, ensure_ascii=False)


def _most_telling(text: str, evidence: BridgeEvidence) -> tuple[str, ...]:
    """All chunks of the evidence, those of the facts that share most words with the text first."""
    words = set(tokenize(text))
    facts = [fact for _, shown in evidence.documents for fact in shown]
    facts.sort(key=lambda fact: -len(words.intersection(tokenize(fact.text))))
    return tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))
