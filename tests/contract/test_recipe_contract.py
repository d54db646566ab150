"""The promises of `sire_core.testing.contracts`, for every recipe of the registry and every ranker over a pool."""

from dataclasses import replace

import pytest

from sire_core.recipes import REGISTRY, recipe_by_name
from sire_core.testing.contracts import (
    RECIPE_CHECKS,
    broken_promises,
    check_coverage,
    check_filters,
    check_odd_corpora,
    check_order,
    check_provenance,
)

VARIANTS = [("flat", {"ranker": "bm25"}), ("sirerag", {"ranker": "hybrid"})]
VARIANTS += [("sirerag", {"variant": variant}) for variant in "ABCDE"]
VARIANTS += [
    ("sirerag", {"cross": "replace"}),
    ("sirerag", {"cross": "add"}),
    ("sirerag", {"singleton_rule": "code", "entity_key": "lower", "dup_facts": "keep", "split_tokens": 40}),
    ("raptor", {"stop_rule": "none", "max_cluster_tokens": 120, "summary_tokens": 30}),
    ("raptor", {"stop_rule": "official", "depth": 2}),
]
VARIANTS += [
    ("indexrag", {"stage1": "summary", "base_store": "any", "k_b": None}),
    ("indexrag", {"stage1": "chunks", "k_b": 0, "max_docs": 2, "max_facts": 1, "cap_order": "first"}),
    ("indexrag", {"stage2": False, "depth": 3, "ranker": "hybrid"}),
    ("indexrag", {"bridge_tokens": 30, "tau": 2}),
]
VARIANTS += [
    ("iier", {"order": "chain", "similar_seeds": 0, "kw_min": 3, "title_keywords": False, "seed_match": "strict"}),
    ("iier", {"order": "iterative", "scorer": "random", "max_length": 7, "links": "mutual"}),
    ("iier", {"order": "shuffle", "use_sim": False, "fallback_seeds": 1, "keywords": "rules"}),
    ("iier", {"scorer": "llm", "exact_below": 2}),
]
VARIANTS += [
    ("hipporag2", {"link": "phrase", "synonyms": 0.3}),
    ("hipporag2", {"link": "name", "passage_nodes": False}),
    ("hipporag2", {"literals": True, "skip_types": [], "disambiguate": False, "max_df": 1.0, "recognition": "none"}),
    ("linearrag", {"rounds": 1, "damping": 0.0}),
    ("linearrag", {"rounds": 5, "threshold": 0.0, "sentences": 1, "skip_types": []}),
]
ABOUT_SETTINGS = (check_provenance, check_coverage, check_filters, check_order, check_odd_corpora)


def label(variant):
    name, settings = variant
    return "-".join([name, *(f"{key}={value}" for key, value in settings.items())])


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_recipe_keeps(name):
    assert broken_promises(REGISTRY[name]) == {}


@pytest.mark.quick(variant=VARIANTS[::5])
@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_recipe_with_settings_keeps(variant):
    name, settings = variant
    assert broken_promises(lambda: recipe_by_name(name, **settings), ABOUT_SETTINGS) == {}


def test_a_hierarchy_of_passages_keeps_all_but_coverage():
    # Overviews join above the first summaries, which therefore do not stand on them.
    checks = [check for check in ABOUT_SETTINGS if check is not check_coverage]
    assert broken_promises(lambda: recipe_by_name("sirerag", hierarchy=True, cross="add"), checks) == {}


def test_all_checks_run_in_one_call():
    def unusable():
        raise AssertionError("there is no such recipe")

    broken = broken_promises(unusable)
    assert list(broken) == [check.__name__ for check in RECIPE_CHECKS]
    assert all("there is no such recipe" in told for told in broken.values())


def test_an_error_that_is_no_broken_promise_is_raised():
    ran = []
    with pytest.raises(ZeroDivisionError):
        broken_promises(lambda: ran.append("asked") or 1 / 0)
    assert ran == ["asked"]


class Careless:
    """A ranker that forgets the filter."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def rank(self, query, n, view, where=None):
        return await self._inner.rank(query, n, view, None)


def test_a_broken_promise_is_noticed():
    def broken():
        recipe = recipe_by_name("flat")
        return replace(recipe, ranker=Careless(recipe.ranker))

    assert broken_promises(lambda: recipe_by_name("flat"), [check_filters]) == {}
    assert list(broken_promises(broken, [check_filters])) == ["check_filters"]
