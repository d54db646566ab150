"""A model cuts documents into groups of sentences, details and overviews."""

import json

from sire_core import Document
from sire_core.corpus.sentence_groups import group_sentences
from sire_core.models.openai.client import OpenAIChat
from support.scripted_server import ScriptedServer

TEXT = "Ports are many. Amber is one. Elm is another. Amber opened in 1901. It closed in 1931."


def groups(call):
    assert len(call.fields["sentences"]) == 5
    # The fourth is left out, and the second group does not keep together.
    return json.dumps(
        {
            "groups": {
                "group_1": {"sentences": [1], "topic": "ports", "abstractiveness": "high"},
                "group_2": {"sentences": [2, 3, 5], "topic": "two ports", "abstractiveness": "LOW"},
            }
        }
    )


async def cut(script, *documents):
    with ScriptedServer(script) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="none")
        try:
            return await group_sentences(documents, model)
        finally:
            await model.aclose()


async def test_groups_are_passages_with_labels_and_no_sentence_is_lost():
    (found,) = await cut(groups, Document("d", TEXT, "Ports"))
    assert [passage.text for passage in found.passages] == [
        "Ports are many.",
        "Amber is one. Elm is another. Amber opened in 1901. It closed in 1931.",
    ]
    assert [dict(passage.metadata) for passage in found.passages] == [
        {"abstractiveness": "high", "topic": "ports"},
        {"abstractiveness": "low", "topic": "two ports"},
    ]


async def test_what_does_not_keep_together_is_cut_and_what_fails_is_one_passage(caplog):
    def apart(call):
        numbers = [[1, 3, 5], [2, 4]]
        return json.dumps({"groups": [{"sentences": group, "abstractiveness": "high"} for group in numbers]})

    (found,) = await cut(apart, Document("d", TEXT))
    assert len(found.passages) == 5
    (whole,) = await cut(lambda call: "no idea", Document("d", TEXT, "Ports"))
    assert [passage.text for passage in whole.passages] == [TEXT]
    assert "'Ports' were not grouped" in caplog.text
