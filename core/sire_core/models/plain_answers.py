"""Answers in prose: whole, without what a model thought before them, and cut off in a loop."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from sire_core.algorithms.text import clean_text, split_sentences
from sire_core.errors import LimitExceededError, RefusalError, UnusableAnswerError
from sire_core.protocols import Completion, ModelRequest

_logger = logging.getLogger(__name__)

Ask = Callable[[ModelRequest], Awaitable[Completion]]
"""Sends one request and returns the raw answer."""

_CHANNEL_TAG = r"<\|channel\|>[\w ]{1,40}<\|message\|>|<\|(?:end|return)\|>\s*\Z"
_TAG = rf"</?(?:\w{{1,20}}:)?think(?:ing)?>|\u25c1/?think\u25b7|{_CHANNEL_TAG}"
"""Begins or ends what a model thinks aloud."""
_WORD_TAG = re.compile(r"\s*<(thoughts?|reasoning|reflection)>", re.IGNORECASE)
"""Does so only where it begins an answer, which may be about such words."""
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u0964\u061f\u06d4][\"'\u2019\u201d\u00bb)\]*_]*\Z")
_PROSE = 64
"""Room for a sentence. Who gives less asks for numbers or a name, which come first: nothing is missing."""
_CUT = "an answer in prose was cut off at its length limit; it ends with its last whole sentence"
_EMPTY = "the model answered nothing; it is not stored and the next build asks again"
_THOUGHT = "the model only thought, up to its length limit, and answered nothing; give it more room or less to think"


def without_thinking(text: str, *, opened: bool = True, keep_open: bool = False) -> str:
    """The text without the blocks in which a model thought."""
    word = _WORD_TAG.match(text)
    tags = f"{_TAG}|</?{word[1]}>" if word else _TAG
    kept: list[str] = []
    start, begin = 0, -1
    for tag in re.finditer(tags, text, re.IGNORECASE):
        name = tag[0].lower()
        if name.startswith(("<|end", "<|return")):
            text = text[: tag.start()]
        elif not ("/" in name or "|>final" in name):
            begin = tag.start() if begin < 0 else begin
        elif begin >= 0:
            kept.append(text[start:begin])
            start, begin = tag.end(), -1
        elif opened:
            kept, start = [], tag.end()
    return "".join((*kept, text[start : begin if begin >= 0 and not keep_open else None])).strip()


def whole_sentences(text: str) -> str:
    """A text up to its last whole sentence; empty when it has none."""
    text = text.rstrip()
    if _SENTENCE_END.search(text):
        return text
    *whole, rest = split_sentences(text) or [""]
    return text[: text.rindex(rest)].rstrip() if whole else ""


async def ask_text(ask: Ask, request: ModelRequest) -> Completion:
    """Ask for any text that is not empty when what the model thought before it is taken away."""
    first = await ask(request)
    answer = _said(first)
    room = request.max_tokens
    if answer.finish == "length" and (room is None or room >= _PROSE):
        loop = loop_at(answer.text)
        if loop is not None:
            start, period = loop
            answer = replace(answer, text=answer.text[: start + 2 * period - 1])  # its sentence may end in the second
        elif room is not None:
            second = await ask_again(ask, replace(request, max_tokens=2 * room), first)
            better = _said(second)
            longer = better.finish != "length" or len(better.text) >= len(answer.text)
            answer = with_both(better if longer else answer, first, second)
        if answer.finish == "length" and (text := whole_sentences(answer.text)):
            _logger.warning(_CUT)
            answer = replace(answer, text=text, finish="stop")
    if not answer.text.strip():
        raise UnusableAnswerError(_THOUGHT if first.text.strip() else _EMPTY)
    return answer


async def ask_again(ask: Ask, request: ModelRequest, before: Completion) -> Completion:
    """Ask once more since an answer was not good enough; when a limit forbids that, the error has that answer."""
    try:
        return await ask(request)
    except LimitExceededError as error:
        error.said = before.text
        raise


def with_both(answer: Completion, first: Completion, second: Completion) -> Completion:
    """An answer with the tokens of both calls."""
    read, wrote = first.input_tokens + second.input_tokens, first.output_tokens + second.output_tokens
    return replace(answer, input_tokens=read, output_tokens=wrote)


def not_refused(answer: Completion) -> Completion:
    """The answer, if it is one."""
    if answer.finish == "refusal":
        raise RefusalError(f"the model declined to answer: {answer.text[:200]!r}")
    return answer


def _said(answer: Completion) -> Completion:
    text = clean_text(not_refused(answer).text)
    said = without_thinking(text)
    return replace(answer, text=text if said == text.strip() else said)  # verbatim where nothing was thought aloud


_REACH = 6_000
"""Letters at the end that are looked at: a few rounds of anything that a model repeats."""
_LEAST_ROUNDS = 3
_LEAST_LETTERS = 120
_DIGIT = re.compile(r"\d")


def loop_at(text: str) -> tuple[int, int] | None:
    """Where a text begins to repeat its own end, and the length of a round; None when it does not."""
    end = _DIGIT.sub("0", text[-_REACH:])[::-1]
    # The prefix function of the reversed end: its smallest period is that of the loop.
    border = [0] * len(end)
    best = 0
    period = 0
    for at in range(1, len(end)):
        k = border[at - 1]
        while k and end[at] != end[k]:
            k = border[k - 1]
        border[at] = k + (end[at] == end[k])
        length = at + 1
        if length >= max(_LEAST_LETTERS, _LEAST_ROUNDS * (length - border[at])):
            best, period = length, length - border[at]
    return (len(text) - best, period) if best else None
