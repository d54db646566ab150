"""What scripted models and servers answer, as plain functions from a call to a text, and what goes wrong, and when."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from sire_core.algorithms.text import split_sentences
from sire_core.errors import ConfigurationError
from sire_core.extraction.record import to_json
from sire_core.types import Chunk, digest

__all__ = [
    "FAULTS",
    "PREVIOUS_ANSWER",
    "Fault",
    "FaultPlan",
    "Script",
    "ScriptedCall",
    "always",
    "at_calls",
    "by_chance",
    "default_script",
    "first",
    "no_faults",
    "replay",
    "rule_answer",
]

PREVIOUS_ANSWER = "\n\nPREVIOUS ANSWER\n"
"""Where a repair prompt shows the answer that could not be used."""

_SUMMARY_SENTENCES = 3
_NAME = re.compile(r"\b[A-Z][\w'\u2019-]*(?:\s+(?:of|the|de|von|and)?\s*[A-Z][\w'\u2019-]*)*|\b\d{4}\b")
_KEYWORDS = 5


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One prompt that a scripted model got.

    Attributes:
        instructions: Our words (the whole system message on a server).
        data: The data block.
        schema: The JSON schema that was asked for, or None for text. Empty when a server does not know it.
        number: 1 for the first call of the model.
        attempt: How many calls had the same input before, repairs included.
        active: Calls under way, this one included.
    """

    instructions: str
    data: str = ""
    schema: Mapping[str, Any] | None = None
    number: int = 1
    attempt: int = 0
    active: int = 1
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def input(self) -> str:
        """The data without the unusable answer that a repair prompt adds."""
        return self.data.split(PREVIOUS_ANSWER)[0]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The input of an extraction prompt (`title`, `passage`, `context`, `entities`); empty for others."""
        try:
            value, _ = json.JSONDecoder().raw_decode(self.data)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


Script = Callable[[ScriptedCall], str]
"""Answers a call. An exception that it raises is the model's failure."""


def default_script(call: ScriptedCall) -> str:
    """A sensible answer to anything, always the same one.

    Extraction prompts get a record made by simple rules, other schemas a filled-in example, plain prompts the first
    sentences of the input.
    """
    passage = call.fields.get("passage")
    if call.schema is None:
        if isinstance(passage, str):
            return passage
        return " ".join(split_sentences(call.input)[:_SUMMARY_SENTENCES]) or "Nothing."
    if isinstance(passage, str):
        return json.dumps(rule_answer(str(call.fields.get("title", "")), passage), ensure_ascii=False)
    sentences = split_sentences(call.input) or ["Nothing."]
    return json.dumps(_filled(call.schema, call.schema, sentences[0][:200]), ensure_ascii=False)


def rule_answer(title: str, passage: str) -> dict[str, Any]:
    """An answer to the joint extraction prompt: sentences are facts, capitalised words are entities."""
    names: dict[str, str] = {}
    facts = []
    for sentence in split_sentences(passage):
        found = list(dict.fromkeys(match.group(0) for match in _NAME.finditer(sentence)))
        for name in ([title] if title else []) + found:
            names.setdefault(name, f"n{len(names) + 1}")
        ends = ([title] if title and title not in found else []) + found
        triples = [{"h": ends[0], "p": "is mentioned with", "t": tail, "strength": 5} for tail in ends[1:]]
        facts.append({"text": sentence, "entities": [names[name] for name in ends], "triples": triples})
    return {
        "entities": [{"id": local, "name": name, "type": "Thing"} for name, local in names.items()],
        "facts": facts,
        "keywords": [name for name in names if name in passage and name != title][:_KEYWORDS],
        "topic": title,
        "abstractiveness": "low",
    }


def replay(extractions: str | Path, corpus: str | Path, fallback: Script = default_script) -> Script:
    """A script that answers extraction prompts with recorded extractions, found by the passage in the prompt.

    The answers are the records of `RecordedExtractor`, so that a build over a server and one from the recording can be
    compared.

    Args:
        extractions: The recording; see `RecordedExtractor`.
        corpus: JSONL of `{"id", "title", "text"}`, one passage a line.
        fallback: Answers every other prompt.
    """
    from sire_core.extraction.recorded import RecordedExtractor

    recorded = RecordedExtractor(extractions, link_titles=False)
    known = {
        _squeezed(line["text"]): Chunk(line["id"], line["id"], 0, line["title"], line["text"])
        for line in _lines(corpus)
    }

    def script(call: ScriptedCall) -> str:
        passage = call.fields.get("passage")
        chunk = known.get(_squeezed(passage)) if isinstance(passage, str) else None
        if chunk is None or call.schema is None:
            return fallback(call)
        return to_json(recorded.records([chunk])[0])

    return script


def _lines(path: str | Path) -> list[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _squeezed(text: str) -> str:
    """Letters and digits only: fencing and escaping may change the rest."""
    return "".join(letter for letter in text if letter.isalnum())


def _filled(node: Mapping[str, Any], root: Mapping[str, Any], text: str) -> Any:
    """The simplest value of a JSON schema, lists with one item, strings filled with `text`."""
    if "$ref" in node:
        return _filled(root["$defs"][str(node["$ref"]).rsplit("/", 1)[-1]], root, text)
    for choice in ("anyOf", "oneOf", "allOf"):
        if node.get(choice):
            return _filled(node[choice][0], root, text)
    if "enum" in node or "const" in node:
        options: Sequence[Any] = node.get("enum") or [node.get("const")]
        return options[0]
    kind = node.get("type")
    if kind == "object" or "properties" in node:
        return {name: _filled(child, root, text) for name, child in node.get("properties", {}).items()}
    if kind == "array":
        return [_filled(node.get("items", {"type": "string"}), root, text)]
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(str(kind), text)


Fault = Literal[
    "fenced",  # the JSON inside a code fence, with prose around it
    "trailing_comma",  # commas before closing brackets
    "garbage",  # prose with a bracket that never closes
    "wrong_schema",  # valid JSON of another shape
    "empty",  # no text at all
    "half_answer",  # cut off, finish_reason length
    "half_body",  # the connection closes in the middle of the response
    "stall",  # the response stops in the middle, and the connection stays open
    "reset",  # the connection is reset before the response
    "not_json",  # 200 with a web page
    "rate_limit",  # 429 with Retry-After in seconds
    "rate_limit_date",  # 429 with Retry-After as a date
    "server_error",  # 500
    "timeout",  # no response
    "refusal",  # message.refusal
    "content_filter",  # finish_reason content_filter
]
FAULTS: tuple[Fault, ...] = get_args(Fault)

FaultPlan = Callable[[ScriptedCall], "Fault | None"]
"""Decides what goes wrong with a call; called once per request, so a plan may count."""


def no_faults(_call: ScriptedCall) -> Fault | None:
    """All goes well."""
    return None


def at_calls(faults: Mapping[int, Fault]) -> FaultPlan:
    """Faults by call number, 1 for the first."""
    _check(faults.values())
    return lambda call: faults.get(call.number)


def always(fault: Fault, when: Callable[[ScriptedCall], bool] = lambda _: True) -> FaultPlan:
    """The same fault for every call that `when` accepts."""
    _check([fault])
    return lambda call: fault if when(call) else None


def first(fault: Fault, times: int = 1, when: Callable[[ScriptedCall], bool] = lambda _: True) -> FaultPlan:
    """The fault for the first `times` calls with the same input; repairs and repetitions count."""
    _check([fault])
    return lambda call: fault if call.attempt < times and when(call) else None


def by_chance(chances: Mapping[Fault, float], seed: int = 0) -> FaultPlan:
    """Faults with given probabilities, which depend on seed, input and attempt, not on the order of arrival."""
    _check(chances)
    if sum(chances.values()) > 1:
        raise ConfigurationError("the chances of faults add up to more than 1")

    def plan(call: ScriptedCall) -> Fault | None:
        roll = int(digest(str(seed), call.input, str(call.attempt), size=6), 16) / 2.0**48
        for fault, chance in chances.items():
            if roll < chance:
                return fault
            roll -= chance
        return None

    return plan


def _check(faults: Collection[Fault]) -> None:
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        raise ConfigurationError(f"unknown faults {unknown}; there are: {', '.join(FAULTS)}")
