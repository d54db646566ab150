"""What is refused, and how."""

import json
import shutil
import sqlite3

import pytest

from sire_core.errors import (
    ConfigurationError,
    EmbedderMismatchError,
    IndexMissingError,
    StorageError,
)
from sire_core.index import Index
from sire_core.storage.checksums import row_checksum
from sire_core.testing.contracts import read_contents
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document

QUESTION = "Who lives in Drava 3?"


def test_another_embedder_is_refused_by_both_names(folder, opened):
    with opened(folder, embedder=HashEmbedder(32)) as index:
        for use in (lambda: index.search(QUESTION), lambda: index.add([Document("x", "X.")])):
            with pytest.raises(EmbedderMismatchError, match=r"hash/1:64.*hash/1:32"):
                use()
    with Index(folder, embedder="lexical") as index, pytest.raises(EmbedderMismatchError, match=r"hash/1:64.*lexical"):
        index.search(QUESTION)
    with Index(folder) as index, pytest.raises(EmbedderMismatchError, match=r"hash/1:64.*Index\(path, embedder"):
        index.search(QUESTION)


def test_another_format_is_refused(folder, opened, documents):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(StorageError, match="format 99"), opened(folder) as index:
        index.search(QUESTION)
    (folder / "manifest.json").unlink()
    with sqlite3.connect(folder / "index.sqlite") as connection:
        row = ("manifest", json.dumps({**manifest, "format": 99}))
        connection.execute("UPDATE meta SET value=?, checksum=? WHERE key=?", (row[1], row_checksum(row), row[0]))
    connection.close()
    with pytest.raises(StorageError, match="format 99"), opened(folder) as index:
        index.build(documents)


def test_foreign_places_are_refused_and_left_alone(tmp_path, opened, documents):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match=r"notes\.txt"), opened(tmp_path) as index:
        index.build(documents)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(StorageError, match="Name another place"), opened(tmp_path / "notes.txt" / "x") as index:
        index.build(documents)
    with pytest.raises(IndexMissingError, match="Build one"), opened(tmp_path / "nowhere") as index:
        index.search(QUESTION)
    assert not (tmp_path / "nowhere").exists()


def test_the_database_of_another_program_is_left_alone(tmp_path, opened, documents):
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = (tmp_path / "index.sqlite").read_bytes()
    for use in (lambda index: index.search(QUESTION), lambda index: index.build(documents)):
        with pytest.raises(StorageError, match="another program"), opened(tmp_path) as index:
            use(index)
    assert (tmp_path / "index.sqlite").read_bytes() == before


@pytest.mark.parametrize("keep", [0, 10, 100, 4096, 9000])
def test_a_truncated_index_is_a_clear_error(folder, keep, opened):
    file = folder / "index.sqlite"
    file.write_bytes(file.read_bytes()[:keep])
    shutil.rmtree(folder / "derived")
    with pytest.raises(StorageError, match=r"index\.sqlite"), opened(folder) as index:
        index.search(QUESTION)
    with pytest.raises(StorageError, match=r"index\.sqlite"), opened(folder) as index:
        index.add([Document("x", "X.")])


def test_recipes_that_were_not_built_are_named(folder, opened):
    from sire_core.recipes import raptor

    with opened(folder, recipe="sirerag") as index, pytest.raises(ConfigurationError, match="holds: raptor"):
        index.search(QUESTION)
    other = opened(folder, recipe=raptor(depth=1))
    with other as index, pytest.raises(ConfigurationError, match="other settings"):
        index.search(QUESTION)


def test_save_wants_a_new_folder_and_something_to_save(folder, tmp_path, opened):
    with opened(folder) as index:
        index.save(tmp_path / "copy")
        for taken in (tmp_path / "copy", folder, tmp_path):
            with pytest.raises(StorageError, match="Name a new folder"):
                index.save(taken)
    assert read_contents(tmp_path / "copy") == read_contents(folder)
    with pytest.raises(IndexMissingError):
        Index(embedder=HashEmbedder()).save(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
