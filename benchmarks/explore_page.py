"""How long the page of `sire explore` takes: first paint, questions, the map, and what is looked at around them.

    python benchmarks/explore_page.py INDEX [--questions FILE] [--repeats 3] [--json FILE]

Starts the page on a folder and looks at it in headless Chromium, as a person would: the first visit of a fresh server
and browser, then questions, then the map, a document, an entity, lists. Milliseconds until the browser has painted, as
it says itself (first contentful paint), or until what was asked for is there; and those of processor time that the
server took, which other programs on the machine change little.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
REGION = "The paths to the hits"


Times = tuple[float, float]
"""Milliseconds that passed, and of processor time of the server."""


@dataclass(slots=True)
class Server:
    """A server: the address of its page, its process and how long it took to answer."""

    address: str
    process: int
    started: Times

    def timed(self, action: Callable[[], object]) -> Times:
        """How long an action takes."""
        before, started = processor_time(self.process), time.perf_counter()
        action()
        return 1000 * (time.perf_counter() - started), processor_time(self.process) - before


def processor_time(process: int) -> float:
    """Milliseconds of processor time of a process and its threads so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(folder: str) -> Iterator[Server]:
    """Serve the page of a folder."""
    code = "from sire_core.cli import main; main()"
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code, "explore", folder, "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            found = next(filter(None, (re.search(r"http://[^ ]+", line) for line in server.stderr)), None)
            assert found, "the page did not start"
            spent = 1000 * (time.perf_counter() - started), processor_time(server.pid)
            yield Server(found.group().rstrip("/"), server.pid, spent)
        finally:
            server.terminate()


def ask(server: Server, page: Page, question: str) -> tuple[Times, float]:
    """How long it takes until the path is there, and milliseconds of the search in it."""
    page.get_by_role("textbox", name="Question").fill(question)
    before = page.locator(".sire-page h2").first.text_content() if page.locator(".sire-page h2").count() else ""
    assert before != question, "a question is asked once"

    def press() -> None:
        page.get_by_role("textbox", name="Question").press("Enter")
        page.locator("section.sire-page h2", has_text=question).first.wait_for()

    times = server.timed(press)
    meta = page.locator("section.sire-page p.meta").first.text_content() or ""
    found = re.search(r"searched in ([\d,]+) ms", meta)
    return times, float(found.group(1).replace(",", "")) if found else 0.0


def measured(folder: str, questions: list[str]) -> dict[str, Times]:
    """One run of a fresh server and a fresh browser."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    row: dict[str, Times] = {}
    with sync_playwright() as playwright, served(folder) as server:
        address = server.address
        row["server start"] = server.started
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        hosts = set[str]()
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        row["first visit, first paint"] = _painted(server, page)
        times = [ask(server, page, question) for question in questions]
        row["first question"] = times[0][0]
        later = sorted((whole, processor) for (whole, processor), _ in times[1:])
        row["later questions"] = later[len(later) // 2]
        searches = sorted(search for _, search in times[1:])
        row["their search"] = searches[len(searches) // 2], 0.0
        entity = page.get_by_role("link", name=re.compile("^name: ")).first
        there = f"{address}{entity.get_attribute('href')}" if entity.count() else ""
        row["later visit, first paint"] = _painted(server, page)
        for visit in ("first", "again"):
            row[f"map, {visit}"] = server.timed(partial(_mapped, page, f"{address}/map"))
        drawn = page.locator("canvas[data-milliseconds]").get_attribute("data-milliseconds")
        row["map, a drawing"] = float(drawn or 0), 0.0
        places = {"entity": there, "documents": f"{address}/browse", "entities": f"{address}/browse?kind=entity"}
        places["documents with letters"] = f"{address}/browse?text=harbour"
        for name, place in places.items():
            for visit in ("first", "again"):
                if place:
                    row[f"{name}, {visit}"] = server.timed(partial(_shown, page, place))
        _shown(page, places["documents"])
        first = page.locator("section.sire-page table a").first.get_attribute("href")
        row["a document"] = server.timed(partial(_shown, page, f"{address}{first}"))
        assert hosts == {address.split("/")[2]}, hosts
        chromium.close()
    return row


def _painted(server: Server, page: Page) -> Times:
    """First contentful paint of the start page; the processor time is that of all of it."""

    def visit() -> None:
        page.goto(server.address)
        page.get_by_role("heading", name="Questions to begin with").or_(
            page.locator("section.sire-page h2")
        ).first.wait_for()

    _, processor = server.timed(visit)
    return float(page.evaluate(PAINT)), processor


def _mapped(page: Page, place: str) -> None:
    page.goto(place)
    page.locator("canvas[data-milliseconds]").wait_for()


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
    print(f"{'':<40}{'ms':>10}{'CPU ms':>10}")
    for name, (passed, processor) in middle.items():
        print(f"{name:<40}{passed:10,.0f}{processor:10,.0f}")
    if given.json:
        given.json.write_text(json.dumps(middle, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
