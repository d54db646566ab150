"""How many pages SQLite holds while much is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sire_core.errors import StorageError
from sire_core.storage.database import Database
from sire_core.storage.rows import Commit
from sire_core.storage.store import Store
from sire_core.testing.doubles import HashEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANY = 10_000


def held(database: Database) -> int:
    [(pages,)] = database.read("PRAGMA cache_size")
    return int(pages)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = Store(tmp_path / "index.sqlite")._db
    yield found
    found.close()


def test_more_pages_are_held_for_many_rows_and_given_back(database: Database) -> None:
    usual = held(database)
    with database.transaction(rows=10):
        assert held(database) == usual
    with database.transaction(rows=MANY):
        assert held(database) < usual < 0, "kilobytes are negative"
    assert held(database) == usual


def test_pages_are_given_back_when_a_change_fails(database: Database) -> None:
    usual = held(database)
    with pytest.raises(ZeroDivisionError), database.transaction(rows=MANY):
        _ = 1 // 0
    assert held(database) == usual


@pytest.mark.parametrize("rows", [1, MANY])
def test_a_closed_file_is_the_same_error_for_few_and_many_rows(database: Database, rows: int) -> None:
    database.close()
    with pytest.raises(StorageError, match="closed"), database.transaction(rows=rows):
        pass


def test_a_build_of_many_units_asks_for_more_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sire_core import Document, Index

    seen: list[int] = []
    whole = Store.commit

    def noted(store: Store, commit: Commit) -> None:
        opened = store._db.transaction

        def transaction(rows: int = 0) -> object:
            seen.append(rows)
            return opened(rows)

        monkeypatch.setattr(store._db, "transaction", transaction)
        whole(store, commit)

    monkeypatch.setattr(Store, "commit", noted)
    with Index(tmp_path / "ix", recipe="flat", embedder=HashEmbedder(), chunker=None) as index:
        index.build([Document(f"d{number}", f"Mill {number}.") for number in range(50)])
    assert max(seen) >= 50
