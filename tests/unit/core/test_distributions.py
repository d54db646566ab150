"""The thin distributions say the same as sire-rag, and re-export what is there."""

import runpy
import sys
from pathlib import Path

import pytest

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


def test_the_extra_of_langchain_pulls_no_model_client():
    names = [line.split(">")[0] for line in project(".")["optional-dependencies"]["langchain"]]
    assert names == ["langchain-core", "tqdm"]


def test_the_name_of_llama_index_gives_our_retriever():
    pytest.importorskip("llama_index.core")
    import llama_index_sire

    folder = ROOT / "distributions/llama-index-retrievers-sire/llama_index/retrievers/sire"
    assert runpy.run_path(str(folder / "__init__.py"))["SireRetriever"] is llama_index_sire.SireRetriever


@pytest.mark.parametrize("package", ["core/sire_core", "langchain_sire", "llama_index_sire"])
def test_every_package_is_typed(package):
    assert (ROOT / package / "py.typed").exists()
