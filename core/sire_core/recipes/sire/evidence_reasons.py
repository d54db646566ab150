"""Why `EvidencePaths` found a passage: the steps that led to it, and what it says by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.wording import excerpt
from sire_core.recipes.sire.evidence_texts import name_words, passage_headings
from sire_core.search.passage_text import titled_sentences
from sire_core.types import PathStep, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.protocols import Similarities, View
    from sire_core.recipes.sire.evidence_question import QuestionEvidence

__all__ = ["EvidenceReasons", "unit_sentences"]

_LONGEST_SENTENCE = 240
_SURE = 0.5
"""How surely a name of the question has to be that of a passage's subject."""


def unit_sentences(unit: Unit) -> list[str]:
    """Sentences of a passage, as their numbers count them."""
    return titled_sentences(unit.title, unit.text)[1]


class EvidenceReasons:
    """How a passage was reached; worked out for the hits only."""

    def __init__(
        self, view: View, evidence: QuestionEvidence, best: Mapping[int, tuple[int, int, int]], cosines: Similarities
    ) -> None:
        self._view = view
        self._evidence = evidence
        self._best = best
        self._cosines = cosines
        self._index = evidence.index
        self._read: dict[int, Unit] = {}
        self._split: dict[int, list[str]] = {}

    def path(self, position: int) -> tuple[PathStep, ...]:
        """The step that led to a position with the one before, then what the passage says by itself."""
        kind = self._view.kind_names[self._view.kinds[position]]
        note = f"cosine {self._cosines.at(np.array([position]))[0]:.3f} with the question"
        chunks = self._index.chunks
        passage = int(np.searchsorted(chunks, position))
        inside = passage < len(chunks) and chunks[passage] == position
        shared = f"; {self._shared(passage)}" if inside else ""
        own = PathStep(f"vector:{kind}", (self._id(position),), note + shared)
        return (*self._steps(passage), own) if inside else (own,)

    def _shared(self, passage: int) -> str:
        """Which words of the question a passage has, and the heading with most of them."""
        words = self._evidence.texts.words_in(passage)
        if not words:
            return "shares no word with it"
        unit = self._unit(passage)
        headings = passage_headings(unit.title, unit.text)
        asked = [sum(word in words for word in name_words(heading)) for heading in headings]
        best = f" (also in the heading {headings[int(np.argmax(asked))]!r})" if any(asked) else ""
        return f"shares the word{'s' if len(words) > 1 else ''} {', '.join(words)}{best}"

    def _steps(self, passage: int) -> tuple[PathStep, ...]:
        chain: list[tuple[int, int, int, int]] = []
        seen = {passage}
        while passage in self._best and not self._is_named(passage):
            source, sentence, entity = self._best[passage]
            if source in seen:
                break
            chain.insert(0, (source, sentence, entity, passage))
            seen.add(source)
            passage = source
        steps = list(self._named(passage))
        for source, sentence, entity, target in chain:
            ids = (self._passage_id(source), self._index.entity_id(entity), self._passage_id(target))
            name = self._name(entity, source, target) or "it"
            text = self._sentence(source, sentence)
            steps.append(PathStep("entity", ids, f"names {name}: {excerpt(text, name, _LONGEST_SENTENCE)}"))
        return tuple(steps)

    def _is_named(self, passage: int) -> bool:
        """Whether the question names what a passage is about: no step has to lead there."""
        return self._evidence.linked.get(int(self._index.own[passage]), 0.0) >= _SURE

    def _unit(self, passage: int) -> Unit:
        if passage not in self._read:
            [self._read[passage]] = self._view.units([int(self._index.chunks[passage])])
        return self._read[passage]

    def _sentence(self, passage: int, sentence: int) -> str:
        if passage not in self._split:
            self._split[passage] = unit_sentences(self._unit(passage))
        return self._split[passage][sentence - self._index.first_sentence(passage)]

    def _named(self, passage: int) -> tuple[PathStep, ...]:
        """What the question names in the passage, if anything."""
        index = self._index
        inside = set(index.entities.of(passage).tolist())
        spelled = {entity: self._name(entity, passage) for entity in self._evidence.linked if entity in inside}
        named = {entity: name for entity, name in spelled.items() if name}
        if not named:
            return ()
        ids = tuple(self._index.entity_id(entity) for entity in named)
        labels = ", ".join(dict.fromkeys(named.values()))
        return (PathStep("question", (*ids, self._passage_id(passage)), f"the question names {labels}"),)

    def _name(self, entity: int, *passages: int) -> str:
        """How one of some passages spells a name, empty if none does; others may call it what a filter hides."""
        spelled = (self._index.name_in(passage, entity) for passage in passages)
        return next((name for name in spelled if name), self._index.label(entity))

    def _passage_id(self, passage: int) -> str:
        return self._id(int(self._index.chunks[passage]))

    def _id(self, position: int) -> str:
        return str(self._view.ids[position].decode())
