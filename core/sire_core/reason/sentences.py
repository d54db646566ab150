"""Sentences of a reasoning: which one to search for, and whether it is the last (ALGORITHMS 7). Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sire_core.algorithms.text import split_sentences

__all__ = [
    "as_query",
    "choose_query",
    "first_sentence",
    "is_factual",
    "states_answer",
    "without_question_words",
    "without_thinking",
]

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"^\s*(?:[-*\u2022]\s+|\(?\d{1,2}[.)]\s+|(?:thought|reasoning|next sentence)\s*\d*\s*:\s*)", re.IGNORECASE
)
_CONCLUDES = re.compile(r"^\W*(?:thus|so|that is|therefore|hence)\b", re.IGNORECASE)
_ARITHMETIC = re.compile(r"\d\s*[-+*/\u00d7\u00f7\u2212]\s*\d[\d.,]*\s*=|=\s*-?\d")
_ANSWER = re.compile(
    r"\banswer(?:\s+to\s+[^.:]{1,200}?)?\s+is\b(?!\s*:?\s*(?:not|unknown|unclear|still|missing|unavailable)\b)",
    re.IGNORECASE,
)
_QUERY_WORDS = 60
_QUESTION_WORDS = frozenset({"who", "what", "when", "where", "why", "which", "how", "does", "is"})


def without_thinking(text: str) -> str:
    """What a model wrote, without the blocks in which it thought."""
    return _THINKING.sub("", text).strip()


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
    return _ANSWER.search(sentence) is not None


def choose_query(question: str, sentences: Sequence[str]) -> str:
    """The last factual sentence of a reasoning, else the question itself (IRCoT)."""
    return next((sentence for sentence in reversed(sentences) if is_factual(sentence)), question)


def without_question_words(query: str) -> str:
    """A query for BM25: without the words that only ask; the query itself if nothing else is in it."""
    words = [word for word in query.split() if word.strip("?,.!").lower() not in _QUESTION_WORDS]
    return " ".join(words) or query
