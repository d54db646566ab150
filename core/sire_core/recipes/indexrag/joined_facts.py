"""Bridging facts without a model: complementary facts of two documents as one text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from sire_core.algorithms.text import cached_key, tokenize
from sire_core.extraction.lexicon import FUNCTION_WORDS
from sire_core.recipes.indexrag.bridge_evidence import BridgeEvidence, PaddedWords, SourceFact

__all__ = ["BridgeFact", "JoinedFacts"]

_Weighed = tuple[SourceFact, frozenset[str], str]
"""A fact, its content words, and the title of its document."""


@dataclass(frozen=True, slots=True)
class BridgeFact:
    """A bridging fact and the chunks that it stands on, most telling first."""

    text: str
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinedFacts:
    """Joins, for pairs of documents that share an entity, the two facts that add most to each other.

    A pair of facts is informative when either says enough that the other does not; of a pair of documents the most
    informative pair of facts is kept, of an entity the most informative pairs of documents. A document about the entity
    comes second, so that the text reads on from the mention to what is mentioned.

    Attributes:
        max_pairs: Most bridging facts per entity.
        min_new: Content words that each fact must have beyond the other one and the entity's name.
        max_chars: A pair that is longer is left out; a shorter one of the same documents may take its place.
    """

    max_pairs: int = 3
    min_new: int = 3
    max_chars: int = 600

    async def write(
        self, evidence: Sequence[BridgeEvidence], progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[BridgeFact, ...]]:
        """Bridging facts of each entity, most informative first.

        Args:
            evidence: What is known of each entity.
            progress: Called as `progress(done, total)`.
        """
        import asyncio

        words, content = PaddedWords(), _ContentWords()
        if progress:
            progress(0, len(evidence))
        facts = await asyncio.to_thread(lambda: [self._join(found, words, content) for found in evidence])
        if progress:
            progress(len(evidence), len(evidence))
        return facts

    def join(self, evidence: BridgeEvidence) -> tuple[BridgeFact, ...]:
        """Bridging facts of one entity, most informative first."""
        return self._join(evidence, PaddedWords(), _ContentWords())

    def _join(self, evidence: BridgeEvidence, words: PaddedWords, content: _ContentWords) -> tuple[BridgeFact, ...]:
        pairs = sorted(self._pairs(evidence, content), key=lambda pair: -pair[0])
        facts = [_joined(evidence.name, left, right, words) for _, left, right in pairs[: self.max_pairs]]
        return tuple({fact.text: fact for fact in facts}.values())

    def _pairs(self, evidence: BridgeEvidence, content: _ContentWords) -> Iterator[tuple[int, _Weighed, _Weighed]]:
        name = set(tokenize(evidence.name))
        weighed = [
            (cached_key(title) == evidence.key, [(fact, content[fact.text] - name, title) for fact in facts])
            for title, facts in evidence.documents
        ]
        for (left_about, left), (_, right) in combinations(weighed, 2):
            best = self._best(right, left) if left_about else self._best(left, right)
            if best is not None:
                yield best

    def _best(self, left: Sequence[_Weighed], right: Sequence[_Weighed]) -> tuple[int, _Weighed, _Weighed] | None:
        best: tuple[_Weighed, _Weighed] | None = None
        most = self.min_new - 1
        for one in left:
            for other in right:
                fewer = min(len(one[1]), len(other[1]))
                if fewer <= most or len(one[0].text) + len(other[0].text) >= self.max_chars:
                    continue
                new = fewer - len(one[1] & other[1])
                if new > most:
                    most, best = new, (one, other)
        return None if best is None else (most, *best)


class _ContentWords(dict[str, frozenset[str]]):
    """Words of texts that are no function words; each text is cut once."""

    def __missing__(self, text: str) -> frozenset[str]:
        self[text] = found = frozenset(tokenize(text)) - FUNCTION_WORDS
        return found


def _joined(name: str, left: _Weighed, right: _Weighed, words: PaddedWords) -> BridgeFact:
    """Two facts as one text; a fact that names the entity by a shorter form gets the full name in front.

    That name may be spelt out only by a third document, which a filter may hide; then it is not used.
    """
    wanted = words[name]
    known = any(wanted in words[said] for fact, _, title in (left, right) for said in (fact.text, title))
    facts = [left[0], right[0]]
    texts = [fact.text if not known or wanted in words[fact.text] else f"{name}: {fact.text}" for fact in facts]
    return BridgeFact(" ".join(texts), tuple(dict.fromkeys((*facts[0].chunk_ids, *facts[1].chunk_ids))))
