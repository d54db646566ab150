"""Ids of findings in answers over reports (SMART, table 6): only those that exist, and only where reports number any."""

from __future__ import annotations

import json

import pytest

from sire_core import Index
from sire_core.data import demo_documents
from sire_core.extraction.rules import RulesExtractor
from sire_core.reason import iterate_sync, single
from sire_core.recipes import flat, smart
from sire_core.testing.doubles import HashEmbedder, ScriptedModel, default_script
from sire_core.types import UnitKind

QUESTION = "Who designed Corrow Lighthouse?"


def reads(call):
    return call.schema is not None and "sufficient" in json.dumps(call.schema)


def write(call):
    """Reports with two findings of what is shown."""
    if call.schema is None or "explanation" not in json.dumps(call.schema):
        return default_script(call)
    shown = json.loads(call.input)
    texts = [*shown["statements"], *shown.get("reports", ())][:2]
    findings = [{"id": n, "summary": str(text), "explanation": ""} for n, text in enumerate(texts, 1)]
    return json.dumps({"title": "Builders", "summary": "What they built.", "findings": findings})


def asked(recipe, said, **options):
    """The answer, and the calls of the reader."""
    model = ScriptedModel(lambda call: said(call) if reads(call) else write(call))
    with Index(recipe=recipe, embedder=HashEmbedder(), extractor=RulesExtractor(), language_model=model) as index:
        index.build(demo_documents())
        *_, answer = iterate_sync(single(index, QUESTION, k=4, **options))
    return answer, [call for call in model.log if reads(call)]


def numbered(call):
    """Numbers of the passages whose lines are numbered, as the model sees them."""
    passages = json.loads(call.input)["passages"]
    return [passage["number"] for passage in passages if "\n[1] " in passage["text"]]


@pytest.mark.parametrize("stream", [False, True])
def test_answers_name_the_findings_that_exist(stream):
    def said(call):
        first = numbered(call)[0]
        names = [f"{first}.1", f"[{first}.2]", f"{first}.1", f"{first}.9", "1", "x.y", None, 77.1]
        return json.dumps({"answer": "Maren Holt", "citations": [first], "findings": names, "sufficient": True})

    answer, (call,) = asked(smart(), said, stream=stream)
    first = numbered(call)[0]
    assert answer.hits[first - 1].unit.kind is UnitKind.REPORT
    assert answer.findings == (f"{first}.1", f"{first}.2")
    assert answer.citations == (first,)
    assert "3.2 is finding 2 of passage 3" in call.instructions


def test_without_reports_nobody_is_asked_for_findings():
    def said(_):
        return json.dumps({"answer": "Maren Holt", "citations": [1], "findings": ["1.1"], "sufficient": True})

    answer, (call,) = asked(flat(), said)
    assert "finding" not in call.instructions + json.dumps(call.schema)
    assert answer.findings == ()
    assert answer.citations == (1,)
