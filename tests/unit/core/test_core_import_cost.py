"""Importing costs next to nothing: what is heavy loads when it is first used."""

import json
import os
import subprocess
import sys

import pytest

OURS = "from sire_core import Index; from sire_core.recipes import sirerag"
HEAVY = [
    "numpy", "pydantic", "scipy", "sklearn", "networkx", "faiss", "bm25s", "torch", "sentence_transformers", "spacy",
    "langchain_core", "llama_index", "openai", "httpx", "aiohttp", "typer", "rich", "asyncio", "sqlite3",
]  # fmt: skip


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_nothing_heavy_is_imported():
    loaded = json.loads(python(f"{OURS}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert "sire_core.index" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_constructing_an_index_does_no_input_or_output():
    script = f"""
{OURS}
import sys
before = set(sys.modules)
index = Index("/nowhere/at/all", recipe="sirerag", embedder="st:/nowhere/either")
index.close()
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert python(script).strip() == "[]"


@pytest.mark.slow
def test_importing_takes_at_most_one_and_a_half_times_numpy(tmp_path, monkeypatch):
    """In seconds of the processor, with the bytecode that the first import of an installed package writes."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    seconds = {"import numpy": [], OURS: []}
    for _ in range(7):
        for code, runs in seconds.items():
            before = os.times()
            python(code)
            after = os.times()
            runs.append(after.children_user + after.children_system - before.children_user - before.children_system)
    numpy, ours = (min(runs) for runs in seconds.values())
    assert ours <= 1.5 * numpy, f"{ours:.3f} s against {numpy:.3f} s"


def test_the_public_names():
    import sire_core

    assert sorted(sire_core.__all__) == ["Document", "Hit", "Index", "Passage", "UsageLimits"]
    for name in sire_core.__all__:
        assert getattr(sire_core, name).__name__ == name
    with pytest.raises(AttributeError, match="Nothing"):
        _ = sire_core.Nothing
