"""Follow-up questions of a conversation."""

import pytest

from sire_core import Document
from sire_core.errors import QueryError
from sire_core.search.history import rewrite_question, standalone_question
from sire_core.testing.doubles import ScriptedModel
from support.indexes import indexed

DOCUMENTS = [
    Document("wren", "The Northern Wren sank in the gale of 1893. Her boiler came from Lindle.", "Northern Wren"),
    Document("tern", "The Southern Tern sank in the fog of 1902. Her boiler came from Port Ansel.", "Southern Tern"),
    Document("gull", "The Grey Gull carried coal until she was sold. Her boiler was never repaired.", "Grey Gull"),
]
FIRST = "When did the Southern Tern sink?"


def test_a_follow_up_gets_the_names_of_the_last_turn():
    assert standalone_question("Where did her boiler come from?", [FIRST]).endswith("(Southern Tern sink)")
    assert "Southern Tern" in standalone_question("And why?", ["Who built the Grey Gull?", FIRST])
    assert "Grey" not in standalone_question("And why?", ["Who built the Grey Gull?", FIRST])


@pytest.mark.parametrize(
    ("question", "answer", "follow_up", "standalone"),
    [
        (
            "Who directed The Salt Lantern?",
            "The Salt Lantern was directed by Petra Quillon [1].",
            "Where was she born?",
            "Where was she born? (Petra Quillon Salt Lantern directed)",
        ),
        ("who directed it?", "Petra Quillon.", "Where was she born?", "Where was she born? (Petra Quillon directed)"),
        (
            "Tell me about the ship",
            "Many sank. Owned by the Varn Line, it left in 1902 [2, 13].",
            "When did it sink?",
            "When did it sink? (Varn Line 1902 Tell ship)",
        ),
        (FIRST, "In 1902, unlike the Grey Gull.", "And why?", "And why? (Southern Tern sink)"),
        ("Is it open?", "Yes, says Otto Lind.", "And why?", "And why? (open)"),
    ],
)
def test_names_of_the_answer_come_first(question, answer, follow_up, standalone):
    assert standalone_question(follow_up, [("user", question), ("assistant", answer)]) == standalone


def test_without_names_the_words_of_the_last_turn_are_carried():
    assert standalone_question("And why?", ["Who built it?", "how are lamps lit?"]) == "And why? (lamps lit)"


@pytest.mark.parametrize(
    "question",
    [
        "How long was the Grey Gull used for carrying coal?",
        "What is a boiler?",
        "boilers",
        "Are there serverless instances?",
        "Can I extend the web chat? If so, how can I do that?",
        "I do not like the look of my web chat and how it opens.",
        "Does Vulnerability Advisor scan images? What does it do?",
        "Why do you think that I cannot apply a code?",
    ],
)
def test_a_question_that_stands_alone_stays(question):
    assert standalone_question(question, [FIRST]) == question


@pytest.mark.parametrize(
    "question",
    ["Where is it?", "What about fog?", "How do I use them?", "Why?", "And who did that?", "Which one sank?"],
)
def test_a_question_that_refers_back_gets_what_it_refers_to(question):
    assert "Southern Tern" in standalone_question(question, [FIRST])


def test_a_first_question_stays():
    assert standalone_question("And why?", []) == "And why?"


class Message:
    def __init__(self, type, content):  # noqa: A002 - LangChain's name
        self.type, self.content = type, content


@pytest.mark.parametrize(
    "history",
    [
        [FIRST, "Who owned it?"],
        [("user", FIRST), ("assistant", "In 1902, as the Grey Gull did not.")],
        [{"role": "user", "content": FIRST}, {"role": "assistant", "content": "In 1902. Ask about the Grey Gull."}],
        [Message("human", FIRST), Message("ai", "In 1902, unlike the Grey Gull.")],
    ],
    ids=["texts", "pairs", "mappings", "messages"],
)
def test_search_takes_the_history_of_applications(history):
    with indexed(DOCUMENTS, recipe="flat") as index:
        hits = index.search("Where did her boiler come from?", 1, history=history)
    assert [hit.doc_ids for hit in hits] == [("tern",)]


@pytest.mark.parametrize("history", ["text", 3, [3], [{"role": "user"}], [("user", None)]])
def test_what_is_no_history_is_refused(history):
    with indexed(DOCUMENTS, recipe="flat") as index, pytest.raises(QueryError, match="history"):
        index.search("Why?", history=history)


async def test_a_model_rewrites_with_both_sides_of_the_conversation():
    model = ScriptedModel(['{"question": "Where did the boiler of the Southern Tern come from?"}'])
    history = [("user", FIRST), ("assistant", "In 1902.")]
    rewritten = await rewrite_question("Where did her boiler come from?", history, model)
    assert rewritten == "Where did the boiler of the Southern Tern come from?"
    assert await rewrite_question("Why?", [], model) == "Why?"


@pytest.mark.parametrize(
    ("before", "question", "standalone"),
    [
        (
            "Wer gründete die Werft in Rostock?",
            "Und wann war das?",
            "Und wann war das? (Wer gründete die Werft in Rostock)",
        ),
        (
            "Qui a fondé le chantier de Brest ?",
            "Où est-elle née ?",
            "Où est-elle née ? (Qui a fondé le chantier de Brest)",
        ),
        ("Кто основал верфь в Мурманске?", "А где он родился?", "А где он родился? (Кто основал верфь в Мурманске)"),
        ("Wer gründete die Werft in Rostock?", "Wie hoch ist der Leuchtturm von Warnemünde?", ""),
        ("Qui a fondé le chantier de Brest ?", "Combien coûte le repas à la cantine du collège ?", ""),
    ],
)
def test_follow_up_questions_in_other_languages(before, question, standalone):
    assert standalone_question(question, [before]) == (standalone or question)
