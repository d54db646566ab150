"""The page of `sire explore`, as people use it."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents
from support.scripted_server import ScriptedServer

QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"

PIXELS = "canvas => canvas.toDataURL()"
DARK = """async address => {
  const image = new Image(); image.src = address; await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const colours = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  let dark = 0;
  for (let i = 0; i < colours.length; i += 4) dark += colours[i] + colours[i + 1] + colours[i + 2] < 90;
  return 4 * dark / colours.length;
}"""
"""Share of the pixels of a picture that are nearly black."""


def test_ask_see_the_path_click_and_save(page, address, violations, shot, tmp_path):
    page.goto(address)
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")
    path = page.get_by_role("region", name="The paths to the hits")
    path.get_by_role("link", name="passage: Aldous Brack").click()
    assert page.evaluate("document.querySelector(':target h3').textContent") == "[2] Aldous Brack"
    assert violations(page) == []
    shot(page, "ask")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save picture as SVG").click()
    assert ET.parse(saved.value.path()).getroot().tag.endswith("svg")
    drawn = page.context.new_page()
    (tmp_path / "saved.svg").write_bytes(Path(saved.value.path()).read_bytes())
    drawn.goto((tmp_path / "saved.svg").as_uri())
    assert drawn.evaluate("getComputedStyle(document.querySelector('.question rect')).fill") == "rgb(227, 237, 251)"
    drawn.close()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save picture as PNG").click()
    png = Path(saved.value.path()).read_bytes()
    assert page.evaluate(DARK, "data:image/png;base64," + base64.b64encode(png).decode()) < 0.1
    page.get_by_role("link", name="name: Aldous Brack").click()
    page.get_by_role("heading", name="Aldous Brack").wait_for()
    page.get_by_role("link", name="Hedda Sorrel").first.wait_for()
    assert violations(page) == []
    shot(page, "entity")


def test_back_and_forward_show_the_question_of_their_address(page, address):
    asked = page.get_by_role("textbox", name="Question")
    page.goto(address)
    for question in (QUESTION, "Who was Hedda Sorrel?"):
        asked.fill(question)
        asked.press("Enter")
        page.get_by_role("heading", level=2, name=question).wait_for()
    assert page.title().startswith("Who was Hedda Sorrel? - ")
    page.go_back()
    page.get_by_role("heading", level=2, name=QUESTION).wait_for()
    assert asked.input_value() == QUESTION
    assert page.title().startswith(QUESTION)
    page.go_back()
    page.get_by_role("heading", name="Questions to begin with").wait_for()
    assert asked.input_value() == ""
    page.go_forward()
    page.get_by_role("heading", level=2, name=QUESTION).wait_for()
    page.get_by_role("region", name="The paths to the hits").get_by_role("link", name="passage: Aldous Brack").click()
    page.evaluate("window.notLoadedAgain = true")
    page.go_back()
    assert page.evaluate("window.notLoadedAgain"), "a step to a hit of the page loads nothing"


def test_back_shows_the_place_that_was_read(page, address):
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto(f"{address}/?q={quote(QUESTION)}")
    page.locator("ol.hits").wait_for()
    hit = page.locator("ol.hits h3 a").nth(3)
    hit.scroll_into_view_if_needed()
    place = page.evaluate("scrollY")
    assert place > 300
    hit.click()
    page.wait_for_url("**/unit?**")
    page.get_by_role("heading", level=1).wait_for()
    page.go_back()
    page.wait_for_function(f"Math.abs(scrollY - {place}) < 2")
    page.get_by_role("textbox", name="Question").fill("Who was Hedda Sorrel?")
    page.get_by_role("textbox", name="Question").press("Enter")
    page.get_by_role("heading", level=2, name="Who was Hedda Sorrel?").wait_for()
    page.go_back()
    page.get_by_role("heading", level=2, name=QUESTION).wait_for()


def test_the_map_is_as_it_was_after_back(page, address):
    page.goto(f"{address}/map")
    page.locator("canvas[data-milliseconds]").wait_for(timeout=60_000)
    page.get_by_label("Colour by").select_option("kind")
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("history.state?.map?.zoom > 1")
    page.get_by_role("link", name="Browse").click()
    page.get_by_role("table").first.wait_for()
    page.go_back()
    page.locator("canvas[data-milliseconds]").wait_for(timeout=60_000)
    page.wait_for_function("document.querySelector('.sire-map select')?.value === 'kind'")
    assert page.evaluate("history.state.map.zoom") > 1


def test_options_are_folded_take_the_return_key_and_what_is_wrong_is_said(page, address, violations):
    page.goto(f"{address}/?recipe=sire")
    page.get_by_role("heading", name="Questions to begin with").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("The question is empty: type one").wait_for()
    page.get_by_role("heading", name="Questions to begin with").wait_for()
    settings = page.get_by_label("Settings, e.g. rounds=1")
    assert not settings.is_visible()
    page.get_by_text("More options").click()
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    settings.fill("rounds")
    settings.press("Enter")
    page.get_by_text("'rounds' is none").wait_for()
    page.get_by_text("Settings of sire", exact=True).first.click()
    assert "rounds=2" in page.get_by_role("table", name="Settings of sire").text_content()
    assert violations(page) == []
    settings.fill("rounds=1")
    settings.press("Enter")
    page.get_by_role("region", name="The paths to the hits of sire rounds=1").wait_for()
    page.goto(f"{address}/?q={quote(QUESTION)}&recipe=nope&k=0")
    page.get_by_text("Hits is a whole number from 1 to 100, not 0; 5 are shown.").wait_for()
    page.get_by_text("There is no recipe 'nope' here").wait_for()
    settings.wait_for()  # options stay open for those who use them


def test_an_address_that_there_is_not_has_a_page_with_the_ways_on(page, address, violations):
    assert page.goto(f"{address}/no<such>page").status == 404
    page.get_by_role("heading", level=1, name="There is no page /no<such>page").wait_for()
    assert violations(page) == []
    page.get_by_role("link", name="Map").click()
    page.get_by_role("heading", level=1, name="Map").wait_for()


def test_first_paint_waits_for_no_script(page, address):
    page.route("**/*.js", lambda route: route.abort())
    page.goto(address)
    assert page.get_by_role("navigation", name="Pages").get_by_role("link").all_text_contents() == [
        "Ask",
        "Map",
        "Browse",
        "Reason",
    ]
    painted = "performance.getEntriesByName('first-contentful-paint').length"
    page.wait_for_function(painted)
    assert page.evaluate(painted) == 1


def test_the_start_page_asks_a_question_of_this_corpus(page, address, violations, shot):
    page.goto(address)
    page.get_by_role("heading", name="Questions to begin with").wait_for()
    assert violations(page) == []
    shot(page, "start")
    questions = page.locator("ul.start a").all_text_contents()
    connections = [question for question in questions if question.startswith("How are ")]
    assert 0 < len(connections) <= 3 <= len(questions) <= 6, "half of them at most"
    page.get_by_role("link", name=connections[0]).click()
    page.get_by_role("region", name="The paths to the hits").wait_for()
    names = connections[0].removeprefix("How are ").removesuffix(" connected?").split(" and ")
    hits = " ".join(page.locator("ol.hits").all_text_contents())
    assert len(names) == 2
    assert all(name in hits for name in names)
    page.goto(address)
    page.locator("ul.names a").first.click()
    page.get_by_role("region", name="The paths to the hits").wait_for()  # so many passages have it that it is searched
    page.goto(address)
    page.locator("ul.names a").nth(1).click()
    page.get_by_role("table", name="Its names").wait_for()


def test_the_map_finds_zooms_and_opens_documents(page, address, violations, shot):
    page.goto(f"{address}/map")
    canvas = page.get_by_role("application", name="Map of 42 documents")
    page.wait_for_function("document.querySelector('canvas')?.dataset.titles", timeout=60_000)
    titles = set(canvas.get_attribute("data-titles").split("; "))
    assert titles <= {document.title for document in demo_documents()} | {"Lamp of <b ..."}
    whole = canvas.evaluate(PIXELS)
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_role("textbox", name="Question").press("Enter")
    page.get_by_text("5 hits").click()
    listed = page.get_by_role("status").get_by_role("listitem").all_text_contents()
    assert "Aldous Brack" in listed
    page.wait_for_function("document.querySelector('canvas')?.dataset.ranks")
    assert violations(page) == []
    shot(page, "map")
    assert canvas.evaluate(PIXELS) != whole, "the hits are lit up"
    ranks = [[int(rank) for rank in place.split(", ")] for place in canvas.get_attribute("data-ranks").split("; ")]
    assert sorted(rank for place in ranks for rank in place) == list(range(1, 6)), "no hit covers another"
    assert ranks == sorted(map(sorted, ranks))
    canvas.focus()
    found = canvas.evaluate(PIXELS)
    page.keyboard.press("+")
    page.wait_for_timeout(300)
    assert canvas.evaluate(PIXELS) != found
    page.keyboard.press("0")
    page.wait_for_timeout(300)
    assert canvas.evaluate(PIXELS) == found
    for key in ["+"] * 5 + ["ArrowLeft"] * 6:
        page.keyboard.press(key)
    page.get_by_role("textbox", name="Question").press("Enter")
    seen = (
        "c => JSON.parse(c?.dataset.signs ?? 'null')?.every(([x, y]) => x > 0 && y > 0 && x < c.width && y < c.height)"
    )
    page.wait_for_function(f"({seen})(document.querySelector('canvas'))")
    assert page.locator("[data-topic]:visible").count() > 0, "points keep their colours"
    canvas.focus()
    page.keyboard.press("0")
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function(
        "document.querySelector('canvas')?.dataset.titles && !document.querySelector('canvas').dataset.ranks"
    )
    assert canvas.evaluate(PIXELS) == whole
    signs = page.locator("[data-topic]").evaluate_all("all => all.map(i => i.style.background + i.style.clipPath)")
    assert len(set(signs)) == len(signs) > 1
    page.goto(f"{address}/map")
    page.locator("canvas[data-milliseconds]").wait_for(timeout=60_000)
    data = page.evaluate("fetch('/map/data').then(answer => answer.json())")
    x, y = np.frombuffer(base64.b64decode(data["points"]), "<u2").reshape(-1, 2)[0] / 65535
    box = canvas.bounding_box()
    spot = (box["x"] + ((x - 0.5) * 0.92 + 0.5) * box["width"], box["y"] + ((y - 0.5) * 0.92 + 0.5) * box["height"])
    page.mouse.move(*spot)
    title = page.get_by_role("tooltip").text_content()
    page.mouse.click(*spot)
    page.wait_for_url("**/document?**")
    page.get_by_role("heading", level=1, name=title).wait_for()
    page.goto(f"{address}/map")
    page.get_by_role("heading", name="Topics").wait_for()
    topic = data["topics"][0]
    page.get_by_role("link", name=topic["label"]).click()
    table = page.get_by_role("table", name=f"Topic {topic['label']}: 1 to ")
    table.wait_for()
    assert table.get_by_role("row").count() - 1 == min(25, topic["documents"])


def test_map_and_reason_warn_as_ask_does(page, address):
    for path in ("", "map", "reason"):
        page.goto(f"{address}/{path}?q=xqzzy+blorf")
        warning = page.get_by_role("note").get_by_text("No hit shares a word with the question")
        warning.first.wait_for()
        assert warning.count() == 1, f"/{path}"


@pytest.fixture(scope="module")
def long_documents(tmp_path_factory, explored):
    """Where the page of an index with long documents and a wide table answers."""
    outlined = "# The gate\n\nSee [the oil](../oil.md#price) and [gone](gone.md).\n\n" + "".join(
        f"## Part {number}\n\n{'It stands all year. ' * 150}\n\n" for number in (1, 2)
    )
    wide = "| " + " | ".join(["a long cell of it"] * 9) + " |\n"
    table = f"{wide}|{'---|' * 9}\n{wide}\n".replace("a long cell of it", " ", 1)
    folded = f"{table}{'The vault is closed. ' * 30}The lamp of Karn burns at night. {'Nobody reads it. ' * 9}"
    documents = [
        Document("guide/gate.md", outlined, "The gate", {"source": "guide/gate.md", "year": 1893}),
        Document("oil.md", "# Oil\n\nA penny.", "Oil", {"source": "oil.md"}),
        Document("vault", folded, "Vault"),
        Document("bread", "No bread.", "Bread"),
    ]
    folder = tmp_path_factory.mktemp("long")
    Index(folder, recipe="flat").build(documents)
    with explored(folder) as address:
        yield address


def test_a_document_is_read_under_its_title_with_an_outline(page, long_documents, violations, shot):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{long_documents}/document?id=guide/gate.md")
    page.get_by_role("heading", level=1, name="The gate").wait_for()
    outline = page.get_by_role("navigation", name="Outline")
    assert outline.get_by_role("link").all_text_contents() == ["Part 1", "Part 2"]
    assert page.get_by_text("The gate", exact=True).count() == 1, "the title is not repeated"
    rows = page.get_by_role("table", name="Metadata").get_by_role("row").all_text_contents()
    assert rows == ["keyvalue", "year1893"]
    outline.get_by_role("link", name="Part 2").click()
    assert page.evaluate("document.querySelector(':target').textContent") == "Part 2"
    assert page.evaluate("document.querySelector(':target').getBoundingClientRect().top") < 400
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_role("link", name="gone").count() == 0
    assert violations(page) == []
    shot(page, "document")
    page.get_by_role("link", name="passage 2").click()
    page.get_by_role("link", name="guide/gate.md").click()
    page.wait_for_function("document.querySelector(':target')?.id === 'passage-2' && scrollY > 0")
    page.get_by_role("link", name="the oil").click()
    page.get_by_role("heading", level=1, name="Oil").wait_for()
    page.requested = [url for url in page.requested if not url.startswith(long_documents)]  # another page than usual


def test_a_phone_lists_the_paths_of_a_picture(page, address, violations, shot):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{address}/?q={quote(QUESTION)}")
    paths = page.get_by_role("list", name="The paths to the hits")
    assert page.get_by_role("region", name="The paths to the hits").count() == 0, "the list stands for the picture"
    assert (
        "On her last voyage, in the gale of November 1893, she was commanded by Aldous Brack." in paths.text_content()
    )
    assert paths.get_by_role("img", name="title of a document").count() > 0
    sizes = paths.locator("a, p, small").evaluate_all("all => all.map(i => parseFloat(getComputedStyle(i).fontSize))")
    assert min(sizes) >= 13
    assert paths.locator("li").evaluate_all("all => all.every(i => i.getBoundingClientRect().right <= innerWidth)")
    assert violations(page) == []
    shot(page, "phone")
    before = paths.get_by_role("link").count()
    paths.get_by_role("button", name="Show neighbours of").last.press("Enter")
    page.wait_for_function(f"document.querySelectorAll('.outline a').length > {before}")
    paths.get_by_role("link", name="[2] Aldous Brack").click()
    assert page.evaluate("document.querySelector(':target h3').textContent") == "[2] Aldous Brack"


def test_names_have_a_mark_and_a_legend(page, address, violations, shot):
    page.goto(address)
    legend = page.get_by_role("list", name="Kinds of names")
    legend.wait_for()
    kinds = legend.get_by_role("listitem").all_text_contents()
    assert kinds == ["title of a document", "other name"]
    for kind in kinds:
        assert page.locator("ul.names").get_by_role("img", name=kind).count() > 0
    page.locator("ul.names a").nth(1).click()
    page.get_by_text("title of a document: it titles a document or section").wait_for()
    assert page.locator(".picture").bounding_box()["width"] > 700, "the whole width is used"
    assert violations(page) == []
    shot(page, "entity-kinds")
    page.goto(f"{address}/browse?kind=entity")
    assert page.get_by_role("table").get_by_role("img").first.bounding_box()["width"] < 16


def test_names_are_filtered_while_they_are_typed(page, address, violations):
    page.goto(f"{address}/browse?kind=entity")
    page.get_by_role("table", name="Names 1 to 25 of").wait_for()
    page.get_by_label("Filter by name").press_sequentially("hedda")
    page.get_by_role("table", name="Names 1 to 1 of 1").get_by_role("link", name="Hedda Sorrel").wait_for()
    page.wait_for_url("**text=hedda**")
    assert violations(page) == []


def test_a_long_hit_is_unfolded_by_keys_and_keeps_its_address(page, long_documents, violations):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{long_documents}/?q={quote('Which lamp of the vault burns at night in Karn?')}")
    hit = page.locator("ol.hits > li", has_text="[1] Vault")
    hit.get_by_text("burns at night").first.wait_for()
    assert not hit.get_by_role("table").is_visible()
    hit.get_by_text("Show all").press("Enter")
    hit.get_by_role("table").wait_for()
    assert not hit.locator(".short").is_visible()
    assert violations(page) == []
    page.goto(f"{page.url}#{hit.get_attribute('id')}")
    page.wait_for_function("document.querySelector(':target h3')?.textContent === '[1] Vault'")
    page.requested = [url for url in page.requested if not url.startswith(long_documents)]  # another page than usual


def test_on_the_map_of_a_phone_no_hit_covers_another_and_finding_closes_the_title(page, address):
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(f"{address}/map")
    canvas = page.locator("canvas[data-milliseconds]")
    canvas.wait_for(timeout=60_000)
    data = page.evaluate("fetch('/map/data').then(answer => answer.json())")
    x, y = np.frombuffer(base64.b64decode(data["points"]), "<u2").reshape(-1, 2)[0] / 65535
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(
        *(box[at] + ((v - 0.5) * 0.92 + 0.5) * box[side] for at, v, side in (("x", x, "width"), ("y", y, "height")))
    )
    page.get_by_role("tooltip").wait_for()
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_role("textbox", name="Question").press("Enter")
    page.wait_for_function("document.querySelector('canvas')?.dataset.ranks")
    assert not page.get_by_role("tooltip").is_visible()
    signs = json.loads(canvas.get_attribute("data-signs"))
    for number, (x, y, wide, high) in enumerate(signs):
        assert all(abs(x - a) >= wide + w or abs(y - b) >= high + h for a, b, w, h in signs[:number])


@pytest.mark.slow
def test_what_takes_long_follows_the_painted_page(page, tmp_path, explored, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ScriptedServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        Index(tmp_path, recipe="flat", embedder="openai:scripted-embedder").build(demo_documents())
        server.latency = 8.0  # longer than a busy machine needs for the page itself
        page.set_default_timeout(30_000)
        with explored(tmp_path) as address:
            assert page.goto(f"{address}/?q={quote(QUESTION)}", wait_until="commit").status == 200
            page.get_by_text("Reading the index").wait_for()
            assert page.get_by_role("region", name="The paths to the hits").count() == 0
            page.get_by_role("region", name="The paths to the hits").wait_for()
            page.get_by_text("Reading the index").wait_for(state="hidden")
            page.requested = [url for url in page.requested if not url.startswith(address)]  # another page than usual


@pytest.mark.slow
def test_two_recipes_side_by_side_and_why_not(page, address, violations, shot):
    page.goto(f"{address}/?q={quote(QUESTION)}&recipe=sire&compare=flat&k=3")
    table = page.get_by_role("table", name="Ranks with sire and flat")
    assert "Aldous Brack2not among the first 3" in table.text_content()
    assert page.get_by_role("heading", level=2, name=QUESTION, exact=True).count() == 1
    assert (
        page.locator(table.get_by_role("link", name="2").first.get_attribute("href")).text_content().startswith("[2] ")
    )
    page.get_by_role("list", name="The paths to the hits of sire").wait_for()  # too wide for half of the window,
    page.get_by_role("list", name="The paths to the hits of flat").wait_for()  # so that the other is a list, too
    page.get_by_label("Words of the passage").fill("Hedda Sorrel botanist")
    page.get_by_role("button", name="Find it").click()
    page.get_by_role("button", name="Hedda Sorrel").click()
    page.get_by_text("names of the question").wait_for()
    page.wait_for_function(
        "document.activeElement.id === 'why-not' && document.activeElement.getBoundingClientRect().bottom < innerHeight"
    )
    reasons = page.get_by_role("listitem").all_text_contents()
    assert any(reason.startswith("words: ") for reason in reasons)
    assert any(reason.startswith("vectors: Its cosine with the question is ") for reason in reasons)
    page.get_by_label("Words of the passage").fill("zyxwv")
    page.get_by_role("button", name="Find it").click()
    page.get_by_text("No passage has one of these words in its title or text.").wait_for()
    page.get_by_text("names of the question").wait_for(state="detached")
    assert violations(page) == []
    shot(page, "compare")


@pytest.mark.slow
def test_two_settings_side_by_side_and_one_page_of_both(page, address, violations, shot):
    page.goto(f"{address}/?q={quote(QUESTION)}&recipe=sire&k=3")
    page.get_by_label("Settings of the other recipe").fill("rounds=0")
    page.get_by_label("Settings of the other recipe").press("Enter")
    table = page.get_by_role("table", name="Ranks with sire and sire rounds=0")
    table.wait_for()
    page.get_by_role("list", name="The paths to the hits of sire rounds=0").wait_for()
    assert "compare_settings=rounds%3D0" in page.url
    assert violations(page) == []
    shot(page, "compare-settings")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save page").click()
    html = Path(saved.value.path()).read_text(encoding="utf-8")
    assert html.count("<svg xmlns") == html.count("recipe sire") == 2
    assert "<caption>Ranks with sire and sire rounds=0</caption>" in html
    assert "<h2>sire rounds=0</h2>" in html
    assert html.count(f"<h1>{QUESTION}</h1>") == 1
    assert "<script" not in html


def test_a_picture_is_zoomed_dragged_and_grows(page, address, violations, shot):
    page.goto(f"{address}/?q={quote(QUESTION)}&recipe=sire&k=2")
    region = page.get_by_role("region", name="The paths to the hits")
    picture = region.locator("svg")
    assert "1893, she was" in picture.text_content(), "the sentence stands on the line"
    scale = "svg => svg.getScreenCTM().a"
    whole = picture.evaluate(scale)
    page.get_by_role("button", name="Zoom in").click()
    assert picture.evaluate(scale) == pytest.approx(1.4 * whole, rel=0.01)
    picture.scroll_into_view_if_needed()
    scrolled = region.evaluate("pane => pane.scrollLeft")
    box = region.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 20, steps=4)
    page.mouse.up()
    assert region.evaluate("pane => pane.scrollLeft") == pytest.approx(scrolled + 80, abs=1)
    page.get_by_role("button", name="Whole picture").click()
    is_whole = "pane => pane.scrollWidth <= pane.clientWidth && pane.scrollHeight <= pane.clientHeight"
    assert region.evaluate(is_whole)
    button = page.get_by_role("button", name="Show neighbours of SS Northern Wren").last
    button.focus()
    before = button.bounding_box()
    page.keyboard.press("Enter")
    picture.get_by_role("link", name="name: Hen Rocks").wait_for()
    page.wait_for_function("document.activeElement?.dataset.expand")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Show neighbours of SS Northern Wren"
    assert button.bounding_box()["y"] == pytest.approx(before["y"], abs=2), "what was clicked stays at its height"
    assert region.evaluate(is_whole) or picture.evaluate(scale) == pytest.approx(1, abs=0.01)
    assert violations(page) == []
    shot(page, "grown")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save page").click()
    assert "Hen Rocks" in Path(saved.value.path()).read_text(encoding="utf-8").split("</svg>")[0]
    page.set_viewport_size({"width": 820, "height": 900})
    page.reload()
    picture.wait_for()
    assert 11 * picture.evaluate(scale) >= 9.8, "what does not fit scrolls before its letters get too small"


@pytest.mark.slow
def test_keyboard_alone(page, address):
    page.goto(address)
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    page.wait_for_function("document.activeElement.name === 'q'")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.get_by_role("region", name="The paths to the hits").wait_for()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.querySelector('.label')?.textContent") == "[2] Aldous Brack":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector(':target h3').textContent") == "[2] Aldous Brack"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1900])
def test_every_page_is_accessible_narrow_and_wide_light_and_dark(page, address, violations, shot, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    for path in (
        f"/?q={quote(QUESTION)}",
        f"/map?q={quote(QUESTION)}",
        "/browse",
        "/browse?kind=entity",
        "/document?id=hostile",
        "/reason",
    ):
        page.goto(f"{address}{path}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        page.get_by_text("Reading the index").wait_for(state="hidden")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
        assert violations(page) == []
        shot(page, f"{path.split('?')[0].strip('/') or 'home'}-{scheme}-{width}")


@pytest.mark.slow
def test_hostile_passage_runs_nothing(page, address):
    for path in (f"/?q={quote('Who lit the lamp of Karn?')}", "/document?id=hostile", "/browse?text=karn"):
        page.goto(f"{address}{path}")
        page.get_by_text("Karn").first.wait_for()
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, b[onclick], svg[onload]").count() == 0
    script = quote("</title></script><script>window.hacked=9</script>")
    for path in ("document?id=", "unit?id=", "entity?id=", "browse?kind=", "browse?text=", "?q=x&settings="):
        page.goto(f"{address}/{path}{script}")
        page.get_by_role("heading", level=1).wait_for()
        assert page.evaluate("window.hacked") is None
    page.goto(f"{address}/?q={quote('<img src=x onerror=window.hacked=8>')}&recipe=%3Cscript%3E&filter=a%3D%3Cb%3E")
    page.get_by_role("alert").or_(page.get_by_role("region")).first.wait_for()
    assert page.evaluate("window.hacked") is None


@pytest.mark.slow
def test_without_a_model_the_answer_is_extracted(page, address):
    page.goto(f"{address}/reason")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_role("button", name="Reason").click()
    page.get_by_role("heading", name="Nearest sentences").wait_for()
    text = page.get_by_role("log").text_content()
    assert re.search(r"she was commanded by Aldous Brack\.[^\n]*? from SS Northern Wren", text)
    assert "No language model has checked whether they answer the question" in text
    page.get_by_label("Question").fill("Who was Hedda Sorrel?")
    page.get_by_role("button", name="Reason").click()
    page.wait_for_function("document.title.startsWith('Who was Hedda')")
    page.go_back()
    page.get_by_text("she was commanded by Aldous Brack.").wait_for()
    assert page.get_by_role("textbox", name="Question").input_value() == QUESTION


@pytest.mark.slow
def test_reasoning_shows_its_steps_and_the_answer(page, folder, explored, monkeypatch, violations, shot):
    def script(call):
        if "citations" in call.instructions:
            answer = {"answer": "Captain Brack's mother was Hedda <b>Sorrel</b>.", "citations": [1], "sufficient": True}
            return json.dumps(answer)
        search = "DONE" if "reasoning" in call.fields else "Who was the mother of Aldous Brack?"
        return json.dumps({"reasoning": "Aldous Brack commanded it.", "search": search})

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with (
        ScriptedServer(script, latency=0.3, gap=0.2) as server,
        explored(folder, "--llm", "m", "--base-url", server.base_url) as address,
    ):
        for scheme, width in (("light", 360), ("dark", 1900)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{address}/reason")
            page.get_by_role("textbox", name="Question").fill(QUESTION)
            page.get_by_role("button", name="Reason").click()
            page.get_by_text("Reasoning ...").wait_for()
            steps = page.get_by_role("log")
            steps.get_by_text("Captain Brack's").wait_for()
            assert "<b>Sorrel" not in steps.text_content()  # the answer is being written
            shot(page, f"reason-streams-{scheme}-{width}")
            steps.get_by_text("The evidence is sufficient: yes.").wait_for()
            steps.get_by_text("Searching: Who was the mother of Aldous Brack?").wait_for()
            assert steps.text_content().count("Hedda <b>Sorrel</b>") == 1, "said once, and what a model writes is text"
            page.get_by_text("Reasoning ...").wait_for(state="hidden")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert violations(page) == []
            shot(page, f"reason-{scheme}-{width}")
        steps.get_by_text("Found", exact=False).first.click()
        steps.get_by_role("link", name="Aldous Brack").first.click()
        page.get_by_role("heading", name="Aldous Brack", level=1).wait_for()
        page.requested = [url for url in page.requested if not url.startswith(address)]  # another page than usual


@pytest.mark.slow
def test_another_question_ends_the_thoughts_of_the_last(page, folder, explored, monkeypatch):
    def script(call):
        search = {"reasoning": "It goes on.", "search": f"Number {call.number}?"}
        return json.dumps({"answer": "No.", "citations": [], "sufficient": False} if call.number > 9 else search)

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with (
        ScriptedServer(script, latency=0.5) as server,
        explored(folder, "--llm", "m", "--base-url", server.base_url) as address,
    ):
        page.goto(f"{address}/reason")
        page.get_by_role("textbox", name="Question").fill("Who lit the lamp?")
        page.get_by_role("button", name="Reason").click()
        steps = page.get_by_role("log")
        steps.get_by_text("Searching:").first.wait_for()
        page.get_by_role("button", name="Reason").click()
        steps.get_by_text("Number 1?").wait_for(state="detached")  # on a busy machine the first has gone on meanwhile
        steps.get_by_text("Searching:").nth(1).wait_for()
        asked = [text for text in steps.locator("section").all_text_contents() if text.startswith("Searching")]
        assert "Number 1?" not in asked[0]
        assert len(server.log) <= 2 + len(asked) + 1, "only one question is being thought about"
        page.requested = [url for url in page.requested if not url.startswith(address)]


def test_a_saved_page_stands_alone_in_a_browser(browser, folder, violations, tmp_path, shot):
    with Index(folder) as index:
        index.show("Who lit the lamp of Karn?", 3).save(tmp_path / "question.html")
    context = browser.new_context(offline=True)
    page, wrong, asked = context.new_page(), [], []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "question.html").as_uri())
    page.get_by_role("heading", name="Who lit the lamp of Karn?").wait_for()
    assert page.locator("svg").first.is_visible()
    assert "Ole Brandt" in page.locator("body").inner_text()
    assert page.evaluate("window.hacked") is None
    assert (wrong, asked[1:]) == ([], [])
    assert violations(page) == []
    shot(page, "saved")
    context.close()


@pytest.mark.slow
def test_on_another_address_a_token_opens_the_page_and_allow_bounds_it(browser, folder, explored):
    with explored(folder, "--host", "0.0.0.0", "--allow", "kind=person") as address:
        base, token = address.split("/?token=")
        base = base.replace("0.0.0.0", "127.0.0.1")
        context = browser.new_context()
        page = context.new_page()
        assert page.goto(base).status == 401
        assert page.goto(f"{base}/?token={token}").status == 200
        assert page.goto(f"{base}/browse").status == 200  # the cookie knows it
        page.get_by_text("Aldous Brack").first.wait_for()
        assert "Northern Wren" not in page.content()
        page.goto(f"{base}/document?id=northern-wren")
        page.get_by_text("you may not see it").wait_for()
        context.close()
