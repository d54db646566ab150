"""A follow-up question of a conversation as a question that stands alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.algorithms.lexicon import FUNCTION_WORDS
from sire_core.algorithms.words import find_words
from sire_core.errors import QueryError
from sire_core.protocols import Prompt

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel

_TURNS = 3
"""Last turns of the user that are looked at."""
_CARRIED = 8
"""Maximum number of words that are carried over."""
_FEW_WORDS = 2
"""A question with at most so many words of its own does not stand alone."""
_REFERS = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|hers|this|that|these|those|there|one|ones|both|same|other|former|"
    r"latter|such|else)\b|^\W*(?:and|but|so|or|also|what about|how about|what if|why not|why|more)\b",
    re.IGNORECASE,
)
_INSTRUCTIONS = (
    "The data is a conversation and the user's next message. Write that message as one question that can be understood "
    "without the conversation: put names in the place of pronouns, add what it leaves out, and change nothing else. Do "
    "not answer it. If it stands alone already, repeat it."
)
_MODEL_TURNS = 6
_LONGEST_TURN = 1500
_USERS = ("user", "human")


def user_turns(history: Sequence[Any]) -> list[str]:
    """The texts of the user's turns; of a history of plain texts, all of them.

    Args:
        history: Texts, pairs of a role and a text, mappings with `role` and `content`, or messages of LangChain and
            LlamaIndex.

    Raises:
        QueryError: It is none of these.
    """
    return [text for role, text in map(_turn, _listed(history)) if role in _USERS]


def _listed(history: Sequence[Any]) -> Sequence[Any]:
    if isinstance(history, (str, bytes, Mapping)) or not isinstance(history, Sequence):
        raise QueryError('history is a list of turns, such as ["Who wrote it?", ...] or [("user", "..."), ...].')
    return history


def _turn(turn: Any) -> tuple[str, str]:
    """The role and the text of a turn."""
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
    """Add to a follow-up question what it refers to: the names of the last turn with names, else the last turn's words.

    A question that refers to nothing, having words of its own and no pronoun, stays as it is. No model is asked.

    Args:
        question: The question.
        history: The turns before it, oldest first; see `user_turns`.
    """
    turns = user_turns(history)[-_TURNS:]
    own = _content_words(question)
    if not turns or not (_REFERS.search(question) or len(own) <= _FEW_WORDS):
        return question
    known = {word.lower() for word in own}
    for carried in (*map(_names, reversed(turns)), _content_words(turns[-1])):
        if added := [word for word in dict.fromkeys(carried) if word.lower() not in known and len(word) > 1]:
            return f"{question} ({' '.join(added[:_CARRIED])})"
    return question


def _content_words(text: str) -> list[str]:
    """Words that say something, in order."""
    return [word for word in find_words(text) if word.lower() not in FUNCTION_WORDS]


def _names(text: str) -> list[str]:
    """Capitalized words, but for the first one of the text."""
    words = find_words(text)
    return [word for word in words[1:] if not word.islower() and word.lower() not in FUNCTION_WORDS]


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
    answer = await model.complete(Prompt(_INSTRUCTIONS, data), schema=Rewritten, max_tokens=200)
    return " ".join(answer.parsed.question.split()) or question
