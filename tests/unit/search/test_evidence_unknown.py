"""`sire` where the passages spell the question's words otherwise, or lack them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sire_core import Document, Index
from sire_core.recipes import flat

if TYPE_CHECKING:
    from sire_core.protocols import Recipe

PAGES = (
    Document("returns", "Ürünler teslimattan sonraki on dört gün içinde iade edilebilir.", title="İade koşulları"),
    Document("mill", "Değirmeni İsmail Hakkı Çobanoğlu yaptırdı. Buğday öğütülürdü.", title="Kızılırmak Değirmeni"),
    Document("miller", "İsmail Hakkı Çobanoğlu Gümüşdere'de doğdu.", title="İsmail Hakkı Çobanoğlu"),
    Document("village", "Gümüşdere, Kayseri'ye bağlı bir köydür.", title="Gümüşdere"),
    Document("light", "Le dernier gardien du phare fut Yves Le Goasguen.", title="Le Phare de Kermeur"),
    Document("keeper", "Yves Le Goasguen est né à Plouguerrec en 1929.", title="Yves Le Goasguen"),
    Document("town", "Plouguerrec est une commune du Finistère.", title="Plouguerrec"),
    Document("fees", "Rückerstattungsanträge müssen bis Ende März vorliegen.", title="Krankenversicherungsbeitrag"),
    Document("bridge", "Der Entwurf der Brücke über das Tal kam von Konrad Vellmer.", title="Kettelbachbrücke"),
    Document("engineer", "Konrad Vellmer wuchs als Sohn des Müllers in Hohenzell auf.", title="Konrad Vellmer"),
    Document("place", "Der Ort ist auf der Höhe. Auf der Weide blüht der Klee.", title="Hohenzell"),
)
"""Three pages that say who did it, who that was and where, in two languages; and what is asked for below."""


TAGGED = tuple(replace(page, metadata={"turkish": place < 4}) for place, page in enumerate(PAGES))


def order(question: str, recipe: str | Recipe = "sire", **where: bool) -> list[str]:
    """Ids of all documents that pass the filter, best first."""
    with Index(recipe=recipe) as index:
        index.build(TAGGED)
        return [hit.doc_ids[0] for hit in index.search(question, len(TAGGED), filter=where or None)]


@pytest.mark.parametrize("question", ["ürün iadesi teslimatı", "Antrag Rückerstattung", "zzqvv", "What is it?"])
def test_a_question_without_a_word_of_the_passages_ranks_as_hybrid_search(question: str) -> None:
    assert order(question) == order(question, flat(ranker="hybrid"))


def test_words_that_a_filter_hides_are_words_that_the_passages_lack() -> None:
    question = "iadesi gardien phare"
    assert order(question, turkish=True) == order(question, flat(ranker="hybrid"), turkish=True)


def test_function_words_of_another_language_do_not_decide() -> None:
    question = "Bis wann muss der Antrag auf Rückerstattung gestellt werden?"
    assert order(question).index("fees") <= order(question, flat(ranker="hybrid")).index("fees")


def test_no_name_leads_on_from_a_passage_that_the_question_does_not_support() -> None:
    with Index(recipe="sire") as index:
        index.build(PAGES)
        steps = [step.step for hit in index.search("ürün iadesi teslimatı", 3) for step in hit.path]
    assert "entity" not in steps


def test_steps_lead_on_from_a_name_among_words_that_the_passages_lack() -> None:
    assert set(order("Hvor ble Konrad Vellmer født?")[:2]) == {"engineer", "place"}
