"""The path from a question to its hits: what is drawn, what is written, and that nothing of a passage gets out."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.explore.highlight import escaped, marked
from sire_core.explore.page import document
from sire_core.explore.picture import MOST_NODES, Link, Node, Picture, columns

SVG = "{http://www.w3.org/2000/svg}"
QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"
HOSTILE = (
    'The <script>alert(1)</script> Vault of Karn "><img src=x onerror=alert(2)> ]]> was built by Ole Brandt. '
    "</title></style></svg><svg onload=alert(3)> \x1b[31m \x00 javascript:alert(4) &lt;b&gt;"
)


@pytest.fixture(scope="module")
def demo():
    index = Index(recipe="sire")
    index.build(demo_documents())
    return index


class Tags(HTMLParser):
    """Elements with their attributes, and the text between them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def ends(picture):
    """Links as pairs of labels."""
    labels = {node.id: node.label for node in picture.nodes}
    return {(labels[link.source], labels[link.target]) for link in picture.links}


def test_path_leads_over_the_name_to_a_passage_that_shares_no_word(demo):
    asked = demo.show(QUESTION, k=2)
    assert [hit.title for hit in asked.hits] == ["SS Northern Wren", "Aldous Brack"]
    found = {(node.kind, node.label, node.rank) for node in asked.picture.nodes}
    assert ("chunk", "Aldous Brack", 2) in found
    assert ("entity", "Aldous Brack", 0) in found
    # The captain is a name and a passage with one label: the links say that both stand on the way.
    assert ends(asked.picture) == {
        ("Question", "SS Northern Wren"),
        ("SS Northern Wren", "SS Northern Wren"),
        ("SS Northern Wren", "Aldous Brack"),
        ("Aldous Brack", "Aldous Brack"),
    }
    [shared, leading] = [link.label for link in asked.picture.links if "commanded" in link.label]
    assert shared == "shares commanded, steamship, Northern, Wren, last, voyage"
    assert leading == "On her last voyage, in the gale of November 1893, she was commanded by Aldous Brack."
    assert "1893, she was" in document(asked.picture)
    assert "names Aldous Brack" in asked.hits[1].reasons[1].note
    assert [[node.kind for node in column] for column in columns(asked.picture)] == [
        ["question"], ["entity"], ["chunk"], ["entity"], ["chunk"],
    ]  # fmt: skip


def test_what_a_hit_shares_with_the_question_leads_to_it():
    index = Index(recipe="sire")
    index.build(
        [
            Document("a", "The key is in the vault. A copy is on paper.", "Keys"),
            Document("b", "A vault has a door.", "Door"),
            Document("c", "Nothing of it.", "Else"),
        ]
    )
    picture = index.show("Which vault has the paper copies?", k=3).picture
    titles = {node.id: node.label for node in picture.nodes}
    shared = {titles[link.target]: link.label for link in picture.links if link.label.startswith("shares")}
    assert shared == {"Keys": "shares vault, paper, copies", "Door": "shares vault"}


def test_boxes_hold_plain_text_in_lines_that_fit_and_end_after_words():
    body = (
        "## Setup\n\nRun `npm ci` in **every** [folder](https://x.org/a) with a package-lock.json.\n\n| a | b |\n|---|---|\n"
        "| one | two |"
    )
    index = Index(recipe="flat")
    index.build([Document("a", body, "bin/a-very-long-name-of-a-file/that_has_no_space_at_all.txt")])
    picture = index.show("npm folder", k=1).picture
    assert picture.nodes[1].text.startswith("Setup: Run npm ci in every folder with a package-lock.json. ")
    assert not set(picture.nodes[1].text) & set("#*`|[(")
    root = ET.fromstring(document(picture).encode())
    [label] = [group for group in root.iter(f"{SVG}g") if group.get("class") == "chunk hit"]
    lines = [text.text for text in label.iter(f"{SVG}text")]
    assert lines[:2] == ["[1] bin/a-very-long-name-", "of-a-file/that_has_no_\u2026"]
    words = set(picture.nodes[1].text.split())
    assert all(set(line.rstrip("\u2026").split()) <= words for line in lines[2:])


@pytest.mark.parametrize("recipe", ["sirerag", "msrag", "iier", "pagerank", "indexrag", "smart"])
def test_every_hit_of_every_recipe_is_reached_from_the_question(recipe):
    index = Index(recipe=recipe)
    index.build(demo_documents())
    for returns in ("passages", "units"):
        asked = index.show(QUESTION, k=6, returns=returns)
        reached, grown = {asked.picture.nodes[0].id}, True
        while grown:
            more = {link.target for link in asked.picture.links if link.source in reached} - reached
            reached |= more
            grown = bool(more)
        assert {hit.id for hit in asked.hits} <= reached
    if recipe == "msrag":  # the one whose pictures grow fastest
        asked = index.show(QUESTION, k=41)
        assert len(asked.picture.nodes) == MOST_NODES
        assert asked.picture.left_out > 0
        assert f"{asked.picture.left_out} node" in asked.html()


def test_what_a_filter_hides_is_not_drawn_or_named():
    documents = [
        Document("ship", "The Gull was commanded by Ann Hask.", "The Gull", {"t": "a"}),
        Document("person", "Ann Hask was born in Orr.", "Ann Hask", {"t": "a"}),
        Document("secret", "Ann Hask is called Wiremaker. The Gull sank.", "Wiremaker", {"t": "b"}),
    ]
    index = Index(recipe="sire", allow="t=a")
    index.build(documents)
    asked = index.show("Where was the commander of The Gull born?", k=5)
    assert {hit.doc_ids for hit in asked.hits} == {("ship",), ("person",)}
    assert "Wiremaker" not in asked.html()
    assert "sank" not in asked.html()


def test_hostile_passage_stays_text(tmp_path):
    index = Index(recipe="sire")
    index.build(
        [Document("x<y", HOSTILE, "Vault <b>of</b> Karn"), Document("z", "Ole Brandt was a mason.", "Ole Brandt")]
    )
    asked = index.show('Who built the "Vault of Karn" <script>alert(5)</script>?', k=2)
    for html in (asked.html(), asked._repr_html_()):
        seen = Tags(html)
        assert not {tag for tag, _ in seen.tags} & {"script", "img", "iframe", "object", "link", "b onload"}
        assert not [name for _, attrs in seen.tags for name in attrs if name.startswith("on") or name == "src"]
        assert all(attrs["href"].startswith("#") for tag, attrs in seen.tags if tag == "a")
        assert "<script>alert(1)</script>" in seen.text
        assert "http" not in html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "default-src 'none'" in asked.html()
    asked.save(tmp_path / "picture.svg")
    root = ET.parse(tmp_path / "picture.svg").getroot()
    assert {element.tag.split("}")[1] for element in root.iter()} <= set(
        "svg style title defs marker path g rect text".split()
    )


def test_notebooks_can_show_two_questions_on_one_page(demo):
    both = demo.show(QUESTION, k=2)._repr_html_() + demo.show("Where was Hedda Sorrel born?", k=2)._repr_html_()
    ids = [attrs["id"] for _, attrs in Tags(both).tags if "id" in attrs]
    assert len(ids) == len(set(ids)) == 6
    targets = {attrs["href"].removeprefix("#") for tag, attrs in Tags(both).tags if tag == "a"}
    assert targets <= set(ids)


@given(st.text(st.characters(exclude_categories=[])))
def test_escaped_text_is_xml_and_utf8(text):
    root = ET.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>'.encode())
    assert len(root.text or "") == len(text)


@given(st.text(), st.text(), st.lists(st.text(max_size=3), max_size=3))
def test_marks_leave_the_text_as_it_is(text, question, names):
    assert "".join(piece for piece, _ in marked(text, question, names)) == text


def test_marks_find_words_by_their_stem_and_whole_names():
    assert marked("Captain Ann Hask commanded. Ann's.", "Who commands, captain?", ["Ann Hask"]) == [
        ("Captain", "word"), (" ", ""), ("Ann Hask", "name"), (" ", ""), ("commanded", "word"), (". Ann's.", ""),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25))
def test_any_links_can_be_laid_out_and_drawn(pairs):
    nodes = tuple(Node(str(n), "chunk", f"node {n} " + "W" * 40, "\u6f22" * n * 9) for n in range(10))
    picture = Picture("t", nodes, tuple(Link(str(a), str(b), "l", "r") for a, b in pairs if a != b))
    found = columns(picture)
    assert sorted(node.id for column in found for node in column) == sorted(node.id for node in nodes)
    assert nodes[0] in found[0]
    root = ET.fromstring(document(picture).encode())
    boxes = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in root.iter(f"{SVG}rect")]
    assert len(boxes) == len(nodes)
    for line in (path for path in root.iter(f"{SVG}path") if path.get("class") != "head"):
        for x, y in along(line.get("d")):
            assert not [b for b in boxes if b[0] + 1 < x < b[0] + b[2] - 1 and b[1] + 1 < y < b[1] + b[3] - 1]


def along(path):
    """Points on a path of the commands M, H and C."""
    at = None
    for command, numbers in re.findall(r"([MHC])([^MHC]*)", path):
        values = [float(number) for number in numbers.split()]
        if command == "M":
            at = tuple(values)
        elif command == "H":
            yield from ((at[0] + (values[0] - at[0]) * i / 9, at[1]) for i in range(10))
            at = (values[0], at[1])
        else:
            points = np.asarray([at, values[0:2], values[2:4], values[4:6]])
            for t in np.linspace(0, 1, 20):
                yield tuple(np.asarray([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]) @ points)
            at = tuple(values[4:6])
