"""Bridging facts of an entity: their evidence, and how they are written (IndexRAG, section 3.2.2).

The paper has a language model write them (`ModelBridges`); without one, complementary facts are joined (`JoinedFacts`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from pydantic import BaseModel, model_validator

from sire_core.extend import (
    FUNCTION_WORDS,
    Failure,
    LanguageModel,
    ModelError,
    Prompt,
    ask_all,
    cached_key,
    name_key,
    normalize_answer,
    tokenize,
    with_sources,
)


class PaddedWords(dict[str, str]):
    """Cache of texts as lower-case words, padded with spaces, so that `in` finds whole words."""

    def __missing__(self, text: str) -> str:
        self[text] = padded = f" {' '.join(tokenize(text))} "
        return padded


@dataclass(frozen=True, slots=True)
class SourceFact:
    """A statement of a document."""

    text: str  # the statement
    chunk_ids: tuple[str, ...]  # its sources
    keys: frozenset[str] = frozenset()  # keys of the entities that the extraction record links to it


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """Names and facts of a document, from its extraction records."""

    id: str  # document id
    title: str
    names: Mapping[str, tuple[str, ...]]  # surface forms of its entities by entity key, most informative first
    facts: tuple[SourceFact, ...]  # facts, in order


@dataclass(frozen=True, slots=True)
class BridgeEvidence:
    """Facts of at least two documents about an entity, from which bridging facts are written."""

    key: str  # entity key
    name: str  # name of the entity as the documents spell it
    documents: tuple[tuple[str, tuple[SourceFact, ...]], ...]  # title and facts of each document, most important first

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Chunks of all facts, in order, each once."""
        facts = (fact for _, facts in self.documents for fact in facts)
        return tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))


def cap_documents(counts: Sequence[int], max_docs: int, cap_order: str) -> list[int]:
    """Choose documents by their numbers of facts: those with most (`cap_order="facts"`), or the first ones."""
    documents = [i for i, count in enumerate(counts) if count]
    if cap_order == "facts":
        documents.sort(key=lambda i: -counts[i])
    return documents[:max_docs]


def gather_evidence(
    documents: Sequence[SourceDocument],
    keys: Collection[str],
    max_docs: int = 5,
    max_facts: int = 8,
    cap_order: str = "facts",
    entity_key: str = "norm",
) -> dict[str, BridgeEvidence]:
    """Collect the evidence of entities (`keys`) that have facts in at least two documents, in corpus order."""
    words = PaddedWords()
    matching: dict[str, list[tuple[SourceDocument, tuple[SourceFact, ...]]]] = {}
    for document in documents:
        wanted = {key: names for key, names in document.names.items() if key in keys}
        for key, facts in _facts_about(document, wanted, words).items():
            matching.setdefault(key, []).append((document, facts))
    evidence = {}
    for key, candidates in matching.items():
        order = cap_documents([len(facts) for _, facts in candidates], max_docs, cap_order)
        chosen = [(candidates[i][0], candidates[i][1][:max_facts]) for i in order]
        name = _stated_name(key, chosen, entity_key, words) if len(chosen) > 1 else ""
        if name:
            evidence[key] = BridgeEvidence(key, name, tuple((document.title, facts) for document, facts in chosen))
    return evidence


def _facts_about(
    document: SourceDocument, names: Mapping[str, Sequence[str]], words: PaddedWords
) -> dict[str, tuple[SourceFact, ...]]:
    """Facts that are linked to an entity or contain one of its surface forms as whole words, by key."""
    texts = [(fact, words[fact.text]) for fact in document.facts] if names else []
    facts_of = {}
    for key, surfaces in names.items():
        wanted = [padded for surface in surfaces if (padded := words[surface]).strip()]
        about = {number for surface in wanted for number, (_, text) in enumerate(texts) if surface in text}
        facts = [fact for number, (fact, _) in enumerate(texts) if number in about or key in fact.keys]
        if facts:
            facts_of[key] = tuple(facts)
    return facts_of


def _stated_name(
    key: str, documents: Sequence[tuple[SourceDocument, Sequence[SourceFact]]], entity_key: str, words: PaddedWords
) -> str:
    """First surface form that these documents spell out; others may come from documents that a filter hides."""
    texts = [words[doc.title] for doc, _ in documents] + [words[fact.text] for _, facts in documents for fact in facts]
    forms = dict.fromkeys(name for doc, _ in documents for name in doc.names[key])
    return next(
        (name for name in forms if any(words[name] in text for text in texts) and name_key(name, entity_key) == key), ""
    )


_Weighed = tuple[SourceFact, frozenset[str], str]  # A fact, its content words, and the title of its document


@dataclass(frozen=True, slots=True)
class BridgeFact:
    """A bridging fact and its sources, most informative first."""

    text: str
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinedFacts:
    """Writes bridging facts without a model: joins the two facts of a pair of documents that add most to each other.

    Facts add to each other by the content words that only one of them has. Every pair of documents gives its best pair
    of facts, and every entity its best pairs of documents. A document about the entity comes second, so that the text
    leads from the mention to the entity.
    """

    max_pairs: int = 3  # maximum bridging facts per entity
    min_new: int = 3  # minimum content words that each fact has beyond the other one and the entity's name
    max_chars: int = 600  # maximum length of a pair; a shorter pair of the same documents may take its place

    async def write(
        self, evidence: Sequence[BridgeEvidence], progress: Callable[[int, int], None] = lambda *_: None
    ) -> list[tuple[BridgeFact, ...]]:
        """Write the bridging facts of each entity, most informative first."""
        words, content = PaddedWords(), _ContentWords()
        progress(0, len(evidence))
        facts = await asyncio.to_thread(lambda: [self._join(entity, words, content) for entity in evidence])
        progress(len(evidence), len(evidence))
        return facts

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
        most_new = self.min_new - 1
        for one in left:
            for other in right:
                fewer = min(len(one[1]), len(other[1]))
                if fewer <= most_new or len(one[0].text) + len(other[0].text) >= self.max_chars:
                    continue
                new = fewer - len(one[1] & other[1])
                if new > most_new:
                    most_new, best = new, (one, other)
        return None if best is None else (most_new, *best)


class _ContentWords(dict[str, frozenset[str]]):
    """Cache of the content words of texts."""

    def __missing__(self, text: str) -> frozenset[str]:
        self[text] = words = frozenset(tokenize(text)) - FUNCTION_WORDS
        return words


def _joined(name: str, left: _Weighed, right: _Weighed, words: PaddedWords) -> BridgeFact:
    """Join two facts; one that has only a short form of the entity's name gets the full name in front."""
    full = words[name]
    spelled = any(full in words[text] for fact, _, title in (left, right) for text in (fact.text, title))
    facts = [left[0], right[0]]
    texts = [fact.text if not spelled or full in words[fact.text] else f"{name}: {fact.text}" for fact in facts]
    return BridgeFact(" ".join(texts), tuple(dict.fromkeys((*facts[0].chunk_ids, *facts[1].chunk_ids))))


_MAX_CHARS = 400  # Maximum length of a fact that the model writes
_BRIDGE_INSTRUCTIONS = """\
Several documents name the same entity. Write bridging facts: each is one sentence that joins what at least two of the \
documents say, so that a question whose answer needs both can be answered from the sentence alone. Name everybody and \
everything in full, no pronouns and no mention of the documents. State only what follows from the given facts, without \
guessing. Use their language. An empty list if the documents mean different things by the name or if their facts have \
nothing to do with each other."""


class BridgesAnswer(BaseModel):
    """The answer of the model; a plain list of sentences is accepted, too."""

    shape: ClassVar[str] = '{"facts":[""]}'

    facts: list[str]

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, data: Any) -> Any:
        return {"facts": data} if isinstance(data, list) else data


class ModelBridges:
    """Has a language model write bridging facts, one call per entity, several at a time."""

    def __init__(self, language_model: LanguageModel) -> None:
        self._model = language_model

    async def write(
        self, evidence: Sequence[BridgeEvidence], progress: Callable[[int, int], None] | None = None
    ) -> list[tuple[BridgeFact, ...] | Failure]:
        """Write the bridging facts of each entity, or a `Failure`; sources are all passages that the model read."""
        return await ask_all(self._model, self._one, evidence, progress)

    async def _one(self, evidence: BridgeEvidence) -> tuple[BridgeFact, ...] | Failure:
        model = with_sources(self._model, evidence.chunk_ids)
        try:
            answer = await model.complete(Prompt(_BRIDGE_INSTRUCTIONS, _data(evidence)), schema=BridgesAnswer)
        except ModelError as error:
            return Failure(f"bridging facts about {evidence.name!r}", f"{type(error).__name__}: {error}"[:500])
        texts = [" ".join(text.split()) for text in answer.parsed.facts]
        return tuple(BridgeFact(text, _sources(text, evidence)) for text in self._valid(texts, evidence))

    def _valid(self, texts: Sequence[str], evidence: BridgeEvidence) -> list[str]:
        """Distinct facts that are short and not copies of the evidence."""
        stated = {normalize_answer(fact.text) for _, facts in evidence.documents for fact in facts} | {""}
        valid: dict[str, str] = {}
        for text in texts:
            key = normalize_answer(text)
            if key not in stated and len(text) <= _MAX_CHARS:
                valid.setdefault(key, text)
        return list(valid.values())


def _data(evidence: BridgeEvidence) -> str:
    documents = [{"title": title, "facts": [fact.text for fact in facts]} for title, facts in evidence.documents]
    return json.dumps({"entity": evidence.name, "documents": documents}, ensure_ascii=False)


def _sources(text: str, evidence: BridgeEvidence) -> tuple[str, ...]:
    """All chunks of the evidence, first those of the facts that share most words with the text."""
    words = set(tokenize(text))
    facts = [fact for _, shown in evidence.documents for fact in shown]
    facts.sort(key=lambda fact: -len(words.intersection(tokenize(fact.text))))
    return tuple(dict.fromkeys(chunk for fact in facts for chunk in fact.chunk_ids))
