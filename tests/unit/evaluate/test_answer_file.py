"""Answers that are kept in a file are read again without the model that gave them."""

from contextlib import closing

import pytest

from sire_core.errors import ConfigurationError, ModelError
from sire_core.evaluate.answer_eval import AbsentModel, AnswerFile
from sire_core.models.caching import CachedModel
from sire_core.protocols import Prompt
from sire_core.testing.doubles import ScriptedModel

KNOWN, UNKNOWN = Prompt("Answer.", "Where was Ann born?"), Prompt("Answer.", "When?")


async def test_an_absent_model_answers_what_it_has_answered_before(tmp_path):
    model = ScriptedModel(lambda call: "In Drava.")
    with closing(AnswerFile(tmp_path / "answers.jsonl")) as kept:
        first = await CachedModel(model, kept).complete(KNOWN)
    with closing(AnswerFile(tmp_path / "answers.jsonl")) as kept:
        again = CachedModel(AbsentModel(model.fingerprint), kept)
        assert (await again.complete(KNOWN)).text == first.text == "In Drava."
        with pytest.raises(ModelError, match="not answered yet"):
            await again.complete(UNKNOWN)


async def test_half_a_line_is_asked_for_again_and_other_files_are_refused(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"key": "a", "answer": "yes"}\n{"key": "b", "ans')
    with closing(AnswerFile(path)) as kept:
        assert [kept.answer(key) for key in "ab"] == ["yes", None]
    path.write_text("a report\n")
    with pytest.raises(ConfigurationError, match="name another file"):
        AnswerFile(path)


async def test_half_a_letter_at_the_end_locks_nothing(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes('{"key": "a", "answer": "yes"}\n{"key": "b", "answer": "caf\u00e9'.encode()[:-1])
    with closing(AnswerFile(path)) as kept:
        assert [kept.answer(key) for key in "ab"] == ["yes", None]
        kept.put_answer("b", "caf\u00e9")
    with closing(AnswerFile(path)) as kept:
        assert [kept.answer(key) for key in "ab"] == ["yes", "caf\u00e9"]
