"""What a model writes while it reasons: sentences, labelled lines, the end, an admission; in linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sire_core.algorithms.text import split_sentences
from sire_core.models.plain_answers import without_thinking

__all__ = [
    "abstains",
    "as_query",
    "choose_query",
    "first_sentence",
    "is_done",
    "is_factual",
    "labelled_line",
    "states_answer",
    "without_question_words",
]

_LABEL = re.compile(
    r"^\s*(?:[-*\u2022]\s+|\(?\d{1,2}[.)]\s+|(?:thought|reasoning|next sentence)\s*\d*\s*:\s*)", re.IGNORECASE
)
_CONCLUDES = re.compile(r"^\W*(?:thus|so|that is|therefore|hence)\b", re.IGNORECASE)
_ARITHMETIC = re.compile(r"\d\s*[-+*/\u00d7\u00f7\u2212]\s*\d[\d.,]*\s*=|=\s*-?\d")
# For text whose white space is single spaces: runs of it would be read again and again.
_ANSWER = re.compile(
    r"\banswer(?: to [^.:]{1,200}?)? is\b(?! ?:? ?(?:not|unknown|unclear|still|missing|unavailable)\b)", re.IGNORECASE
)
_DONE = frozenset({"done", "null", "none", "n/a", "nothing"})
_NO_ANSWER = frozenset(
    {"unknown", "not known", "unclear", "n/a", "null", "no answer", "insufficient", "insufficient evidence", ""}
)
_CANNOT = r"(?:do not|don't|did not|didn't|does not|doesn't|cannot|can not|can't|could not|couldn't)"
_ABSTAINS = re.compile(
    r"(?:(?:i am|i'm|we are|we're) )?(?:(?:very )?sorry|afraid|unfortunately)\b"
    rf"|(?:i|we) (?:really )?{_CANNOT} "
    r"(?:know|help|answer|tell|determine|find|say|assist|provide|give|identify|have (?:enough|any|the))\b"
    r"|(?:i am|i'm|we are|we're) (?:unable|not able|not sure)\b"
    rf"|(?:based on (?:the|these) [a-z ]{{1,40}}, )?(?:the |these |this |none of the )?(?:provided |given |available )*"
    rf"(?:passages?|contexts?|documents?|texts?|evidence|information|data) (?:above |here )?"
    rf"(?:{_CANNOT} |(?:is|are) (?:not|in) ?(?:enough|sufficient)|says? nothing|tells? nothing|lacks?\b)"
    r"|(?:there is |there's |there are )?(?:not enough|no|insufficient) "
    r"(?:relevant )?(?:information|evidence|mention)\b"
    r"|(?:it |this |that |the answer |the question )?(?:cannot|can't|could not) be "
    r"(?:determined|answered|found|inferred|established)\b"
    r"|(?:it|this|that|the answer) is (?:not|un) ?"
    r"(?:known|clear|stated|mentioned|given|specified|provided|available)\b"
    r"|not (?:stated|mentioned|given|specified|provided|enough information)\b"
)
_QUERY_WORDS = 60
_QUESTION_WORDS = frozenset({"who", "what", "when", "where", "why", "which", "how", "does", "is"})


def is_done(text: str) -> bool:
    """Whether a model says that nothing is left to search for: `DONE`, in any dress, or null."""
    return text.strip(" \t\r\n.!\"'`*[](){}<>").casefold() in _DONE


def abstains(text: str) -> bool:
    """Whether an answer in prose only says that there is none, such as "I do not know."."""
    said = " ".join(text.replace("\u2019", "'").casefold().split())
    return said.strip(" .!*\"'") in _NO_ANSWER or _ABSTAINS.match(said) is not None


def labelled_line(text: str, label: re.Pattern[str]) -> str:
    """What stands behind a label such as `Search:` on the first line that begins with it; empty when none does.

    Args:
        text: What a model wrote.
        label: Matches the label from the first word of the line, colon included.
    """
    for line in text.splitlines():
        found = label.match(line.lstrip(" \t#*->_\"'`"))
        if found and (rest := line.lstrip(" \t#*->_\"'`")[found.end() :].strip(" \t*_\"'`")):
            return rest
    return ""


def first_sentence(text: str) -> str:
    """The first sentence of what a model wrote, without thinking blocks, bullets and labels; empty if there is none."""
    for line in without_thinking(text).splitlines():
        sentences = split_sentences(_LABEL.sub("", line))
        if sentences:
            return sentences[0]
    return ""


def as_query(text: str) -> str:
    """A text on one line, cut after as many words as a question may reasonably have."""
    return " ".join(text.split()[:_QUERY_WORDS])


def is_factual(sentence: str) -> bool:
    """Whether a sentence states something that can be searched for: no conclusion and no arithmetic equation."""
    return not _CONCLUDES.match(sentence) and not _ARITHMETIC.search(sentence)


def states_answer(sentence: str) -> bool:
    """Whether a sentence says what the answer is."""
    return _ANSWER.search(" ".join(sentence.split())) is not None


def choose_query(question: str, sentences: Sequence[str]) -> str:
    """The last factual sentence of a reasoning, else the question itself (IRCoT)."""
    return next((sentence for sentence in reversed(sentences) if is_factual(sentence)), question)


def without_question_words(query: str) -> str:
    """A query for BM25: without the words that only ask; the query itself if nothing else is in it."""
    words = [word for word in query.split() if word.strip("?,.!").lower() not in _QUESTION_WORDS]
    return " ".join(words) or query
