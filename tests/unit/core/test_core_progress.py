"""`progress=True`: bars with the time left where somebody sees them, nothing elsewhere."""

import io
import sys

import pytest

from sire_core import Document, Index
from sire_core.bars import Bars, progress_of
from sire_core.cli.output import bar


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
    assert progress_of(given=False) is None
    assert progress_of(None) is None


def test_adapters_draw_wherever_they_are_asked_to(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    Bars()("stage", 3, 3)
    assert "3/3" in stream.getvalue()


def test_bars_of_shares():
    assert bar(0.5, 4) == "\u2588\u2588\u2591\u2591"
    assert bar(0.001, 4) == "\u2588\u2591\u2591\u2591"
    assert bar(0, 2) == "\u2591\u2591"
    assert bar(7, 2) == "\u2588\u2588"
