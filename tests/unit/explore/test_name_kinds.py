"""Kinds of names: what is known of them, and colours that everybody can tell apart."""

import re
from itertools import combinations

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.explore import browse
from sire_core.explore.name_kinds import MARKS, NAME_KINDS, kind_of_name
from sire_core.explore.picture import Link, Node, Picture, branches
from sire_core.explore.result_page import page_style, region
from sire_core.types import Entity, ExtractionRecord, Fact

FORMS = {
    "code": "--max-wait -v queue.claim config.yaml claimTimeout max_retry_count /etc/hosts a/b/c Foo::bar run() "
    "SIRE_DATA @decorator <pod-name> .env open(path,mode)",
    "number": "1893 2024-01-02 1990s v1.2.3 50% $5 10:30 3rd",
    "name": "iPhone eBay macOS GitHub U.S. e.g. HTTP/1.1 and/or Ph.D. Yahoo! C++ May Ann X-Forwarded-For",
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FORMS.items() for name in names.split()])
def test_the_form_of_a_name_says_what_it_is(kind, name):
    assert kind_of_name(name).kind == kind


@pytest.mark.parametrize(
    ("options", "kind", "known_by"),
    [
        ({"is_title": True}, "title", "it titles a document or section"),
        ({"texts": ["Set `Relay` first.", "A `Relay` waits."]}, "code", "most passages mark it as code"),
        ({"texts": ["A Relay waits.", "Relay.", "`Relay`"], "is_title": True}, "title", "it titles a document or section"),
        ({"types": ["Person", "Person", "Film"], "is_title": True}, "person", "the model that read the passages calls it Person"),
        ({"types": ["Film"]}, "name", "the model that read the passages calls it Film"),
        ({}, "name", ""),
    ],
)  # fmt: skip
def test_a_kind_says_how_it_is_known(options, kind, known_by):
    assert kind_of_name("Relay", **options) == (kind, known_by)


def test_a_long_name_takes_no_time():
    assert kind_of_name("a_" * 50_000).kind == kind_of_name("9, " * 50_000).kind == "name"


class TypedNames:
    """Stands for a model that extracts: it knows two names."""

    fingerprint = "typed-names"
    links_titles = False

    async def extract(self, chunks):
        entities = Entity("e1", "Ole Brandt", "Person"), Entity("e2", "Hen Rocks", "Location")
        for item in chunks:
            named = tuple(entity for entity in entities if entity.name in item.chunk.text)
            facts = (Fact("f1", item.chunk.text, tuple(entity.id for entity in named)),)
            yield [ExtractionRecord(item.chunk.hash, "typed-names", "1", entities=named, facts=facts)]


DOCUMENTS = [Document(name, "Ole Brandt lit the lamp of the Hen Rocks.") for name in "ab"]


@pytest.mark.parametrize(("extractor", "kinds"), [(TypedNames(), {"person", "place"}), (None, {"name"})])
def test_types_are_those_of_a_model_and_rules_have_none(tmp_path, extractor, kinds):
    index = Index(tmp_path, recipe="sire", extractor=extractor)
    index.build(DOCUMENTS)
    snapshot = Index(tmp_path).snapshot()  # explorers open a folder without its extractor
    rows = browse.entities(snapshot).rows
    assert {"Ole Brandt", "Hen Rocks"} <= {row.label for row in rows}
    assert {row.name_kind for row in rows if row.label in ("Ole Brandt", "Hen Rocks")} == kinds
    shown = index.show("Who lit the lamp of the Hen Rocks?")
    assert {node.name_kind for node in shown.picture.nodes if node.kind == "entity"} <= kinds
    assert "is-place" in shown.html() or extractor is None
    index.close()


SIMULATED = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
"""What colour-blind people see (Machado, Oliveira and Fernandes 2009), on linear red, green and blue."""


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light, dark = sorted((linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_and_marks_of_every_kind_can_be_read(scheme):
    colours = [dict(re.findall(r"--(\w+):(#\w+)", block)) for block in re.findall(r"\.sire\{([^}]*)", page_style())][
        scheme
    ]
    ground = {"#fff": "#ffffff"}.get(colours["ground"], colours["ground"])
    for kind in NAME_KINDS:
        assert contrast(colours["ink"], colours[kind]) >= 4.5
        assert contrast(colours[f"{kind}line"], colours[kind]) >= 3
        assert contrast(colours[f"{kind}line"], ground) >= 4.5
    for matrix in (np.eye(3), *map(np.array, SIMULATED.values())):
        seen = [matrix @ linear(colours[f"{kind}line"]) for kind in ("title", "code", "number", "name")]
        assert min(float(np.abs(one - other).sum()) for one, other in combinations(seen, 2)) > 0.15


def test_every_kind_has_a_mark_of_its_own():
    assert len({MARKS[kind] for kind in NAME_KINDS}) == len(NAME_KINDS)


def test_a_narrow_window_lists_every_node_of_a_picture_once():
    nodes = [Node("q", "question", "Question"), Node("e", "entity", "Ole", name_kind="person"), Node("a", "chunk", "A")]
    nodes += [Node("b", "chunk", "B", rank=1), Node("x", "chunk", "X"), Node("y", "chunk", "Y")]
    links = [
        ("q", "b", "shares lamp"),
        ("q", "e", "mentions"),
        ("e", "a", "in"),
        ("a", "b", "<next>"),
    ]
    links += [("x", "y", "loose"), ("y", "x", "loose")]
    picture = Picture("Paths", tuple(nodes), tuple(Link(*link) for link in links))
    (first, *loose) = branches(picture)
    way = [first]
    while way[-1].below:
        way += way[-1].below
    assert [branch.node.id for branch in way] == ["q", "e", "a", "b"], "each below the longest way to it"
    assert [link.label for link, _ in first.others] == ["shares lamp"]
    assert [branch.node.id for branch in loose] == ["x", "y"]
    shown = region(picture, "Paths", {"b": "#b"}, "p", moves=True)
    listed = shown[shown.index('<ul class="outline"') :]
    assert listed.count('class="node ') == len(nodes)
    assert '<small>&lt;next&gt;</small><div class="node chunk hit"><div><a href="#b">[1] B</a>' in listed
    assert '<ul class="legend" aria-label="Kinds of names">' in listed
