"""`AtomicKnowledge`: what each document states, as units: stage 1 of IndexRAG (section 3.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sire_core.algorithms.parts import cut_line, part_starts, text_length
from sire_core.derive.derivation import Derivation
from sire_core.derive.rows import Entry, Group, Item, Output, Row
from sire_core.derive.step import Context, Step
from sire_core.settings import check_settings, setting
from sire_core.types import Unit, UnitKind, digest, hash64, unit_id

if TYPE_CHECKING:
    from sire_core.protocols import BuildView

__all__ = ["AtomicKnowledge"]


@dataclass(frozen=True, slots=True)
class AtomicKnowledge(Derivation):
    """One unit per document, or several where it is long. Equal documents share theirs.

    The paper's third way, passages as they are, needs no organizer: they are in every pool.

    Attributes:
        stage1: `qa` joins the answers of the document's facts, a line each, without their questions; a document without
            facts stands as it is. `summary` has the document summarised.
        summary_tokens: Maximum tokens of a summary.
        split_tokens: Length of a unit. A longer text becomes several, each of which stands on the passages that state
            it; a quota takes them for one (see `Quota`).

    Raises:
        ConfigurationError: `stage1` is unknown, or a length is below one.
    """

    name: ClassVar[str] = "atomic_knowledge"

    stage1: str = setting("qa", choices=("qa", "summary"))
    summary_tokens: int = setting(200, low=1)
    split_tokens: int = setting(1024, low=1)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def needs_records(self) -> bool:
        """Reads facts, unless it summarises."""
        return self.stage1 == "qa"

    @property
    def needs_summaries(self) -> bool:
        """Whether it writes summaries."""
        return self.stage1 == "summary"

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        length = {"summary_tokens": self.summary_tokens} if self.needs_summaries else {}
        return {"stage1": self.stage1, "split_tokens": self.split_tokens, **length}

    def describe(self) -> str:
        """What is built, and what it costs."""
        if self.needs_summaries:
            return "A summary of each document. Model calls: one per document with a language model, none without."
        return (
            "The facts of each document as one text. Model calls: one extraction per passage with a language model, "
            "none without."
        )

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Documents as their passages, and equal documents as units."""
        return (_Documents(view.place, self.needs_records), _Units(self, view.fingerprint))


@dataclass(frozen=True, slots=True)
class _Documents(Step):
    """Documents as the passages that they consist of, and what these state.

    Attributes:
        place: Sequence number of a chunk's document, and position.
        with_facts: Whether facts are read.
    """

    place: Callable[[str], tuple[int, int]]
    with_facts: bool
    name = "documents"
    portable = False  # it asks the corpus for places

    def map(self, item: Item) -> Iterable[Row]:
        """One row per chunk of a passage: its id and the facts; title and text where there are none."""
        unit, record = item.value.unit, item.value.record
        facts = [fact.answer or fact.text for fact in record.facts] if record and self.with_facts else []
        said = [facts] if facts else [[], unit.title, unit.text]
        return [Row(chunk.doc_id, [chunk.id, *said], self.place(chunk.id)) for chunk in item.value.chunks]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """What makes documents equal, a digest of what is stated, and chunks."""
        del context
        # Passages of one title, text and metadata have one id, so that ids of passages are a document's content.
        return [
            Output(
                [
                    digest(*(entry.item for entry in group.entries), size=8),
                    digest(*(fact for entry in group.entries for fact in entry.body[1]), size=8),
                    [entry.body[0] for entry in group.entries],
                ]
            )
            for group in groups
        ]


class _Line(NamedTuple):
    """Something that a document states, and the numbers of the passages that do."""

    text: str
    passages: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Units(Step):
    """Documents of the same words and metadata as units that stand on all of them.

    Attributes:
        settings: What stands for a document, and how long it may be.
        fingerprint: Build fingerprint of the organizer.
    """

    settings: AtomicKnowledge
    fingerprint: str
    name = "units"
    source = "documents"

    def map(self, item: Item) -> Iterable[Row]:
        """A document under its content: digest of what is stated, chunks."""
        content, stated, chunks = item.value
        yield Row(content, [stated, chunks])

    async def reduce_many(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Units of documents. A summary that fails is asked for again; the document stands as it is meanwhile."""
        if not self.settings.needs_summaries:
            return await super(_Units, self).reduce_many(groups, context)
        documents = self._passages(groups, context)
        passages = {unit.id: unit for unit in context.view.chunk_units}
        clusters = [[passages[entry.item] for entry in found] for found in documents]
        summarizer = context.view.summarizer(self.settings.summary_tokens, "summaries of documents")
        written = await summarizer.summarize(clusters)
        return [
            self._output(group, [_Line(text, range(len(found)))])
            if text
            else replace(self._output(group, _words(found)), retry=True)
            for group, found, (text, _) in zip(groups, documents, written, strict=True)
        ]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Units of what documents state, or of their words."""
        return [
            self._output(group, _facts(found) or _words(found))
            for group, found in zip(groups, self._passages(groups, context), strict=True)
        ]

    def _passages(self, groups: Sequence[Group], context: Context) -> list[list[Entry]]:
        """Passages of the first document of each group."""
        first = [group.entries[0].item for group in groups]
        entries = context.tables[_Documents.name].entries(first)
        return [entries[document] for document in first]

    def _output(self, group: Group, lines: Sequence[_Line]) -> Output:
        documents = [entry.body[1] for entry in group.entries]
        parts = _parts(lines, self.settings.split_tokens)
        if len(parts) == 1:  # what states nothing is a source, too
            parts = [(parts[0][0], range(len(documents[0])))]
        units = []
        for text, numbers in parts:
            chunks = tuple([document[number] for document in documents for number in numbers])
            name = unit_id(UnitKind.AKU.value, self.fingerprint, chunks, text)
            units.append(Unit(id=name, kind=UnitKind.AKU, text=text, chunk_ids=chunks))
        return Output(units=tuple(units))


def _facts(entries: Sequence[Entry]) -> list[_Line]:
    """Every fact of a document, once."""
    found: dict[str, list[int]] = {}
    for number, entry in enumerate(entries):
        for fact in entry.body[1]:
            passages = found.setdefault(fact, [])
            if number not in passages[-1:]:
                passages.append(number)
    return [_Line(text, passages) for text, passages in found.items()]


def _words(entries: Sequence[Entry]) -> list[_Line]:
    """A document as it is, for one that states nothing."""
    title = entries[0].body[2]
    texts = [_Line(entry.body[3], (number,)) for number, entry in enumerate(entries)]
    return [_Line(title, (0,)), *texts] if title else texts


def _parts(lines: Sequence[_Line], room: int) -> list[tuple[str, Sequence[int]]]:
    """Texts no longer than `room`, each with the numbers of its passages."""
    whole = "\n".join([line.text for line in lines]).strip()
    if text_length(whole) <= room:
        return [(whole, ())]
    pieces = [_Line(piece, line.passages) for line in lines for piece in cut_line(line.text, room)]
    lengths = [text_length(piece.text + "\n") for piece in pieces]
    starts = part_starts(lengths, [hash64(piece.text) for piece in pieces], room)
    parts = [pieces[start:end] for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    return [
        ("\n".join([piece.text for piece in part]).strip(), sorted({n for piece in part for n in piece.passages}))
        for part in parts
    ]
