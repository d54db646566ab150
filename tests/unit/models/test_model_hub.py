"""Models that are loaded by name: what is on this machine is not looked for elsewhere, what is nowhere fails at once."""

import hashlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from sire_core.errors import ConfigurationError
from sire_core.models.embedders import resolve_embedder
from sire_core.settings import UntrustedText
from support.command import run_python
from support.tiny_onnx import write_tiny_embedder


class NotFoundError(Exception):
    """The hub's answer to a name that it does not know."""


@pytest.fixture
def loaded(monkeypatch, tmp_path):
    """A hub and a library that note what they are asked for; the caller says what they have."""
    asked = []

    class Api:
        def model_info(self, name, timeout):
            assert timeout <= 10
            asked.append(name)
            if hub.away:
                raise OSError("Name or service not known")
            if name not in hub.there:
                raise NotFoundError(name)

    def load(name, device=None, **options):
        hub.loaded.append((name, options))
        raise RuntimeError("far enough")

    hub = SimpleNamespace(there=(), cached=(), away=False, asked=asked, loaded=[], weights="model.safetensors")

    def known(name, file):
        if name not in hub.cached:
            return None
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hub.weights).touch()
        return str(folder / file)

    errors = SimpleNamespace(RepositoryNotFoundError=NotFoundError)
    fake = SimpleNamespace(HfApi=Api, try_to_load_from_cache=known, errors=errors)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=load))
    return hub


@pytest.mark.parametrize(
    ("name", "places"), [("org/typo", ["org/typo"]), ("typo", ["sentence-transformers/typo", "typo"])]
)
async def test_a_name_that_the_hub_does_not_know(loaded, name, places):
    with pytest.raises(ConfigurationError, match=f"The hub has no model {name}, or it is private"):
        await resolve_embedder(f"st:{name}").embed(["x"])
    assert (loaded.asked, loaded.loaded) == (places, [])


async def test_without_network_one_question_is_enough(loaded):
    loaded.away = True
    with pytest.raises(ConfigurationError, match=r"typo is not on this machine, and the hub cannot be asked .*network"):
        await resolve_embedder("st:typo").embed(["x"])
    assert (len(loaded.asked), loaded.loaded) == (1, [])


async def test_what_is_on_this_machine_needs_no_network(loaded):
    loaded.away, loaded.cached = True, ("sentence-transformers/all-MiniLM-L6-v2",)
    with pytest.raises(ConfigurationError, match="far enough"):
        await resolve_embedder("st:all-MiniLM-L6-v2").embed(["x"])
    assert (loaded.asked, loaded.loaded) == ([], [("all-MiniLM-L6-v2", {"local_files_only": True})])


async def test_what_was_downloaded_for_its_graph_alone_lacks_weights(loaded):
    loaded.away, loaded.cached, loaded.weights = True, ("org/model",), "model.onnx"
    with pytest.raises(ConfigurationError, match="the hub cannot be asked"):
        await resolve_embedder("st:org/model").embed(["x"])


async def test_what_the_hub_knows_is_downloaded(loaded):
    loaded.there = ("org/model",)
    with pytest.raises(ConfigurationError, match="far enough"):
        await resolve_embedder("st:org/model").embed(["x"])
    assert loaded.loaded == [("org/model", {})]


async def test_what_only_an_index_names_is_not_downloaded(loaded):
    loaded.there, loaded.cached = ("org/model", "org/other"), ("org/other",)
    with pytest.raises(ConfigurationError, match=r"not on this machine.*--embedder st:NAME"):
        await resolve_embedder(UntrustedText("st:org/model")).embed(["x"])
    with pytest.raises(ConfigurationError, match="far enough"):
        await resolve_embedder(UntrustedText("st:org/other")).embed(["x"])
    assert (loaded.asked, loaded.loaded) == ([], [("org/other", {"local_files_only": True})])


class Hub(BaseHTTPRequestHandler):
    """Serves the files of a folder as the hub serves a model's."""

    folder: Path
    name = "org/bge-small-en"
    commit = "0" * 39 + "1"
    log: list

    def do_GET(self):
        self.log.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        names = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())
        if path.startswith(f"/api/models/{self.name}/tree/"):
            sizes = [{"type": "file", "path": name, "size": 1, "oid": "0"} for name in names]
            return self.answer(json.dumps(sizes).encode())
        if path in (f"/api/models/{self.name}", f"/api/models/{self.name}/revision/main"):
            siblings = [{"rfilename": name} for name in names]
            return self.answer(json.dumps({"id": self.name, "sha": self.commit, "siblings": siblings}).encode())
        file = self.folder / path.removeprefix(f"/{self.name}/resolve/{self.commit}/")
        if file.is_file():
            return self.answer(file.read_bytes())
        return self.answer(b"", 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def answer(self, body, status=200, headers=None):
        tag = hashlib.sha1(body).hexdigest()
        self.send_response(status)
        for key, value in {
            "Content-Length": len(body),
            "ETag": tag,
            "X-Repo-Commit": self.commit,
            **(headers or {}),
        }.items():
            self.send_header(key, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


SCRIPT = """
import asyncio, sys
from sire_core.models.embedders import resolve_embedder
from sire_core.errors import ConfigurationError
try:
    print(asyncio.run(resolve_embedder(sys.argv[1]).embed(["cat"]))[0].tolist())
except ConfigurationError as error:
    print(error)
"""


def test_a_model_in_the_onnx_format_is_downloaded_once_and_only_what_it_needs(tmp_path):
    """With the library of the hub and a server that speaks as the hub does."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    folder = write_tiny_embedder(tmp_path / "served", {"cat": [1.0, 0.0], "dog": [0.0, 1.0]})
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    for large in ("model.safetensors", "onnx/model.onnx", "onnx/model_fp16.onnx"):
        (folder / large).write_bytes(b"x" * 1000)
    handler = type("Served", (Hub,), {"folder": folder, "log": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **os.environ,
        "HF_HOME": str(tmp_path / "home"),
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
    }

    def said(spec):
        done = run_python(SCRIPT, spec, env=environment)
        return done.stdout.strip()

    try:
        assert "The hub has no model org/typo" in said("onnx:org/typo")
        first = said(f"onnx:{Hub.name}")
        assert first == said(f"onnx:{folder}?pooling=cls")
        got = sorted(
            line.rpartition("/")[2] for line in handler.log if line.startswith("GET /org/") and "resolve" in line
        )
        assert got == ["config.json", "model_quantized.onnx", "tokenizer.json", "tokenizer_config.json"]
    finally:
        server.shutdown()
        server.server_close()
    assert said(f"onnx:{Hub.name}") == said("semantic") == first
    assert "is not on this machine, and the hub cannot be asked" in said("onnx:org/other")
