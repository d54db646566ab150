"""What a model extracted, as examples for a smaller one."""

import json

from sire_core import Document
from sire_core.models.openai.client import OpenAIChat
from sire_core.testing.doubles import HashEmbedder, default_script
from support.command import run
from support.indexes import indexed
from support.scripted_server import ScriptedServer


def test_a_students_examples_are_the_prompts_and_answers_of_its_teacher(tmp_path):
    corpus = [Document(str(i), f"Ann met Bob in {1900 + i}.", f"Meeting {i}") for i in range(5)]
    with ScriptedServer(default_script) as server:
        teacher = OpenAIChat("m", base_url=server.base_url, api_key="none")
        indexed(corpus, tmp_path / "ix", recipe="sirerag", embedder=HashEmbedder(), language_model=teacher).close()
        asked = {entry.call.instructions + entry.call.data for entry in server.log if "passage" in entry.call.fields}
    found = run("export-training", tmp_path / "ix", "--to", tmp_path / "train.jsonl", "--documents", 3)
    assert "3 examples" in found.output
    lines = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 3
    for line in lines:
        roles = [message["role"] for message in line["messages"]]
        assert roles == ["system", "user", "assistant"]
        answer = json.loads(line["messages"][2]["content"])
        assert {"entities", "facts", "keywords", "topic", "abstractiveness"} == set(answer)
        passage = next(d for d in corpus if d.text in line["messages"][1]["content"])
        assert answer["facts"][0]["text"] == passage.text
    assert len(asked) == 5

    # The student is a model that gives these answers to these prompts: it makes the same index.
    texts = {}
    for line in lines:
        passage = next(d for d in corpus if d.text in line["messages"][1]["content"])
        texts[passage.text] = line["messages"][2]["content"]

    def student(call):
        return texts[call.fields["passage"]] if "passage" in call.fields else default_script(call)

    drawn = [d for d in corpus if d.text in texts]
    kinds = []
    for script in (student, default_script):
        with ScriptedServer(script) as server:
            model = OpenAIChat("m", base_url=server.base_url, api_key="none")
            again = indexed(drawn, recipe="sirerag", embedder=HashEmbedder(), language_model=model)
            kinds.append(again.stats()["kinds"])
    assert kinds[0] == kinds[1]


def test_rules_are_no_teacher(tmp_path):
    indexed([Document("d", "Ann met Bob.")], tmp_path / "ix", recipe="sirerag", embedder=HashEmbedder()).close()
    found = run("export-training", tmp_path / "ix", "--to", tmp_path / "train.jsonl", code=1)
    assert "Build it with --llm" in found.output
    assert not (tmp_path / "train.jsonl").exists()
