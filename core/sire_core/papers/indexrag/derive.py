"""The units of IndexRAG: atomic knowledge of documents (stage 1, section 3.2.1), bridging facts (stage 2, 3.2.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sire_core.extend import (
    Context,
    Derivation,
    Entry,
    Failure,
    Group,
    Item,
    Output,
    Row,
    Step,
    Unit,
    UnitKind,
    cached_key,
    check_settings,
    cut_line,
    digest,
    hash64,
    name_key,
    part_starts,
    setting,
    text_length,
    unit_id,
)
from sire_core.papers.indexrag.bridges import (
    BridgeEvidence,
    BridgeFact,
    JoinedFacts,
    ModelBridges,
    SourceDocument,
    SourceFact,
    gather_evidence,
)

if TYPE_CHECKING:
    from sire_core.extend import BuildView, Change, Delta, Result


@dataclass(frozen=True, slots=True)
class AtomicKnowledge(Derivation):
    """Stage 1 of IndexRAG: a unit per document, or several for a long one. Equal documents share their units.

    The paper's third option, passages, needs no derivation. `qa` joins the answers of the document's facts, one per
    line, without their questions; the text of a document without facts is used as it is. `summary` summarises the
    document. A longer text than `split_tokens` becomes several units, each with the passages that state it; a quota
    counts them as one (see `Quota`).
    """

    name: ClassVar[str] = "atomic_knowledge"

    stage1: str  # `qa` or `summary`; see `IndexragContext`, as for the rest
    summary_tokens: int
    split_tokens: int

    @property
    def needs_records(self) -> bool:
        """True if it reads facts."""
        return self.stage1 == "qa"

    @property
    def needs_summaries(self) -> bool:
        """True if it writes summaries."""
        return self.stage1 == "summary"

    def settings(self) -> Mapping[str, Any]:
        """Settings that change what is built."""
        length = {"summary_tokens": self.summary_tokens} if self.needs_summaries else {}
        return {"stage1": self.stage1, "split_tokens": self.split_tokens, **length}

    def describe(self) -> str:
        """Describe what is built and what it costs."""
        if self.needs_summaries:
            return "A summary of each document. Model calls: one per document with a language model, none without."
        return (
            "The facts of each document as one text. Model calls: one extraction per passage with a language model, "
            "none without."
        )

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Group passages by document, and equal documents into units."""
        return (_StatedDocuments(view.place, self.needs_records), _Units(self, view.fingerprint))


@dataclass(frozen=True, slots=True)
class _StatedDocuments(Step):
    """Groups passages and their facts by document."""

    place: Callable[[str], tuple[int, int]]  # sequence number of a chunk's document, and position in it
    with_facts: bool  # whether facts are read
    name = "documents"
    portable = False  # reads places from the corpus

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row per chunk of a passage: its id and facts, or title and text if there are none."""
        unit, record = item.value.unit, item.value.record
        facts = [fact.answer or fact.text for fact in record.facts] if record and self.with_facts else []
        content = [facts] if facts else [[], unit.title, unit.text]
        return [Row(chunk.doc_id, [chunk.id, *content], self.place(chunk.id)) for chunk in item.value.chunks]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return a digest of the passages, one of the facts, and the chunks of each document."""
        del context
        # Equal passages have one id, so that the ids of its passages identify the content of a document.
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
    """A line of a unit, and the numbers of the passages that state it."""

    text: str
    passages: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Units(Step):
    """Makes the units of equal documents, with the chunks of all of them as sources."""

    settings: AtomicKnowledge  # content and length of units
    fingerprint: str  # build fingerprint of the organizer
    name = "units"
    source = "documents"

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a document under the digest of its content."""
        content, stated, chunks = item.value
        yield Row(content, [stated, chunks])

    async def reduce_many(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Make units; if a summary fails, the text is used until a later change asks again."""
        if not self.settings.needs_summaries:
            return await super(_Units, self).reduce_many(groups, context)
        documents = self._passages(groups, context)
        passages = {unit.id: unit for unit in context.view.chunk_units}
        clusters = [[passages[entry.item] for entry in entries] for entries in documents]
        summarizer = context.view.summarizer(self.settings.summary_tokens, "summaries of documents")
        written = await summarizer.summarize(clusters)
        return [
            self._output(group, [_Line(text, range(len(entries)))])
            if text
            else replace(self._output(group, _text_lines(entries)), retry=True)
            for group, entries, (text, _) in zip(groups, documents, written, strict=True)
        ]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Make units of facts, or of texts without facts."""
        return [
            self._output(group, _facts(entries) or _text_lines(entries))
            for group, entries in zip(groups, self._passages(groups, context), strict=True)
        ]

    def _passages(self, groups: Sequence[Group], context: Context) -> list[list[Entry]]:
        first = [group.entries[0].item for group in groups]
        entries = context.tables[_StatedDocuments.name].entries(first)
        return [entries[document] for document in first]

    def _output(self, group: Group, lines: Sequence[_Line]) -> Output:
        documents = [entry.body[1] for entry in group.entries]
        parts = _parts(lines, self.settings.split_tokens)
        if len(parts) == 1:  # passages without facts are sources, too
            parts = [(parts[0][0], range(len(documents[0])))]
        units = []
        for text, numbers in parts:
            chunks = tuple([document[number] for document in documents for number in numbers])
            name = unit_id(UnitKind.AKU.value, self.fingerprint, chunks, text)
            units.append(Unit(id=name, kind=UnitKind.AKU, text=text, chunk_ids=chunks))
        return Output(units=tuple(units))


def _facts(entries: Sequence[Entry]) -> list[_Line]:
    passages_of: dict[str, list[int]] = {}
    for number, entry in enumerate(entries):
        for fact in entry.body[1]:
            passages = passages_of.setdefault(fact, [])
            if number not in passages[-1:]:
                passages.append(number)
    return [_Line(text, passages) for text, passages in passages_of.items()]


def _text_lines(entries: Sequence[Entry]) -> list[_Line]:
    """Title and texts of a document without facts."""
    title = entries[0].body[2]
    texts = [_Line(entry.body[3], (number,)) for number, entry in enumerate(entries)]
    return [_Line(title, (0,)), *texts] if title else texts


def _parts(lines: Sequence[_Line], max_tokens: int) -> list[tuple[str, Sequence[int]]]:
    """Split lines into texts of at most `max_tokens`, each with the numbers of its passages."""
    whole = "\n".join([line.text for line in lines]).strip()
    if text_length(whole) <= max_tokens:
        return [(whole, ())]
    pieces = [_Line(piece, line.passages) for line in lines for piece in cut_line(line.text, max_tokens)]
    lengths = [text_length(piece.text + "\n") for piece in pieces]
    starts = part_starts(lengths, [hash64(piece.text) for piece in pieces], max_tokens)
    parts = [pieces[start:end] for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    return [
        ("\n".join([piece.text for piece in part]).strip(), sorted({n for piece in part for n in piece.passages}))
        for part in parts
    ]


@dataclass(frozen=True, slots=True)
class BridgingFacts(Derivation):
    """Stage 2 of IndexRAG: facts that follow from several documents about one entity.

    Reads extraction records only, so that it can be combined with any pool. Equal facts of several entities are one
    unit with the sources of all.

    Attributes:
        tau: Entities in more documents than this are not used.
        max_docs: Maximum documents per entity.
        max_facts: Maximum facts per document.
        cap_order: Which documents are used if there are more: `facts`, those with the most facts about the entity, or
            `first`. The paper does not say.
        max_pairs: Maximum bridging facts per entity without a model.
        entity_key: See `name_key`.
        skip_types: Entity types that are not used. Dates and quantities would connect unrelated documents; the paper
            does not mention them.
    """

    name: ClassVar[str] = "bridging_facts"
    needs_summaries = True

    tau: int = setting(10, low=2)
    max_docs: int = setting(5, low=2)
    max_facts: int = setting(8, low=1)
    cap_order: str = setting("facts", choices=("facts", "first"))
    max_pairs: int = setting(3, low=1)
    entity_key: str = setting("norm", choices=("norm", "lower", "exact"))
    skip_types: tuple[str, ...] = ("Date", "Quantity")

    def __post_init__(self) -> None:
        check_settings(self)

    def describe(self) -> str:
        """Describe what is built and what it costs."""
        return (
            f"Facts that connect documents through entities that 2 to {self.tau} of them name. Model calls: one per "
            "such entity with a language model, about 600-900 per 1,000 passages; none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Update the units after a change, and the counts of the paper's table 3."""
        from sire_core.extend import run_steps

        result = await run_steps(self.steps(view), change, view)
        state = {**(result.delta.state or {}), "figures": {"bridging": _figures(result)}}
        return replace(result.delta, state=state)

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Collect names and facts of documents, write the facts of entities, make units of equal facts."""
        return (_Documents(self), _Entities(self), _Texts(view.fingerprint))


@dataclass(frozen=True, slots=True)
class _Documents(Step):
    """Names and facts of documents.

    A passage that several documents repeat counts for the first of them only: equal texts add nothing to each other.
    """

    settings: BridgingFacts  # settings of the derivation
    name = "documents"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row for the document: title, chunks, names by entity key, facts with numbers of their entities."""
        unit, record = item.value.unit, item.value.record
        names: dict[str, list[str]] = {}
        keys: dict[str, str] = {}
        for entity in record.entities if record else ():
            if entity.type not in self.settings.skip_types:
                key = cached_key(entity.name, self.settings.entity_key)
                if key:
                    keys[entity.id] = key
                    names.setdefault(key, []).extend((entity.name, *entity.aliases))
        number = {key: i for i, key in enumerate(names)}
        facts = [
            # An answer is a full sentence (the prompt asks for that); without one the fact is used.
            [fact.answer or fact.text, sorted({number[keys[entity]] for entity in fact.entities if entity in keys})]
            for fact in (record.facts if record else ())
        ]
        yield Row(item.value.chunks[0].doc_id, [unit.title, list(unit.chunk_ids), list(names.items()), facts])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return, by entity key, a digest of the evidence that a document gives."""
        del context
        return [Output(versions) if (versions := _versions(group.entries)) else None for group in groups]


def _versions(entries: Sequence[Entry]) -> dict[str, str]:
    """Digest, by entity key, the names and facts from which evidence is made."""
    about: dict[str, list[str]] = {}
    texts = [entries[0].body[0]]
    for entry in entries:
        _, chunks, names, facts = entry.body
        for key, forms in names:
            about.setdefault(key, []).extend(forms)
        for text, entities in facts:
            for entity in entities:
                about[names[entity][0]].append(str(len(texts)))
            texts.append(text)
        texts += chunks
    whole = digest(*texts, size=8)
    return {key: f"{hash64('/'.join([whole, *parts])):x}" for key, parts in about.items()}


@dataclass(frozen=True, slots=True)
class _Entities(Step):
    """Writes bridging facts by entity; only entities whose evidence may have changed are written again."""

    settings: BridgingFacts  # settings of the derivation
    name = "entities"
    source = "documents"

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row per entity of a document."""
        return [Row(key, version, (item.place, 0)) for key, version in item.value.items()]

    async def reduce_many(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Return texts and chunks of the bridging facts of every entity with evidence."""
        view = context.view
        evidence = await asyncio.to_thread(self._evidence, groups, context)
        model = view.language_model
        writer = JoinedFacts(self.settings.max_pairs) if model is None else ModelBridges(model)
        answers = await writer.write(list(evidence.values()), partial(view.progress, "bridging facts"))
        written = dict(zip(evidence, map(_output, answers), strict=True))
        # A bridge entity with facts in fewer than two documents has an empty output.
        bridging = {group.key for group in groups if self._bridges(group)}
        return [written.get(group.key, Output([]) if group.key in bridging else None) for group in groups]

    def _bridges(self, group: Group) -> bool:
        return 2 <= len(group.entries) <= self.settings.tau

    def _evidence(self, groups: Sequence[Group], context: Context) -> Mapping[str, BridgeEvidence]:
        settings = self.settings
        bridging = {group.key: group for group in groups if self._bridges(group)}
        wanted = {entry.item for group in bridging.values() for entry in group.entries}
        entries = context.tables[_Documents.name].entries(wanted)
        documents = [_document(name, rows) for name, rows in entries.items()]
        documents.sort(key=lambda document: entries[document.id][0].place)
        return gather_evidence(
            documents, bridging, settings.max_docs, settings.max_facts, settings.cap_order, settings.entity_key
        )


def _document(name: str, entries: Sequence[Entry]) -> SourceDocument:
    names: dict[str, list[str]] = {}
    facts: list[SourceFact] = []
    for _, chunks, names_by_key, stated in (entry.body for entry in entries):
        for key, forms in names_by_key:
            names.setdefault(key, []).extend(forms)
        chunk_ids = tuple(chunks)
        facts += [
            SourceFact(text, chunk_ids, frozenset([names_by_key[i][0] for i in entities])) for text, entities in stated
        ]
    distinct = {key: tuple(dict.fromkeys(forms)) for key, forms in names.items()}
    return SourceDocument(name, entries[0].body[0], distinct, tuple(facts))


def _output(answer: tuple[BridgeFact, ...] | Failure) -> Output:
    if isinstance(answer, Failure):
        return Output(failure=answer)
    return Output([[fact.text, list(fact.chunk_ids)] for fact in answer])


def _figures(result: Result) -> dict[str, Any]:
    """Count bridge entities, those with a fact and their share in percent, and bridging facts (table 3)."""
    entities = result.tables[_Entities.name].all_outputs().values()
    counts = {"entities": len(entities), "entities_with_facts": sum(bool(entity.data) for entity in entities)}
    rate = 100 * counts["entities_with_facts"] / len(entities) if entities else 0.0
    facts = len(result.tables[_Texts.name].all_outputs())
    return {**counts, "facts": facts, "non_empty_rate": round(rate, 1)}


@dataclass(frozen=True, slots=True)
class _Texts(Step):
    """Makes units of bridging facts, one per distinct text."""

    fingerprint: str  # build fingerprint of the organizer
    name = "texts"
    source = "entities"

    def map(self, item: Item) -> Iterable[Row]:
        """Yield a row per bridging fact of an entity: text and chunks."""
        return [Row(digest(text), [text, chunks], (item.place, item.number)) for text, chunks in item.value or ()]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Make one unit per text."""
        wanted = {chunk for group in groups for entry in group.entries for chunk in entry.body[1]}
        stated: dict[str, str] = {}
        for unit in context.view.chunk_units:
            if not wanted.isdisjoint(unit.chunk_ids):
                stated.update(dict.fromkeys(unit.chunk_ids, name_key(unit.index_text)))
        return [Output(units=(self._unit(group.entries, stated),)) for group in groups]

    def _unit(self, entries: Sequence[Entry], stated: Mapping[str, str]) -> Unit:
        text = entries[0].body[0]
        chunks = tuple(dict.fromkeys(chain.from_iterable(entry.body[1] for entry in entries)))
        sources = [stated[chunk] for chunk in chunks]
        # Only names that a source spells out: others may come from documents that a filter hides.
        keys = {entry.item: cached_key(entry.item) for entry in entries}
        return Unit(
            id=unit_id(UnitKind.BRIDGE.value, self.fingerprint, chunks, text),
            kind=UnitKind.BRIDGE,
            text=text,
            chunk_ids=chunks,
            entity_keys=tuple(key for key, spelled in keys.items() if any(spelled in source for source in sources)),
        )
