"""A whole page in the place of a question: time is linear in its length."""

import time

import pytest

from sire_core import Index
from sire_core.data import demo_documents


@pytest.mark.parametrize(("recipe", "seconds"), [("sire", 2), ("iier", 12)])
def test_time_is_linear_in_the_length_of_a_question(recipe, seconds):
    """The seconds are eight times what a calm machine takes: they are no measurement."""
    documents = list(demo_documents())
    index = Index(recipe=recipe, chunker=None)
    index.build(documents)
    text = " ".join(document.text for document in documents) * 6
    index.search(text[:100])
    spent = []
    for length in (20_000, 80_000):
        taken = []
        for _ in range(3):  # the quickest: a machine with other work takes several times as long now and then
            began = time.process_time()
            hits = index.search(text[:length], 5)
            taken.append(time.process_time() - began)
            assert len(hits) == 5
        spent.append(min(taken))
    assert spent[1] < min(seconds, 8 * spent[0] + 0.2)


@pytest.mark.default_recipe
def test_hits_name_the_words_of_the_question_as_it_spells_them():
    index = Index(chunker=None)
    index.build(list(demo_documents()))
    hit = index.search("The captains of the steamship Northern Wren, captain by captain", 1)[0]
    assert hit.path[-1].note.endswith("shares the words steamship, northern, wren")
    hit = index.search("Captains and captain of steamships", 1)[0]
    assert hit.path[-1].note.endswith("shares the words captains, steamships")
