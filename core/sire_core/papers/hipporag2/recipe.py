"""`hipporag2`: passages by a walk from the triples that a question is about (HippoRAG 2, Gutierrez et al. 2025).

Indexing extracts open triples; their ends are phrase nodes beside the passage nodes, joined by triples, by passages
that name them and by similar names. A search finds the triples nearest to the question, a language model (where there
is one) keeps those that help, and personalised PageRank from their phrases and from all passages ranks the passages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.extend import Component, Recipe, ResolvedSettings, register

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sire_core.extend import AnyRecipeSettings

_GRAPH = {
    "entity_source": "triples",
    "literals": True,
    "skip_types": (),
    "disambiguate": False,
    "max_df": 1.0,
}
"""The published graph: both ends of every triple, as they are, and nothing else."""


@register
def hipporag2(**settings: Unpack[AnyRecipeSettings]) -> Recipe:
    """HippoRAG 2: passages by PageRank from phrases of the triples nearest to the question, and from all passages.

    Args:
        **settings: Those of `TripleWalk` and `KnowledgeGraph`.

    Raises:
        ConfigurationError: A setting is unknown, not allowed or without effect.
    """
    from sire_core.extend import KnowledgeGraph
    from sire_core.papers.hipporag2.rank import TripleWalk

    resolved = ResolvedSettings(
        settings,
        Component(TripleWalk),
        Component(KnowledgeGraph, without=("index_units", "index_relations", "summaries"), defaults=_GRAPH),
    )
    return Recipe(
        name="hipporag2",
        summary="passages reached from the triples nearest to the question, by personalised PageRank",
        paper="HippoRAG 2, Gutierrez et al. 2025",
        organizers=(resolved.make(KnowledgeGraph, index_units=True),),
        ranker=resolved.make(TripleWalk),
        native="triples",
        config=resolved.config,
        texts=resolved.texts,
    )
