"""docs/stores.md says what the stores do: in an environment with all of their packages, PostgreSQL's server included."""

import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sire_core.recipes import REGISTRY

HAS_WHEEL = sys.version_info < (3, 13) and sys.platform == "linux" and platform.machine() == "x86_64"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_WHEEL, reason="pgserver has no wheel")]

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "stores.py"
DATA = Path(os.environ.get("SIRE_DATA", ROOT.parent / "shared" / "data")) / "2wikimultihopqa"


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


SERVER = """
import pgserver, sys
server = pgserver.get_server(sys.argv[1], cleanup_mode="delete")
server.psql("CREATE EXTENSION vector")
server.cleanup()
"""


@pytest.fixture(scope="module")
def python():
    """Of an environment in which every store is installed.

    Not in pytest's folder: every other pytest that starts closes that to other users, and root's server runs as one.
    """
    spec = importlib.util.spec_from_file_location("stores", SCRIPT)
    stores = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stores)
    with tempfile.TemporaryDirectory() as place:
        run(sys.executable, "-m", "venv", f"{place}/env")
        python = f"{place}/env/bin/python"
        run(python, "-m", "pip", "install", "--quiet", "-e", f"{ROOT}[langchain,llama-index]", *stores.PACKAGES)
        try:
            run(python, "-c", SERVER, f"{place}/postgres")
        except AssertionError as error:
            pytest.skip(f"pgserver cannot run here: {str(error)[-300:]}")
        yield python


STORES = ("InMemoryVectorStore", "Chroma", "Qdrant", "FAISS", "LanceDB", "PGVector")
LLAMA_INDEX = ("SimpleVectorStore", "Chroma", "Qdrant", "LanceDB", "PGVector")


def test_every_recipe_finds_the_same_over_every_store(python):
    said = run(python, SCRIPT, "--check")
    for name in (*(f"LangChain {store}" for store in STORES), *(f"LlamaIndex {store}" for store in LLAMA_INDEX)):
        (row,) = [line for line in said.splitlines() if line.startswith(f"['{name}'")]
        assert row.count("'same hits'") == len(REGISTRY), row
    assert said.count("'refused: ids of its own'") == len(REGISTRY)


@pytest.mark.data
def test_no_store_changes_recall_by_over_a_point(python):
    if not DATA.is_dir():
        pytest.skip(f"no benchmark data at {DATA}; set SIRE_DATA")
    options = ("--recipes", "sire,pagerank", "--questions", "100", "--embedder", "hash", "--check")
    said = run(python, SCRIPT, "--recall", DATA, *options)
    for store in ("own scan", *(f"LangChain {name}" for name in STORES), *(f"LlamaIndex {s}" for s in LLAMA_INDEX)):
        assert f"| {store} | " in said
