"""The applications in `examples/apps`, run as their users run them, with twenty requests at once."""

import asyncio
import importlib.util
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.pdf import one_line_pdf

pytestmark = pytest.mark.default_recipe
APPS = Path(__file__).parents[2] / "examples" / "apps"
QUESTION = "In which year did the author of the novel The Weather Clerk die?"


def load(name):
    spec = importlib.util.spec_from_file_location(name, APPS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_the_service_streams_sources_and_answers_to_twenty_at_once():
    pytest.importorskip("fastapi", reason="fastapi is a development dependency")
    pytest.importorskip("langgraph", reason="the langgraph extra is missing")
    httpx = pytest.importorskip("httpx")
    service = load("langchain_service")
    transport = httpx.ASGITransport(app=service.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:

        async def ask(question):
            lines = (await client.get("/ask", params={"question": question})).text.splitlines()
            parts = [json.loads(line) for line in lines]
            return parts[0]["sources"], "".join(part["answer"] for part in parts[1:]).strip()

        sources, answer = await ask(QUESTION)
        assert [name for name, _ in sources][:2] == ["weather-clerk", "ilse-marrable"]
        assert answer.startswith("[weather-clerk.md] The Weather Clerk")
        assert await asyncio.gather(*(ask(QUESTION) for _ in range(20))) == [(sources, answer)] * 20
        assert (await client.get("/ask", params={"question": " "})).status_code == 422
        new = [{"id": "new", "text": "The Glass Ferry was directed by Petra Quillon.", "source": "new.md"}]
        assert (await client.post("/documents", json=new)).json() == {"added": ["new"]}
        assert "new" in [name for name, _ in (await ask("Who directed The Glass Ferry?"))[0]]
        assert (await client.delete("/documents/new")).status_code == 200
        assert (await client.delete("/documents/new")).status_code == 404


@pytest.mark.filterwarnings("ignore")
def test_the_chat_reads_markdown_and_pdf_and_follows_the_folder(tmp_path):
    pytest.importorskip("pypdf", reason="pypdf is a development dependency")
    app = load("llama_index_chat")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "film.md").write_text("# The Salt Lantern\n\nThe Salt Lantern was directed by Petra Quillon.\n")
    (folder / "town.md").write_text("# Varn Harbour\n\nVarn Harbour is a town with a pier.\n")
    (folder / "person.pdf").write_bytes(one_line_pdf("Petra Quillon was born in Varn Harbour."))
    retriever = app.open_folder(folder, tmp_path / "index")
    with ThreadPoolExecutor(20) as pool:
        chats = [app.chat_over(retriever, app.Repeats()) for _ in range(20)]
        found = list(pool.map(lambda chat: app.answer(chat, "Where was Petra Quillon born?"), chats))
    assert len(set(map(str, found))) == 1
    assert set(found[0][1][:2]) <= {"person.pdf", "film.md", "town.md"}
    assert "person.pdf" in found[0][1]
    (folder / "person.pdf").unlink()
    again = app.open_folder(folder, tmp_path / "index")
    assert "person.pdf" not in app.answer(app.chat_over(again, app.Repeats()), "Where was Petra Quillon born?")[1]


def test_they_are_short():
    for app in APPS.glob("*.py"):
        assert len(app.read_text().splitlines()) < 150, app
