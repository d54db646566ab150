"""`BridgingFacts`: what follows from documents that share an entity, as units (IndexRAG, section 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sire_core.algorithms.text import cached_key, name_key
from sire_core.derive.derivation import Derivation
from sire_core.derive.rows import Entry, Group, Item, Output, Row
from sire_core.derive.step import Context, Step
from sire_core.recipes.indexrag.bridge_evidence import SourceDocument, SourceFact, gather_evidence
from sire_core.settings import check_settings, setting
from sire_core.types import Failure, Unit, UnitKind, digest, hash64, unit_id

if TYPE_CHECKING:
    from sire_core.derive.rows import OutputChange
    from sire_core.protocols import BuildView, Change, Delta
    from sire_core.recipes.indexrag.bridge_evidence import BridgeEvidence
    from sire_core.recipes.indexrag.joined_facts import BridgeFact

__all__ = ["BridgingFacts"]


class _Writer(Protocol):
    async def write(
        self, evidence: Sequence[BridgeEvidence], progress: Callable[[int, int], None]
    ) -> Sequence[tuple[BridgeFact, ...] | Failure]: ...


@dataclass(frozen=True, slots=True)
class BridgingFacts(Derivation):
    """Stage 2 of IndexRAG. It reads extraction records only, so that it can stand beside any pool.

    Facts of the same words under several entities are one unit that stands on the passages of all.

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

    Raises:
        ConfigurationError: A bound is too small, or `cap_order` is unknown.
    """

    name: ClassVar[str] = "bridging_facts"

    tau: int = setting(10, low=2)
    max_docs: int = setting(5, low=2)
    max_facts: int = setting(8, low=1)
    cap_order: str = setting("facts", choices=("facts", "first"))
    max_pairs: int = setting(3, low=1)
    entity_key: str = setting("norm", choices=("norm", "lower", "exact"))
    skip_types: tuple[str, ...] = ("Date", "Quantity")

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def needs_summaries(self) -> bool:
        """Has its texts written by the model, where there is one."""
        return True

    def describe(self) -> str:
        """What is built, and what it costs."""
        return (
            f"Facts that connect documents through entities that 2 to {self.tau} of them name. Model calls: one per "
            "such entity with a language model, about 600-900 per 1,000 passages; none without."
        )

    async def organize(self, change: Change, view: BuildView) -> Delta:
        """Bring everything up to date with a change of the corpus, and count what the paper's table 3 counts."""
        from sire_core.derive.engine import run_steps

        found = await run_steps(self.steps(view), change, view)
        known = {} if found.is_new else view.state().get("figures", {}).get("bridging", {})
        state = {**(found.delta.state or {}), "figures": {"bridging": _figures(known, found.outputs)}}
        return replace(found.delta, state=state)

    def steps(self, view: BuildView) -> Sequence[Step]:
        """Documents with their names and facts, entities with what joins their documents, and that by its text."""
        return (_Documents(self), _Entities(self), _Texts(view.fingerprint))


@dataclass(frozen=True, slots=True)
class _Documents(Step):
    """What the records say of a document.

    A passage that several documents repeat word for word counts once, for the first of them: nothing can be learned
    from reading the same text together with itself.

    Attributes:
        settings: Which entities count, and when they are the same.
    """

    settings: BridgingFacts
    name = "documents"
    independent = True

    def map(self, item: Item) -> Iterable[Row]:
        """One row for the document: title, chunks, names by entity key, facts with the numbers of their entities."""
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
            # An answer is a full sentence where it is given (the prompt asks for that); else the fact says it.
            [fact.answer or fact.text, sorted({number[keys[found]] for found in fact.entities if found in keys})]
            for fact in (record.facts if record else ())
        ]
        yield Row(item.value.chunks[0].doc_id, [unit.title, list(unit.chunk_ids), list(names.items()), facts])

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """By entity key a digest of all that its evidence may be made from."""
        del context
        return [Output(versions) if (versions := _versions(group.entries)) else None for group in groups]


def _versions(entries: Sequence[Entry]) -> dict[str, str]:
    """By entity key a digest of all that the evidence may be made from that a document gives for it."""
    about: dict[str, list[str]] = {}
    said = [entries[0].body[0]]
    for entry in entries:
        _, chunks, names, facts = entry.body
        for key, forms in names:
            about.setdefault(key, []).extend(forms)
        for text, entities in facts:
            for entity in entities:
                about[names[entity][0]].append(str(len(said)))
            said.append(text)
        said += chunks
    whole = digest(*said, size=8)
    return {key: f"{hash64('/'.join([whole, *parts])):x}" for key, parts in about.items()}


@dataclass(frozen=True, slots=True)
class _Entities(Step):
    """Bridging facts by entity. Only entities whose evidence may differ are looked at again.

    Attributes:
        settings: Which entities bridge, and from what.
    """

    settings: BridgingFacts
    name = "entities"
    source = "documents"

    def map(self, item: Item) -> Iterable[Row]:
        """One row per entity of a document."""
        return [Row(key, version, (item.place, 0)) for key, version in item.value.items()]

    async def reduce_many(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """Texts and chunks of the bridging facts of every entity that has evidence."""
        view = context.view
        import asyncio

        evidence = await asyncio.to_thread(self._evidence, groups, context)
        answers = await self._writer(view).write(list(evidence.values()), partial(view.progress, "bridging facts"))
        written = dict(zip(evidence, map(_output, answers), strict=True))
        # An entity that bridges, and of which fewer than two documents state anything, has an output without facts.
        bridging = {group.key for group in groups if self._bridges(group)}
        return [written.get(group.key, Output([]) if group.key in bridging else None) for group in groups]

    def _bridges(self, group: Group) -> bool:
        return 2 <= len(group.entries) <= self.settings.tau

    def _evidence(self, groups: Sequence[Group], context: Context) -> Mapping[str, BridgeEvidence]:
        rules = self.settings
        bridging = {group.key: group for group in groups if self._bridges(group)}
        wanted = {entry.item for group in bridging.values() for entry in group.entries}
        entries = context.tables[_Documents.name].entries(wanted)
        documents = [_document(name, found) for name, found in entries.items()]
        documents.sort(key=lambda document: entries[document.id][0].place)
        return gather_evidence(documents, bridging, rules.max_docs, rules.max_facts, rules.cap_order, rules.entity_key)

    def _writer(self, view: BuildView) -> _Writer:
        if view.language_model is None:
            from sire_core.recipes.indexrag.joined_facts import JoinedFacts

            return JoinedFacts(self.settings.max_pairs)
        from sire_core.recipes.indexrag.model_bridges import ModelBridges

        return ModelBridges(view.language_model)


def _document(name: str, entries: Sequence[Entry]) -> SourceDocument:
    """A document as its rows tell of it."""
    names: dict[str, list[str]] = {}
    facts: list[SourceFact] = []
    for _, chunks, known, stated in (entry.body for entry in entries):
        for key, forms in known:
            names.setdefault(key, []).extend(forms)
        chunk_ids = tuple(chunks)
        facts += [SourceFact(text, chunk_ids, frozenset([known[i][0] for i in which])) for text, which in stated]
    distinct = {key: tuple(dict.fromkeys(forms)) for key, forms in names.items()}
    return SourceDocument(name, entries[0].body[0], distinct, tuple(facts))


def _output(answer: tuple[BridgeFact, ...] | Failure) -> Output:
    if isinstance(answer, Failure):
        return Output(failure=answer)
    return Output([[fact.text, list(fact.chunk_ids)] for fact in answer])


def _figures(known: Mapping[str, int | float], outputs: Mapping[str, Sequence[OutputChange]]) -> dict[str, Any]:
    """Bridge entities, those with a fact and their share in percent, and bridging facts (table 3)."""
    names = ("entities", "entities_with_facts", "facts")
    found = {name: int(known.get(name, 0)) for name in names}
    for change in outputs.get(_Entities.name, ()):
        for side, one in ((change.before, -1), (change.after, 1)):
            found["entities"] += one * (side is not None)
            found["entities_with_facts"] += one * bool(side and side.data)
    for change in outputs.get(_Texts.name, ()):
        found["facts"] += (change.after is not None) - (change.before is not None)
    rate = 100 * found["entities_with_facts"] / found["entities"] if found["entities"] else 0.0
    return {**found, "non_empty_rate": round(rate, 1)}


@dataclass(frozen=True, slots=True)
class _Texts(Step):
    """Bridging facts of equal text as units.

    Attributes:
        fingerprint: Build fingerprint of the organizer.
    """

    fingerprint: str
    name = "texts"
    source = "entities"

    def map(self, item: Item) -> Iterable[Row]:
        """One row per bridging fact of an entity: text and chunks."""
        return [Row(digest(text), [text, chunks], (item.place, item.number)) for text, chunks in item.value or ()]

    def reduce(self, groups: Sequence[Group], context: Context) -> Sequence[Output | None]:
        """One unit per text."""
        wanted = {chunk for group in groups for entry in group.entries for chunk in entry.body[1]}
        stated: dict[str, str] = {}
        for unit in context.view.chunk_units:
            if not wanted.isdisjoint(unit.chunk_ids):
                stated.update(dict.fromkeys(unit.chunk_ids, name_key(unit.index_text)))
        return [Output(units=(self._unit(group.entries, stated),)) for group in groups]

    def _unit(self, entries: Sequence[Entry], stated: Mapping[str, str]) -> Unit:
        text = entries[0].body[0]
        chunks = tuple(dict.fromkeys(chain.from_iterable(entry.body[1] for entry in entries)))
        words = [stated[chunk] for chunk in chunks]
        # A record may know an entity by a name that only another, perhaps hidden, document spells out.
        keys = {entry.item: cached_key(entry.item) for entry in entries}
        return Unit(
            id=unit_id(UnitKind.BRIDGE.value, self.fingerprint, chunks, text),
            kind=UnitKind.BRIDGE,
            text=text,
            chunk_ids=chunks,
            entity_keys=tuple(key for key, spelled in keys.items() if any(spelled in text for text in words)),
        )
