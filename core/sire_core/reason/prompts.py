"""Prompts of reasoning and the schemas of their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from sire_core.models.answer_parsing import LenientAnswer, without_thinking
from sire_core.protocols import Prompt
from sire_core.reason.output_parsing import abstains, first_sentence, is_done, labelled_line
from sire_core.types import Unit

THINK = """\
Answer the question of the data in small steps. The data also holds numbered passages that a search has found, and the \
reasoning so far. Write the next sentence of the reasoning and nothing else: one short sentence with full names that \
states the next fact from the passages, or names what has to be found out next when they do not tell it. As soon as \
the reasoning so far decides the question, write instead: So the answer is: ANSWER."""
THINK_AND_SEARCH = """\
Answer the question of the data in small steps. The data also holds numbered passages that a search has found, the \
reasoning so far, and what was searched for. Give one sentence of reasoning, and the next search query:
reasoning: what the passages tell, with full names, about the next step to the answer.
search: the one thing that is still missing, as a short question with full names that was not searched for yet; DONE \
when the passages suffice to answer the question."""
ASK_FOLLOW_UP = """\
Decide what has to be known before the question of the data can be answered. The data holds the question and the \
follow-up questions so far with their intermediate answers. If something is missing, write one line: a simple question \
about one fact, with full names, that was not asked yet:
Follow up: QUESTION
If nothing is missing, or no follow-up question is needed at all, write one line:
So the final answer is: ANSWER"""
READ_FOLLOW_UP = """\
Answer the question of the data from its passages alone, in as few words as possible: a name, a number, a date, yes or \
no. If the passages do not tell, write: unknown"""
LIST_FOLLOW_UPS = """\
Break the question of the data down into the simple questions that have to be answered first, in the order in which \
they depend on each other, and answer each from the passages of the data (at most six words; empty when the passages \
do not tell). An empty list if the question is simple. For example, for "When did the maker of the film Alpha die?" \
the list is: "Who made the film Alpha?", answered "Jane Roe", then "When did Jane Roe die?", answered "in 1931"."""
READ = """\
Answer the question of the data from its numbered passages alone. Notes and background, if there are any, were written \
along the way and may be wrong: believe them only where a passage says the same.
answer: only what was asked for (a name, a number, a date, yes or no, a short phrase), without explanation, followed \
by the numbers of the passages it rests on, such as [2][5].
citations: these numbers.
sufficient: false when the passages do not contain the answer; answer is then: insufficient evidence"""
READ_FINDINGS = """
findings: some passages are reports whose findings are numbered; the findings it rests on, as the number of the \
passage and of the finding: 3.2 is finding 2 of passage 3"""
"""Appended to `READ` if there are reports among the passages."""
READ_ALWAYS = """\
Answer the question of the data from its numbered passages. Notes and background, if there are any, were written along \
the way and may be wrong. Write the answer alone, in as few words as possible (a name, a number, a date, yes or no, a \
short phrase), without a sentence around it and without an explanation. Always answer: where the passages do not tell, \
give the answer that is most likely."""
READ_BRIEF = READ_ALWAYS + " Use less than six words."  # IIER, appendix A.3; without passages A.4
READ_LONG = """\
The question of the data can be understood in several ways. Answer it from its numbered passages in one paragraph of \
three to six sentences that covers every way in which the passages answer it, and says for each what it depends on. \
Write the paragraph alone. Always answer."""
SEARCH_LABEL = re.compile(r"(?:next )?search(?: query)?[^\w:]{0,3}:", re.IGNORECASE)
"""Begins the line with the next query in a reply that is no JSON."""
READ_OPTIONS = """\
Choose the option that answers the question of the data best, by its passages. Answer with the number of the option \
and nothing else. Always choose one."""


_FINISHED = {"answer", "done", "sufficient"}  # Fields of a reply that says it needs no search


class SearchThought(LenientAnswer):
    """One sentence of reasoning and what to search for next, or DONE (IndexRAG, figure 8)."""

    shape: ClassVar[str] = '{"reasoning":"","search":"query or DONE"}'

    reasoning: str = ""
    search: str

    @model_validator(mode="before")
    @classmethod
    def _ends(cls, reply: Any) -> Any:
        """A reply with `null`, or with an answer in the place of a query, ends the search."""
        if isinstance(reply, dict) and reply.get("search", None if _FINISHED & set(reply) else "") is None:
            return {**reply, "search": "DONE"}
        return reply

    @classmethod
    def from_words(cls, text: str) -> Self | None:
        """Read a sentence and a line `Search: ...`, or one that only says DONE."""
        words = without_thinking(text)
        lines = words.strip().splitlines() or [""]
        search = labelled_line(words, SEARCH_LABEL) or ("DONE" if is_done(lines[-1]) else "")
        return cls(reasoning=first_sentence(words) if len(lines) > 1 else "", search=search) if search else None


class FollowUp(LenientAnswer):
    """A follow-up question and its answer."""

    q: str
    a: str = ""


class FollowUps(LenientAnswer):
    """The decomposition of a question (SiReRAG, appendix B)."""

    shape: ClassVar[str] = '{"followups":[{"q":"","a":""}]}'

    followups: list[FollowUp]


class Reading(LenientAnswer):
    """The reader's answer."""

    shape: ClassVar[str] = '{"answer":"","citations":[1],"sufficient":true}'

    answer: str
    citations: list[int] = Field(default_factory=list)
    sufficient: bool = True

    @field_validator("citations", mode="before")
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        """Numbers in any form: `"[2]"`, `"2"`, `2.0`; other items are dropped."""
        items = value if isinstance(value, list) else [value]
        digits = ("".join(filter(str.isdigit, str(item).split(".")[0])) for item in items)
        return [int(text) for text in digits if text and len(text) < 6]

    @classmethod
    def from_words(cls, text: str) -> Self | None:
        """Read an answer in words that cites its passages as `[1]`."""
        words = without_thinking(text).strip()
        numbers = [int(number) for number in re.findall(r"\[(\d{1,4})\]", words)]
        is_json = words[:1] in "{[`"
        return cls(answer=words, citations=numbers, sufficient=not abstains(words)) if numbers and not is_json else None


class ReportReading(Reading):
    """The reader's answer with numbered findings of reports (SMART, table 6)."""

    shape: ClassVar[str] = '{"answer":"","citations":[1],"findings":["1.2"],"sufficient":true}'

    findings: list[str] = Field(default_factory=list)

    @field_validator("findings", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        """Pairs of numbers in any form: `"[3.2]"`, `3.2`; other items are dropped."""
        items = value if isinstance(value, list) else [value]
        matches = (re.search(r"(\d{1,3})\.(\d{1,2})(?!\d)", str(item)) for item in items)
        return [f"{int(pair[1])}.{int(pair[2])}" for pair in matches if pair]


def prompt(
    instructions: str, question: str, passages: Sequence[Unit | None] = (), words: int = 0, **parts: Any
) -> Prompt:
    """Build a prompt. The data is JSON, so that no passage can pose as another part.

    Passages are numbered from 1; None stands for one that is left out and keeps its number.
    """
    data: dict[str, Any] = {"question": question}
    if passages:
        numbered = [(number, unit) for number, unit in enumerate(passages, 1) if unit is not None]
        data["passages"] = [_passage(number, unit, words) for number, unit in numbered]
    data.update({name: value for name, value in parts.items() if value})
    return Prompt(instructions, json.dumps(data, ensure_ascii=False, indent=1))


def with_examples(instructions: str, examples: str) -> str:
    """Append the user's solved examples to the instructions of a step."""
    return f"{instructions}\n\nSolved examples:\n\n{examples}" if examples else instructions


def cut_words(text: str, words: int) -> str:
    """The first `words` words of a text; all for 0."""
    parts = text.split(maxsplit=words) if words else []
    return text if len(parts) <= words else text[: len(text) - len(parts[-1])].rstrip() + " ..."


def _passage(number: int, unit: Unit, words: int) -> dict[str, Any]:
    text = cut_words(unit.text, words)
    return {"number": number, "title": unit.title, "text": text} if unit.title else {"number": number, "text": text}
