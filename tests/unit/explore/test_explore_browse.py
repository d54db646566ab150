"""What the page of an index shows, without a page: lists, neighbourhoods, why not, recipes measured; and who may ask."""

import asyncio
from dataclasses import replace

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from sire_core.explore import browse, neighbours
from sire_core.explore.page import compared, comparison_html
from sire_core.explore.picture import MOST_NODES
from sire_core.explore.why_not import find_passages, why_not
from sire_core.serve.page.explorer import Explorer, ExplorerQuery
from sire_core.serve.page.server import Guard

QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"
SECRET = Document("secret", "Port Ansel hides Quellmark. Aldous Brack saw Quellmark.", "Quellmark", {"tenant": "b"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("browse") / "index"
    documents = [Document(d.id, d.text, d.title, {"tenant": "a"}) for d in demo_documents()]
    for recipe in ("flat", "sirerag", "sire"):
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


def test_the_first_search_says_that_it_loaded(explorer):
    asked = [asyncio.run(explorer.ask(ExplorerQuery("Who was Hedda Sorrel?"))) for _ in range(2)]
    assert ["loading included" in result.html() for result in asked] == [True, False]


def test_suggestions_are_names_and_no_code_or_parts_of_documents():
    names = ("--dry-run", "console.log", "null or Boolean", "Ole Brandt", "Hedda Sorrel", "Lamp Company", "Karn")
    documents = [
        Document(f"{number}.md", f"We saw {name} near Table Of Contents. `{name}` is known.", f"Note {number}")
        for number in range(5)
        for name in names
        if (number, name) != (4, "Karn")
    ]
    documents = [replace(document, id=f"{place}.md") for place, document in enumerate(documents)]
    index = Index(recipe="sire")
    index.build(documents)
    snapshot = index.snapshot()
    main = {row.label for row in browse.main_names(snapshot)}
    assert {"Ole Brandt", "Hedda Sorrel"} <= main
    assert not main & {"--dry-run", "console.log", "null or Boolean"}
    assert not [question for question in browse.example_questions(snapshot) if "Contents" in question.text]


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
    assert {title for _, title in card.passages} == {"SS Northern Wren", "Aldous Brack"}
    assert len(browse.entity_card(whole, brack.id).passages) == 3
    picture = neighbours.neighbour_picture(snapshot, brack.id)
    assert {"SS Northern Wren", "Aldous Brack", "Hedda Sorrel"} <= {node.label for node in picture.nodes}
    assert "Quellmark" in {node.label for node in neighbours.neighbour_picture(whole, brack.id).nodes}
    assert "Quellmark" not in {node.label for node in picture.nodes}
    before = limited.show(QUESTION, k=1).picture
    [ship] = [node.id for node in before.nodes if node.rank]
    grown = neighbours.expanded(snapshot, before, ship)
    assert before.nodes == grown.nodes[: len(before.nodes)]
    labels = {link.label for link in grown.links if link.source == ship and link.target == brack.id}
    assert labels == {"On her last voyage, in the gale of November 1893, she was commanded by Aldous Brack."}
    grown = neighbours.expanded(snapshot, grown, brack.id)
    assert ("chunk", "Aldous Brack") in {(node.kind, node.label) for node in grown.nodes}
    assert "Quellmark" not in {node.label for node in grown.nodes}
    [hidden] = browse.document_units(whole, "secret")
    assert browse.document_units(snapshot, "secret") == []
    assert neighbours.neighbour_picture(snapshot, hidden.id) is None
    assert asyncio.run(find_passages(snapshot, "Quellmark")) == []


def test_passages_are_found_by_the_rarest_of_some_words(folder):
    snapshot = Index(folder, recipe="sirerag").snapshot()
    found = asyncio.run(find_passages(snapshot, "the Quellmark in Port Ansel", 3))
    assert [found[0].title, len(found)] == ["Quellmark", 3]
    assert asyncio.run(find_passages(snapshot, "xyzzy")) == asyncio.run(find_passages(snapshot, " ")) == []


def test_trees_and_what_was_derived_from_a_passage(folder):
    snapshot = Index(folder, recipe="sirerag").snapshot()
    found = browse.levels(snapshot)
    assert {(kind, tree) for kind, tree, _, _ in found} == {("sim_summary", "sim"), ("rel_summary", "rel")}
    kind, tree, level, number = found[0]
    page = browse.units(snapshot, kind, tree=tree, level=level)
    assert page.total == number
    picture = neighbours.neighbour_picture(snapshot, page.rows[0].id)
    assert 2 <= len(picture.nodes) <= MOST_NODES
    [wren] = browse.document_units(snapshot, "northern-wren")
    derived = snapshot.view.units(neighbours.derived_from(snapshot, wren.id))
    assert {unit.kind.value for unit in derived} >= {"aggregate", "sim_summary"}
    assert all(wren.id in unit.chunk_ids for unit in derived)


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
    assert "none of them" in said["names of the question"]
    assert "Hedda Sorrel (in 2 passages)" in said["names of the hits"]
    assert "It lacks" in said["words"] or "no word" in said["words"]
    hidden = limited.snapshot(filter="tenant=none")
    assert dict(asyncio.run(why_not(hidden, QUESTION, mother.id)).reasons)["filter"].startswith("The passage does not")


def test_two_recipes_are_compared(explorer):
    one = asyncio.run(explorer.ask(ExplorerQuery(QUESTION, "sire", 4)))
    other = asyncio.run(explorer.ask(ExplorerQuery(QUESTION, "flat", 4)))
    assert "Aldous Brack" in [title for title, _, place in compared(one, other) if not place]
    assert "not found" in comparison_html(one, other)


def test_what_a_model_was_paid_for_is_not_shown_to_those_who_see_a_part(folder, limited):
    assert Index(folder).spent() == []
    assert Index(folder).failures() == []
    with pytest.raises(Exception, match="allow"):
        limited.spent()


async def answered(guard, *, query=b"", kind="http", **headers):
    """Status and headers with which a guarded page answers; websockets say whether they were accepted."""
    sent = []

    async def send(message):
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await guard({"type": kind, "headers": raw, "query_string": query}, None, send)
    first = sent[0]
    return first.get("status", first["type"]), dict(first.get("headers", ()))


async def page(scope, receive, send):
    kind = "http.response.start" if scope["type"] == "http" else "websocket.accept"
    await send({"type": kind, "status": 200, "headers": []})


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_only_this_machine_and_this_origin_are_answered(kind):
    guard, good, bad = Guard(page), {200, "websocket.accept"}, {403, "websocket.close"}
    for headers in (
        {"host": "localhost:80"},
        {"host": "[::1]:80"},
        {"host": "127.0.0.1:8", "origin": "http://127.0.0.1:8"},
    ):
        assert (await answered(guard, kind=kind, **headers))[0] in good, headers
    for headers in (
        {}, {"host": "evil.example"}, {"host": "127.0.0.1.evil.example"}, {"host": "[::1"},
        {"host": "127.0.0.1:8", "origin": "http://evil.example"}, {"host": "127.0.0.1:8", "origin": "null"},
        {"host": "127.0.0.1:8", "origin": "http://127.0.0.1:9"},
    ):  # fmt: skip
        assert (await answered(guard, kind=kind, **headers))[0] in bad, headers


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
    assert (await answered(guard, kind="websocket", host="box:80"))[0] == "websocket.close"
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
