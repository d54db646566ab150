"""Headless Chromium, as Debian packages it, and the page of an index."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from sire_core import Document, Index
from sire_core.data import demo_documents

HOSTILE = Document(
    "hostile",
    'The lamp of <script>window.hacked = 1</script> Karn "><img src=x onerror="window.hacked = 2"> was lit by Ole Brandt. '
    '</title></style></svg><svg onload="window.hacked = 3"> {{ window.hacked = 4 }} javascript:alert(5)',
    "Lamp of <b onclick=window.hacked=6>Karn</b>",
    {"<i>key": "<img src=x onerror=window.hacked=7>"},
)  # fmt: skip
SHOTS = Path(os.environ.get("SIRE_SHOTS", "")) if os.environ.get("SIRE_SHOTS") else None


@pytest.fixture(scope="module")
def browser():
    """Chromium through Playwright, which downloads nothing: the browser is Debian's.

    Not for the session: as long as Playwright lives its event loop runs in this thread, and no other one can.
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    pytest.importorskip("starlette")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or _installed()
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


def _installed():
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("no chromium here, and only root can install it: apt-get install chromium")
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "capture_output": True, "timeout": 400}
    subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], check=False, **quiet)
    return shutil.which("chromium") or pytest.skip("apt-get could not install chromium")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The demo corpus with a hostile passage, in two recipes."""
    path = tmp_path_factory.mktemp("explore") / "index"
    for recipe in ("sire", "flat"):
        Index(path, recipe=recipe).build([*demo_documents(), HOSTILE])
    return path


@contextmanager
def explored(folder, *words):
    """Where the page of an index answers, while it does."""
    command = [
        sys.executable,
        "-c",
        "from sire_core.cli import main; main()",
        "explore",
        str(folder),
        "--port",
        "0",
        *words,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            lines = iter(server.stderr.readline, "")
            found = next((found for found in (re.search(r"http://[^ ]+", line) for line in lines) if found), None)
            assert found is not None, "the page did not start"
            yield found.group().rstrip("/")
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="session")
def address(folder):
    """Where the page of the index answers."""
    with explored(folder) as address:
        yield address


@pytest.fixture(name="explored", scope="session")
def starts_a_page():
    return explored


@pytest.fixture
def page(browser, address):
    """A page that notes what it asks for, and what goes wrong in it."""
    context = browser.new_context(accept_downloads=True, bypass_csp=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(30_000)  # of use only on a busy machine
    page.requested, page.wrong = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    yield page
    hosts = {url.split("/")[2] for url in page.requested if not url.startswith(("data:", "blob:"))}
    context.close()
    assert hosts <= {address.split("/")[2]}, "something was asked of another host"
    assert page.wrong == []


@pytest.fixture
def violations():
    """What axe-core finds on a page: rules with the elements that break them."""
    sync_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")

    def check(page):
        found = sync_playwright.Axe().run(page).response["violations"]
        return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]

    return check


@pytest.fixture
def shot(request):
    """Keeps a screenshot, where `SIRE_SHOTS` names a folder."""

    def take(page, name):
        if SHOTS is not None:
            SHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    return take
