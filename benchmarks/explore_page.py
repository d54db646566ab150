"""How long the page of `sire explore` takes: first paint, questions, and what is looked at around them.

    python benchmarks/explore_page.py INDEX [--questions FILE] [--repeats 3] [--json FILE]

Starts the page on a folder and looks at it in headless Chromium, as a person would: the first visit of a fresh server
and browser, then questions, then a document, an entity, lists. Seconds until the browser has painted, as it says itself
(first contentful paint), or until what was asked for is there.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
REGION = "The paths to the hits"


@contextmanager
def served(folder: str) -> Iterator[tuple[str, float]]:
    """Address of the page, and how long it took to answer there."""
    code = "from sire_core.cli import main; main()"
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code, "explore", folder, "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            found = next(filter(None, (re.search(r"http://[^ ]+", line) for line in server.stderr)), None)
            assert found, "the page did not start"
            yield found.group().rstrip("/"), time.perf_counter() - started
        finally:
            server.terminate()


def timed(page: Page, action: Callable[[Page], object]) -> float:
    """Milliseconds of an action."""
    started = time.perf_counter()
    action(page)
    return 1000 * (time.perf_counter() - started)


def ask(page: Page, question: str) -> tuple[float, float]:
    """Milliseconds until the path is there, and those of the search in it."""
    page.get_by_role("textbox", name="Question").fill(question)
    before = page.locator(".sire-page h2").first.text_content() if page.locator(".sire-page h2").count() else ""
    assert before != question, "a question is asked once"
    started = time.perf_counter()
    page.get_by_role("textbox", name="Question").press("Enter")
    page.locator("section.sire-page h2", has_text=question).first.wait_for()
    seconds = 1000 * (time.perf_counter() - started)
    meta = page.locator("section.sire-page p.meta").first.text_content() or ""
    found = re.search(r"searched in ([\d,]+) ms", meta)
    return seconds, float(found.group(1).replace(",", "")) if found else 0.0


def measured(folder: str, questions: list[str]) -> dict[str, Any]:
    """One run of a fresh server and a fresh browser."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    row: dict[str, Any] = {}
    with sync_playwright() as playwright, served(folder) as (address, started):
        row["server start, ms"] = 1000 * started
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        hosts = set[str]()
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        page.goto(address)
        page.wait_for_function(f"({PAINT}) >= 0")
        row["first visit, first paint, ms"] = page.evaluate(PAINT)
        times = [ask(page, question) for question in questions]
        row["first question, ms"], row["its search, ms"] = times[0]
        later = sorted(whole - search for whole, search in times[1:])
        row["later questions beyond the search, median, ms"] = later[len(later) // 2]
        row["their search, median, ms"] = sorted(search for _, search in times[1:])[len(later) // 2]
        entity = page.get_by_role("link", name=re.compile("^entity: ")).first
        there = f"{address}{entity.get_attribute('href')}" if entity.count() else ""
        page.goto(address)
        page.wait_for_function(f"({PAINT}) >= 0")
        row["later visit, first paint, ms"] = page.evaluate(PAINT)
        places = {"entity": there, "documents": f"{address}/browse", "entities": f"{address}/browse?kind=entity"}
        places["documents with letters"] = f"{address}/browse?text=harbour"
        for name, place in places.items():
            for visit in ("first", "again"):
                if place:
                    row[f"{name}, {visit}, ms"] = timed(page, lambda page, to=place: _shown(page, to))
        _shown(page, places["documents"])
        first = page.locator("section.sire-page table a").first.get_attribute("href")
        row["a document, ms"] = timed(page, lambda page: _shown(page, f"{address}{first}"))
        assert hosts == {address.split("/")[2]}, hosts
        chromium.close()
    return row


def _shown(page: Page, place: str) -> None:
    page.goto(place)
    page.locator("section.sire-page").last.wait_for()


def main() -> None:
    """Measure, print the middle of the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", help="A folder that `sire index` wrote.")
    parser.add_argument("--questions", type=Path, help="Lines with `question`; the first ten are asked.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    questions = ["Who founded the company?", "Where was the director born?", "Who was the mother of the captain?"]
    if given.questions:
        lines = given.questions.read_text(encoding="utf-8").splitlines()[:10]
        questions = [json.loads(line)["question"] for line in lines]
    runs = [measured(given.index, questions) for _ in range(given.repeats)]
    middle = {name: sorted(run[name] for run in runs if name in run)[len(runs) // 2] for name in runs[0]}
    for name, value in middle.items():
        print(f"{name:<50}{value:10,.0f}")
    if given.json:
        given.json.write_text(json.dumps(middle, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
