"""Answers of scripted models: plain functions from a call to a text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sire_core.algorithms.text import split_sentences

__all__ = ["PREVIOUS_ANSWER", "Script", "ScriptedCall", "default_script", "rule_answer"]

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
