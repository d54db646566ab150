"""`PhraseGraph`: passages, phrases and triples of a pool, and the graph that is walked (section 3.1, 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import CSRGraph, EntityGraph, IdPositions, UnitKind, Walk, relation_ends, similar_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from sire_core.extend import BoolArray, IntArray, View


@dataclass(frozen=True, slots=True)
class PhraseGraph:
    """Phrases and triples; phrases are numbered as the entities of `mentions`.

    Attributes:
        mentions: Which passage names which phrase.
        phrases: Position of every phrase in the pool, -1 for one that is no unit, `[phrases]`.
        triples: Positions of the triples, ascending, `[triples]`.
        ends: Phrases at both ends of every triple, -1 where an end is none, `[triples, 2]`.
        stated: In how many chunks every triple is stated, `[triples]`.
        synonyms: Pairs of phrases with similar names, `[pairs, 2]`.
        likeness: Their cosines, `[pairs]`.
        name: Of the graph among the structures of a snapshot.
    """

    mentions: EntityGraph
    phrases: IntArray
    triples: IntArray
    ends: IntArray
    stated: IntArray
    synonyms: IntArray
    likeness: NDArray[np.float64]
    name: str

    @classmethod
    def of(cls, view: View, synonym: float) -> PhraseGraph:
        """Return the graph of a pool, made once per snapshot and stored in files.

        Args:
            view: The pool.
            synonym: Minimum cosine of two phrases that are joined as synonyms.
        """
        name = f"phrase-graph-{synonym:g}"

        def make() -> PhraseGraph:
            mentions = EntityGraph.of(view)
            arrays = view.cached_on_disk(name, lambda: _arrays(view, mentions, synonym), _save, _load)
            return cls(mentions, name=name, **arrays)

        graph: PhraseGraph = view.derived(f"{name} with mentions", make)
        return graph

    def walk(self, view: View, context_weight: float, allowed: BoolArray | None) -> Walk:
        """Return the undirected graph of passages and phrases.

        Args:
            view: The pool.
            context_weight: Weight of the edge between a passage and a phrase; 0 leaves these edges out.
            allowed: Units that may be walked through, `[size]`; None for all.
        """
        if allowed is not None:
            return self._walk(context_weight, allowed)
        walk: Walk = view.derived(f"{self.name} walk {context_weight:g}", lambda: self._walk(context_weight, None))
        return walk

    def _walk(self, context_weight: float, allowed: BoolArray | None) -> Walk:
        graph, size = self.mentions, len(self.mentions.chunk_positions)
        named = np.ones(len(graph.passages), dtype=bool)
        if allowed is not None:
            named = allowed[graph.chunk_positions][graph.passages]
        frequency = np.bincount(graph.entities[named], minlength=len(self.phrases)).astype(np.int64)
        facts = (self.ends >= 0).all(axis=1) & (self.ends[:, 0] != self.ends[:, 1])
        if allowed is not None:
            facts &= allowed[self.triples]
        alike = (frequency[self.synonyms] > 0).all(axis=1)
        edges = [
            (size + self.ends[facts], self.stated[facts].astype(np.float64)),
            (size + self.synonyms[alike], self.likeness[alike]),
        ]
        if context_weight:
            pairs = np.stack((graph.passages[named], size + graph.entities[named]), axis=1)
            edges.append((pairs, np.full(len(pairs), context_weight)))
        ends = np.concatenate([pairs for pairs, _ in edges])
        weights = np.concatenate([values for _, values in edges])
        joined = CSRGraph.from_edges(
            size + len(self.phrases),
            np.concatenate((ends[:, 0], ends[:, 1])),
            np.concatenate((ends[:, 1], ends[:, 0])),
            np.concatenate((weights, weights)),
        )
        return Walk(joined, size, frequency)


def _arrays(view: View, mentions: EntityGraph, synonym: float) -> dict[str, NDArray[Any]]:
    """The fields of a `PhraseGraph` that take reading names and comparing vectors."""
    phrases = IdPositions.of(view).find(np.array(mentions.entity_ids, dtype="S24"))
    known = np.flatnonzero(phrases >= 0)
    names = [unit.text for unit in view.units(phrases[known])]
    first, second, likeness = similar_names(names, view.matrix[phrases[known]], synonym)
    triples = np.flatnonzero(view.kinds == list(view.kind_names).index(UnitKind.RELATION.value))
    number = np.full(view.size, -1, dtype=np.int64)
    number[phrases[known]] = known
    return {
        "phrases": phrases,
        "triples": triples,
        "ends": _ends(triples, number, relation_ends(view)),
        "stated": np.diff(view.chunk_pointers[0])[triples],
        "synonyms": np.stack((known[first], known[second]), axis=1),
        "likeness": likeness,
    }


def _save(arrays: Mapping[str, NDArray[Any]], folder: Path) -> None:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def _load(folder: Path) -> dict[str, NDArray[Any]]:
    return {file.stem: np.load(file) for file in sorted(folder.glob("*.npy"))}


def _ends(triples: IntArray, number: IntArray, pairs: IntArray) -> IntArray:
    """Phrases at both ends of every triple, `[triples, 2]`; a triple with one known end has it twice."""
    relations, phrases = pairs[0], number[pairs[1]]
    order = np.lexsort((phrases, relations))
    relations, phrases = relations[order][phrases[order] >= 0], phrases[order][phrases[order] >= 0]
    first = np.searchsorted(relations, triples, side="left")
    last = np.searchsorted(relations, triples, side="right") - 1
    ends = np.full((len(triples), 2), -1, dtype=np.int64)
    known = last >= first
    ends[known] = np.stack((phrases[first[known]], phrases[last[known]]), axis=1)
    return ends
