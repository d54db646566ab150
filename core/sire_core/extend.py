"""Public names for authors of methods: recipes, derivations, rankers.

    from sire_core.extend import Component, Derivation, Output, Recipe, ResolvedSettings, Row, Step, register, setting

Everything is loaded when it is first used, so that naming a recipe stays cheap. `docs/extending/method.md` is the
guide; `papers/hipporag2` and `papers/linearrag` are written against this module alone.
"""

# ruff: noqa: PLC0414 - an alias marks a name as public for type checkers
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.arrays.grouping import positions_in as positions_in
    from sire_core.arrays.grouping import ranges as ranges
    from sire_core.arrays.personalized_pagerank import CSRGraph as CSRGraph
    from sire_core.arrays.personalized_pagerank import personalized_pagerank as personalized_pagerank
    from sire_core.changes.derivation import Derivation as Derivation
    from sire_core.changes.derivation import PlainDerivation as PlainDerivation
    from sire_core.changes.step import Context as Context
    from sire_core.changes.step import Step as Step
    from sire_core.changes.step_rows import Entry as Entry
    from sire_core.changes.step_rows import Group as Group
    from sire_core.changes.step_rows import Item as Item
    from sire_core.changes.step_rows import Output as Output
    from sire_core.changes.step_rows import PassageInput as PassageInput
    from sire_core.changes.step_rows import Row as Row
    from sire_core.errors import ConfigurationError as ConfigurationError
    from sire_core.errors import ModelError as ModelError
    from sire_core.extraction.spans import names_in as names_in
    from sire_core.filters import Filter as Filter
    from sire_core.knowledge.edge_columns import IdPositions as IdPositions
    from sire_core.knowledge.edge_columns import relation_ends as relation_ends
    from sire_core.knowledge.entity_graph import EntityGraph as EntityGraph
    from sire_core.knowledge.entity_graph import Walk as Walk
    from sire_core.knowledge.entity_graph import WalkPaths as WalkPaths
    from sire_core.knowledge.entity_graph import min_max as min_max
    from sire_core.knowledge.entity_graph import walk_ranking as walk_ranking
    from sire_core.knowledge.knowledge_graph import KnowledgeGraph as KnowledgeGraph
    from sire_core.knowledge.knowledge_graph import PassageNames as PassageNames
    from sire_core.knowledge.same_names import SimilarPairs as SimilarPairs
    from sire_core.knowledge.same_names import all_similar_names as all_similar_names
    from sire_core.knowledge.same_names import similar_names as similar_names
    from sire_core.models.prompt_format import numbered as numbered
    from sire_core.models.prompt_format import parse_numbers as parse_numbers
    from sire_core.protocols import BoolArray as BoolArray
    from sire_core.protocols import BuildView as BuildView
    from sire_core.protocols import FloatArray as FloatArray
    from sire_core.protocols import IntArray as IntArray
    from sire_core.protocols import LanguageModel as LanguageModel
    from sire_core.protocols import Prompt as Prompt
    from sire_core.protocols import Ranker as Ranker
    from sire_core.protocols import Ranking as Ranking
    from sire_core.protocols import Recipe as Recipe
    from sire_core.protocols import Selector as Selector
    from sire_core.protocols import View as View
    from sire_core.recipes.pool_ranker import PoolRanker as PoolRanker
    from sire_core.recipes.published import Ablation as Ablation
    from sire_core.recipes.published import register_ablations as register_ablations
    from sire_core.recipes.published import register_published as register_published
    from sire_core.recipes.registry import register as register
    from sire_core.recipes.reranking import RerankSettings as RerankSettings
    from sire_core.search.rankers.hybrid import Hybrid as Hybrid
    from sire_core.search.rankers.lexical import Lexical as Lexical
    from sire_core.search.ranking import NotedRanking as NotedRanking
    from sire_core.search.ranking import ScoredRanking as ScoredRanking
    from sire_core.search.ranking import answer_or_reason as answer_or_reason
    from sire_core.search.ranking import best_first as best_first
    from sire_core.search.ranking import with_failure as with_failure
    from sire_core.search.vectors.flat import Flat as Flat
    from sire_core.search.vectors.sq_index import KnownSimilarities as KnownSimilarities
    from sire_core.settings import Component as Component
    from sire_core.settings import ResolvedSettings as ResolvedSettings
    from sire_core.settings import check_settings as check_settings
    from sire_core.settings import refuse_unused as refuse_unused
    from sire_core.settings import setting as setting
    from sire_core.text.words import name_key as name_key
    from sire_core.text.words import split_sentences as split_sentences
    from sire_core.text.words import tokenize as tokenize
    from sire_core.types import Edge as Edge
    from sire_core.types import PathStep as PathStep
    from sire_core.types import Unit as Unit
    from sire_core.types import UnitKind as UnitKind
    from sire_core.types import hash64 as hash64
    from sire_core.types import unit_id as unit_id

_MODULES = {
    "arrays.grouping": "positions_in ranges",
    "arrays.personalized_pagerank": "CSRGraph personalized_pagerank",
    "text.words": "name_key split_sentences tokenize",
    "changes.derivation": "Derivation PlainDerivation",
    "changes.step_rows": "Entry Group Item Output PassageInput Row",
    "changes.step": "Context Step",
    "errors": "ConfigurationError ModelError",
    "extraction.spans": "names_in",
    "filters": "Filter",
    "knowledge.entity_graph": "EntityGraph Walk WalkPaths min_max walk_ranking",
    "knowledge.knowledge_graph": "KnowledgeGraph PassageNames",
    "knowledge.same_names": "SimilarPairs all_similar_names similar_names",
    "knowledge.edge_columns": "IdPositions relation_ends",
    "models.prompt_format": "numbered parse_numbers",
    "protocols": "BuildView LanguageModel Prompt Ranker Ranking Recipe Selector View",
    "recipes.published": "Ablation register_ablations register_published",
    "recipes.pool_ranker": "PoolRanker",
    "recipes.registry": "register",
    "recipes.reranking": "RerankSettings",
    "search.ranking": "NotedRanking ScoredRanking answer_or_reason best_first with_failure",
    "search.rankers.hybrid": "Hybrid",
    "search.rankers.lexical": "Lexical",
    "search.vectors.sq_index": "KnownSimilarities",
    "search.vectors.flat": "Flat",
    "settings": "Component ResolvedSettings check_settings refuse_unused setting",
    "types": "Edge PathStep Unit UnitKind hash64 unit_id",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a name when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"sire_core.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
