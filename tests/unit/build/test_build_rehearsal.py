"""What organizers ask of a model beside summaries of trees is in the estimate, too."""

import pytest

from sire_core import Document, Index
from sire_core.changes.estimate import Estimate
from sire_core.extraction.rules import RulesExtractor
from sire_core.models.usage import CostRange
from sire_core.recipes import indexrag, msrag, raptor
from sire_core.testing.doubles import HashEmbedder, ScriptedModel

PEOPLE = [f"{first} {last}" for first in ("Mira", "Anna", "Tom", "Ida") for last in ("Vale", "Berg", "Hale", "Moor")]
CORPUS = [
    Document(
        f"d{i}", f"{PEOPLE[i % 16]} was a painter. {PEOPLE[i % 16]} married {PEOPLE[(i * 5 + 1) % 16]}.", f"No. {i}"
    )
    for i in range(24)
]


@pytest.mark.parametrize("recipe", [indexrag(), msrag(summaries="eager")])
def test_the_estimate_covers_what_organizers_ask(recipe):
    model = ScriptedModel()
    index = Index(recipe=recipe, embedder=HashEmbedder(), language_model=model, extractor=RulesExtractor())
    expected = index.estimate(CORPUS)
    assert model.log == []
    report = index.build(CORPUS)
    asked = report.usage["organizing"]
    assert asked.calls > 0
    assert expected.summaries.calls[0] <= asked.calls <= expected.summaries.calls[1]
    assert expected.summaries.input_tokens[0] <= asked.input_tokens <= expected.summaries.input_tokens[1]
    low, high = expected.total.calls
    assert low <= report.calls <= high


@pytest.mark.parametrize("recipe", [raptor(), msrag(summaries="eager")])
def test_the_estimate_of_a_small_change_begins_with_what_is_new(recipe):
    model = ScriptedModel()
    index = Index(recipe=recipe, embedder=HashEmbedder(), language_model=model, extractor=RulesExtractor())
    first = index.estimate(CORPUS).total.calls
    index.build(CORPUS)
    after = [*CORPUS, Document("new", "Anna Berg sailed to Port Amber.")]
    low, high = index.estimate(after).total.calls
    assert first[0] > 0
    assert low <= index.build(after).calls <= high
    replaced = [Document(found.id, f"{found.text} Later.", found.title) for found in CORPUS]
    assert index.estimate(replaced).total.calls[0] > 0
    assert index.estimate(after[:12]).total.calls[0] == 0


def test_a_recipe_that_asks_nothing_costs_nothing():
    index = Index(recipe=msrag(), embedder=HashEmbedder(), language_model=ScriptedModel())
    assert index.estimate(CORPUS).summaries.calls == (0, 0)


def test_the_estimate_of_a_change_is_of_what_it_touches_in_all_recipes_of_the_folder(tmp_path):
    options = {"embedder": HashEmbedder(), "language_model": ScriptedModel(), "extractor": RulesExtractor()}
    for recipe in (raptor(), indexrag()):
        with Index(tmp_path / "ix", recipe=recipe, **options) as index:
            whole = index.estimate(CORPUS).total.calls
            index.build(CORPUS)
            assert index.estimate(CORPUS).total.calls == (0, 0)
    after = [*CORPUS, Document("new", f"{PEOPLE[3]} married {PEOPLE[5]} and {PEOPLE[7]}.", "New")]
    with Index(tmp_path / "ix", recipe=raptor(), **options) as index:  # the bridges of indexrag follow, too
        low, high = index.estimate(after).total.calls
        report = index.build(after)
    assert report.usage["organizing"].calls > 0
    assert low <= report.calls <= high
    assert high < whole[1]


def test_a_recipe_that_joins_the_folder_is_estimated_whole(tmp_path):
    options = {"embedder": HashEmbedder(), "language_model": ScriptedModel(), "extractor": RulesExtractor()}
    with Index(tmp_path / "ix", recipe=raptor(), **options) as index:
        index.build(CORPUS)
    with Index(tmp_path / "ix", recipe=raptor(summary_tokens=50), **options) as joining:
        high = joining.estimate(CORPUS).summaries.calls[1]
        assert 0 < joining.build(CORPUS).calls <= high


def test_a_price_below_a_cent_is_no_price_of_nothing():
    tiny, none = (CostRange(price=(0.0, price)) for price in (0.001, 0.0))
    assert "under $0.01" in Estimate(1, 0, tiny, tiny).describe()
    assert "$0.00" in Estimate(1, 0, none, none).describe()
