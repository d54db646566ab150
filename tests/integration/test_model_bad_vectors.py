"""Texts that cannot be embedded and vectors that are none: named, listed, asked for again, and never searched with."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import closing

import numpy as np
import pytest

from sire_core import Document, Index, UsageLimits
from sire_core.errors import LimitExceededError, ModelError
from sire_core.models.openai.embedder import OpenAIEmbedder
from sire_core.models.openai.faults import RetryPolicy
from sire_core.storage.call_cache import CallStore
from sire_core.storage.check import check_folder
from sire_core.testing.doubles import HashEmbedder
from support.http_server import HttpRequest, HttpResponse, LoopbackServer
from support.langchain_adapter import LangChain
from support.llama_index_adapter import LlamaIndex

RETRY = RetryPolicy(max_retries=1, base=0.001, cap=0.002, seed=0)
DOCUMENTS = [Document(f"d{i}", f"Alma {i} met Boris {i} in Ceuta.", f"Title {i}") for i in range(40)]
BAD = Document("bad", "The Zorbleflux mill stands in Kemi.", "Zorbleflux")


class Server:
    """Embeds, unless a function of the texts answers otherwise."""

    def __init__(self, otherwise=lambda texts, data: None) -> None:
        self.otherwise = otherwise
        self.asked: list[list[str]] = []

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        texts = json.loads(request.body)["input"]
        self.asked.append(texts)
        vectors = (await HashEmbedder(256).embed(texts)).tolist()
        data = [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        found = self.otherwise(texts, data)
        if isinstance(found, HttpResponse):
            return found
        body = {"data": data} if found is None else found
        return HttpResponse(body=json.dumps(body).encode())


def embedder(running: LoopbackServer, **settings) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", base_url=f"http://127.0.0.1:{running.port}/v1", retry=RETRY, **settings)


def is_bad(texts):
    return any("Zorbleflux" in text for text in texts)


def change(texts, data, value):
    for text, item in zip(texts, data, strict=True):
        if "Zorbleflux" in text:
            item["embedding"] = value
    return {"data": data}


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


FAULTS = {
    "400": lambda texts, data: HttpResponse(400, b'{"detail": "cannot tokenize"}') if is_bad(texts) else None,
    "413": lambda texts, data: HttpResponse(413, b"too large") if is_bad(texts) else None,
    "422": lambda texts, data: HttpResponse(422, b'{"error": "bad input"}') if is_bad(texts) else None,
    "500": lambda texts, data: HttpResponse(500, b"NaN in output") if is_bad(texts) else None,
    "null": lambda texts, data: change(texts, data, None),
    "zeros": lambda texts, data: change(texts, data, [0.0] * 256),
    "empty": lambda texts, data: change(texts, data, []),
    "empty text": lambda texts, data: change(texts, data, ""),
    "NaN": lambda texts, data: change(texts, data, [float("nan")] * 256),
    "infinite": lambda texts, data: change(texts, data, [1e999] * 256),
    "short": lambda texts, data: change(texts, data, [1.0] * 255),
    "an object": lambda texts, data: change(texts, data, {"values": [1.0] * 256}),
    "nested": lambda texts, data: change(texts, data, [[1.0] * 256]),
    "no base64": lambda texts, data: change(texts, data, "!!not base64!!"),
    "half a number": lambda texts, data: change(texts, data, base64_of(b"12345")),
    "base64 of zeros": lambda texts, data: change(texts, data, base64_of(bytes(1024))),
    "one less": lambda texts, data: {"data": data[:-1]} if is_bad(texts) else None,
    "words": lambda texts, data: change(texts, data, ["0.5"] * 256),
    "truth values": lambda texts, data: change(texts, data, [True] * 256),
    "too large": lambda texts, data: change(texts, data, [1e300] * 256),
    "no JSON": lambda texts, data: HttpResponse(200, b"<html>busy") if is_bad(texts) else None,
    "504": lambda texts, data: HttpResponse(504, b"upstream timed out") if is_bad(texts) else None,
    "another form": lambda texts, data: [item["embedding"] for item in data] if is_bad(texts) else None,
    "error inside": lambda texts, data: {"error": {"message": "no", "code": 400}} if is_bad(texts) else None,
}


@pytest.mark.quick(
    fault=["400", "500", "null", "zeros", "NaN", "short", "no base64", "one less", "no JSON", "error inside"]
)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_bad_text_is_named_and_the_rest_is_indexed(fault, tmp_path, caplog):
    server = Server(FAULTS[fault])
    with LoopbackServer(server) as running, Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index:
        few = [*DOCUMENTS[:8], BAD, *DOCUMENTS[8:12]]
        report = index.build(few)
        assert report.added == 13
        (failure,) = report.failures
        assert failure.where == "vector of bad (Zorbleflux)"
        assert failure.where in caplog.text
        assert [found.where for found in index.failures()] == ["vector of Zorbleflux"]
        assert index.stats()["failed"] == 1
        hits = index.search("Who met Boris 7?", 13)
        assert hits[0].doc_ids == ("d7",)
        assert check_folder(tmp_path / "ix") == []
        asked = len(server.asked)
        assert asked <= 22
        index.add([Document("later", "Cili lives in Kemi.")])  # nothing else is embedded again
        assert {text for texts in server.asked[asked:] for text in texts if "Alma" in text} == set()
        again = index.build([*few, Document("later", "Cili lives in Kemi.")])
        assert [found.where for found in again.failures] == ["vector of bad (Zorbleflux)"]
        server.otherwise = lambda texts, data: None
        mended = index.build([*few, Document("later", "Cili lives in Kemi.")])
        assert mended.failures == ()
        assert index.failures() == []
        assert index.search("Where is the Zorbleflux mill?", 1)[0].doc_ids == ("bad",)
    assert check_folder(tmp_path / "ix") == []


ALWAYS = {
    "same": lambda texts, data: {"data": [{"index": i, "embedding": [1.0] * 256} for i in range(len(data))]},
    "zeros": lambda texts, data: {"data": [{**item, "embedding": [0.0] * 256} for item in data]},
    "empty": lambda texts, data: {"data": [{**item, "embedding": []} for item in data]},
    "refused": lambda texts, data: HttpResponse(400, b'{"detail": "this model does not support embeddings"}'),
    "down": lambda texts, data: HttpResponse(503, b"loading"),
    "no key": lambda texts, data: HttpResponse(401, b"no key"),
    "no model": lambda texts, data: HttpResponse(404, b'{"message": "model m not found"}'),
}


@pytest.mark.parametrize("fault", ALWAYS)
def test_an_embedder_that_fails_for_all_stops_the_build(fault, tmp_path):
    server = Server(ALWAYS[fault])
    with (
        LoopbackServer(server) as running,
        Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index,
        pytest.raises(ModelError),
    ):
        index.build(DOCUMENTS)
    server.otherwise = lambda texts, data: None
    with LoopbackServer(server) as running, Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index:
        assert index.build(DOCUMENTS).failures == ()  # nothing useless was stored
        assert index.search("Who met Boris 7?", 1)[0].doc_ids == ("d7",)
    assert len(server.asked) <= 2 * 80


def test_the_same_vector_in_single_answers_is_refused_and_not_stored(tmp_path):
    server = Server(ALWAYS["same"])
    with LoopbackServer(server) as running:
        with (
            Index(tmp_path / "ix", recipe="flat", embedder=embedder(running, batch_size=1)) as index,
            pytest.raises(ModelError, match="the same vector for 40 different texts"),
        ):
            index.build(DOCUMENTS)
        server.otherwise = lambda texts, data: None
        with Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index:
            assert index.build(DOCUMENTS).failures == ()
            assert index.search("Who met Boris 7?", 1)[0].doc_ids == ("d7",)


def asked_of_documents(server: Server) -> int:
    """Number of requests with texts of documents; a build also asks once what the model knows of paraphrases."""
    return sum(any(" met " in text for text in texts) for texts in server.asked)


STORED = {
    "right": lambda vectors: vectors,
    "all alike": lambda vectors: np.ones_like(vectors) / 16,
    "zeros": np.zeros_like,
    "infinite": lambda vectors: np.full_like(vectors, np.inf),
    "another length": lambda vectors: np.concatenate([vectors, vectors[:, :3]], axis=1),
}


@pytest.mark.parametrize(("damage", "requests"), list(zip(STORED, (0, 1, 1, 1, 2), strict=True)))
def test_vectors_of_an_unfinished_build_are_checked_when_they_are_read(damage, requests, tmp_path, monkeypatch):
    server = Server()

    def stop(*_):
        raise KeyboardInterrupt

    with LoopbackServer(server) as running:
        with Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index, monkeypatch.context() as patch:
            patch.setattr("sire_core.changes.builder.Builder._manifest", stop)
            with pytest.raises(KeyboardInterrupt):
                index.build(DOCUMENTS)
        with closing(CallStore(tmp_path / "ix" / "calls.sqlite")) as calls:
            hashes = [row[0] for row in calls.read("SELECT hash FROM vectors")]
            vectors = np.stack(list(calls.vectors("openai:m", hashes).values()))
            assert vectors.shape == (40, 256)
            calls.put_vectors("openai:m", hashes, STORED[damage](vectors).astype(np.float32))
        before = asked_of_documents(server)
        more = [Document("new", "Dora met Emil in Faro.")] if damage == "another length" else []
        with Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index:
            assert index.build([*DOCUMENTS, *more]).failures == ()
            assert asked_of_documents(server) == before + requests
            assert index.search("Who met Boris 7?", 1)[0].doc_ids == ("d7",)
        with Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index:
            index.delete(["d3"])  # asks nothing, and needs no length from the server


def test_a_server_that_repeats_the_first_vector_of_a_request_is_asked_for_single_texts(tmp_path):
    server = Server(lambda texts, data: {"data": [{**data[0], "index": i} for i in range(len(data))]})
    with LoopbackServer(server) as running, Index(tmp_path / "ix", recipe="flat", embedder=embedder(running)) as index:
        assert index.build(DOCUMENTS).failures == ()
        assert index.search("Who met Boris 7?", 3)[0].doc_ids == ("d7",)


async def embed(server: Server, texts, **settings):
    with LoopbackServer(server) as running:
        model = embedder(running, **settings)
        try:
            return await model.embed(texts)
        finally:
            await model.aclose()


@pytest.mark.parametrize("index", [None, 0, "1", -1, 5, 1.5])
async def test_an_index_that_is_missing_or_repeated_is_refused(index):
    def answer(texts, data):
        wrong = [{"embedding": item["embedding"], **({} if index is None else {"index": index})} for item in data]
        return {"data": wrong}

    with pytest.raises(ModelError, match=r"index"):
        await embed(Server(answer), ["Alma met Boris", "Cili lives in Kemi"])
    assert (await embed(Server(answer), ["Alma met Boris"])).shape == (1, 256)


async def test_vectors_come_in_the_order_of_their_index():
    server = Server(lambda texts, data: {"data": data[::-1]})
    texts = ["Alma", "Boris", "Cili"]
    assert np.allclose(await embed(server, texts), await HashEmbedder(256).embed(texts))


@pytest.mark.parametrize(
    ("text", "longest"),
    [("中文维基百科" * 3000, 700), ("한국어문장" * 3000, 500), ("हिन्दी " * 3000, 700), ("text " * 3000, 4000)],
)
async def test_long_texts_are_cut_by_the_tokens_of_their_script(text, longest):
    server = Server()
    await embed(server, [text], max_input_tokens=1000)
    ((sent,),) = server.asked
    assert longest * 0.5 <= len(sent) <= longest
    assert text.startswith(sent)


async def test_a_text_that_is_too_long_for_the_server_is_halved():
    def answer(texts, data):
        is_long = any(len(text) > 500 for text in texts)
        return HttpResponse(400, b'{"message": "input is longer than the maximum context length"}') if is_long else None

    assert (await embed(Server(answer), ["Alma lives here. " * 100])).shape == (1, 256)


def test_a_limit_is_no_fault_of_a_text(tmp_path):
    with LoopbackServer(Server()) as running:
        model = embedder(running, limits=UsageLimits(max_calls=0))
        with Index(tmp_path / "ix", recipe="flat", embedder=model) as index, pytest.raises(LimitExceededError):
            index.build(DOCUMENTS)


class Own:
    """An embedder as users write one."""

    fingerprint = "own"
    dimension = 256

    def __init__(self, how) -> None:
        self.how = how

    async def embed(self, texts, kind="document"):
        vectors = (await HashEmbedder(256).embed(texts)).tolist()
        for place, text in enumerate(texts):
            if "Zorbleflux" in text and kind == "document":
                vectors[place] = self.how() if callable(self.how) else self.how
        return vectors


def failing():
    raise RuntimeError("cannot tokenize")


@pytest.mark.parametrize("how", [failing, None, [0.0] * 256, [], "text", {"a": 1}, [1.0] * 255, [float("nan")] * 256])
def test_embedders_of_users_and_frameworks(how, tmp_path):
    own = Own(how)
    theirs = [adapter.embedder(lambda texts: asyncio.run(own.embed(texts))) for adapter in (LangChain, LlamaIndex)]
    for number, given in enumerate((own, *theirs)):
        with Index(tmp_path / f"ix{number}", recipe="flat", embedder=given) as index:
            report = index.build([*DOCUMENTS[:12], BAD])
            assert [failure.where for failure in report.failures] == ["vector of bad (Zorbleflux)"], given
            assert index.search("Who met Boris 7?", 3)[0].doc_ids == ("d7",)
