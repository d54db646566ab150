"""`progress=True`: bars with the time left where somebody sees them, nothing elsewhere."""

import io
import sys

import pytest

from sire_core import Document, Index
from sire_core.progress import progress_of
from sire_core.testing.contracts import sample_corpus
from sire_core.testing.doubles import ScriptedModel


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_are_for_terminals(monkeypatch, terminal):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    Index(recipe="flat", progress=True).build([Document(str(n), f"Passage number {n}.") for n in range(5)])
    assert ("100%" in stream.getvalue()) is terminal
    drawn = stream.getvalue()
    for nothing in (False, None):
        progress_of(nothing)("stage", 1, 2)
    assert stream.getvalue() == drawn


def told(recipe, **settings):
    """What is told of each stage of a build: (done, total) in order."""
    stages: dict[str, list[tuple[int, int]]] = {}
    index = Index(recipe=recipe, progress=lambda stage, *at: stages.setdefault(stage, []).append(at), **settings)
    index.build(sample_corpus())
    return stages


@pytest.mark.parametrize(("recipe", "stage"), [("raptor", "summaries of sim level 1"), ("indexrag", "bridging facts")])
def test_what_a_model_writes_is_counted_while_it_writes(recipe, stage):
    model = ScriptedModel()
    model.concurrency = 1
    found = told(recipe, language_model=model, workers=1)[stage]
    done, totals = zip(*found, strict=True)
    assert done[0] == 0
    assert list(done) == sorted(done)
    assert any(0 < number < totals[0] for number in done)
    assert done[-1] == totals[-1] == totals[0]


def test_every_stage_of_a_build_begins_at_nothing_and_ends_with_all():
    stages = told("sirerag")
    assert {"extraction", "embedding", "organizing", "summaries of sim level 1", "writing"} <= set(stages)
    for found in stages.values():
        assert found[0][0] == 0
        assert found[-1][0] == found[-1][1]
