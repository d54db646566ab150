"""What other web pages and guests can make the page of `sire explore` do: real requests to a real server of it."""

import base64
import json
import time
import urllib.error
import urllib.request
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from support.chat_frames import json_response
from support.http_server import LoopbackServer
from support.scripted_server import ScriptedServer

QUESTION = "Who commanded the steamship Northern Wren?"


def asked(address, settings, **fetch):
    """Status and text of the page that a browser gets which says these things of its request."""
    headers = {f"Sec-Fetch-{name.capitalize()}": value for name, value in fetch.items()}
    query = urlencode({"q": QUESTION, "settings": settings})
    request = urllib.request.Request(f"{address}/?{query}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def in_time(holds):
    """Whether something holds soon: what takes long, as a first search does, follows the painted page."""
    end = time.monotonic() + 60
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def test_other_pages_make_no_search_and_no_page_names_a_model(folder, explored, monkeypatch):
    pytest.importorskip("starlette")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    stolen = []

    async def note(request):
        stolen.append(request.headers)
        return json_response({})

    with (
        ScriptedServer(lambda call: "0") as server,
        LoopbackServer(note) as thief,
        explored(folder, "--llm", "m", "--base-url", server.base_url) as address,
    ):
        elsewhere = {"site": "cross-site", "mode": "no-cors", "dest": "image"}
        assert asked(address, "rerank=model", **elsewhere)[0] == 403
        frame = {"site": "same-site", "mode": "navigate", "dest": "iframe"}
        assert asked(address, "rerank=model", **frame)[0] == 403
        status, page = asked(address, "rerank=model", site="cross-site", mode="navigate", dest="document")
        assert status == 200
        assert quote(QUESTION) not in page
        assert QUESTION not in page
        assert not server.log, "a link from elsewhere opens the page, and nothing is searched for"

        assert asked(address, "rerank=model", site="none", mode="navigate", dest="document")[0] == 200
        assert in_time(lambda: len(server.log) == 1), "what a person types is searched for"
        for words in (
            f"rerank=model rerank_model=m@http://127.0.0.1:{thief.port}/v1",
            "rerank=cross_encoder cross_encoder=org/name",
        ):
            assert in_time(lambda said=words: "cannot be set on this page" in asked(address, said, site="none")[1])
        assert len(server.log) == 1
    assert not stolen


def test_the_map_has_only_documents_that_may_be_seen(folder, address, explored):
    pytest.importorskip("starlette")

    def fetched(address, path):
        with urllib.request.urlopen(f"{address}{path}", timeout=60) as response:
            return json.load(response)

    def values(data, key):
        return np.frombuffer(base64.b64decode(data["colours"][key]["values"]), np.uint8)

    data = fetched(address, "/map/data")
    assert len(base64.b64decode(data["points"])) == 4 * 42
    assert sum(topic["documents"] for topic in data["topics"]) == len(values(data, "topic")) == 42
    kinds = data["colours"]["kind"]["names"]
    every = ",".join(map(str, range(42)))
    shown = {document["title"] for document in fetched(address, f"/map/documents?points={every}")}
    people = int((values(data, "kind") == kinds.index("person")).sum())
    assert {"SS Northern Wren", "Aldous Brack"} <= shown
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetched(address, "/map/documents?points=42")
    script = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    request = urllib.request.Request(f"{address}/map/data", headers=script)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=60)
    with explored(folder, "--allow", "kind=person") as guarded:
        data = fetched(guarded, "/map/data")
        every = ",".join(map(str, range(len(values(data, "topic")))))
        visible = {document["title"] for document in fetched(guarded, f"/map/documents?points={every}")}
        assert len(visible) == people
        assert visible < shown
        assert "SS Northern Wren" not in visible
