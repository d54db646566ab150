"""`Rerank`: a language model says which of the first passages help most, in numbers only (MS-RAG)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.models.cross_encoder import load_cross_encoder
from sire_core.models.prompt_format import numbered, parse_order
from sire_core.protocols import DoubleArray, FloatArray, IntArray, LanguageModel, Prompt, Ranking, ReadableRanking, View
from sire_core.search.ranking import answer_or_reason
from sire_core.settings import check_settings, refuse_untrusted, setting
from sire_core.text.snippets import snippet
from sire_core.types import PathStep, Unit

_RERANK_INSTRUCTIONS = (
    "The data holds a question and numbered passages. Name the {named} passages that together help most to answer the "
    "question, the most helpful one first. Answer with their numbers only, joined by #, for example 2#0."
)


@dataclass(frozen=True, slots=True)
class Rerank:
    """Puts first what a language model picks from the head of a ranking.

    A call that fails leaves the order as it was; the paths of the hits and a warning say so.

    Attributes:
        pool: How many of the first hits the model sees (the paper's lambda 4); the order beyond them stays.
        named: How many of them it is asked to name (the paper: 2); those it does not name keep their order behind.
        model: Who is asked: the name of a model behind an OpenAI-compatible server (address and key as the variables
            OPENAI_BASE_URL and OPENAI_API_KEY say), or `NAME@http://host/v1` with another address; empty for the
            index's own. Its calls count and are bounded as those of the index's own. The paper takes a small one
            (Qwen-7B).
        required: Whether a search without any model is an error; else nothing changes there.
    """

    pool: int = setting(5, low=1, high=1000)
    named: int = setting(2, low=1)
    model: str = ""
    required: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:  # noqa: ARG002 - what the model sees does not depend on k
        """One call of the model.

        Raises:
            LimitExceededError: A usage limit was reached.
            ConfigurationError: There is no model, or the one named needs a key, or the package `openai`, or only an
                index folder names it.
        """
        model = view.named_model("rerank_model", self.model) if self.model else view.language_model
        if model is None and self.required and view.asks_models:
            raise ConfigurationError(
                "rerank='model' needs a language model: Index(..., language_model=...), --llm MODEL, or rerank_model."
            )
        positions, scores = await ranking.top(self.pool)
        if model is None or len(positions) < 2:
            return ranking
        texts = [unit.index_text for unit in view.units(positions)]
        order, failure = await answer_or_reason(
            ask_order(model, query, texts, self.named), "the hits keep the order that they had"
        )
        if order is None:
            return Reordered(ranking, positions, scores, "language model", failure=failure or "it declined to answer")
        return Reordered(ranking, positions[order], scores, "language model")


async def ask_order(model: LanguageModel, query: str, texts: Sequence[str], named: int = 2) -> list[int]:
    """Ask a language model which texts help most; one call."""
    data = json.dumps({"question": query, "passages": numbered(texts)}, ensure_ascii=False, indent=1)
    prompt = Prompt(_RERANK_INSTRUCTIONS.format(named=min(named, len(texts))), data)
    answer = await model.complete(prompt, max_tokens=10 + 5 * named)
    return parse_order(answer.text, range(len(texts)))


class Reordered:
    """A ranking with another order of its first positions; their scores stay with the places."""

    def __init__(self, ranking: Ranking, head: IntArray, scores: FloatArray, judge: str, *, failure: str = "") -> None:
        self._failure = failure
        self._ranking = ranking
        self._head = head
        self._scores = scores
        self._judge = judge
        self._place = {position: rank for rank, position in enumerate(head.tolist())}

    async def top(self, n: int) -> tuple[IntArray, FloatArray]:
        """The best `n` positions and their scores."""
        positions, scores = await self._ranking.top(max(n, len(self._head)))
        rest = len(self._head)
        return (
            np.concatenate((self._head, positions[rest:]))[:n],
            np.concatenate((self._scores, scores[rest:]))[:n],
        )

    def scores_at(self, positions: IntArray) -> FloatArray:
        """Scores of given positions."""
        scores = np.array(self._ranking.scores_at(positions))
        for i, position in enumerate(positions.tolist()):
            if position in self._place:
                scores[i] = self._scores[self._place[position]]
        return scores

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The ranking's own steps, and the place that the model gave."""
        steps = self._ranking.path(position)
        if position not in self._place:
            return steps
        if self._failure:
            return (*steps, PathStep("rerank", (), f"the {self._judge} failed, the order stays: {self._failure}"))
        return (*steps, PathStep("rerank", (), f"place {self._place[position] + 1} after the {self._judge} looked"))


@dataclass(frozen=True, slots=True)
class CrossEncoderRerank:
    """Orders the head of a ranking by its own scores and those of a cross-encoder together.

    A cross-encoder knows nothing of the other passages: alone, it buries what only a link explains.

    Attributes:
        model: `colbert:NAME_OR_FOLDER` or `onnx:NAME_OR_FOLDER`, or folder or name for sentence-transformers; see
            `load_cross_encoder`.
        pool: How many of the first hits the model reads; the order beyond them stays.
        characters: How much of each it reads: the title, and the sentences that share most with the question, in
            their order. 0 for whole passages.
        milliseconds: Time for reading: as many of these hits as fit, the first first. 0 for all.
        weight: Of the cross-encoder beside the ranking, both as standard scores among the hits that were read.
    """

    model: str
    pool: int = setting(20, low=1, high=1000)
    milliseconds: int = setting(0, low=0)
    weight: float = setting(0.5, above=0)
    characters: int = setting(500, low=0)

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigurationError(
                "Name the cross-encoder: colbert:NAME_OR_FOLDER or onnx:NAME_OR_FOLDER (no torch), or a folder, or a "
                "name on the hub such as org/model."
            )
        check_settings(self)

    async def select(self, query: str, ranking: Ranking, k: int, view: View) -> Ranking:  # noqa: ARG002 - what the model reads does not depend on k
        """Score the head in a worker thread; equal scores keep their order."""
        refuse_untrusted("cross_encoder", self.model)
        positions, scores = await ranking.top(self.pool)
        if len(positions) < 2:
            return ranking
        weights, leads = np.ones(len(positions)), [""] * len(positions)
        if isinstance(ranking, ReadableRanking):
            weights, leads = ranking.reading(positions)
        judged_scores = await asyncio.to_thread(self._scores, query, view.units(positions), leads)
        read, own = positions[: len(judged_scores)], scores[: len(judged_scores)]
        judged = self.weight * weights[: len(judged_scores)] * _standard(judged_scores)
        order = np.argsort(-(_standard(own) + judged), kind="stable")
        judge = "cross-encoder"
        if len(judged_scores) < len(positions):
            judge = (
                f"cross-encoder, which read {len(judged_scores)} of {len(positions)} hits in {self.milliseconds} ms,"
            )
        return Reordered(ranking, read[order], own, judge)

    def _scores(self, query: str, units: Sequence[Unit], leads: Sequence[str]) -> FloatArray:
        encoder = load_cross_encoder(str(self.model))
        texts = [f"{lead}\n{self._read(unit, query)}".lstrip() for unit, lead in zip(units, leads, strict=True)]
        if self.milliseconds:
            return encoder.scores_within(query, texts, self.milliseconds)
        return encoder.scores(query, texts)

    def _read(self, unit: Unit, query: str) -> str:
        if not self.characters or len(unit.text) <= self.characters:
            return unit.index_text
        return replace(unit, text=snippet(unit.text, query, self.characters)).index_text


def _standard(scores: FloatArray) -> DoubleArray:
    """Scores with mean 0 and spread 1; equal ones are 0."""
    scores = np.asarray(scores, dtype=np.float64)
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread else np.zeros(len(scores))
