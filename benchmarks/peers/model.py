"""What the scripted model answers to the prompts of every peer: names and sentences of the passage, in its format.

One function finds the names (`rule_answer` of `sire_core.testing.doubles`), so that all systems build their
graphs from the same extraction; a better model would help all of them. It answers at once: what is measured is the
software around it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sire_core.testing.doubles import ScriptedCall, default_script, rule_answer

__all__ = ["answer"]

_NAMES = re.compile(r"\b[A-Z][\w'-]*(?:\s+(?:of|the|de|von|and)?\s*[A-Z][\w'-]*)*")


def answer(call: ScriptedCall) -> str:
    """Answer a chat request by the form of its prompt."""
    last = str(call.body["messages"][-1]["content"])
    for mark, made in _FORMS.items():
        if mark in last:
            return made(last)
    return default_script(call)


def _record(passage: str) -> dict[str, Any]:
    title, _, text = passage.strip().partition("\n")
    found = rule_answer(title, text)
    names = {entity["id"]: entity["name"] for entity in found["entities"]}
    triples = [(t["h"], fact["text"], t["t"]) for fact in found["facts"] for t in fact["triples"]]
    return {"names": list(names.values()), "triples": triples}


def _between(text: str, start: str, end: str) -> str:
    return text.rsplit(start, 1)[1].split(end, 1)[0]


def _lightrag(prompt: str) -> str:
    found = _record(_between(prompt, "---Input Text---\n```\n", "\n```"))
    rows = [f"entity<|#|>{name}<|#|>Other<|#|>{name}" for name in found["names"]]
    rows += [f"relation<|#|>{head}<|#|>{tail}<|#|>named together<|#|>{said}" for head, said, tail in found["triples"]]
    return "\n".join([*rows, "<|COMPLETE|>"])


def _nano(prompt: str) -> str:
    found = _record(_between(prompt, "\nText: ", "\n######################"))
    rows = [f'("entity"<|>"{name}"<|>"person"<|>"{name}")' for name in found["names"]]
    rows += [f'("relationship"<|>"{head}"<|>"{tail}"<|>"{said}"<|>5)' for head, said, tail in found["triples"]]
    return "##".join(rows) + "<|COMPLETE|>"


def _fast(prompt: str) -> str:
    found = _record(_between(prompt, "**Document**:\n", "\n<<DOCUMENT_END>>"))
    entities = [{"name": name, "type": "person", "desc": name} for name in found["names"]]
    relations = [{"source": head, "target": tail, "desc": said} for head, said, tail in found["triples"]]
    return json.dumps({"entities": entities, "relationships": relations, "other_relationships": []})


def _triplets(prompt: str) -> str:
    found = _record(_between(prompt, "Text: ", "\nTriplets:"))
    return "\n".join(f"({head}, is named with, {tail})" for head, _, tail in found["triples"])


def _names(question: str) -> list[str]:
    return list(dict.fromkeys(_NAMES.findall(question)))


def _keywords(prompt: str) -> str:
    question = _between(prompt, "User Query: ", "\n")
    return json.dumps({"high_level_keywords": [question], "low_level_keywords": _names(question)})


def _report(_: str) -> str:
    finding = {"summary": "They are named together.", "explanation": "They are named together."}
    report = {"title": "Names", "summary": "Names.", "rating": 5.0, "rating_explanation": "", "findings": [finding]}
    return json.dumps(report)


_FORMS = {
    "---Input Text---\n```": _lightrag,
    "identify and extract any missed or incorrectly": lambda _: "<|COMPLETE|>",
    '"high_level_keywords"': _keywords,
    "\nEntity_types: ": _nano,
    "MANY entities were missed": lambda _: "<|COMPLETE|>",
    "Answer YES | NO": lambda _: "NO",
    "Write a comprehensive report of a community": _report,
    "<<DOCUMENT_START>>": _fast,
    "-INPUT-\nQuery: ": lambda prompt: json.dumps(
        {"named": _names(_between(prompt, "-INPUT-\nQuery: ", "\n")), "generic": []}
    ),
    "identify any facts that should be grouped": lambda _: json.dumps({"grouped_facts": []}),
    "Current:\n": lambda prompt: json.dumps({"description": _between(prompt, "Current:\n", "\n\nUpdated")[:200]}),
    "knowledge triplets in the form of (subject, predicate, object)": _triplets,
    "separated by '^' symbols": lambda prompt: "^".join(_names(_between(prompt, "QUERY: ", "\n"))),
}
