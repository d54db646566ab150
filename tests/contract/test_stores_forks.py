"""Servers that open an index over a database and fork their workers: every process has connections of its own."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.command import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HEAD = """
import asyncio, os, sys, warnings
warnings.simplefilter("ignore")
"""
POSTGRES = """
import psycopg
from sire_core import Document, Index
from sire_core.stores import PostgresStore
from sire_core.testing.doubles import HashEmbedder
place, folder = sys.argv[1:]
with Index(folder, recipe="flat", embedder=HashEmbedder(), store=PostgresStore(place, "forked")) as writer:
    writer.build([Document(f"d{i}", f"Bela Kovac {i} was born in Drava {i}.") for i in range(20)])
named = psycopg.conninfo.make_conninfo(place, application_name="forked")
index = Index(folder, recipe="flat", embedder=HashEmbedder(), store=PostgresStore(named, "forked"))
questions = [f"Who was born in Drava {i}?" for i in range(20)]
def answers():
    return [[hit.unit.id for hit in index.search(question, 3)] for question in questions]
def sessions():
    with psycopg.connect(place) as db:
        return {row[0] for row in db.execute("SELECT pid FROM pg_stat_activity WHERE application_name='forked'")}
expected, before = answers(), sessions()
children = []
for number in range(3):
    asked, stop = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(asked[1], b"y" if answers() == expected else b"n")
        os.read(stop[0], 1)
        index.close()
        sys.exit(0)
    children.append((child, asked, stop))
right = [answers() == expected, *(os.read(asked[0], 1) == b"y" for _, asked, _ in children)]
print(right, len(before), len(sessions()))
for child, _, stop in children:
    os.write(stop[1], b".")
    os.waitpid(child, 0)
print(answers() == expected, sessions() >= before)
"""
QDRANT = """
import httpx
from qdrant_client import QdrantClient
from sire_core.stores import QdrantStore
store = QdrantStore(QdrantClient(url=sys.argv[1], check_compatibility=False, limits=httpx.Limits()))
def ask():
    assert asyncio.run(store.mark()) == ""
ask()
child = os.fork()
if child == 0:
    ask()
    os._exit(0)
os.waitpid(child, 0)
ask()
"""
LANCE = """
from sire_core.errors import ConfigurationError
from sire_core.stores import LanceStore
store = LanceStore(sys.argv[1])
asyncio.run(store.mark())
read, write = os.pipe()
child = os.fork()
if child == 0:
    try:
        os.write(write, repr(asyncio.run(store.mark())).encode())
    except ConfigurationError as error:
        os.write(write, str(error).encode())
    os._exit(0)
os.close(write)
print(os.read(read, 1000).decode(), asyncio.run(store.mark()) == "")
"""


def run(script, *arguments):
    done = run_python(HEAD + script, *arguments)
    return done.stdout.splitlines()


def test_workers_that_share_a_postgres_store_have_sessions_of_their_own(postgres, tmp_path):
    during, after = run(POSTGRES, postgres, tmp_path / "index")
    assert during == "[True, True, True, True] 1 4"
    assert after == "True True"  # the parent's session outlives children that end


def test_workers_that_share_a_qdrant_store_have_clients_of_their_own():
    pytest.importorskip("qdrant_client")
    seen = []

    class Server(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            seen.append(self.client_address)
            body = b'{"result": {"exists": false}, "status": "ok", "time": 0}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run(QDRANT, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    before, child, after = seen
    assert before == after != child


def test_a_worker_that_shares_a_lance_store_is_told_to_open_its_own(tmp_path):
    pytest.importorskip("lancedb")
    (told,) = run(LANCE, tmp_path / "lance")
    assert "after the fork" in told
    assert told.endswith(" True")  # the parent's store works on
