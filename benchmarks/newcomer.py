"""What a newcomer does in the first minutes, in a fresh environment, with every step checked and timed.

    python benchmarks/newcomer.py [--source sire-rag] [--json FILE]

An environment is made; the checkout (or what `--source` names) is installed with pip; then `sire demo`, a folder of
Markdown, HTML and PDF files is indexed, asked, and explored in headless Chromium, and the same index answers in an app
of LangChain and in a query engine of LlamaIndex. Needs nothing but Python and Chromium (Debian: `apt-get install
chromium`). The script fails with the step that does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "cli,explore,files,langchain,llama-index"
LIMIT = 600.0  # Seconds in all

QUESTION = "Where was the engineer born who designed the harbour crane of Tormund Quay?"
NEEDED = ("crane.md", "people/engineer.html")
FILES = {
    "crane.md": (
        "# The harbour crane of Tormund Quay\n\nThe crane lifts forty tonnes. It was designed by **Ysolde Ferrant** "
        "and has stood on the quay since 1911.\n\n## Upkeep\n\nIts chains are greased in spring.\n"
    ),
    "people/engineer.html": (
        "<!doctype html><html><head><title>Ysolde Ferrant</title></head><body><nav><a href='/'>Home</a></nav>"
        "<h1>Ysolde Ferrant</h1><p>Ysolde Ferrant was an engineer. She was born in Greywater, a village of potters."
        "</p></body></html>"
    ),
    "tides.md": "# Tide tables\n\nHigh water comes at noon on the first of the month.\n",
    "ferries.txt": "The ferry to the outer islands leaves from the northern pier at eight.\n",
}
PDF_TEXT = "The lighthouse of Greywater was lit by gas until 1950. Its keeper was Odo Maren."


# Steps that need what was installed: this file runs itself with the Python of the new environment for them.


def explore() -> None:
    """Ask in the browser; the path to both documents is drawn, nothing is asked of another host."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "no chromium here: apt-get install chromium"
    with _explored("my-index") as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        asked, wrong = set[str](), list[str]()
        page.on("request", lambda request: asked.add(request.url.split("/")[2]))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        page.get_by_label("Question").fill(QUESTION)
        page.get_by_label("Question").press("Enter")
        paths = page.get_by_role("region", name="The paths to the hits")
        paths.get_by_role("link", name="name: Ysolde Ferrant").wait_for()
        paths.get_by_role("link", name=re.compile("^passage: Ysolde Ferrant")).first.click()
        shown = page.evaluate("document.querySelector(':target').textContent")
        assert "Greywater" in shown, shown
        assert asked == {address.split("/")[2]}, f"asked of other hosts: {asked}"
        assert not wrong, wrong
        chromium.close()


@contextmanager
def _explored(folder: str) -> Iterator[str]:
    command = [_sire(), "explore", folder, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = next(filter(None, (re.search(r"http://[^ ]+", line) for line in server.stderr)), None)
            assert found, "the page did not start"
            yield found.group().rstrip("/")
        finally:
            server.terminate()


def langchain() -> None:
    """A chain over the folder's index: its prompt holds both documents, whose ids can be cited."""
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    from langchain_sire import SireRetriever

    retriever = SireRetriever.load("my-index", k=3)
    cited = retriever | (lambda found: "\n".join(f"[{document.id}] {document.page_content}" for document in found))
    prompt = ChatPromptTemplate.from_template("Answer from the context.\n\n{context}\n\n{question}")
    chain = {"context": cited, "question": RunnablePassthrough()} | prompt
    read = chain.invoke(QUESTION).to_string()
    assert "Ysolde Ferrant" in read, read
    assert "Greywater" in read, read


def llama_index() -> None:
    """A query engine over the same index: its sources are both documents."""
    from llama_index.core.llms import MockLLM

    from llama_index_sire import SireRetriever

    engine = SireRetriever.from_persist_dir("my-index", similarity_top_k=3).as_query_engine(llm=MockLLM())
    sources = [node.node.ref_doc_id or "" for node in engine.query(QUESTION).source_nodes]
    assert all(any(source.endswith(name) for source in sources) for name in NEEDED), sources


# Steps of the command line.


def demo() -> None:
    """Three questions over the packaged corpus, without a model."""
    shown = _run(_sire(), "demo")
    assert "Hedda Sorrel" in shown, shown
    assert "why " in shown, shown


def index() -> None:
    """A folder of Markdown, HTML, PDF and plain text."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.pdf import one_line_pdf

    for name, text in FILES.items():
        path = Path("docs", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    Path("docs", "lighthouse.pdf").write_bytes(one_line_pdf(PDF_TEXT))
    _run(_sire(), "index", "docs", "--to", "my-index")
    stats = json.loads(_run(_sire(), "stats", "my-index", "--json"))
    assert stats["documents"] == len(FILES) + 1, stats
    hits = json.loads(_run(_sire(), "query", "my-index", "Who kept the lighthouse of Greywater?", "-k", "1", "--json"))
    assert "Odo Maren" in hits[0]["text"], hits


def query() -> None:
    """Both documents of a two-document question, and how they were reached."""
    hits = json.loads(_run(_sire(), "query", "my-index", QUESTION, "-k", "3", "--json"))
    documents = [name for hit in hits for name in hit["doc_ids"]]
    assert all(any(found.endswith(name) for found in documents) for name in NEEDED), documents
    explained = _run(_sire(), "query", "my-index", QUESTION, "-k", "3", "--explain")
    assert "Ysolde Ferrant" in explained, explained
    _run(_sire(), "query", "my-index", QUESTION, "-k", "3", "--html", "question.html")
    assert "<svg" in Path("question.html").read_text(encoding="utf-8")


def _sire() -> str:
    return str(Path(sys.executable).parent / "sire")


def _run(*command: str, seconds: float = LIMIT) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert not done.returncode, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


STEPS: dict[str, Callable[[], None]] = {
    "demo": demo,
    "index": index,
    "query": query,
    "explore": explore,
    "langchain": langchain,
    "llama-index": llama_index,
}


def walk(source: str, place: Path) -> dict[str, float]:
    """All steps in an empty folder; the seconds of each by name.

    Args:
        source: What pip installs: a folder or a name, without extras.
        place: An empty folder.
    """
    python = place / "env" / "bin" / "python"
    seconds: dict[str, float] = {}
    # Nothing of the caller's environment helps: no PYTHONPATH, no key, and the folder as the place to be.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPENAI"))}

    def step(name: str, *command: str) -> None:
        started = time.perf_counter()
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        seconds[name] = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"step {name!r} does not hold:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        print(f"{name:<12}{seconds[name]:7.1f} s", flush=True)

    step("environment", sys.executable, "-m", "venv", "env")
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    step("install", *pip, f"{source}[{EXTRAS}]", "playwright")  # playwright drives the browser of this script only
    for name in STEPS:
        step(name, str(python), str(Path(__file__).resolve()), "--step", name)
    return seconds


def main() -> None:
    """Walk, or do one step in the environment that was made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default=str(ROOT), help="What pip installs (default: this checkout).")
    parser.add_argument("--json", type=Path, help="Write the seconds of the steps to a file.")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        STEPS[given.step]()
        return
    with tempfile.TemporaryDirectory(prefix="sire-newcomer-") as place:
        seconds = walk(given.source, Path(place))
    total = sum(seconds.values())
    print(f"{'in all':<12}{total:7.1f} s")
    if given.json:
        given.json.write_text(json.dumps(seconds, indent=1) + "\n", encoding="utf-8")
    if total > LIMIT:
        raise SystemExit(f"the walk takes {total:.0f} s, more than {LIMIT:.0f}")


if __name__ == "__main__":
    main()
