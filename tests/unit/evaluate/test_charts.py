"""The picture of an evaluation."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from sire_core.errors import ConfigurationError
from sire_core.evaluate.report import chart
from sire_core.evaluate.rows import EvalRow, QuestionResult, Setup

SVG = "{http://www.w3.org/2000/svg}"


def row(name, found, build_s=2.0, **setup):
    """Two kinds of questions; those of `found` have their passage on top."""
    results = tuple(
        QuestionResult(
            f"q{i}", "", ("g",), (), (), (), (), 0.004, 0.5, None, passages=("g",) if hit else ("x",), hops=2 + i % 2
        )
        for i, hit in enumerate(found)
    )
    return EvalRow(Setup(name, "e", "none", 9, build_s, **setup), "toy <&>", 5, (2, 5), 600, results)


def drawn(rows):
    picture = chart(rows)
    return picture, ET.fromstring(picture)


def places(tree, name):
    """Where the circles of a row are, by their notes."""
    return {
        note: (float(mark.get("cx")), float(mark.get("cy")))
        for mark in tree.iter(f"{SVG}circle")
        if (note := mark.find(f"{SVG}title").text).startswith(name)
    }


def test_a_better_and_dearer_row_stands_higher_and_further_to_the_right():
    rows = [row("dense", [1, 0, 0, 0] * 5), row("sire", [1, 1, 1, 0] * 5, 30.0, settings={"rounds": 2})]
    picture, tree = drawn(rows)
    assert "toy &lt;&amp;&gt;: 5 passages, 20 questions" in picture
    words = [text.text for text in tree.iter(f"{SVG}text")]
    assert {"2 hops", "3 hops", "R@600 tokens", "sire rounds=2", "dense", "k"} <= set(words)
    (dense, *_), (sire, *_) = places(tree, "dense: 25.0").values(), places(tree, "sire rounds=2: 75.0").values()
    assert sire[0] > dense[0]  # 32 seconds: its own and those of the vectors
    assert sire[1] < dense[1]
    assert len(picture) < 50_000


def test_many_rows_stay_small_and_apart_and_too_many_are_refused():
    names = [f"r{i}" for i in range(12)]
    picture, tree = drawn([row(name, [1, 0] * 20, 1.0 + i) for i, name in enumerate(names)])
    assert len(picture) < 50_000
    shapes = {(mark.tag, mark.get("fill")) for mark in tree.iter() if mark.find(f"{SVG}title") is not None}
    assert len({shape for shape in shapes if shape[1]}) >= 12
    with pytest.raises(ConfigurationError, match="name up to 9 recipes"):
        chart([row(name, [1]) for name in [*names, "one more"]])
    with pytest.raises(ConfigurationError, match="one data set"):
        chart([row("a", [1]), replace(row("b", [1]), dataset="other")])


def test_an_index_that_was_not_built_has_no_cost():
    picture, _ = drawn([row("dense", [1, 0], 0.0)])
    assert "nothing was built" in picture
