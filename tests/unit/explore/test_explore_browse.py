"""The explorer's pages, paths and exports."""

import asyncio
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.documents.document_names import documents_of
from sire_core.errors import ConfigurationError, IndexMissingError
from sire_core.explore import browse, neighbourhood
from sire_core.explore.drawing import document, drawing
from sire_core.explore.highlight import escaped, marked, shared_words
from sire_core.explore.markdown_html import markdown_html
from sire_core.explore.picture import MOST_NODES, WAYPOINT, Link, Node, Picture, layout
from sire_core.explore.result_page import compared, comparison_html
from sire_core.explore.web import fragments
from sire_core.explore.web.explorer import Explorer, ExplorerQuery, known_or_first, number_of_hits
from sire_core.explore.web.pages import asked_html
from sire_core.explore.web.server import Guard
from sire_core.explore.why_not import find_passages, why_not
from sire_core.metadata_values import shown_value
from sire_core.recipes.registry import recipe_with
from sire_core.text.snippets import has_form
from sire_core.text.words import find_words
from support.command import run
from support.indexes import indexed

QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"
SECRET = Document("secret", "Port Ansel hides Quellmark. Aldous Brack saw Quellmark.", "Quellmark", {"tenant": "b"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("browse") / "index"
    documents = [Document(d.id, d.text, d.title, {"tenant": "a"}) for d in demo_documents()]
    for recipe in ("sire", "sirerag", "flat"):
        Index(path, recipe=recipe).build([*documents, SECRET])
    return path


@pytest.fixture
def limited(folder):
    return Index(folder, recipe="sire", allow="tenant=a")


@pytest.fixture
def explorer(folder):
    made = Explorer(lambda recipe, settings: Index(folder, recipe=recipe or None))
    yield made
    made.close()


def test_a_filter_that_nothing_passes_is_explained(explorer):
    asked = asyncio.run(explorer.ask(ExplorerQuery("Who was Hedda Sorrel?", filter="tenant=zz*")))
    assert (asked.hits, asked.filter) == ((), "tenant=zz*")
    assert "To match a folder or a part of a text write: tenant contains zz" in asked.note
    shown = asked.html()
    assert "filter tenant=zz*" in shown
    assert "tenant contains zz" in shown
    assert "<svg" not in shown


def test_settings_of_the_page_are_checked_and_listed(explorer):
    ask = ExplorerQuery(QUESTION, "sire", settings="help")
    with pytest.raises(ConfigurationError, match=r"name=value, such as rounds=1.*'help' is none.*More options"):
        asyncio.run(explorer.ask(ask))
    with pytest.raises(ConfigurationError, match="rounds is given twice"):
        asyncio.run(explorer.ask(replace(ask, settings="rounds=1 rounds=2")))
    listed = fragments.settings_html(asyncio.run(explorer.snapshot("sire")).recipe)
    assert "<td>rounds=2</td><td>Number of rounds in which links are followed" in listed
    assert "max_df" not in listed, "a search cannot change what the index was built with"


def test_a_question_without_words_and_an_address_that_asks_for_nothing_are_explained(explorer):
    for question in ("???", "a"):
        asked = asyncio.run(explorer.ask(ExplorerQuery(question, "sire")))
        assert "The question has no word to search for; these are only the nearest passages." in asked.html()
    assert asyncio.run(explorer.ask(ExplorerQuery("Who was Hedda Sorrel?", "sire"))).note == ""
    assert number_of_hits("7") == (7, "")
    for wrong in ("0", "101", "many", "-1", ""):
        number, note = number_of_hits(wrong)
        assert (number, note.endswith("5 are shown.")) == (5, True)
    assert known_or_first("sire", ["flat", "sire"], "recipe") == ("sire", "")
    name, note = known_or_first("nope", ["flat", "sire"], "recipe")
    assert (name, note) == ("flat", "There is no recipe 'nope' here; 'flat' is used. There are: flat, sire.")


def test_the_example_of_a_filter_finds_passages_of_this_index(folder, tmp_path):
    snapshot = Index(folder, recipe="sire").snapshot()
    assert browse.filter_example(snapshot) == "tenant=a"
    index = Index(tmp_path, recipe="flat")
    index.build(
        [Document(name, f"Text of {name}.", "", {"source": name}) for name in ("docs/a.md", "docs/b.md", "c.md")]
    )
    example = browse.filter_example(index.snapshot())
    assert (example, len(index.search("text", 5, filter=example))) == ("source contains docs", 2)


def test_what_has_no_title_is_called_by_its_first_words(tmp_path):
    index = indexed([Document("a", "The lamp of Karn burns all night.")], tmp_path, recipe="flat")
    shown = index.show("lamp").html()
    [unit_id] = [hit.unit.id for hit in index.search("lamp", 1)]
    assert "<h3>[1] The lamp of Karn burns all night.</h3>" in shown
    assert unit_id not in re.sub(r"<svg.*?</svg>", "", shown)


def test_the_first_search_says_that_it_loaded(explorer):
    asked = [asyncio.run(explorer.ask(ExplorerQuery("Who was Hedda Sorrel?"))) for _ in range(2)]
    assert ["loading included" in result.html() for result in asked] == [True, False]


def test_suggestions_are_names_and_no_code_or_parts_of_documents():
    names = (
        "--dry-run",
        "console.log",
        "null or Boolean",
        "From",
        "NB",
        "Hello Team",
        "Liebe Kolleginnen",
        "Ole Brandt",
        "Hedda Sorrel",
        "Lamp Company",
        "Karn",
    )
    caption = "\n\n![lamp](lamp.gif) The lamp was drawn by Piers Lanyon."
    documents = [
        Document(
            f"{number}.md",
            f"We saw {name} {number} times near Table Of Contents. `{name}` is known.{caption * (name == 'Ole Brandt')}",
            f"Note {number}",
        )
        for number in range(5)
        for name in names
        if (number, name) != (4, "Karn")
    ]
    documents = [replace(document, id=f"{place}.md") for place, document in enumerate(documents)]
    index = indexed(documents, recipe="sire")
    snapshot = index.snapshot()
    left_out, rows = browse.main_names(snapshot)
    main = {row.label for row in rows}
    assert left_out.startswith("Without code, captions, headings")
    assert {"Ole Brandt", "Hedda Sorrel"} <= main
    assert browse.entities(snapshot, "piers lanyon").total == 1
    assert not main & {
        "Piers Lanyon",
        "Hello Team",
        "Liebe Kolleginnen",
        "--dry-run",
        "console.log",
        "null or Boolean",
        "From",
        "NB",
    }


def test_lists_show_what_may_be_seen_and_nothing_else(folder, limited):
    snapshot, whole = limited.snapshot(), Index(folder, recipe="sire").snapshot()
    assert (browse.documents(snapshot).total, browse.documents(whole).total) == (41, 42)
    assert [row.label for row in browse.documents(snapshot, "northern w").rows] == ["SS Northern Wren"]
    assert browse.documents(snapshot, "quellmark").total == 0
    assert len(browse.documents(snapshot, start=browse.PAGE).rows) == 41 - browse.PAGE
    assert browse.entities(whole, "quellmark").total == 1
    assert browse.entities(snapshot, "quellmark").total == 0
    [brack] = browse.entities(snapshot, "aldous brack").rows
    assert brack.about == "2"
    card = browse.entity_card(snapshot, brack.id)
    assert {title for _, title, _ in card.passages} == {"SS Northern Wren", "Aldous Brack"}
    assert all("Aldous Brack" in sentence for _, _, sentence in card.passages)
    [everywhere] = browse.entities(whole, "aldous brack").rows
    assert everywhere.id != brack.id  # ids tell nothing about what is hidden
    assert browse.entity_card(whole, everywhere.id).total == len(browse.entity_card(whole, everywhere.id).passages) == 3
    picture = neighbourhood.neighbour_picture(snapshot, brack.id)
    assert {"SS Northern Wren", "Aldous Brack", "Hedda Sorrel"} <= {node.label for node in picture.nodes}
    assert "Quellmark" in {node.label for node in neighbourhood.neighbour_picture(whole, everywhere.id).nodes}
    assert "Quellmark" not in {node.label for node in picture.nodes}
    before = limited.show(QUESTION, k=1).picture
    [ship] = [node.id for node in before.nodes if node.rank]
    grown = neighbourhood.expanded(snapshot, before, ship)
    assert before.nodes == grown.nodes[: len(before.nodes)]
    labels = {link.label for link in grown.links if link.source == ship and link.target == brack.id}
    assert labels == {"On her last voyage, in the gale of November 1893, she was commanded by Aldous Brack."}
    grown = neighbourhood.expanded(snapshot, grown, brack.id)
    assert ("chunk", "Aldous Brack") in {(node.kind, node.label) for node in grown.nodes}
    assert "Quellmark" not in {node.label for node in grown.nodes}
    [hidden] = browse.document_units(whole, "secret")
    assert browse.document_units(snapshot, "secret") == []
    assert neighbourhood.neighbour_picture(snapshot, hidden.id) is None
    assert asyncio.run(find_passages(snapshot, "Quellmark")) == []


def test_neighbours_of_a_popular_entity_fit_a_picture_and_the_rest_is_listed():
    texts = [f"Once, Port Amber saw ship {number}. Ole Brandt{number} was there." for number in range(60)]
    index = indexed([Document(f"{number}", text, "Release Notes") for number, text in enumerate(texts)], recipe="sire")
    snapshot = index.snapshot()
    [notes] = [row for row in browse.entities(snapshot).rows if row.about == "60" and row.id]
    picture = neighbourhood.neighbour_picture(snapshot, notes.id)
    passages = [node for node in picture.nodes if node.kind == "chunk"]
    assert (len(passages), picture.left_out) == (5, 55)
    assert 7 <= len(picture.nodes) <= 11
    width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', document(picture)).groups())
    assert 0.4 < height / width < 1.2
    cards = [browse.entity_card(snapshot, notes.id, start) for start in (0, browse.PAGE, 2 * browse.PAGE)]
    assert [len(card.passages) for card in cards] == [25, 25, 10]
    assert {card.total for card in cards} == {60}
    sentences = {sentence for card in cards for _, _, sentence in card.passages}
    assert sentences == {text.partition(". ")[0] + "." for text in texts}
    grown = neighbourhood.expanded(snapshot, picture, passages[0].id)
    assert grown.nodes[: len(picture.nodes)] == picture.nodes
    assert picture.not_drawn == ((notes.id, 55),)
    shown = fragments.neighbours_html(picture, "sire")
    assert f'<a href="/entity?id={notes.id}&amp;recipe=sire#more">55 more neighbours of Release Notes</a>' in shown
    again = neighbourhood.expanded(snapshot, grown, notes.id)
    assert dict(again.not_drawn)[notes.id] == 50, "the next five are drawn, and the rest is counted once"
    result = replace(index.show("ship 3", k=1), picture=again)
    assert "50 more neighbours of Release Notes" in result.html()
    assert '#more">50 more neighbours of Release Notes</a>' in asked_html(result, snapshot)


def test_passages_are_found_by_the_rarest_of_some_words(folder):
    snapshot = Index(folder, recipe="sirerag").snapshot()
    found = asyncio.run(find_passages(snapshot, "the Quellmark in Port Ansel", 3))
    assert [found[0].title, len(found)] == ["Quellmark", 3]
    assert asyncio.run(find_passages(snapshot, "uellmark nsel")) == [], "the middle of a word is no word"
    assert asyncio.run(find_passages(snapshot, "xyzzy")) == asyncio.run(find_passages(snapshot, " ")) == []


def test_trees_and_what_was_derived_from_a_passage(folder):
    snapshot = Index(folder, recipe="sirerag").snapshot()
    found = browse.levels(snapshot)
    assert {(kind, tree) for kind, tree, _, _ in found} == {("sim_summary", "sim"), ("rel_summary", "rel")}
    kind, tree, level, number = found[0]
    page = browse.units(snapshot, kind, tree=tree, level=level)
    assert page.total == number
    picture = neighbourhood.neighbour_picture(snapshot, page.rows[0].id)
    assert 2 <= len(picture.nodes) <= MOST_NODES
    [wren] = browse.document_units(snapshot, "northern-wren")
    derived = snapshot.view.units(neighbourhood.derived_from(snapshot, wren.id))
    assert {unit.kind.value for unit in derived} >= {"aggregate", "sim_summary"}
    assert all(wren.id in unit.chunk_ids for unit in derived)
    assert neighbourhood.related(snapshot, wren.id, 99) == {"Derived from it": derived}
    related = neighbourhood.related(snapshot, page.rows[0].id, 99)
    assert len(related["Made from"]) > 1
    listed = fragments.related_html([], related, "sirerag")
    assert listed.startswith('<div id="more">')
    assert all(f"/unit?id={unit.id}&amp;" in listed for unit in related["Made from"])


def test_a_passage_leads_to_those_before_and_after_it_and_to_its_place_in_the_document():
    index = Index(recipe="flat")
    text = "".join(f"## Part {number}\n\n{'It burns all night. ' * 150}\n\n" for number in (1, 2, 3))
    index.build([Document("lamp.md", text, "The lamp")])
    passages = browse.document_units(index.snapshot(), "lamp.md")
    ids = [passage.id for passage in passages]
    first, middle = (fragments.unit_html(unit, ["lamp.md"], ids, "flat", None) for unit in passages[:2])
    assert f"passage 2 of {len(ids)}" in middle
    assert f'<a href="/unit?id={ids[0]}&amp;recipe=flat">previous</a>' in middle
    assert f'<a href="/unit?id={ids[2]}&amp;recipe=flat">next</a>' in middle
    assert 'href="/document?id=lamp.md&amp;recipe=flat#passage-2"' in middle
    assert "previous" not in first


def test_only_what_the_question_says_is_called_its_words(tmp_path):
    texts = {
        "nfs": "The Network File System (NFS) exports a directory. The Network File System needs rpcbind.",
        "key": "The key-signing key (KSK) signs the zone keys. KSKs are rolled once a year.",
        "port": "The option Listen-On takes the addresses of Ole Brandt.",
        "gpu": "The launcher takes --gpus with a number of cards.",
    }
    texts |= {f"other{number}": f"Mill {number} grinds rye for Port Amber." for number in range(9)}
    index = indexed([Document(name, text) for name, text in texts.items()], tmp_path, recipe="sire")
    snapshot = asyncio.run(index.asnapshot())
    for question, said in (
        ("Who can read what NFS exports?", "NFS (Network File System)"),
        ("How is the KSK of a zone rolled?", "KSK (key-signing key)"),
        ("What does Listen on take?", "Listen on"),
        ("Which launcher takes GPUs?", "GPUs (a word of --gpus)"),
        ("Which launcher takes --gpus?", "--gpus"),
    ):
        hit = asyncio.run(snapshot.asearch(question, 1))[0]
        notes = [step.note for step in hit.path if step.step == "question"]
        assert notes == [f"the question names {said}"]
        if "gpus" in said:
            continue
        reasons = dict(asyncio.run(why_not(snapshot, question, hit.unit.id)).reasons)
        named = said.partition(" (")[0]
        assert reasons["names of the question"] == f"The question mentions {named}; the passage mentions {named}."


def test_why_not_says_where_a_passage_is_and_what_joins_it(limited):
    snapshot = limited.snapshot()
    order = [hit.unit.title for hit in snapshot.search(QUESTION, 41)]
    place = order.index("Hedda Sorrel") + 1
    [mother] = browse.document_units(snapshot, "hedda-sorrel")
    found = asyncio.run(why_not(snapshot, QUESTION, mother.id, k=4))
    said = dict(found.reasons)
    assert (found.rank, place > 4) == (place, True)
    assert [(node.label, node.rank) for node in found.picture.nodes if node.rank] == [("Hedda Sorrel", place)]
    assert f"rank {place} of 41" in said["rank"]
    assert "the last hit" in said["score"]
    assert "none of them" in said["names of the question"]
    assert "Hedda Sorrel (in 2 passages)" in said["names of the hits"]
    assert "It lacks" in said["words"] or "no word" in said["words"]
    hidden = limited.snapshot(filter="tenant=none")
    assert dict(asyncio.run(why_not(hidden, QUESTION, mother.id)).reasons)["filter"].startswith("The passage does not")


def test_two_recipes_are_compared(explorer):
    one = asyncio.run(explorer.ask(ExplorerQuery(QUESTION, "sire", 4)))
    other = asyncio.run(explorer.ask(ExplorerQuery(QUESTION, "flat", 4)))
    assert "Aldous Brack" in [title for title, _, place in compared(one, other) if not place]
    shown = comparison_html(one, other)
    assert shown.count("<td>not among the first 4</td>") == sum(not all(ranks) for _, *ranks in compared(one, other))
    hits = one.html() + other.html()
    assert all(f'id="{target}"' in hits for target in re.findall(r'href="#([^"]+)"', shown))
    assert "<td>no hits</td>" in comparison_html(one, replace(other, hits=()))
    hits = tuple(replace(hit, title="Settings", text=f"SESSION_{hit.rank} is set.") for hit in one.hits[:2])
    titles = [title for title, *_ in compared(replace(one, hits=hits), replace(other, hits=()))]
    assert titles == ["Settings: SESSION_1 is set.", "Settings: SESSION_2 is set."]


def test_rankings_of_passages_are_compared_without_a_build(folder, tmp_path):
    summaries = Explorer(lambda recipe, settings: Index(folder, recipe=recipe or "sirerag"))
    assert summaries.compared() == summaries.recipes(), "its units are more than passages"
    summaries.close()
    Index(tmp_path, recipe="sire").build(demo_documents())
    plain = Explorer(lambda recipe, settings: Index(tmp_path, recipe=recipe or None))
    assert plain.compared() == ["sire", "bm25", "dense", "hybrid"]
    words, vectors = (asyncio.run(plain.ask(ExplorerQuery(QUESTION, name, 3))) for name in ("bm25", "dense"))
    wanted = Index(tmp_path, recipe="sire").snapshot()
    wanted = replace(wanted, recipe=recipe_with("flat", {"ranker": "bm25"}, {})).search(QUESTION, 3)
    assert [hit.id for hit in words.hits] == [hit.unit.id for hit in wanted]
    assert {reason.step for hit in vectors.hits for reason in hit.reasons} == {"vector:chunk"}
    assert (words.search, vectors.search) == ("bm25", "dense")
    with pytest.raises(ConfigurationError, match="bm25 takes no settings here"):
        asyncio.run(plain.ask(ExplorerQuery(QUESTION, "bm25", settings="rounds=1")))
    plain.close()


def test_lists_are_sorted_count_what_they_list_and_show_values_as_people_write_them():
    tags = {"tags": ["water", "hardware"], "draft": False}
    rows = [("b", "Chapter 10"), ("d", "chapter 9"), ("c", ""), ("a", "Appendix")]
    index = Index(recipe="sire")
    index.build(Document(name, f"Ole Brandt{name} saw {name}. He ran --dry-run.", title, tags) for name, title in rows)
    snapshot = index.snapshot()
    assert [row.id for row in browse.documents(snapshot).rows] == ["a", "c", "d", "b"]
    assert browse.entity_count(snapshot) == browse.entities(snapshot).total > 0
    units = browse.document_units(snapshot, "b")
    pages_of = (
        fragments.document_html("b", "Chapter 10", units, "sire", lambda _, link: "", lambda _: False),
        fragments.unit_html(units[0], ["b"], [], "sire", None),
    )
    for shown in pages_of:
        assert "<td>tags</td><td>water, hardware</td>" in shown
        assert "<td>draft</td><td>false</td>" in shown
    [hit] = index.search("Brandtb", 1)
    assert documents_of(hit, "{id} ({tags})") == "b (water, hardware)"
    assert shown_value({"by": ("Ada", None), "year": 1893}) == "by: Ada, , year: 1893"


def test_what_a_model_was_paid_for_is_not_shown_to_those_who_see_a_part(folder, limited):
    assert Index(folder).spent() == []
    assert Index(folder).failures() == []
    with pytest.raises(Exception, match="allow"):
        limited.spent()


async def answered(guard, *, query=b"", **headers):
    """Status and headers with which a guarded page answers."""
    sent = []

    async def send(message):
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await guard({"type": "http", "headers": raw, "query_string": query}, None, send)
    return sent[0]["status"], dict(sent[0]["headers"])


async def page(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_only_this_machine_and_this_origin_are_answered():
    guard = Guard(page)
    for headers in (
        {"host": "localhost:80"},
        {"host": "[::1]:80"},
        {"host": "127.0.0.1:8", "origin": "http://127.0.0.1:8"},
    ):
        assert (await answered(guard, **headers))[0] == 200, headers
    for headers in (
        {}, {"host": "evil.example"}, {"host": "127.0.0.1.evil.example"}, {"host": "[::1"},
        {"host": "127.0.0.1:8", "origin": "http://evil.example"}, {"host": "127.0.0.1:8", "origin": "null"},
        {"host": "127.0.0.1:8", "origin": "http://127.0.0.1:9"},
    ):  # fmt: skip
        assert (await answered(guard, **headers))[0] == 403, headers


async def test_elsewhere_a_token_is_asked_for_once():
    guard = Guard(page, (), "s3cret")
    assert (await answered(guard, host="box:80"))[0] == 401
    assert (await answered(guard, host="box:80", cookie="sire_token=other"))[0] == 401
    status, headers = await answered(guard, query=b"token=s3cret", host="box:80")
    assert status == 200
    cookie = headers[b"set-cookie"].decode()
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert (await answered(guard, host="box:80", cookie=cookie.split(";")[0]))[0] == 200
    assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]


async def test_other_pages_may_link_here_and_nothing_more():
    seen = []

    async def noting(scope, receive, send):
        seen.append(scope["query_string"])
        await page(scope, receive, send)

    here, link = {"host": "localhost:80"}, {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    own = [
        {},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", **link},
        {"referer": "http://localhost:80/"},
    ]
    for headers in own:
        assert (await answered(Guard(noting), query=b"q=x", **here, **headers))[0] == 200
    assert seen == [b"q=x"] * len(own)
    seen.clear()
    for site in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"referer": "http://evil/"}):
        assert (await answered(Guard(noting), query=b"q=x", **here, **site, **link))[0] == 200
    assert seen == [b""] * 3, "opened, but asked for nothing"
    for kind in ("image", "iframe", "script", "empty"):
        mode = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": kind, "sec-fetch-site": "cross-site"}
        assert (await answered(Guard(noting), query=b"q=x", **here, **mode))[0] == 403
    token = Guard(noting, (), "s3cret")
    status, headers = await answered(
        token, query=b"token=s3cret&q=x", **here, **link, **{"sec-fetch-site": "cross-site"}
    )
    assert (status, b"set-cookie" in headers, seen[-1]) == (200, True, b""), (
        "a mail may hold the address with its token"
    )


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("Hooks.md#onsend", "docs/Hooks.md"),
        ("./Hooks", "docs/Hooks.md"),
        ("Hooks.html", "docs/Hooks.md"),
        ("../a%20b.html", "a b.html"),
        ("/docs/Hooks.md", "docs/Hooks.md"),
        ("../guide/", "guide/README.md"),
        ("Gone.md", ""),
        ("#here", ""),
        ("https://x.org/docs/Hooks.md", ""),
        ("javascript:Hooks.md", ""),
        ("http://[", ""),
        ("../../../a b.html", ""),
    ],
)
def test_relative_links_lead_to_documents_of_the_index(target, found):
    known = {"docs/Hooks.md", "a b.html", "guide/README.md"}
    assert browse.linked_document(target, "docs/Server.md", known) == found


def test_markdown_is_rendered_and_words_are_highlighted():
    html = markdown_html(
        "# The lamp\n\n* Lit by **Ole Brandt**\n\n| who | `when` |\n|---|---|\n| Ole | dusk |", "Who lit it?"
    )
    assert '<p class="heading h1">The lamp</p>' in html
    assert "<strong>Ole Brandt</strong>" in html
    assert "<mark>Lit</mark>" in html
    assert "<td>dusk</td>" in html
    assert "<code>when</code>" in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "# <svg onload=alert(1)>",
        "git clone <repository> <target>",
        "`<b onclick=alert(1)>`",
        "```<i>\n<b onclick=alert(1)>\n```",
        "<object data=x></object>",
    ],
)
def test_other_tags_stay_text(text):
    html = markdown_html(text)
    assert not any(tag in html for tag in ("<script", "<img", "<svg", "<b ", "<i>", "<a "))
    assert "&lt;" in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<h1 align=center>Fastify</h1>", "<p>Fastify</p>"),
        ('<div align="center">\n<a href="javascript:alert(1)">the\n*docs*</a></div>', "the<br>\n<em>docs</em></p>"),
        ("<img src=x onerror=alert(1) alt='A <b>'>", "<p>A &lt;b&gt;</p>"),
        ("one<br/>two <!-- three -->", "<p>one<br>two </p>"),
        ("| <b onclick=alert(1)>x</b> |\n|---|", "<th>x</th>"),
    ],
)
def test_of_tags_for_looks_the_text_is_shown(text, shown):
    assert shown in markdown_html(text)


def test_relative_links_lead_where_they_are_known():
    known = {"Hooks.md#on": "/document?id=docs%2FHooks.md"}
    html = markdown_html(
        "[**Hooks**](Hooks.md#on), [gone](./Gone.md) and [x](http://x.org)", target=lambda a: known.get(a, "")
    )
    assert '<a href="/document?id=docs%2FHooks.md"><strong>Hooks</strong></a>, gone and <a href="http://x.org"' in html
    assert html.count("<a ") == html.count("</a>") == 2


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/unit?id=1"])
def test_only_web_addresses_are_links(target):
    assert "<p>here</p>" in markdown_html(f"[here]({target})")


def test_links_leave_and_images_are_not_loaded():
    html = markdown_html('[b](http://x.org/"onclick=1) ![a picture](http://x.org/y.png)')
    assert 'href="http://x.org/%22onclick=1" rel="noopener noreferrer nofollow"' in html
    assert "<img" not in html
    assert "a picture" in html


def test_letters_that_no_file_may_hold_are_replaced():
    html = markdown_html("[\ud800](http://x.org/\ud800) \x00 `\x1b`")
    assert '"http://x.org/%EF%BF%BD"' in html
    assert (html.count("\ufffd"), "\x00" in html, "\x1b" in html) == (3, False, False)
    html.encode()


def test_very_long_texts_are_shown_as_written():
    assert "**a**" in markdown_html("**a** " * 50_000)


SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    'The <script>alert(1)</script> Vault of Karn "><img src=x onerror=alert(2)> ]]> was built by Ole Brandt. '
    "</title></style></svg><svg onload=alert(3)> \x1b[31m \x00 javascript:alert(4) &lt;b&gt;"
)


@pytest.fixture(scope="module")
def demo():
    return indexed(demo_documents(), recipe="sire")


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
    assert shared == "shares the words commanded, steamship, Northern, Wren, last, voyage"
    assert leading == "On her last voyage, in the gale of November 1893, she was commanded by Aldous Brack."
    assert "1893, she was" in document(asked.picture)
    assert "names Aldous Brack" in asked.hits[1].reasons[1].note
    assert [[node.kind for node in column] for column in columns(asked.picture)] == [
        ["question"], ["entity"], ["chunk"], ["entity"], ["chunk"],
    ]  # fmt: skip


def columns(picture):
    layers = ([node for node in layer if node.kind != WAYPOINT] for layer in layout(picture)[0])
    return [layer for layer in layers if layer]


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
    assert shared == {"Keys": "shares the words vault, paper, copies", "Door": "shares the word vault"}


def test_boxes_hold_plain_text_in_lines_that_fit_and_end_after_words():
    body = (
        "## Setup\n\nRun `npm ci` in **every** [folder](https://x.org/a) with a package-lock.json.\n\n| a | b |\n|---|---|\n"
        "| one | two |"
    )
    index = indexed([Document("a", body, "bin/a-very-long-name-of-a-file/that_has_no_space_at_all.txt")], recipe="flat")
    picture = index.show("npm folder", k=1).picture
    assert picture.nodes[1].text.startswith("Run npm ci in every folder with a package-lock.json. ")
    assert not set(picture.nodes[1].text) & set("#*`|[(")
    root = ET.fromstring(drawing(picture, fills=False).encode())
    [label] = [group for group in root.iter(f"{SVG}g") if group.get("class") == "chunk hit"]
    lines = [text.text for text in label.iter(f"{SVG}text")]
    assert lines[:2] == ["[1] bin/a-very-long-name-", "of-a-file/t ... > Setup"]
    words = set(picture.nodes[1].text.split())
    assert all(set(line.rstrip("\u2026").split()) <= words for line in lines[2:])


def widths(markup):
    root = ET.fromstring(markup.encode())
    return float(root.get("width")), [float(box.get("width")) for box in root.iter(f"{SVG}rect")]


def test_a_picture_takes_the_width_of_a_window_and_breaks_no_name_that_has_room():
    index = indexed([Document(str(n), f"The lamp number {n}.", f"Lamp {n}") for n in range(3)], recipe="flat")
    fan = index.show("lamp", k=3).picture
    wide, boxes = widths(drawing(fan))
    assert 800 < wide < 960
    assert max(boxes) > 300 > max(widths(drawing(fan, fills=False))[1])
    names = ("AssocGrpCpuLimit", "burst_buffer_with_lua")
    chain = [Node("q", "question", "Question"), *(Node(f"{n}", "entity", names[n % 2]) for n in range(3))]
    links = [Link(one.id, other.id, "the passage mentions it") for one, other in pairwise(chain)]
    markup = drawing(Picture("Chain", tuple(chain), tuple(links)))
    assert widths(markup)[0] <= 1180
    assert ">AssocGrpCpuLimit</text>" in markup
    back = replace(links[0], target="2")  # passes a column: its text stands once, where it ends
    assert drawing(Picture("Chain", tuple(chain), (*links, back))).count(">the passage") == len(links) + 1


def test_a_long_hit_is_folded_to_the_sentences_that_answer_and_whole_behind_a_button():
    text = "The vault is closed. " * 30 + "The lamp of Karn burns at night. " + "Nobody reads the book. " * 30
    index = indexed([Document("a", text, "Vault"), Document("b", "A lamp.", "Lamp")], recipe="flat")
    html = index.show("Which lamp burns in Karn?", k=2).html()
    short, whole = html.split('<div class="text short">')[1].split("<details>")
    assert "<mark>lamp</mark> of <mark>Karn</mark> <mark>burns</mark> at night." in short
    assert short.count("vault") < 10 < whole.split("</details>")[0].count("vault")
    assert html.count("<details>") == 1, "a short hit is shown as a whole"
    long = index.show("lamp " * 5000, k=1).html()
    assert "lamp lamp ...</h1>" in long
    assert len(long) < 40_000


def test_wide_tables_can_be_scrolled_by_keys_and_empty_heads_are_cells():
    html = markdown_html("|  | b |\n|---|---|\n| one | two |")
    assert '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>' in html
    assert html.index("<td></td>") < html.index("<th>b</th>")
    assert html.endswith("</table></div>\n</div>")


def test_names_that_most_passages_have_are_counted_listed_and_searched():
    said = "The Vane Licence comes without any warranty."
    documents = [
        Document(
            f"{n}.md", f"# Ole Reeve\n\nAda Frame, {n}, met Tom Wray, {n}, in Karn on day {n}.\n\n{said}", f"Note {n}"
        )
        for n in range(12)
    ]
    index = indexed([*documents, Document("vale.md", "Hedda Sorrel saw Karn.", "Vale")], recipe="sire")
    snapshot = index.snapshot()
    [row] = browse.entities(snapshot, "karn").rows
    assert (row.label, row.about, row.id) == ("Karn", "13", "")
    assert browse.entity_count(snapshot) == browse.entities(snapshot).total
    html = fragments.start_html([], *browse.main_names(snapshot), 13, "sire")
    assert '<a href="/?q=Karn&amp;recipe=sire">Karn</a> <small>13</small>' in html
    assert "Ole Reeve" not in html, "only a heading"
    assert "Vane Licence" not in html, "the same sentence everywhere"


def test_lines_of_a_picture_carry_the_row_of_a_table_that_has_the_name():
    rows = "".join(f"| Star {n} | A long explanation of what number {n} means | Hill |\n" for n in range(9))
    index = Index(recipe="sire")
    index.build(
        [Document("a", f"| Name | Meaning | Place |\n| --- | --- | --- |\n{rows}| Bunya | Possum | Karn |", "Sky")]
    )
    snapshot = index.snapshot()
    [row] = browse.entities(snapshot, "karn").rows
    assert {
        link.label
        for link in neighbourhood.neighbour_picture(snapshot, row.id).links
        if row.id in (link.source, link.target)
    } == {"Bunya: Possum; Karn"}


def test_a_folder_that_never_was_an_index_is_not_missed(tmp_path):
    with pytest.raises(IndexMissingError, match="There is no index in"):
        Explorer(lambda *_: Index(tmp_path / "index")).recipes()


def test_an_index_that_was_moved_is_no_longer_there_until_it_is_back(tmp_path):
    Index(tmp_path / "index", recipe="flat").build(demo_documents())
    explorer = Explorer(lambda *_: Index(tmp_path / "index"))
    assert explorer.recipes() == ["flat"]
    (tmp_path / "index").rename(tmp_path / "away")
    with pytest.raises(IndexMissingError, match="is no longer there"):
        explorer.recipes()
    with pytest.raises(IndexMissingError, match="is no longer there"):
        asyncio.run(explorer.ask(ExplorerQuery("lamp")))
    (tmp_path / "away").rename(tmp_path / "index")
    assert asyncio.run(explorer.ask(ExplorerQuery("Who was Hedda Sorrel?"))).hits


@pytest.mark.parametrize("recipe", ["sirerag", "msrag", "iier", "pagerank", "indexrag", "smart"])
def test_every_hit_of_every_recipe_is_reached_from_the_question(recipe):
    index = indexed(demo_documents(), recipe=recipe)
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


def test_what_a_filter_hides_is_not_drawn_or_named(tmp_path):
    documents = [
        Document("ship", "The Gull was commanded by Ann Hask.", "The Gull", {"t": "a"}),
        Document("person", "Ann Hask was born in Orr.", "Ann Hask", {"t": "a"}),
        Document("secret", "Ann Hask is called Wiremaker. The Gull sank.", "Wiremaker", {"t": "b"}),
    ]
    with indexed(documents, tmp_path / "ix", recipe="sire") as everything:
        assert "Wiremaker" in everything.show("Where was the commander of The Gull born?", k=5).html()
    with Index(tmp_path / "ix", allow="t=a") as index:
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


def test_query_writes_the_page_of_a_question(tmp_path):
    Index(tmp_path / "index", recipe="sire").build(demo_documents())
    ask = ["query", tmp_path / "index", "Who commanded the Northern Wren?", "-k", 3, "--html"]
    assert "[3]" in run(*ask, tmp_path / "q.html").stdout
    page = (tmp_path / "q.html").read_text(encoding="utf-8")
    assert page.count('<li id="sire-') == 3
    assert "<svg" in page
    assert "<script" not in page
    assert "name a file in an existing folder" in run(*ask, tmp_path / "missing" / "q.html", code=1).stderr


@pytest.mark.parametrize(
    ("word", "text", "is_form"),
    [
        ("founded", "It is found in the list.", False),
        ("found", "Ian founded it.", False),
        ("founded", "It is found where Ian founds it.", True),
        ("find", "It is found.", True),
        ("founding", "Ian founded it.", True),
        ("felled", "It fell.", False),
    ],
)
def test_only_forms_of_a_word_are_said_to_be_shared_and_highlighted(word, text, is_form):
    assert bool(shared_words(word, text)) is is_form
    assert any(kind for _, kind in marked(text, word)) is is_form
    if word != "find":  # its past form has another stem
        assert has_form(word, find_words(text.lower())) is is_form


def test_an_entity_says_which_names_stand_together_and_cites_the_sentence_with_the_whole_name():
    texts = (
        "The Network Time Protocol (NTP) keeps clocks. It is old.",
        "ANTPX was tried before. We run NTP on two hosts.",
    )
    index = Index(recipe="sire")
    index.build([Document(f"{number}.md", text, f"Note {number}") for number, text in enumerate(texts)])
    snapshot = index.snapshot()
    [row] = browse.entities(snapshot, "network time").rows
    card = browse.entity_card(snapshot, row.id)
    joined = {name: (title, other) for name, _, title, other in card.joined}
    assert joined in ({"NTP": ("Note 0", "Network Time Protocol")}, {"Network Time Protocol": ("Note 0", "NTP")})
    assert {sentence for _, _, sentence in card.passages} == {
        "The Network Time Protocol (NTP) keeps clocks.",
        "We run NTP on two hosts.",
    }


def test_reasons_and_pictures_are_free_of_what_is_left_of_links_and_options_keep_their_brackets():
    index = Index(recipe="sire")
    index.build(
        [
            Document("a.md", "# Hask\n\nAnn Hask wrote ![lamp](l.png) [the Orr Book](orr.md) [in haste].", "Ann Hask"),
            Document("b.md", "# Orr Book\n\nThe Orr Book was kept by Ole Brandt.", "Orr Book"),
        ]
    )
    shown = index.show("Who kept the book that Ann Hask wrote?", k=2)
    said = [link.label + link.reason for link in shown.picture.links]
    said += [reason.note for hit in shown.hits for reason in hit.reasons]
    assert any("wrote lamp the Orr Book [in haste]" in text for text in said), said
    assert not [text for text in said if "![" in text or "[the Orr Book]" in text]


def test_a_line_that_goes_on_is_no_heading():
    line, rest = "Karn's mill is nothing to it--nothing at all. I am so", "glad of it, said Ole Brandt,\nand went away."
    cut = f"The mill is such\n{line}, {rest}"  # a passage that begins within a line
    said = 'Who knows the mill of Karn better."\n\nOle Brandt went away.'
    for text, shown in (
        (f"{line}\n{rest}", False),
        (cut, False),
        (said, False),
        ("The mill of Karn\n\nOle Brandt went away.", True),
    ):
        index = indexed([Document("a.txt", text, "Note"), Document("b.txt", "Rye is ground.", "Rye")], recipe="sire")
        (hit, *_) = index.search("Who knows the mill of Karn?", 1)
        assert ("also in the" in " ".join(step.note for step in hit.path)) == shown


def test_lists_of_names_leave_out_what_no_passage_spells():
    index = Index(recipe="sire")
    index.build([Document("a.md", "Read `policy.<name>.csv` and ask Ole Brandt.", "Note"), Document("b.md", "Rye.")])
    labels = [row.label for row in browse.entities(index.snapshot()).rows]
    assert "Ole Brandt" in labels
    assert "(no name)" not in labels
