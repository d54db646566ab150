"""Lengths, paths, hosts and arguments beyond reason: cut with a note, or refused in our own words."""

from __future__ import annotations

import logging
import time

import pytest

from sire_core import Document, Index
from sire_core.errors import ConfigurationError, QueryError, SireError, StorageError
from sire_core.search.snapshot import MAX_QUESTION
from sire_core.serve.tools import FetchArguments, IndexTools, SearchArguments, read_arguments
from support.command import run

DOCUMENTS = [Document(f"d{n}", f"Alma {n} met Boris in Ceuta. The mill of Drava {n} burnt down.") for n in range(30)]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with Index(tmp_path_factory.mktemp("limits") / "ix", recipe="sire") as built:
        built.build(DOCUMENTS)
        built.search("Alma")
        yield built


WAYS = {
    "search": lambda index, question: index.search(question, 3),
    "search_many": lambda index, question: index.search_many([question], 3)[0],
    "explain": lambda index, question: index.explain(question, 3),
    "context": lambda index, question: index.context(question, 200).text,
    "snapshot": lambda index, question: index.snapshot().search(question, 3),
}


LONG_WORDS, ONE_WORD = "Who met Alma 3 at the mill of Drava? " * 30_000, "x" * 1_000_000


@pytest.mark.parametrize(("way", "question"), [*((way, LONG_WORDS) for way in WAYS), ("search", ONE_WORD)])
def test_a_question_is_cut_at_a_stated_length_with_a_note(index, way, question, caplog):
    short = question[:MAX_QUESTION].rsplit(None, 1)[0]
    begun = time.process_time()
    with caplog.at_level(logging.WARNING):
        found = WAYS[way](index, question)
    assert time.process_time() - begun < 20
    assert "The question has 1,1" in caplog.text or "The question has 1,0" in caplog.text
    assert "only the first 8,000 are searched for" in caplog.text
    caplog.clear()
    assert str(WAYS[way](index, short)) == str(found)
    assert "searched for" not in caplog.text


def test_the_adapters_cut_it_too(index, caplog):
    from langchain_sire import SireRetriever as LangChainRetriever
    from llama_index_sire import SireRetriever as LlamaIndexRetriever

    question = "Who met Alma 3? " * 20_000
    for find in (LangChainRetriever(index=index).invoke, LlamaIndexRetriever(index).retrieve):
        caplog.clear()
        assert find(question)
        assert "only the first 8,000 are searched for" in caplog.text


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "/".join(["folder"] * 800)], ids=["zero", "name", "path"])
def test_paths_that_no_file_system_takes_are_refused(path, tmp_path):
    from langchain_sire import SireRetriever as LangChainRetriever
    from llama_index_sire import SireRetriever as LlamaIndexRetriever

    place = str(tmp_path / path)
    for use in (
        lambda: Index(place).build(DOCUMENTS),
        lambda: Index(place).search("Alma"),
        lambda: LangChainRetriever.load(place),
        lambda: LlamaIndexRetriever.from_persist_dir(place),
    ):
        with pytest.raises(StorageError, match=r"Name (?:another|a shorter) one"):
            use()
    if "\0" not in path:
        assert "Name a shorter one" in run("stats", place, code=1).output.replace("\n", " ")


def test_arguments_of_tools_that_are_nested_too_deeply_are_refused(index):
    deep: object = "x"
    for _ in range(100_000):
        deep = {"and": deep}
    with pytest.raises(QueryError, match="nested too deeply"):
        read_arguments(SearchArguments, {"query": "Alma", "filter": deep})
    listed: object = "x"
    for _ in range(100_000):
        listed = [listed]
    with pytest.raises(QueryError, match="nested too deeply"):
        read_arguments(FetchArguments, {"doc_id": listed})
    assert IndexTools(index).specs()


HOSTS = ["a, b", "127.0.0.1, evil.example", "localhost:80, b", "localhost evil", "localhost:x", "[::1], b", ""]


def test_the_page_answers_one_well_formed_host_only():
    testclient = pytest.importorskip("starlette.testclient")
    from sire_core.explore.web.server import Guard

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    for guard in (Guard(app), Guard(app, hosts=(), token="t")):
        client = testclient.TestClient(guard, base_url="http://localhost")
        address = "/?token=t" if guard.token else "/"
        assert client.get(address).status_code == 200
        assert client.get(address, headers={"host": "localhost:8080"}).status_code == 200
        for host in HOSTS:
            assert client.get(address, headers={"host": host}).status_code == 403, host
        twice = [("host", "localhost"), ("host", "localhost")]
        assert client.get(address, headers=twice).status_code == 403


def test_numbers_of_an_address_may_be_of_any_length():
    from sire_core.explore.web.explorer import MOST_HITS, number_of

    assert [number_of(text) for text in ("7", "007", "9" * 9)] == [7, 7, 999_999_999]
    assert number_of("1" * 5_000) > 10**8 > MOST_HITS


def test_the_missing_extra_is_said_first_and_an_option_of_another_command_is_named(monkeypatch, index):
    import sys

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    begun = time.perf_counter()
    with (
        pytest.raises(ConfigurationError, match="needs sentence-transformers: pip install"),
        Index(recipe="flat", embedder="st:nobody/nothing") as other,
    ):
        other.build(DOCUMENTS[:1])
    assert time.perf_counter() - begun < 2
    said = run("query", index.path, "Alma", "--llm", "x", code=2).output
    assert "use `sire ask`" in said
    assert "two of them" not in said
    with pytest.raises(SireError):
        index.search("")
