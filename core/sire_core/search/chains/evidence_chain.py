"""`EvidenceChain`: a chain that a user can read, found again in hits; and its context text (IIER)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sire_core.algorithms.chains import arrange_chains
from sire_core.algorithms.text import count_tokens, truncate_tokens
from sire_core.errors import ConfigurationError
from sire_core.types import PathStep

if TYPE_CHECKING:
    from sire_core.protocols import View
    from sire_core.types import Hit

__all__ = ["CHAIN", "SEED", "WHOLE", "ChainLines", "EvidenceChain", "chain_context", "chains_in", "fit"]


def fit(tokens: Sequence[int], budget: int, policy: str = "skip") -> list[int]:
    """Choose which units fit a budget, in order.

    Args:
        tokens: Length of each unit, best first.
        budget: Tokens that may be spent.
        policy: `break` stops at the first unit that does not fit (RAPTOR's code); `skip` leaves it out and goes on.

    Returns:
        Indices of the chosen units. When not even one fits, the first one: its text has to be truncated by the caller
        rather than lost.

    Raises:
        ConfigurationError: Unknown policy or a budget below one.
    """
    if policy not in ("break", "skip"):
        raise ConfigurationError(f"The budget policy is 'break' or 'skip', not {policy!r}.")
    if budget < 1:
        raise ConfigurationError(f"A token budget must be at least 1, not {budget}.")
    chosen: list[int] = []
    spent = 0
    for i, length in enumerate(tokens):
        if spent + length <= budget:
            chosen.append(i)
            spent += length
        elif policy == "break":
            break
    return chosen or ([0] if tokens else [])


SEED = "seed"
"""Step of the passage at which a chain starts."""
CHAIN = "chain"
"""Step of every further passage of a chain."""
WHOLE = "whole_chain"
"""Step that names all passages of a chain that the hit is on; the note is the chain's name."""


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    """Passages in the order in which the walk took them.

    Attributes:
        chunk_ids: Ids of the passages, the seed first.
        notes: Why each is there: what the seed holds of the question, what links the others to the one before.
    """

    chunk_ids: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """The chain as the path of its last passage."""
        return tuple(
            PathStep(CHAIN if place else SEED, (chunk,), note)
            for place, (chunk, note) in enumerate(zip(self.chunk_ids, self.notes, strict=True))
        )


def chains_in(hits: Sequence[Hit]) -> list[EvidenceChain]:
    """The chains that the paths of hits tell of, each as far as its last passage among the hits.

    Args:
        hits: From a search with `EvidenceChains`; others are passed over.

    Returns:
        Chains in the order of their best hits; none is the beginning of another one.
    """
    found: dict[tuple[str, ...], EvidenceChain] = {}
    for hit in hits:
        steps = [step for step in hit.path if step.step in (SEED, CHAIN)]
        if steps and steps[0].step == SEED:
            ids = tuple(step.ids[0] for step in steps)
            found.setdefault(ids, EvidenceChain(ids, tuple(step.note for step in steps)))
    begun = {ids[:length] for ids in found for length in range(1, len(ids))}
    return [chain for ids, chain in found.items() if ids not in begun]


@dataclass(frozen=True, slots=True)
class ChainLines:
    """Tells a reader which of the passages form a chain: a line each, so that chains stand apart (IIER 4.5.1)."""

    async def lines(self, hits: Sequence[Hit], view: View) -> list[str]:  # noqa: ARG002 - the hits know
        """One line per chain, with the numbers of its passages from 1; a passage of two chains stands in both."""
        number = {hit.unit.id: place for place, hit in enumerate(hits, 1)}
        chains = {step.note: step.ids for hit in hits for step in hit.path if step.step == WHOLE}
        return [
            f"{name}: passages {', '.join(str(number[chunk]) for chunk in chains[name] if chunk in number)}"
            for name in sorted(chains, key=lambda name: int(name.rpartition(" ")[2]))
        ]


def chain_context(hits: Sequence[Hit], form: str = "chain", *, budget: int | None = None, seed: int = 0) -> str:
    """The texts of hits in the order of their chains, as context for a reader.

    Args:
        hits: From a search with `EvidenceChains`; those outside of any chain come last, as they are ranked.
        form: `chain` (one chain after the other, a blank line between them, a passage that two chains share in both),
            `iterative` (the first passages of all chains, then the second ones, ..) or `shuffle`.
        budget: Tokens of the text at most. A repeated passage is then only referred to, and what does not fit is left
            out, the latest first.
        seed: Of the shuffling.

    Raises:
        ConfigurationError: Unknown form, or a budget below one.
    """
    import numpy as np

    texts = {hit.unit.id: hit.unit.index_text for hit in hits}
    chains = [[chunk for chunk in chain.chunk_ids if chunk in texts] for chain in chains_in(hits)]
    linked = {chunk for chain in chains for chunk in chain}
    groups = arrange_chains(chains, form, np.random.default_rng(seed))
    rest = [chunk for chunk in texts if chunk not in linked]
    groups = [group for group in (*groups, rest) if group]
    if budget is None:
        return "\n\n".join("\n".join(texts[chunk] for chunk in group) for group in groups)
    return _within(groups, {hit.unit.id: hit.unit.title for hit in hits}, texts, budget)


def _within(groups: Sequence[Sequence[str]], titles: dict[str, str], texts: dict[str, str], budget: int) -> str:
    """Groups of passages within a budget; what was said before is referred to."""
    seen: set[str] = set()
    lines: list[tuple[int, str]] = []
    for number, group in enumerate(groups):
        for chunk in group:
            name = titles[chunk] or truncate_tokens(texts[chunk], 8)
            lines.append((number, f"(see above: {name})" if chunk in seen else texts[chunk]))
            seen.add(chunk)
    kept = fit([count_tokens(text) for _, text in lines], budget, "break")
    shown: dict[int, list[str]] = {}
    for place in kept:
        number, text = lines[place]
        shown.setdefault(number, []).append(truncate_tokens(text, budget) if len(kept) == 1 else text)
    return "\n\n".join("\n".join(group) for group in shown.values())
