"""What paths and explanations say, and what a search does when its model fails."""

import time

import pytest

from sire_core import Document, Index
from sire_core.errors import LimitExceededError, ModelError
from sire_core.recipes import pagerank
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script


def test_an_explanation_neither_names_nor_counts_what_is_hidden(tmp_path):
    documents = [
        Document("r", "...", "Earl Corin, Duke of Redcanary", {"tenant": "red"}),
        Document("b", "Earl Corin sailed to Port Amber.", "Voyage", {"tenant": "blue"}),
    ]
    hidden = Index(tmp_path, recipe=pagerank(index_units=True))
    hidden.build(documents)
    index = Index(tmp_path, recipe=pagerank(index_units=True), allow="tenant=blue")
    assert "Redcanary" in hidden.explain("Where did Earl Corin sail?", 1)
    shown = index.explain("Where did Earl Corin sail?", 1)
    assert "the question names Earl Corin" in shown
    assert "Redcanary" not in shown
    assert f"among {index.snapshot().size} units" in shown
    assert index.snapshot().size < hidden.snapshot().size


@pytest.mark.parametrize("fault", ["I think: Lars", ModelError("the server is down")])
def test_keywords_are_found_by_rules_where_the_model_fails(fault, caplog):
    fails = False

    def script(call):
        if fails:
            if isinstance(fault, Exception):
                raise fault
            return fault
        return default_script(call)

    index = Index(recipe="iier", language_model=ScriptedModel(script))
    index.build([Document("a", "Lars Harrow was born in Eastmere.", title="Lars Harrow")])
    fails = True
    [hit] = index.search("Where was Lars Harrow born?", 1)
    assert hit.path[0].note.startswith("holds 'Lars Harrow' of the question")
    assert hit.path[-1].step == "keywords"
    assert "found by rules, the model failed" in hit.path[-1].note
    assert "A model failed while a question was ranked" in caplog.text


def test_a_limit_is_no_failure_of_the_model():
    def script(call):
        if "List all the topics" in call.instructions:
            raise LimitExceededError("enough")
        return default_script(call)

    index = Index(recipe="iier", language_model=ScriptedModel(script))
    index.build([Document("a", "Lars Harrow was born in Eastmere.", title="Lars Harrow")])
    with pytest.raises(LimitExceededError):
        index.search("Where was Lars Harrow born?", 1)


def test_the_question_names_only_what_a_passage_spells():
    index = Index()
    coast = "Mosswick is a town on the coast. Lars Harrow founded the harbour company there in 1711."
    town = "Mosswick is a town. Nils Stroud founded the harbour company there in 1723."
    index.build([Document("a", coast, title="Mosswick company 11"), Document("b", town, title="Mosswick company 23")])
    shown = index.explain("Who founded the harbour company in Mosswick?", 2)
    assert "the question names it" not in shown
    assert ", it" not in shown


def test_paths_of_a_hub_cost_no_more_for_more_hits():
    index = Index(recipe="pagerank", embedder=HashEmbedder())
    index.build(
        [
            Document(
                f"s{i}", f"Mira Vale owns the Port Amber Mill. She was born in Eastmere in {i}.", title="Mira Vale"
            )
            for i in range(300)
        ]
    )
    question = "Who owns Port Amber Mill?"
    index.search(question, 5)

    def seconds(k):
        begun = time.process_time()
        index.search(question, k)
        return time.process_time() - begun

    few, many = (min(seconds(k) for _ in range(3)) for k in (5, 100))
    assert many < 10 * few + 0.02  # one by one it was 20 times as much
