"""The packaged demo corpus."""

from __future__ import annotations

import re
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

import sire_core
from sire_core.data import demo_documents, demo_questions
from support.command import run_python

PACKAGE = Path(sire_core.__file__).parent
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and as at before by did do does for from go had has have he her his how in into is it its no not of off on one "
        "or out over same she than that the their them then there they this to until up was went were what when where which "
        "who whom with",
    )
)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - FUNCTION_WORDS


def test_questions_have_answers_in_their_passages():
    texts = {document.id: document.text for document in demo_documents()}
    questions = demo_questions()
    assert len(questions) == 8
    assert sum(bool(question.metadata.get("demo")) for question in questions) == 3
    for question in questions:
        assert question.hops == len(question.supporting) >= 2
        gold = [texts[i] for i in question.supporting]
        if question.type == "compositional":
            assert question.answers[0] in gold[-1]
            assert not any(question.answers[0] in text for text in gold[:-1])


@pytest.mark.parametrize("question", demo_questions(), ids=lambda question: question.id)
def test_later_hops_share_no_word_with_the_question(question):
    documents = {document.id: document for document in demo_documents()}
    shared = [
        len(words(question.question) & words(documents[i].title + " " + documents[i].text)) for i in question.supporting
    ]
    if question.type == "compositional":
        assert shared[0] >= 3
        assert not any(shared[1:])
        # And other passages do share words with it: distractors.
        others = [d for i, d in documents.items() if i not in question.supporting]
        assert max(len(words(question.question) & words(d.title + " " + d.text)) for d in others) >= 2
    assert len({documents[i].title for i in question.supporting}) == question.hops


@pytest.mark.parametrize(
    "question", [q for q in demo_questions() if q.type == "compositional"], ids=lambda question: question.id
)
def test_each_hop_names_the_next(question):
    documents = {document.id: document for document in demo_documents()}
    for before, after in pairwise(question.supporting):
        assert documents[after].title in documents[before].text


def test_works_from_a_zip(tmp_path):
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as bundle:
        for file in sorted(PACKAGE.rglob("*")):
            if file.suffix in (".py", ".jsonl"):
                bundle.write(file, f"sire_core/{file.relative_to(PACKAGE).as_posix()}")
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import sire_core.data as data; "
        "print(data.__file__, len(data.demo_documents()), len(data.demo_questions()), sep='\\n')"
    )
    ran = run_python(code, flags=("-I",))
    assert ran.stdout.splitlines() == [str(archive / "sire_core" / "data" / "__init__.py"), "41", "8"]
