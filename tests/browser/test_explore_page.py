"""The page of `sire explore`, as people use it."""

import xml.etree.ElementTree as ET
from pathlib import Path

QUESTION = "Who was the mother of the captain who commanded the steamship Northern Wren on her last voyage?"


def test_ask_see_the_path_click_and_save(page, address, accessible, shot):
    page.goto(address)
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")
    path = page.get_by_role("region", name="The paths to the hits")
    path.get_by_role("link", name="chunk: Aldous Brack").click()
    assert page.evaluate("document.querySelector(':target h3').textContent") == "[2] Aldous Brack"
    accessible(page)
    shot(page, "ask")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save picture as SVG").click()
    assert ET.parse(saved.value.path()).getroot().tag.endswith("svg")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save picture as PNG").click()
    assert Path(saved.value.path()).read_bytes()[:4] == b"\x89PNG"
    page.get_by_role("link", name="entity: Aldous Brack").click()
    page.get_by_role("heading", name="Aldous Brack").wait_for()
    page.get_by_role("link", name="Hedda Sorrel").first.wait_for()
    accessible(page)
    shot(page, "entity")
