"""`ModelSummarizer`: summaries written by a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.parts import packed
from sire_core.algorithms.text import split_sentences, tokenize
from sire_core.algorithms.wording import count
from sire_core.algorithms.worker_pool import map_all
from sire_core.errors import ConfigurationError, ModelError
from sire_core.models.base import concurrency_of, told_of
from sire_core.models.usage import estimate_tokens
from sire_core.protocols import Prompt
from sire_core.types import Failure, Unit

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel

__all__ = ["ModelSummarizer", "pack_texts"]

_VERSION = "v1"
_INSTRUCTIONS = """\
Summarize the texts of the input together in at most {words} words. Keep as many key details as fit: names, dates, \
numbers, and who did what to whom. State things directly, do not speak about the texts. Use their language. Answer \
with the summary only."""
_WORDS_PER_TOKEN = 0.7
# The model is told a length in words; the hard bound leaves room to end the sentence.
_SLACK = 1.5
_MAX_ROUNDS = 8


class ModelSummarizer:
    """A `Summarizer` over a language model (RAPTOR and SiReRAG, appendix G).

    The children's texts, joined by blank lines in child order, are summarised with as many key details as fit. Over the
    context limit they are summarised part by part, then the parts' summaries. Clusters of a level run concurrently.
    A cluster that fails gets no text: `on_failure` is told, and the next build asks again.

    Args:
        language_model: Who writes. With `with_sources` (see `CachedModel`) it is told the chunks of each cluster.
        max_tokens: Length of a summary that is asked for.
        context_tokens: Most tokens of one prompt's texts.
        concurrency: Clusters under way at once; None takes the model's own `concurrency`, or 8.
        on_failure: Called with every cluster that could not be summarised.
        progress: Called as `progress(done, total)`.

    Raises:
        ConfigurationError: A number is too small.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        *,
        max_tokens: int = 200,
        context_tokens: int = 6_000,
        concurrency: int | None = None,
        on_failure: Callable[[Failure], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._model = language_model
        self._max_tokens = max_tokens
        self._context_tokens = context_tokens
        self._workers = concurrency_of(language_model) if concurrency is None else concurrency
        self._on_failure = on_failure
        self._progress = progress
        if max_tokens < 1 or self._workers < 1 or context_tokens < 3 * max_tokens:
            raise ConfigurationError(
                "max_tokens and concurrency must be at least 1, and context_tokens at least three times max_tokens, "
                "so that summaries of parts can be summarised again"
            )

    @property
    def fingerprint(self) -> str:
        """Model, prompt version and lengths."""
        return f"{self._model.fingerprint}|summary/{_VERSION}:{self._max_tokens}:{self._context_tokens}"

    async def summarize(self, clusters: Sequence[Sequence[Unit]]) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Summarise each cluster; see `Summarizer.summarize`.

        Members that share most words with the summary come first.

        Raises:
            LimitExceededError: A usage limit was reached.
        """
        return await map_all(self._one, clusters, self._workers, self._progress)

    async def _one(self, cluster: Sequence[Unit]) -> tuple[str, tuple[str, ...]]:
        members = [unit for unit in cluster if unit.text.strip()]
        if not members:
            return "", ()
        chunk_ids = list(dict.fromkeys(name for unit in members for name in unit.chunk_ids))
        model = told_of(self._model, chunk_ids)
        try:
            text = await self._reduce(model, [unit.index_text for unit in members])
        except ModelError as error:
            if self._on_failure is not None:
                where = f"summary of {count(len(members), 'unit')}, first {members[0].id}"
                self._on_failure(Failure(where, f"{type(error).__name__}: {error}"[:500]))
            return "", ()
        return text, _most_telling(text, members)

    async def _reduce(self, model: LanguageModel, texts: Sequence[str]) -> str:
        """Summarise; over the context limit first the parts, then their summaries."""
        for _ in range(_MAX_ROUNDS):
            parts = pack_texts(texts, self._context_tokens)
            # One after the other: the clusters beside this one keep the model busy.
            texts = [await self._ask(model, part) for part in parts]
            if len(texts) == 1:
                return texts[0]
        raise ModelError("the summaries of the parts do not get shorter; use a larger context_tokens")

    async def _ask(self, model: LanguageModel, data: str) -> str:
        words = max(1, round(self._max_tokens * _WORDS_PER_TOKEN))
        answer = await model.complete(
            Prompt(_INSTRUCTIONS.format(words=words), data), max_tokens=round(self._max_tokens * _SLACK) + 20
        )
        return answer.text.strip()


def pack_texts(texts: Sequence[str], limit: int) -> list[str]:
    """Join texts, in order, into as few parts as possible of at most `limit` tokens each (estimated).

    A text over the limit is cut at sentences, a sentence over it at words.
    """
    pieces = (piece for text in texts for piece in _pieces(text, limit))
    return ["\n\n".join(part) for part in packed(pieces, lambda piece: estimate_tokens(piece) + 1, limit)]


def _pieces(text: str, limit: int) -> list[str]:
    if estimate_tokens(text) < limit:
        return [text]
    pieces: list[str] = []
    for sentence in split_sentences(text):
        # A token is rarely shorter than one letter, so that this many letters always fit.
        whole = estimate_tokens(sentence) < limit
        cut = [sentence] if whole else [sentence[at : at + limit - 2] for at in range(0, len(sentence), limit - 2)]
        for piece in cut:
            joined = f"{pieces[-1]} {piece}" if pieces else piece
            if pieces and estimate_tokens(joined) < limit:
                pieces[-1] = joined
            else:
                pieces.append(piece)
    return pieces


def _most_telling(summary: str, members: Sequence[Unit]) -> tuple[str, ...]:
    words = set(tokenize(summary))
    overlap = [len(words.intersection(tokenize(unit.index_text))) for unit in members]
    order = sorted(range(len(members)), key=lambda at: (-overlap[at], at))
    return tuple(members[at].id for at in order)
