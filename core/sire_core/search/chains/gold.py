"""Which nodes of the chain graph are a question's evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.corpus.benchmarks import Question
    from sire_core.protocols import View
    from sire_core.search.chains.graph import ChainGraph
    from sire_core.storage.pool import Pool

__all__ = ["GoldNodes"]


@dataclass(frozen=True, slots=True)
class GoldNodes:
    """The nodes of every document and what their passages say.

    Attributes:
        nodes: Nodes by document id, ascending.
        texts: Text of every node's passage.
    """

    nodes: Mapping[str, Sequence[int]]
    texts: Sequence[str]

    @classmethod
    def of(cls, view: View, graph: ChainGraph, pool: Pool) -> GoldNodes:
        """Read them from the pool once; they are kept with its view."""

        def read() -> GoldNodes:
            nodes: dict[str, list[int]] = {}
            texts = []
            for node, position in enumerate(graph.positions.tolist()):
                unit, documents = pool.unit(position)
                texts.append(unit.text)
                for document in documents:
                    nodes.setdefault(document, []).append(node)
            return cls(nodes, texts)

        made: GoldNodes = view.derived("gold nodes", read)
        return made

    def groups(self, question: Question) -> list[Sequence[int]]:
        """Nodes of each piece of evidence; finding one of a group is finding the piece.

        Where the data set names passages inside a document (`metadata["evidence"]`: texts by document id, as pools of
        pages have them), every passage that was indexed as it is there is a group of its own; otherwise a document is
        one group.
        """
        named = question.metadata.get("evidence")
        named = named if isinstance(named, Mapping) else {}
        found: list[Sequence[int]] = []
        for document in question.supporting:
            own = self.nodes.get(document, ())
            texts = dict.fromkeys(text for text in named.get(document) or () if isinstance(text, str))
            said = [[node for node in own if self.texts[node] == text] for text in texts]
            found.extend([group for group in said if group] or [own])
        return found
