"""What documents say of an entity that they share: the evidence of IndexRAG's bridging facts (section 3.2.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sire_core.algorithms.text import name_key, tokenize

__all__ = ["BridgeEvidence", "PaddedWords", "SourceDocument", "SourceFact", "cap_documents", "gather_evidence"]


class PaddedWords(dict[str, str]):
    """Texts as lower-case words with a space on either side of each; each text is cut once."""

    def __missing__(self, text: str) -> str:
        self[text] = padded = f" {' '.join(tokenize(text))} "
        return padded


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


@dataclass(frozen=True, slots=True)
class BridgeEvidence:
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
    def chunk_ids(self) -> tuple[str, ...]:
        """Chunks of all facts, in order, each once."""
        facts = (fact for _, facts in self.documents for fact in facts)
        return tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))


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
) -> dict[str, BridgeEvidence]:
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
            evidence[key] = BridgeEvidence(key, name, tuple((document.title, facts) for document, facts in kept))
    return evidence


def _facts_about(
    document: SourceDocument, names: Mapping[str, Sequence[str]], words: PaddedWords
) -> dict[str, tuple[SourceFact, ...]]:
    """Facts that the record links to an entity, or that hold one of its surface forms as whole words."""
    texts = [(fact, words[fact.text]) for fact in document.facts] if names else []
    found = {}
    for key, surfaces in names.items():
        wanted = [padded for surface in surfaces if (padded := words[surface]).strip()]
        about = {number for surface in wanted for number, (_, text) in enumerate(texts) if surface in text}
        facts = [fact for number, (fact, _) in enumerate(texts) if number in about or key in fact.keys]
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
