"""A follow-up question of a conversation as a question that stands alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sire_core.errors import QueryError
from sire_core.protocols import LanguageModel, Prompt
from sire_core.text.asking import asking_rules
from sire_core.text.languages import find_language, language
from sire_core.text.lexicon import FUNCTION_WORDS
from sire_core.text.words import find_words

_TURNS = 3  # Last turns of the user that are looked at
_CARRIED = 8  # Maximum number of words that are carried over
_CARRIED_OF_ANSWER = 6  # Of these, from the answer to the last question
_FEW_WORDS = 2  # Most words of its own that a follow-up question has before its pronoun, or after "what about"
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|theirs?|he|him|his|she|hers?|this|these|those|ones?|both)\b"
    r"|\bthe (?:same|other|former|latter)\b|\b(?:about|does|is|do|did|was|like|of) that\b|\bthat(?=\s*(?:$|[?.!,]))",
    re.IGNORECASE,
)
_CONTINUES = re.compile(r"^\W*(?:and|but|or|also|(?:and )?(?:what|how) about|what if|why not|why\W*$)\b", re.IGNORECASE)
# After these a name in the answer is an aside: the answer is a date, a reason, a number, or yes.
_ASKS_FOR_NO_NAME = re.compile(
    r"^\W*(?:when|why|how|is|are|was|were|do|does|did|can|could|will|would|has|have|had)\b", re.IGNORECASE
)
_CITATION = re.compile(r"\[\d{1,4}(?:[.,]\s?\d{1,4}){0,20}\]")
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")
_STANDALONE_INSTRUCTIONS = (
    "The data is a conversation and the user's next message. Write that message as one question that can be understood "
    "without the conversation: put names in the place of pronouns, add what it leaves out, and change nothing else. Do "
    "not answer it. If it stands alone already, repeat it."
)
_MODEL_TURNS = 6
_LONGEST_TURN = 1500
_USERS = ("user", "human")
_ASSISTANTS = ("assistant", "ai")


def user_turns(history: Sequence[Any]) -> list[str]:
    """Return the texts of the user's turns; of a history of plain texts, all of them."""
    return [text for role, text in map(_turn, _listed(history)) if role in _USERS]


def _listed(history: Sequence[Any]) -> Sequence[Any]:
    if isinstance(history, (str, bytes, Mapping)) or not isinstance(history, Sequence):
        raise QueryError('history is a list of turns, such as ["Who wrote it?", ...] or [("user", "..."), ...].')
    return history


def _turn(turn: Any) -> tuple[str, str]:
    if isinstance(turn, str):
        return "user", turn
    if isinstance(turn, Mapping):
        role, text = turn.get("role", "user"), turn.get("content")
    elif isinstance(turn, tuple) and len(turn) == 2:
        role, text = turn
    else:
        role, text = getattr(turn, "type", getattr(turn, "role", "user")), getattr(turn, "content", None)
    if not isinstance(text, str):
        raise QueryError(f"A turn of the history has no text: {turn!r:.80}. Give texts, or pairs of a role and a text.")
    return str(getattr(role, "value", role)).lower(), text


def standalone_question(question: str, history: Sequence[Any]) -> str:
    """Add to a follow-up question the names and words that it refers to. No model is asked.

    They are the names of the last answer, if its question asks for a name or thing, the names of the last question with
    names, and the words of the last question. A question that refers to nothing before it stays as it is. In other
    languages than English the last question is added.

    Args:
        question: The question.
        history: The turns before it, oldest first; see `user_turns`.
    """
    turns = user_turns(history)[-_TURNS:]
    spoken = language(find_language(question))
    if turns and not spoken.is_english:
        before = turns[-1].strip(" ?!.\u3002\uff1f\u061f")
        return f"{question} ({before})" if asking_rules(spoken).goes_on(question, _FEW_WORDS) else question
    if not turns or not _refers_back(question):
        return question
    own = {word.lower() for word in _content_words(question)}
    names = next(filter(None, map(_names, reversed(turns))), [])
    answered = [name for name in _answer_names(history, turns[-1]) if name not in names][:_CARRIED_OF_ANSWER]
    carried = [*answered, *names, *_content_words(turns[-1])]
    added = [word for word in dict.fromkeys(carried) if word.lower() not in own and len(word) > 1]
    return f"{question} ({' '.join(added[:_CARRIED])})" if added else question


def _refers_back(question: str) -> bool:
    """True if it has no words of its own, continues a sentence, or has a pronoun that nothing before it explains."""
    own = _content_words(question)
    if not own or (len(own) <= _FEW_WORDS and _CONTINUES.search(question)):
        return True
    pronoun = _PRONOUN.search(question)
    before = question[: pronoun.start()] if pronoun else ""
    return pronoun is not None and len(_content_words(before)) <= _FEW_WORDS and not _names(before)


def _content_words(text: str) -> list[str]:
    """Words that say something, in order."""
    return [word for word in find_words(text) if word.lower() not in FUNCTION_WORDS]


def _answer_names(history: Sequence[Any], question: str) -> list[str]:
    """Names in the answer to the last question of the user; none if the question asks for something else."""
    role, text = _turn(history[-1])
    if role not in _ASSISTANTS or _ASKS_FOR_NO_NAME.search(question):
        return []
    return list(dict.fromkeys(_names(_CITATION.sub(" ", text[:_LONGEST_TURN]))))


def _names(text: str) -> list[str]:
    """Capitalized words; the first word of a sentence only if the next one is capitalized, or there is no other."""
    names = []
    for sentence in _SENTENCE_END.split(text):
        words = find_words(sentence)
        capitalized = [not word.islower() and word.lower() not in FUNCTION_WORDS for word in words]
        if len(words) > 1:
            capitalized[0] &= capitalized[1]
        names += [word for word, is_name in zip(words, capitalized, strict=True) if is_name]
    return names


async def rewrite_question(question: str, history: Sequence[Any], model: LanguageModel) -> str:
    """Let a model write a follow-up question so that it stands alone; one call.

    Raises:
        QueryError: The history cannot be read.
        ModelError: The model failed.
    """
    from pydantic import BaseModel

    class Rewritten(BaseModel):
        """The answer of the model."""

        shape: ClassVar[str] = '{"question":""}'

        question: str

    turns = [_turn(turn) for turn in _listed(history)][-_MODEL_TURNS:]
    if not turns:
        return question
    data = "\n".join(f"{role}: {text[:_LONGEST_TURN]}" for role, text in [*turns, ("next message", question)])
    answer = await model.complete(Prompt(_STANDALONE_INSTRUCTIONS, data), schema=Rewritten, max_tokens=200)
    return " ".join(answer.parsed.question.split()) or question
