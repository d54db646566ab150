"""Entities that join documents, what is known of them, and what a change does to them (ALGORITHMS 4.3, 4.5).

Pure functions: from facts to evidence, and from document frequencies to the sets that have to be written again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sire_core.algorithms.text import name_key
from sire_core.organize.bridges.padded_words import PaddedWords
from sire_core.types import digest

__all__ = [
    "Affected",
    "Evidence",
    "SourceDocument",
    "SourceFact",
    "affected_entities",
    "bridge_entities",
    "cap_documents",
    "document_frequencies",
    "gather_evidence",
]


@dataclass(frozen=True, slots=True)
class SourceFact:
    """A statement of a document.

    Attributes:
        text: The statement.
        chunk_ids: Chunks that make it.
        keys: Keys of the entities that the record gives it.
    """

    text: str
    chunk_ids: tuple[str, ...]
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """What is known of a document.

    Attributes:
        id: Its id.
        title: Its title.
        names: By entity key the surface forms that the document's records list, most informative first.
        facts: In order.
    """

    id: str
    title: str
    names: Mapping[str, tuple[str, ...]]
    facts: tuple[SourceFact, ...]

    @property
    def linked(self) -> dict[str, list[int]]:
        """By entity key the numbers of the facts that the records give it."""
        found: dict[str, list[int]] = {}
        for number, fact in enumerate(self.facts):
            for key in fact.keys:
                found.setdefault(key, []).append(number)
        return found


@dataclass(frozen=True, slots=True)
class Evidence:
    """What documents say of an entity that they share: all that its bridging facts may be made from.

    Attributes:
        key: Entity key.
        name: The entity's name, as the documents write it.
        documents: Title and matching facts of each, at least two, most important first.
    """

    key: str
    name: str
    documents: tuple[tuple[str, tuple[SourceFact, ...]], ...]

    @property
    def digest(self) -> str:
        """Changes with anything that a bridging fact or its provenance could depend on."""
        parts = [self.key, self.name]
        for title, facts in self.documents:
            parts += [title, str(len(facts))]
            for fact in facts:
                parts += [fact.text, *fact.chunk_ids, ""]
        return digest(*parts)

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Chunks of all facts, in order, each once."""
        facts = (fact for _, facts in self.documents for fact in facts)
        return tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))


@dataclass(frozen=True, slots=True)
class Affected:
    """Bridge entities that a change touches; the sets are disjoint.

    Attributes:
        formed: Were in fewer than two documents: written for the first time.
        refreshed: Bridged before and after, with other evidence: written again.
        retired: Bridge no longer: their facts go, nothing is written.
        re_formed: Were in too many documents: written again from nothing.
    """

    formed: frozenset[str] = field(default_factory=frozenset)
    refreshed: frozenset[str] = field(default_factory=frozenset)
    retired: frozenset[str] = field(default_factory=frozenset)
    re_formed: frozenset[str] = field(default_factory=frozenset)

    @property
    def written(self) -> frozenset[str]:
        """Entities whose bridging facts have to be written."""
        return self.formed | self.refreshed | self.re_formed


def document_frequencies(entities: Mapping[str, Collection[str]]) -> dict[str, int]:
    """In how many documents each entity is listed.

    Args:
        entities: Distinct entity keys by document.
    """
    found: dict[str, int] = {}
    for keys in entities.values():
        for key in keys:
            found[key] = found.get(key, 0) + 1
    return found


def bridge_entities(frequencies: Mapping[str, int], tau: int) -> frozenset[str]:
    """Entities in at least two and at most `tau` documents (equation 1 of the paper)."""
    return frozenset(key for key, count in frequencies.items() if 2 <= count <= tau)


def affected_entities(
    before: Mapping[str, int], after: Mapping[str, int], changed: Collection[str], tau: int
) -> Affected:
    """What a change of the corpus does to the bridge entities.

    Args:
        before: Document frequencies before the change; entities that are not listed were in fewer than two documents.
        after: Document frequencies after it.
        changed: Entities of which another thing is known than before, for example those of the new documents.
        tau: Upper bound of the document frequency.
    """
    old, new = bridge_entities(before, tau), bridge_entities(after, tau)
    crowded = {key for key in new - old if before.get(key, 0) > tau}
    return Affected(
        formed=new - old - crowded,
        refreshed=(old & new).intersection(changed),
        retired=old - new,
        re_formed=frozenset(crowded),
    )


def cap_documents(counts: Sequence[int], max_docs: int, cap_order: str) -> list[int]:
    """Which of an entity's documents are read, in this order.

    Args:
        counts: Matching facts of each document, in corpus order; documents without one are left out.
        max_docs: Most documents.
        cap_order: `facts` takes those with the most facts, ties in corpus order; `first` the first ones.
    """
    found = [i for i, count in enumerate(counts) if count]
    if cap_order == "facts":
        found.sort(key=lambda i: -counts[i])
    return found[:max_docs]


def gather_evidence(
    documents: Sequence[SourceDocument],
    keys: Collection[str],
    max_docs: int = 5,
    max_facts: int = 8,
    cap_order: str = "facts",
    entity_key: str = "norm",
) -> dict[str, Evidence]:
    """The evidence of some bridge entities, of those that have facts in two documents.

    Args:
        documents: In corpus order; at least all that list one of the entities.
        keys: The entities, as a set.
        max_docs: Most documents per entity.
        max_facts: Most facts per document, the first ones.
        cap_order: See `cap_documents`.
        entity_key: See `name_key`.
    """
    words = PaddedWords()
    matching: dict[str, list[tuple[SourceDocument, tuple[SourceFact, ...]]]] = {}
    for document in documents:
        wanted = {key: names for key, names in document.names.items() if key in keys}
        for key, facts in _facts_about(document, wanted, words).items():
            matching.setdefault(key, []).append((document, facts))
    evidence = {}
    for key, found in matching.items():
        order = cap_documents([len(facts) for _, facts in found], max_docs, cap_order)
        kept = [(found[i][0], found[i][1][:max_facts]) for i in order]
        name = _stated_name(key, kept, entity_key, words) if len(kept) > 1 else ""
        if name:
            evidence[key] = Evidence(key, name, tuple((document.title, facts) for document, facts in kept))
    return evidence


def _facts_about(
    document: SourceDocument, names: Mapping[str, Sequence[str]], words: PaddedWords
) -> dict[str, tuple[SourceFact, ...]]:
    """Facts that the record links to an entity, or that hold one of its surface forms as whole words."""
    texts = [(fact, words[fact.text]) for fact in document.facts] if names else []
    found = {}
    for key, surfaces in names.items():
        wanted = [padded for surface in surfaces if (padded := words[surface]).strip()]
        facts = [fact for fact, text in texts if key in fact.keys or any(surface in text for surface in wanted)]
        if facts:
            found[key] = tuple(facts)
    return found


def _stated_name(
    key: str, found: Sequence[tuple[SourceDocument, Sequence[SourceFact]]], entity_key: str, words: PaddedWords
) -> str:
    """The first form of the name that the documents themselves spell out.

    A fact may be linked to an entity by a name that only another document, perhaps a hidden one, spells out.
    """
    said = [words[doc.title] for doc, _ in found] + [words[fact.text] for _, facts in found for fact in facts]
    forms = dict.fromkeys(name for doc, _ in found for name in doc.names[key])
    return next(
        (name for name in forms if any(words[name] in text for text in said) and name_key(name, entity_key) == key), ""
    )
