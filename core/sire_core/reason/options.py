"""Options of chains and query engines that reason, as typed keywords of the adapters."""

from __future__ import annotations

from typing import Literal, TypedDict

from sire_core.reason.evidence import Merge


class ReasonerOptions(TypedDict, total=False):
    """Limits of `ReasoningLimits`, and what every strategy takes.

    Keys: `k` is the number of documents in the final context, `search_k` that of each search.
    """

    k: int
    on_model_error: Literal["raise", "return"]
    max_steps: int | None
    max_calls: int | None
    max_tokens: int | None
    timeout: float | None


class IRCoTOptions(ReasonerOptions, total=False):
    """Options of IRCoT; see `IRCoTConfig`."""

    flavor: Literal["original", "hipporag", "indexrag"]
    merge: Merge | None
    search_k: int | None
    steps: int | None
    words: int
    paragraphs: int
    max_words: int
    examples: str


class SelfAskOptions(ReasonerOptions, total=False):
    """Options of self-ask; see `SelfAskConfig`."""

    mode: Literal["two_call", "search"]
    search_k: int
    steps: int
    words: int
    examples: str


class AnyReasonerOptions(IRCoTOptions, total=False):
    """Options of a strategy that is chosen by name (`via`)."""

    mode: Literal["two_call", "search"]
