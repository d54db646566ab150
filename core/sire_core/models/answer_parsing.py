"""Reads answers of models: thinking and repetitions removed, JSON repaired and validated; schemas for prompts."""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import from_json
from typing_extensions import Self

from sire_core.errors import LimitExceededError, RefusalError, UnusableAnswerError
from sire_core.protocols import Completion, ModelRequest, Prompt
from sire_core.text.words import clean_text, clean_value, split_sentences
from sire_core.types import digest

Ask = Callable[[ModelRequest], Awaitable[Completion]]
"""Sends one request and returns the raw answer."""

_CHANNEL_TAG = r"<\|channel\|>[\w ]{1,40}<\|message\|>|<\|(?:end|return)\|>\s*\Z"
_THINKING_TAG = rf"</?(?:\w{{1,20}}:)?think(?:ing)?>|\u25c1/?think\u25b7|{_CHANNEL_TAG}"  # Begins or ends thinking
_WORD_TAG = re.compile(r"\s*<(thoughts?|reasoning|reflection)>", re.IGNORECASE)
"""Begins thinking only at the beginning of an answer, which may be about such words."""
_ENDS_SENTENCE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u0964\u061f\u06d4][\"'\u2019\u201d\u00bb)\]*_]*\Z")
_PROSE = 64  # Room for a sentence. With less, a prompt asks for numbers or a name, which come first.
_PROSE_CUT = "an answer in prose was cut off at its length limit; it ends with its last whole sentence"
_EMPTY = "the model answered nothing; it is not stored and the next build asks again"
_THOUGHT = "the model only thought, up to its length limit, and answered nothing; give it more room or less to think"


def without_thinking(text: str, *, opened: bool = True, keep_open: bool = False) -> str:
    """The text without the blocks in which a model thought."""
    word = _WORD_TAG.match(text)
    tags = f"{_THINKING_TAG}|</?{word[1]}>" if word else _THINKING_TAG
    parts: list[str] = []
    start, begin = 0, -1
    for tag in re.finditer(tags, text, re.IGNORECASE):
        name = tag[0].lower()
        if name.startswith(("<|end", "<|return")):
            text = text[: tag.start()]
        elif not ("/" in name or "|>final" in name):
            begin = tag.start() if begin < 0 else begin
        elif begin >= 0:
            parts.append(text[start:begin])
            start, begin = tag.end(), -1
        elif opened:
            parts, start = [], tag.end()
    return "".join((*parts, text[start : begin if begin >= 0 and not keep_open else None])).strip()


def whole_sentences(text: str) -> str:
    """A text up to its last whole sentence; empty when it has none."""
    text = text.rstrip()
    if _ENDS_SENTENCE.search(text):
        return text
    *whole, rest = split_sentences(text) or [""]
    return text[: text.rindex(rest)].rstrip() if whole else ""


async def ask_text(ask: Ask, request: ModelRequest) -> Completion:
    """Ask for prose; it must not be empty without the thinking before it, and ends with a whole sentence."""
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
            _logger.warning(_PROSE_CUT)
            answer = replace(answer, text=text, finish="stop")
    if not answer.text.strip():
        raise UnusableAnswerError(_THOUGHT if first.text.strip() else _EMPTY)
    return answer


async def ask_again(ask: Ask, request: ModelRequest, before: Completion) -> Completion:
    """Ask again after an unusable answer; if a limit forbids it, the error carries that answer."""
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
    """Return the answer; raises `RefusalError` if the model refused."""
    if answer.finish == "refusal":
        raise RefusalError(f"the model declined to answer: {answer.text[:200]!r}")
    return answer


def _said(answer: Completion) -> Completion:
    text = clean_text(not_refused(answer).text)
    spoken = without_thinking(text)
    return replace(answer, text=text if spoken == text.strip() else spoken)  # verbatim where nothing was thought aloud


_REACH = 6_000  # Letters at the end that are looked at: a few rounds of anything that a model repeats
_LEAST_ROUNDS = 3
_LEAST_LETTERS = 120
_DIGIT = re.compile(r"\d")


def loop_at(text: str) -> tuple[int, int] | None:
    """Position from which a text repeats its own end, and the length of a round; None if it does not repeat."""
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


_CODE_FENCE = re.compile(r"```[ \t]*(?:[\w+-]+[ \t]*)?\r?\n(.*?)```", re.DOTALL)
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_PIECES = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*(?:"|\\?\Z))'
    r"|(?P<comment>//[^\n]*)"
    r"|(?P<comma>,)(?=(?:\s|//[^\n]*(?:\n|\Z))*[}\]])"
    r"|(?P<word>\b(?:True|False|None)\b)",
    re.DOTALL,
)
_STRAIGHT_QUOTES = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"')
_BARE_NAME = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|(?<=[{,\s])(?P<name>[A-Za-z_]\w{0,40})(?=\s{0,20}:)', re.DOTALL)
_ENDS_STRING = re.compile(r"\s{0,20}(?:[,:}\]]|\Z)")
_BEGINS_JSON = re.compile(r"""[{\[]\s*["{\[]""")
_CLOSES = {"{": "}", "[": "]"}
_BRACKET_OR_STRING = re.compile(r'[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_NUMBER_LETTERS = "0123456789.+-eE"  # At the cut end of an answer they may be the first letters of another number
# Openings that are tried when earlier ones never close; keeps hostile answers linear.
_MAX_STARTS = 16
_logger = logging.getLogger(__name__)
_FIELD = re.compile(r"[A-Za-z_]\w{0,40}")
_WORDY = frozenset({"title", "default", "description"})
_MAX_ERRORS = 5
_MAX_SHOWN = 6_000
_LOOP = "an answer for the schema %s repeated itself until its length limit; what it said before is used"
_CUT_TWICE = "an answer for the schema %s was cut off at its length limit, twice; what it finished is used"
_BARE_HINT = "Answer with one JSON object only, no other text. Its JSON schema:\n"
T = TypeVar("T")
_left_out: ContextVar[list[str] | None] = ContextVar("_left_out", default=None)
_WRAPPERS = 4


def tolerant_json(text: str) -> Any:
    """Read the JSON value of an answer."""
    text = text.strip().lstrip("\ufeff")
    if not text:
        raise ValueError("the answer is empty")
    first: ValueError | None = None
    for candidate in _candidates(text):
        try:
            return clean_value(_container(_loads(candidate)))
        except (ValueError, RecursionError) as error:  # noqa: PERF203 - a handful of candidates
            first = first or ValueError(str(error) or type(error).__name__)
    for other in (_double_quoted, _plain_quotes):
        if (quoted := other(text)) != text:
            with suppress(ValueError):
                return tolerant_json(quoted)
    raise first or ValueError("there is no complete JSON object in the answer")


def _candidates(text: str) -> Iterator[str]:
    """Parts of an answer that may be its value, most likely first; most answers need the first only."""
    yield text
    # An end of thinking without a beginning: that stood in the prompt, and what came before is a draft. Or the tag is a
    # stray one, behind the answer or in it.
    for bare in dict.fromkeys(without_thinking(text, opened=opened, keep_open=True) for opened in (True, False)):
        fenced = [match.group(1) for match in _CODE_FENCE.finditer(bare)]
        yield from _one_of_parts(spans := _outermost(bare))
        yield from sorted(fenced, key=len, reverse=True)[:4]
        yield from spans


def _one_of_parts(spans: Sequence[str]) -> Iterator[str]:
    """One object of several that stand one after the other and say different things, as some models answer."""
    parts: list[dict[str, Any]] = []
    for span in spans if len(spans) > 1 else ():
        with suppress(ValueError, RecursionError):
            value = _loads(span)
            parts += [value] if isinstance(value, dict) else []
    if len(parts) > 1 and len(whole := {name: value for part in parts for name, value in part.items()}) == sum(
        map(len, parts)
    ):
        yield json.dumps(whole)


def _double_quoted(text: str) -> str:
    """The text with JSON's quotes around strings that stand in single ones, as Python writes them."""
    parts: list[str] = []
    depth = at = 0
    while at < len(text):
        letter = text[at]
        end = at + 1
        if letter == '"' and depth:
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            end += 1
        elif letter == "'" and depth:
            while end < len(text) and not (text[end] == "'" and _ENDS_STRING.match(text, end + 1)):
                end += 2 if text[end] == "\\" else 1
            content = text[at + 1 : end].replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
            parts.append(f'"{content}"')
            at = end + 1
            continue
        depth += (letter in "{[") - (letter in "}]" and depth > 0)
        parts.append(text[at:end])
        at = end
    return "".join(parts)


def _plain_quotes(text: str) -> str:
    """The text with plain quotes in the place of typographic and escaped ones, and around names of fields."""
    text = html.unescape(text) if "&quot;" in text else text.translate(_STRAIGHT_QUOTES)
    return _BARE_NAME.sub(lambda match: match[0] if match["name"] is None else f'"{match["name"]}"', text)


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_PIECES.sub(_repair, text), strict=False)


def _repair(match: re.Match[str]) -> str:
    if match.group("string") is not None:
        return match.group(0)
    if match.group("word") is not None:
        return _PYTHON[match.group("word")]
    return ""


def _container(value: Any) -> Any:
    if isinstance(value, str):  # JSON written into a JSON string
        value = json.loads(value)
    if not isinstance(value, dict | list):
        raise ValueError(f"a JSON object is needed, not {type(value).__name__}")  # noqa: TRY004 - one kind of error for callers
    return value


def _outermost(text: str) -> list[str]:
    """Balanced top-level objects and arrays, longest first."""
    spans: list[tuple[int, int]] = []
    position = 0
    for _ in range(_MAX_STARTS):
        start = min((at for at in (text.find("{", position), text.find("[", position)) if at >= 0), default=-1)
        if start < 0:
            break
        end = _closing(text, start)
        if end < 0:
            if _BEGINS_JSON.match(text, start):  # cut off: what is inside is a fragment, not the answer
                break
            position = start + 1
        else:
            spans.append((start, end))
            position = end
    return [text[start:end] for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0]))]


def _closing(text: str, start: int) -> int:
    """Index after the bracket that closes the one at `start`, or -1."""
    closers: list[str] = []
    for match in _BRACKET_OR_STRING.finditer(text, start):
        letter = match[0][0]
        if letter in _CLOSES:
            closers.append(_CLOSES[letter])
        elif letter != '"' and closers.pop() != letter:
            return -1
        if not closers:
            return match.end()
    return -1


def salvaged(text: str) -> Any:
    """Read the value of an answer that was cut off, without its unfinished end.

    An answer that repeats itself ends after the first round; a string that repeats itself is closed after one round.
    """
    start, period = loop_at(text) or (len(text), 0)
    in_string = period > 0 and '"' not in _ESCAPED.sub("", text[start : start + period])
    end = start + (period if in_string else max(2 * period - 1, 0))
    begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=end)
    body = text[begin:end].rstrip("" if in_string else _NUMBER_LETTERS).encode("utf-8", "replace")
    return _without_empty_end(from_json(body, allow_partial="trailing-strings" if in_string else True))


def _without_empty_end(value: Any) -> Any:
    """A value without the containers at its end in which nothing was finished."""
    if isinstance(value, dict | list) and value:
        last = next(reversed(value)) if isinstance(value, dict) else -1
        if _without_empty_end(value[last]) in ({}, []):
            del value[last]
    return value


async def ask_checked(ask: Ask, request: ModelRequest) -> Completion:
    """Ask for a value of a schema, see `ask_structured`, or for a text, see `ask_text`."""
    if request.schema is not None:
        return await ask_structured(ask, request, request.schema)
    return await ask_text(ask, request)


async def ask_structured(ask: Ask, request: ModelRequest, schema: type[BaseModel]) -> Completion:
    """Ask for a value of a schema: parse, else repair once, else fail."""
    first = await ask(request)
    try:
        return _read(first, schema)
    except ValueError as error:
        problem = _describe(error, first)
    room = request.max_tokens
    if first.finish == "length" and loop_at(first.text) is not None:
        # More room is more rounds. What came before the first repetition is the answer, if it fits.
        if (salvage := _salvage([first], schema)) is not None:
            _logger.warning(_LOOP, schema_name(schema))
            return salvage
        problem = f"the answer repeated itself until its length limit; name everything once ({problem})"
    elif room and first.finish == "length":
        room *= 2
    prompt = _repair_prompt(request.prompt, problem, first.text)
    second = await ask_again(ask, replace(request, prompt=prompt, max_tokens=room), first)
    try:
        done = _read(second, schema)
    except ValueError as error:
        salvage = _salvage((second, first), schema)
        if salvage is None:
            raise UnusableAnswerError(
                f"the answer did not fit the schema {schema_name(schema)} even after a repair call: "
                f"{_describe(error, second)}; it is not stored and the next build asks again",
                second.text if second.text.strip() else first.text,
            ) from error
        _logger.warning(_CUT_TWICE, schema_name(schema))
        done = salvage
    return with_both(done, first, second)


def parse_answer(text: str, schema: type[BaseModel]) -> BaseModel:
    """Read an answer as a value of a schema; in plain words only where the schema understands them."""
    try:
        return schema.model_validate(tolerant_json(text))
    except ValueError:
        value = schema.from_words(text) if issubclass(schema, LenientAnswer) else None
        if value is None:
            raise
        return value


def _read(answer: Completion, schema: type[BaseModel]) -> Completion:
    if isinstance(not_refused(answer).parsed, schema):
        return answer
    return replace(answer, parsed=parse_answer(answer.text, schema))


def _salvage(answers: Sequence[Completion], schema: type[BaseModel]) -> Completion | None:
    """Return the longest part of cut-off answers that fits a schema; None if none fits, or one was not cut off."""
    parts = [part for answer in answers if (part := _salvaged_answer(answer, schema)) is not None]
    is_cut = all(answer.finish == "length" for answer in answers)
    return max(parts, key=lambda part: len(part.text), default=None) if is_cut else None


def _salvaged_answer(answer: Completion, schema: type[BaseModel]) -> Completion | None:
    with suppress(ValueError):  # of JSON and of the schema
        value = clean_value(salvaged(answer.text))
        text = json.dumps(value, ensure_ascii=False)
        return replace(answer, text=text, parsed=schema.model_validate(value), finish="stop")
    return None


def _describe(error: ValueError, answer: Completion) -> str:
    """Describe an error without quoting the answer, which may quote a passage."""
    if isinstance(error, ValidationError):
        lines = []
        for problem in error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_ERRORS]:
            path = ".".join(str(part) for part in problem["loc"] if isinstance(part, int) or _FIELD.fullmatch(part))
            lines.append(f"{path or 'answer'}: {problem['msg']}")
        text = "; ".join(lines)
    else:
        text = str(error)
    if answer.finish == "length":
        text = f"the answer was cut off at its length limit ({text})"
    return text[:400]


def _repair_prompt(prompt: Prompt, problem: str, answer: str) -> Prompt:
    instructions = (
        f"{prompt.instructions.strip()}\n\nAn earlier answer could not be used: {problem}. It stands at the end of the "
        f"input after the line PREVIOUS ANSWER. Answer again, with the complete JSON value and nothing else."
    )
    return replace(prompt, instructions=instructions, data=f"{prompt.data}\n\nPREVIOUS ANSWER\n{answer[:_MAX_SHOWN]}")


# --------------------------------------------------------------------------------------------------------------------
# Schemas


def schema_name(schema: type[Any]) -> str:
    """Name under which a server and a log know the schema."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", schema.__name__)[:64]


def schema_fingerprint(schema: type[BaseModel] | None) -> str:
    """Name and content of a schema, for the key of a cached answer; changes with any field."""
    if schema is None:
        return ""
    return f"{schema_name(schema)}:{digest(json.dumps(schema.model_json_schema(), sort_keys=True))}"


def schema_hint(schema: type[BaseModel]) -> str:
    """Addition to the instructions for a server that does not enforce a schema."""
    shape = getattr(schema, "shape", "")
    if shape:
        return f"Answer with one JSON object only, no other text, of this shape:\n{shape}"
    return _BARE_HINT + json.dumps(_tightened(schema.model_json_schema()), ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=64)
def strict_json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema as strict structured output wants it: every property required, no others, no prose."""
    tightened: dict[str, Any] = _tightened(schema.model_json_schema())
    return tightened


def _tightened(node: Any) -> Any:
    if isinstance(node, list):
        return [_tightened(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _tightened(value) for key, value in node.items() if key not in _WORDY}
    if isinstance(node.get("properties"), dict):
        # Names of properties are data here: a property called `title` stays.
        out["properties"] = {name: _tightened(value) for name, value in node["properties"].items()}
        out["required"] = list(node["properties"])
        out["additionalProperties"] = False
    return out


@contextmanager
def items_left_out() -> Iterator[list[str]]:
    """Collect what could not be read of the items of answers that are validated inside the block, in words."""
    problems: list[str] = []
    token = _left_out.set(problems)
    try:
        yield problems
    finally:
        _left_out.reset(token)


def leave_out(item: object, problem: str) -> None:
    """Note an item that could not be read; empty ones say nothing and are not noted."""
    noted = _left_out.get()
    if noted is not None and item not in (None, "", [], {}):
        noted.append(problem)


def _item_by_item(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """The items of a list that can be read. An object's values count as a list, a single item as one, null as none."""
    items: Any = [] if value is None else value
    if isinstance(items, Mapping):
        items = list(items.values()) if all(isinstance(item, Mapping | list) for item in items.values()) else [items]
    elif isinstance(items, str):
        items = [items]
    try:
        return handler(items)
    except ValidationError as error:
        if not isinstance(items, list):
            raise
        readable, first = [], error
        for item in items:
            try:
                readable += handler([item])
            except ValidationError as problem:  # noqa: PERF203 - one bad item must not cost the others
                leave_out(item, str(problem.errors()[0]["msg"]))
        if not readable and any(item not in (None, "", [], {}) for item in items):
            raise first from None
        return readable


def _as_level(value: Any) -> str:
    return "high" if str(value).strip().lower() == "high" else "low"


LenientList = Annotated[list[T], WrapValidator(_item_by_item)]
"""A list, read item by item: one that cannot be read does not cost the others."""
LenientLevel = Annotated[Literal["low", "high"], BeforeValidator(_as_level)]
"""Level of abstraction; anything but `high` is read as `low`."""


class LenientAnswer(BaseModel):
    """Reads what models make of a shape: wrapped in a list or another object, with nulls, numbers or lists for text."""

    shape: ClassVar[str] = ""
    """An example of the answer, for servers that do not enforce a schema; much shorter than its JSON schema."""

    @classmethod
    def from_words(cls, text: str) -> Self | None:  # noqa: ARG003 - subclasses read it
        """Return the value that an answer in plain words stands for, so that it is not asked for again; else None."""
        return None

    @model_validator(mode="before")
    @classmethod
    def _tidy(cls, data: Any) -> Any:
        data = _named(_unwrapped(data, cls.model_fields), cls.model_fields)
        if not isinstance(data, Mapping):
            return data
        tidy = {}
        for name, value in data.items():
            field = cls.model_fields.get(name)
            if value is None and field is not None and not field.is_required():
                continue
            tidy[name] = _as_text(value) if field is not None and field.annotation is str else value
        return tidy


def _as_text(value: Any) -> Any:
    """Text for a number or a list of texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value


def _unwrapped(data: Any, fields: Mapping[str, Any]) -> Any:
    """The object that holds the fields, out of a list of objects, or out of another object."""
    for _ in range(_WRAPPERS):
        data = [_named(part, fields) for part in data] if isinstance(data, list) else _named(data, fields)
        if (
            isinstance(data, list)
            and data
            and all(isinstance(part, Mapping) and set(part) & set(fields) for part in data)
        ):
            data = _merged(data)
        elif isinstance(data, list) and len(data) == 1 and isinstance(data[0], Mapping):
            (data,) = data
        elif isinstance(data, list):
            lists = [
                name for name, field in fields.items() if field.is_required() and get_origin(field.annotation) is list
            ]
            return {lists[0]: data} if len(lists) == 1 else data
        elif isinstance(data, Mapping) and not set(data) & set(fields):
            inner = [value for value in map(_opened, data.values()) if isinstance(value, Mapping | list)]
            if len(inner) != 1:
                return data
            (data,) = inner
        else:
            return data
    return data


def _named(data: Any, fields: Mapping[str, Any]) -> Any:
    """An object whose keys are those of the fields, whatever the case of their letters."""
    if not isinstance(data, Mapping):
        return data
    return {name if name in fields or name.lower() not in fields else name.lower(): data[name] for name in data}


def _opened(value: Any) -> Any:
    """The JSON object in a text, as the arguments of a call are sent; other values as they are."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError):
            return tolerant_json(value)
    return value


def _merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One object of several; lists of the same name one after the other."""
    whole: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            before = whole.get(name)
            whole[name] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
    return whole
