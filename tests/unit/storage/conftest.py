"""A small index folder and ways to use it."""

import os
import shutil

import pytest

from sire_core import Document, Index
from sire_core.testing.doubles import HashEmbedder
from support.command import run_python

DOCUMENTS = [Document(f"d{i}", f"Alma met Boris in Ceuta. Alma lives in Drava {i}.", f"Title {i}") for i in range(5)]


@pytest.fixture
def documents():
    return DOCUMENTS


@pytest.fixture
def opened():
    """Opens an index with the embedder of `folder`."""

    def open_index(path, **settings):
        return Index(path, **{"embedder": HashEmbedder(), **settings})

    return open_index


@pytest.fixture(scope="session")
def built_folder(tmp_path_factory):
    """An index folder of five documents, written long enough ago that nobody waits for its writer to publish more."""
    path = tmp_path_factory.mktemp("storage") / "index"
    with Index(path, recipe="raptor", embedder=HashEmbedder()) as index:
        index.build(DOCUMENTS)
    for file in path.glob("index.sqlite*"):
        os.utime(file, (0, 0))
    return path


@pytest.fixture
def folder(tmp_path, built_folder):
    """A copy of the index folder, to be changed or damaged."""
    return shutil.copytree(built_folder, tmp_path / "index")


@pytest.fixture
def ids(opened):
    """Ids of the first hits of a question."""

    def first_hits(path, **settings):
        with opened(path, **settings) as index:
            return [hit.unit.id for hit in index.search("Who lives in Drava 3?", 4)]

    return first_hits


@pytest.fixture
def run():
    """Runs Python in a process of its own; warnings are errors there too."""

    def run_script(script, *arguments, **options):
        return run_python(script, *arguments, flags=("-W", "error"), check=False, **options)

    return run_script
