"""What an index says that was closed, or that another process is just building."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sire_core import Document, Index
from sire_core.errors import IndexMissingError
from support.command import run

DOCUMENTS = [Document("a", "Alma met Boris in Ceuta.")]


@pytest.mark.parametrize(
    "use",
    [
        lambda index: index.search("Alma"),
        lambda index: index.stats(),
        lambda index: index.documents(),
        lambda index: index.snapshot(),
        lambda index: index.add(DOCUMENTS),
        lambda index: index.using("flat").search("Alma"),
    ],
)
def test_an_index_in_memory_that_was_closed_says_so(use):
    index = Index(recipe="flat")
    index.build(DOCUMENTS)
    index.close()
    index.close()
    with pytest.raises(IndexMissingError, match="was closed, and what it held in memory is lost"):
        use(index)


def test_a_folder_that_was_closed_is_opened_again(tmp_path):
    index = Index(tmp_path / "ix", recipe="flat")
    index.build(DOCUMENTS)
    index.close()
    assert index.search("Alma", 1)[0].doc_ids == ("a",)
    index.close()


WRITER = """
import sys
from sire_core.storage.folder import Folder
from sire_core.storage.index_files import IndexFiles

files = IndexFiles(__import__("pathlib").Path(sys.argv[1]), create=True)
files.store.manifest()
with files.writing():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_during_a_first_build_reading_says_that_one_runs(tmp_path):
    folder = tmp_path / "ix"
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        for words in (["stats", folder], ["query", folder, "Alma"], ["documents", folder]):
            assert "being built by another process" in " ".join(run(*words, code=1).output.split())
        with Index(folder) as index, pytest.raises(IndexMissingError, match="being built by another process"):
            index.search("Alma")
        holder.stdin.close()
        holder.wait(30)
    assert "nothing was built" in " ".join(run("stats", folder, code=1).output.split())


def test_reading_a_folder_is_said_before_it_begins(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nAlma met Boris.\n")
    said = run("index", tmp_path / "docs", "--to", tmp_path / "ix", "--recipe", "flat").stderr
    assert said.index("Reading ") < said.index("Read 1 document")
