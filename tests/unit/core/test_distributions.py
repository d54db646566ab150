"""What is installed and imported, under today's and earlier paths."""

import importlib
import json
import os
import pickle
import runpy
import sys
from datetime import date
from pathlib import Path

import pytest

from sire_core.files.readers import read_documents
from sire_core.moved import PAPERS
from sire_core.papers.raptor.traversal import TreeTraversal
from support.command import run_python

if sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib
ROOT = Path(__file__).resolve().parents[3]
THIN = {"langchain-sire": "langchain", "llama-index-retrievers-sire": "llama-index"}


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(("name", "extra"), THIN.items())
def test_a_thin_distribution_is_sire_rag_of_the_same_version(name, extra):
    main, thin = project("."), project(f"distributions/{name}")
    assert thin["name"] == name
    assert thin["version"] == main["version"]
    assert thin["dependencies"] == [f"sire-rag[{extra}]=={main['version']}"]
    assert extra in main["optional-dependencies"]
    assert thin["urls"] == main["urls"]
    assert thin["requires-python"] == main["requires-python"]
    versions = {line for line in main["classifiers"] if "Python" in line}
    assert versions <= set(thin["classifiers"])


def test_a_release_sets_the_version_everywhere_and_the_date(tmp_path):
    release = runpy.run_path(str(ROOT / "distributions/release.py"))
    files = [path.relative_to(ROOT) for path in release["version_files"](ROOT)]
    for path in (*files, Path("CHANGELOG.md")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((ROOT / path).read_text())
    assert release["current_version"](ROOT) == project(".")["version"]
    with pytest.raises(SystemExit, match=r"Write it as 0\.2\.0"):
        release["set_version"](tmp_path, "next", date(2027, 1, 2))
    with pytest.raises(SystemExit, match=r"no section '## 0\.9\.0 - unreleased'"):
        release["set_version"](tmp_path, "0.9.0", date(2027, 1, 2))
    assert release["current_version"](tmp_path) == project(".")["version"]
    release["set_version"](tmp_path, "0.2.0rc1", date(2027, 1, 2))
    assert release["current_version"](tmp_path) == "0.2.0rc1"
    assert "## 0.2.0 - 2027-01-02\n" in (tmp_path / "CHANGELOG.md").read_text()
    changed = [path for path in files if (tmp_path / path).read_text() != (ROOT / path).read_text()]
    assert changed == files
    assert all("0.2.0.dev0" not in (tmp_path / path).read_text() for path in files)
    (tmp_path / files[0]).write_text('__version__ = "0.3.0"\n')
    with pytest.raises(SystemExit, match=r"several versions: 0\.2\.0rc1, 0\.3\.0"):
        release["current_version"](tmp_path)


def test_the_extra_of_langchain_pulls_no_model_client():
    names = [line.split(">")[0] for line in project(".")["optional-dependencies"]["langchain"]]
    assert names == ["langchain-core", "tqdm"]


def test_the_name_of_llama_index_gives_our_retriever():
    pytest.importorskip("llama_index.core")
    import llama_index_sire

    folder = ROOT / "distributions/llama-index-retrievers-sire/llama_index/retrievers/sire"
    assert runpy.run_path(str(folder / "__init__.py"))["SireRetriever"] is llama_index_sire.SireRetriever


OURS = "from sire_core import Index; from sire_core.recipes import sirerag"
HEAVY = [
    "numpy", "pydantic", "scipy", "sklearn", "networkx", "faiss", "bm25s", "torch", "sentence_transformers", "spacy",
    "langchain_core", "llama_index", "openai", "httpx", "aiohttp", "typer", "rich", "asyncio", "sqlite3",
]  # fmt: skip


def python(code):
    return run_python(code).stdout


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

    assert sorted(sire_core.__all__) == ["Document", "Hit", "Index", "Passage", "UsageLimits", "read_documents"]
    for name in sire_core.__all__:
        assert getattr(sire_core, name).__name__ == name
    with pytest.raises(AttributeError, match="Nothing"):
        _ = sire_core.Nothing


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_a_recipe_and_a_package_by_both_paths(name):
    earlier = importlib.import_module(f"sire_core.recipes.{name}.recipe")
    assert earlier is importlib.import_module(f"sire_core.papers.{name}.recipe")
    assert callable(getattr(importlib.import_module("sire_core.recipes"), name))
    assert earlier.__spec__.name == f"sire_core.papers.{name}.recipe"


def test_moved_names_are_the_same_objects():
    from sire_core.corpus.readers import read_documents as earlier_reader
    from sire_core.recipes.raptor.traversal import TreeTraversal as EarlierTraversal

    assert earlier_reader is read_documents
    assert EarlierTraversal is TreeTraversal
    stored = pickle.dumps(TreeTraversal(), protocol=0).replace(b"sire_core.papers", b"sire_core.recipes")
    assert pickle.loads(stored) == TreeTraversal()


@pytest.mark.parametrize("first", ["sire_core.recipes.smart.select", "sire_core.corpus.readers"])
def test_an_earlier_path_may_be_the_first_import_of_a_process(first):
    code = f"import {first}; from sire_core.recipes import smart; print(smart().name)"
    assert run_python(code).stdout == "smart\n"


@pytest.mark.parametrize("name", ["sire_core.recipes.smart.nothing", "sire_core.corpus.nothing", "sire_core.corpuses"])
def test_a_name_that_never_was_is_an_import_error_that_names_it(name):
    with pytest.raises(ModuleNotFoundError, match=name.replace(".", r"\.")):
        importlib.import_module(name)
