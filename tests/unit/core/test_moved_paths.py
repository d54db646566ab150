"""Import paths of an earlier layout lead to the modules of today: the same objects, also in pickles."""

import importlib
import pickle
import subprocess
import sys

import pytest

from sire_core.files.readers import read_documents
from sire_core.moved import PAPERS
from sire_core.papers.raptor.traversal import TreeTraversal


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
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "smart\n"


@pytest.mark.parametrize("name", ["sire_core.recipes.smart.nothing", "sire_core.corpus.nothing", "sire_core.corpuses"])
def test_a_name_that_never_was_is_an_import_error_that_names_it(name):
    with pytest.raises(ModuleNotFoundError, match=name.replace(".", r"\.")):
        importlib.import_module(name)
