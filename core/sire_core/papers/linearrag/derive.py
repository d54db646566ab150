"""`SentenceNodes`: the sentences of the passages, each with the names in it (LinearRAG, section 3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from sire_core.extend import (
    Derivation,
    Output,
    PassageNames,
    Row,
    Step,
    Unit,
    UnitKind,
    name_key,
    split_sentences,
    unit_id,
)

if TYPE_CHECKING:
    from sire_core.extend import BuildView, Context, Group, Item

SENTENCE = UnitKind.define("sentence")


@dataclass(frozen=True, slots=True)
class Sentences(Step):
    """Groups passages by sentence."""

    fingerprint: str  # build fingerprint of the organizer
    name = "sentences"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row per sentence that names something: how often which key, chunks. The title is in the first."""
        unit = item.value.unit
        passage_names = PassageNames.of(unit, item.value.record)
        names = dict.fromkeys(name for entity in passage_names.entities for name in entity.names)
        titles = passage_names.title_names[:1]
        for number, sentence in enumerate(split_sentences(unit.text)):
            text = f"{unit.title}\n{sentence}" if unit.title and not number else sentence
            times: dict[str, int] = {}
            for name in (*(titles if not number else ()), *(name for name in names if name in text)):
                if key := name_key(name):
                    times[key] = max(times.get(key, 1), text.count(name))
            if times:
                yield Row(text, [times, list(unit.chunk_ids)])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return a unit per sentence, which stands on all passages that have it."""
        del context
        outputs = []
        for group in groups:
            times = reduce(or_, (Counter(entry.body[0]) for entry in group.entries))
            chunks = tuple(dict.fromkeys(chunk for entry in group.entries for chunk in entry.body[1]))
            sentence = unit_id(SENTENCE.value, self.fingerprint, chunks, group.key)
            outputs.append(
                Output(units=(Unit(sentence, SENTENCE, group.key, chunks, entity_keys=tuple(times.elements())),))
            )
        return outputs


@dataclass(frozen=True, slots=True)
class SentenceNodes(Derivation):
    """The sentence nodes of the Tri-Graph."""

    name = "sentence_nodes"

    def describe(self) -> str:
        """Describe what is built and what it costs."""
        return "Every sentence that names something, with a vector. Model calls: none beyond those of the graph."

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Group passages by sentence."""
        return (Sentences(view.fingerprint),)
