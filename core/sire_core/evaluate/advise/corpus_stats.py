"""Statistics of a corpus that matter for choosing a recipe, and a sample of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from sire_core.algorithms.text import cached_key
from sire_core.corpus.sections import SEPARATOR
from sire_core.extraction.headings import base_title
from sire_core.extraction.languages import has_unspaced_script, language_of
from sire_core.extraction.titles import TitleLinker
from sire_core.knowledge.entity_graph import EntityGraph
from sire_core.search.passage_text import opening_name

if TYPE_CHECKING:
    from sire_core.protocols import IntArray
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.types import Document, Unit

__all__ = ["ENGLISH", "CorpusStats", "Named", "corpus_stats", "sample"]


_CODE = re.compile(r"`[^`\n]+`|\b\w+\(\)|\B--[a-z][\w-]+|\b[a-z]+_[a-z_]+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
ENGLISH = "en"
_SPOKEN = 0.02
_COMMON = 10
"""A name of more passages leads nowhere in particular."""


@dataclass(frozen=True, slots=True)
class Named:
    """A passage that spells the subject of another one: places in the list of passages, and the name as it stands."""

    passage: int
    subject: int
    name: str


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """What a corpus is like; shares are 0 to 1.

    Attributes:
        documents: How many.
        passages: How many, equal ones once.
        duplicates: Share of the passages that say what another one says.
        words: Words of a passage: the median and the 90 % quantile.
        titled: Share with a title of their own.
        subjects: Share that say what they are about, by a title or the name that they open with.
        names: Names in a passage, the median.
        linked: Share that name the subject of another passage.
        technical: Share with code, options or identifiers.
        languages: Share by language.
        units: The passages.
        about: Of each passage what it is about; may be empty.
        links: Who names whose subject.
        sources: Number of the document of every passage, `[passages]`.
    """

    documents: int
    passages: int
    duplicates: float
    words: tuple[int, int]
    titled: float
    subjects: float
    names: int
    linked: float
    technical: float
    languages: Mapping[str, float]
    units: Sequence[Unit] = field(repr=False, default=())
    about: Sequence[str] = field(repr=False, default=())
    links: Sequence[Named] = field(repr=False, default=())
    sources: IntArray = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    def lines(self) -> list[str]:
        """For people."""
        languages = ", ".join(f"{name} {share:.0%}" for name, share in self.languages.items())
        sizes = f"{self.words[0]:,} words (one in ten has over {self.words[1]:,})"
        subjects = f"{self.titled:.0%} have a title of their own, {self.subjects:.0%} say what they are about"
        return [
            f"{self.documents:,} documents, {self.passages:,} passages of {sizes}; {languages}",
            f"{self.duplicates:.0%} say what another one says; {self.technical:.0%} hold code, options or identifiers",
            f"{subjects}; {self.names} names in a passage; {self.linked:.0%} name what another passage is about",
        ]


def corpus_stats(snapshot: SearchSnapshot) -> CorpusStats:
    """Look at a corpus."""
    graph, view = EntityGraph.of(snapshot.view), snapshot.view
    units = view.units(graph.chunk_positions)
    titles = Counter(_title(unit) for unit in units if _title(unit))
    about = [_subject(unit, titles) for unit in units]
    links = _links(graph, units, about)
    sizes = np.array([len(unit.text.split()) for unit in units] or [0])
    named = np.bincount(graph.passages, minlength=max(1, len(units)))
    languages = Counter(_language(unit.text) for unit in units)
    total = max(1, len(units))
    return CorpusStats(
        documents=len(snapshot.document_ids()),
        passages=len(units),
        duplicates=1 - len(units) / max(1, len(view.pool.chunk_ids)),
        words=(int(np.median(sizes)), int(np.quantile(sizes, 0.9))),
        titled=sum(1 for unit in units if titles.get(_title(unit)) == 1) / total,
        subjects=sum(map(bool, about)) / total,
        names=int(np.median(named)),
        linked=len({link.passage for link in links}) / total,
        technical=sum(bool(_CODE.search(unit.text)) for unit in units) / total,
        languages={name: number / total for name, number in languages.most_common(3) if number > _SPOKEN * total},
        units=units,
        about=about,
        links=links,
        sources=np.asarray(view.chunk_documents[view.pool.indices[view.pool.indptr[graph.chunk_positions]]]),
    )


def _language(text: str) -> str:
    return language_of(text) or ("zh, ja" if has_unspaced_script(text) else ENGLISH)


def _subject(unit: Unit, titles: Mapping[str, int]) -> str:
    """The subject of a passage; a title that many passages share is none."""
    title = _title(unit)
    if title and titles[title] <= _COMMON:
        return base_title(title)
    return opening_name(unit.text)


def _title(unit: Unit) -> str:
    """A passage's title. The name of its file is one only where the text says it too: `page-02` says nothing."""
    made = unit.title.split(SEPARATOR)[0] == PurePosixPath(str(unit.metadata.get("source", ""))).stem
    return "" if made and unit.title.lower() not in unit.text.lower() else unit.title


def _links(graph: EntityGraph, units: Sequence[Unit], about: Sequence[str]) -> list[Named]:
    owners: dict[str, list[int]] = {}
    for place, name in enumerate(about):
        if name:
            owners.setdefault(cached_key(name), []).append(place)
    entity_owners: dict[int, set[int]] = {}
    for mention in range(len(graph.passages)):
        keys = {cached_key(name) for name in graph.names.names(mention)}
        found = entity_owners.setdefault(int(graph.entities[mention]), set())
        found.update(place for key in keys for place in owners.get(key, ()) if len(owners[key]) == 1)
    frequency = np.bincount(graph.entities, minlength=len(graph.entity_ids))
    links = []
    for mention, (passage, entity) in enumerate(zip(graph.passages.tolist(), graph.entities.tolist(), strict=True)):
        subjects = entity_owners[entity] - {passage}
        if graph.titles[mention] or len(subjects) != 1 or frequency[entity] > _COMMON:
            continue
        spelled = [name for name in graph.names.names(mention) if name in units[passage].text]
        if spelled:
            links.append(Named(passage, subjects.pop(), max(spelled, key=len)))
    return links


_WORDS = 150
"""Words of a typical passage: long documents count for several."""


def sample(documents: Sequence[Document], passages: int, seed: int = 0) -> list[Document]:
    """Documents of about so many passages: half of them by chance, the others because one of those names them."""
    sizes = [_passages(document) for document in documents]
    if sum(sizes) <= passages:
        return list(documents)
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    by_name = {base_title(d.title): place for place, d in enumerate(documents) if d.title}
    linker = TitleLinker(list(by_name))
    chosen: dict[int, None] = {}
    room = passages
    for place in order:
        if room <= 0:
            break
        named = [by_name[name] for name in linker.mentions(_text(documents[place])) if name in by_name]
        for found in (place, *named[:2]):
            if found not in chosen and (room > 0):
                chosen[found] = None
                room -= sizes[found]
    return [documents[place] for place in sorted(chosen)]


def _text(document: Document) -> str:
    return " ".join(passage.text for passage in document.passages) or document.text


def _passages(document: Document) -> int:
    return len(document.chunks) or 1 + len(document.text.split()) // (2 * _WORDS)
