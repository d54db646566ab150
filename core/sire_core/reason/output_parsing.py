"""Parsing of model output: sentences, labelled lines, unfinished answers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from sire_core.models.answer_parsing import without_thinking
from sire_core.reason.citations import CONTEXT_CHARS, settled, tidy_citations, without_citations
from sire_core.text.words import normalize_answer, split_sentences

_ANSWER_LABEL = re.compile(
    r"^\s*(?:[-*\u2022]\s+|\(?\d{1,2}[.)]\s+|(?:thought|reasoning|next sentence)\s*\d*\s*:\s*)", re.IGNORECASE
)
_CONCLUDES = re.compile(r"^\W*(?:thus|so|that is|therefore|hence)\b", re.IGNORECASE)
_ARITHMETIC = re.compile(r"\d\s*[-+*/\u00d7\u00f7\u2212]\s*\d[\d.,]*\s*=|=\s*-?\d")
# For text whose white space is single spaces: runs of it would be read again and again.
_ANSWER_WORD = re.compile(
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
    """True if the reply means that nothing is left to search for: `DONE` in any form, or null."""
    return text.strip(" \t\r\n.!\"'`*[](){}<>").casefold() in _DONE


def abstains(text: str) -> bool:
    """True if a prose answer only says that there is none, such as "I do not know."."""
    normalized = " ".join(text.replace("\u2019", "'").casefold().split())
    return normalized.strip(" .!*\"'") in _NO_ANSWER or _ABSTAINS.match(normalized) is not None


def labelled_line(text: str, label: re.Pattern[str]) -> str:
    """The rest of the first line that begins with a label such as `Search:`; empty if there is none."""
    for line in text.splitlines():
        match = label.match(line.lstrip(" \t#*->_\"'`"))
        if match and (rest := line.lstrip(" \t#*->_\"'`")[match.end() :].strip(" \t*_\"'`")):
            return rest
    return ""


def first_sentence(text: str) -> str:
    """The first sentence of a reply, without thinking blocks, bullets and labels; empty if there is none."""
    for line in without_thinking(text).splitlines():
        sentences = split_sentences(_ANSWER_LABEL.sub("", line))
        if sentences:
            return sentences[0]
    return ""


def as_query(text: str) -> str:
    """A text on one line, cut to a reasonable number of words."""
    return " ".join(text.split()[:_QUERY_WORDS])


def is_factual(sentence: str) -> bool:
    """True if a sentence is a fact to search for: not a conclusion, not an equation."""
    return not _CONCLUDES.match(sentence) and not _ARITHMETIC.search(sentence)


def states_answer(sentence: str) -> bool:
    """True if a sentence states the answer."""
    return _ANSWER_WORD.search(" ".join(sentence.split())) is not None


def choose_query(question: str, sentences: Sequence[str]) -> str:
    """The last factual sentence of a reasoning, else the question itself (IRCoT)."""
    return next((sentence for sentence in reversed(sentences) if is_factual(sentence)), question)


def without_question_words(query: str) -> str:
    """A query for BM25 without question words, unless nothing else is left."""
    words = [word for word in query.split() if word.strip("?,.!").lower() not in _QUESTION_WORDS]
    return " ".join(words) or query


_FINDING = re.compile(r"^\[(\d{1,2})\] ", re.MULTILINE)


def numbered_findings(report: str) -> frozenset[int]:
    """Numbers of a report's findings: `[1] Both ships were built by ...`."""
    return frozenset(int(number) for number in _FINDING.findall(report))


_BEGIN = re.compile(r'(?<!\\)"answer"\s*:\s*"')
_STRING = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')
"""A complete part of a JSON string: to its end, or to an incomplete escape."""
_ESCAPE = len("\\ud83d")


class AnswerText:
    """Finds the value of `answer` in the pieces of a JSON text, and tidies it as `cite` does.

    What is given out is the beginning of what `cite` makes of the whole, unless the JSON turns out to be no reading.
    """

    def __init__(self, shown: Collection[int]) -> None:
        self.text = ""  # What was given out so far
        self._shown = shown
        self._raw = ""  # JSON that was not read yet
        self._begun = self._ended = False
        self._sure = ""  # read, and tidied: the last characters
        self._unsure = ""  # read, and may still change its meaning
        self._held = ""  # sure, but nothing that could be an answer
        self._citations: dict[int, None] = {}

    @property
    def citations(self) -> tuple[int, ...]:
        """Numbers of the cited hits."""
        return tuple(self._citations) if self.text else ()

    def add(self, piece: str) -> str:
        """Return the text that a piece adds."""
        if self._ended:
            return ""
        self._raw += piece
        if not self._begun and not self._begin():
            return ""
        text = self._unsure + self._read()
        sure = text.rstrip() if self._ended else settled(text)
        self._unsure = text[len(sure) :]
        tidy, numbers = tidy_citations(self._sure + sure, self._shown, start=len(self._sure))
        self._sure = (self._sure + sure)[-CONTEXT_CHARS:]
        self._citations.update(dict.fromkeys(numbers))
        if not self.text:
            tidy = (self._held + tidy).lstrip()
            self._held = tidy
            # The last word may still become one that is no answer alone: "th" is something, "the" is not.
            finished = tidy if self._ended or self._unsure else _without_last_word(tidy)
            if not normalize_answer(without_citations(finished)):
                return ""
        self.text += tidy
        return tidy

    def _begin(self) -> bool:
        """Find the start of the value."""
        if '"answer"' in self._raw:
            text = without_thinking(self._raw)
            if begin := _BEGIN.search(text):
                space = self._raw[len(self._raw.rstrip()) :]  # which went with the thinking
                self._begun, self._raw = True, text[begin.end() :] + space
        return self._begun

    def _read(self) -> str:
        """The complete part of the JSON string after the text that was read before."""
        string = _STRING.match(self._raw)
        assert string is not None  # it matches the empty text, too
        rest = self._raw[string.end() :]
        self._ended = rest.startswith('"')
        try:
            value: str = json.loads(f'"{string.group()}"', strict=False)
        except ValueError:  # an escape that does not exist
            self._ended = True
            return ""
        if not self._ended and "\ud800" <= value[-1:] <= "\udbff":  # the first half of a character
            value, rest = value[:-1], string.group()[-_ESCAPE:] + rest
        self._raw = rest
        return value


def _without_last_word(text: str) -> str:
    words = text.split()
    return text[: -len(words[-1])] if words and text.endswith(words[-1]) else text
