"""Damaged files: right answers or a clear error, and never a word of another tenant.

SIRE_DAMAGE_CASES: how many cases the slow tests run of each kind, 500 unless told.
"""

import json
import os
import random
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from functools import cache

import numpy as np
import pytest

from sire_core import Document, Index, recipes
from sire_core.errors import SireError, StorageError
from sire_core.storage.check import check_folder
from sire_core.storage.checksums import row_checksum
from sire_core.storage.plain_files import checksum
from sire_core.testing.doubles import HashEmbedder, ScriptedModel
from support.damage import (
    DAMAGES,
    ENTRIES,
    PAGES,
    damage,
    damage_page,
    foreign_values,
    forge_body,
    put_foreign_value,
    replace_entry,
)

CASES = int(os.environ.get("SIRE_DAMAGE_CASES", "500"))
RECIPES = {
    "sirerag": lambda: recipes.sirerag(ranker="hybrid"),
    "sire": recipes.sire,
    "msrag": recipes.msrag,
    "iier": recipes.iier,
}
"""Between them they have every kind of derived file."""
QUESTIONS = ("Who lives in Drava 3?", "Where was Bela Kovac born?", "Zorbleflux")


def documents():
    return [
        Document(
            f"{tenant}{i}",
            f"{name} Kovac {i} was born in Drava {i}. {name} Kovac {i} founded the {word} mill in 19{i:02}.",
            title=f"{name} Kovac {i}",
            metadata={"tenant": tenant, "number": i},
        )
        for tenant, name, word in (("a", "Bela", "Amber"), ("b", "Cili", "Zorbleflux"))
        for i in range(8)
    ]


def opened(folder, recipe="sirerag"):
    made = RECIPES[recipe]() if recipe in RECIPES else recipe
    return Index(folder, recipe=made, chunker=None, embedder=HashEmbedder())


def answers(index):
    """All that a user may see, for everybody and for tenant a alone."""
    found = []
    for where in (None, {"tenant": "a"}):
        for question in QUESTIONS:
            hits = index.search(question, 100, filter=where)
            found.append([(hit.unit, round(hit.score, 5), hit.doc_ids, hit.path) for hit in hits])
            assert where is None or "Zorbleflux" not in repr(hits).replace(question, "")
            assert where is None or all(doc[0] == "a" for hit in hits for doc in hit.doc_ids)
    return found


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """By recipe: an index, what it answers, and what it answers after an addition."""

    @cache
    def made(recipe):
        folder = tmp_path_factory.mktemp("corruption") / "index"
        with opened(folder, recipe) as index:
            index.build(documents())
            index.add([Document("a8", "Bela Kovac 8 was born in Drava 8.", metadata={"tenant": "a"})])
            expected = answers(index)
        copy = folder.with_name("added")
        shutil.copytree(folder, copy)
        with opened(copy, recipe) as index:
            index.add([LATE])
            later = answers(index)
        return folder, expected, later

    return made


@pytest.fixture(scope="module")
def template(templates):
    return templates("sirerag")


LATE = Document("a9", "Bela Kovac 9 was born in Drava 9.", metadata={"tenant": "a"})


def answers_over_damage(templates, place, case, recipe="sirerag"):
    """What is found after damage of derived files, or after an addition on top of it; and what should be."""
    folder, expected, later = templates(recipe)
    rng = random.Random(case)
    copy = place / f"case{case}"
    shutil.copytree(folder, copy)
    files = sorted(path for path in copy.glob("derived/**/*") if path.is_file())
    assert len(files) >= 2
    victims = rng.sample(files, rng.choice((1, 1, 2)))
    how = DAMAGES[case % len(DAMAGES)]
    for file in victims:
        damage(file, how, rng, files)
    with opened(copy, recipe) as index:
        if case % 3:
            index.add([LATE])
        found = answers(index)
    shutil.rmtree(copy)
    return found, later if case % 3 else expected


def harm_of_damaged_truth(template, place, case):
    """What is wrong after damage of what cannot be made again and is no clear error: nothing should be."""
    folder, expected, later = template
    rng = random.Random(case)
    copy = place / f"case{case}"
    shutil.copytree(folder, copy)
    files = sorted(path for path in copy.iterdir() if path.is_file() and path.name != "writer.lock")
    damage(rng.choice(files), DAMAGES[case % len(DAMAGES)], rng, files)
    changed = {path: path.read_bytes() for path in copy.iterdir() if path.is_file()} != {
        copy / path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()
    }
    harm = []
    with suppress(SireError):
        if check_folder(copy) and not changed:
            harm.append("something is found where nothing changed")
    with suppress(SireError), opened(copy) as index:
        if answers(index) != expected:
            harm.append("other answers")
        index.add([LATE])
        if answers(index) != later:
            harm.append("other answers after an addition")
        # Damaged rows of answers that nobody needs may stay.
        harm += [finding for finding in check_folder(copy) if finding.file != "calls.sqlite"]
    shutil.rmtree(copy)
    return harm


def truth(index):
    """All that is read from index.sqlite alone."""
    found = index.documents()
    some = index.documents([document.id for document in found[::5]])
    return found, some, index.stats()["kinds"], index.failures()


def harm_of_one_bit(template, place, case):
    """What a changed bit of index.sqlite does to documents, counts and failures that are read, apart from an error."""
    folder = template[0]
    rng = random.Random(case)
    copy = place / f"bit{case}"
    copy.mkdir()
    for name in ("index.sqlite", "calls.sqlite", "manifest.json"):
        shutil.copy(folder / name, copy / name)
    whole = bytearray((copy / "index.sqlite").read_bytes())
    pages = len(whole) // 16384
    page = rng.randrange(pages)  # keys lie at the end of a page, cells' places at its beginning
    used = [place for place in range(page * 16384, (page + 1) * 16384) if whole[place]]
    for _ in range(1 + case % 2):
        whole[rng.choice(used or [page * 16384])] ^= 1 << rng.randrange(8)
    (copy / "index.sqlite").write_bytes(whole)
    with suppress(StorageError), opened(copy) as index:
        if truth(index) != truth_of(folder):
            return ["other documents"]
    shutil.rmtree(copy)
    return []


@cache
def truth_of(folder):
    with opened(folder) as index:
        return truth(index)


@pytest.fixture(scope="module")
def crashed(template, tmp_path_factory):
    """Such a folder with logs, as a crash leaves it; and what belongs to the user outside of it."""
    place = tmp_path_factory.mktemp("crashed")
    working = shutil.copytree(template[0], place / "working")
    with opened(working) as index, closing(sqlite3.connect(working / "index.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()  # while somebody reads, the log stays
        index.add([LATE])
        index.search("Who lives in Drava 3?")
        shutil.copytree(working, place / "index")
    assert (place / "index" / "index.sqlite-wal").stat().st_size > 0
    outside = place / "outside"
    (outside / "folder" / "photos").mkdir(parents=True)
    for name in ("file", "folder/photos/one", "folder/00000001.json", "folder/index.sqlite"):
        (outside / name).write_text("mine")
    (outside / "empty").touch()
    return place


def contents_of(place):
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(place.rglob("*"))}


def attack(folder, outside, rng, earlier):
    """Do one thing to a folder that no program of ours does; return whether answers may differ afterwards."""
    kind = rng.choice(("page", "page", "log", "link", "link", "row", "honest row", "json"))
    if kind == "page":
        file = folder / rng.choice(("index.sqlite", "index.sqlite", "calls.sqlite"))
        damage_page(file, rng.choice(PAGES), rng, (earlier / file.name).read_bytes())
    elif kind == "log":
        files = sorted(path for path in folder.iterdir() if path.name.endswith(("-wal", "-shm")))
        damage(rng.choice(files), rng.choice(DAMAGES), rng, files)
    elif kind == "link":
        entries = sorted(folder.rglob("*"))
        extra = [folder / name for name in ("sources.json", "index.sqlite-journal", "writer.lock-wal")]
        replace_entry(rng.choice([*entries, *extra]), outside, rng.choice(ENTRIES))
    elif kind == "json":
        file = rng.choice(sorted(folder.rglob("*.json")))
        body = json.loads(file.read_text())
        value = rng.choice([value for value in foreign_values() if not isinstance(value, bytes)])
        key = rng.choice([*body]) if isinstance(body, dict) and body else ""
        body = {**body, key: value} if key else value
        if isinstance(body, dict) and rng.random() < 0.7:
            body["checksum"] = checksum({name: part for name, part in body.items() if name != "checksum"})
        file.write_text(json.dumps(body))
    else:
        with suppress(sqlite3.IntegrityError):  # not even SQLite takes it there
            put_foreign_value(folder, rng, honest=kind == "honest row")
    return kind in ("honest row", "json")


def harm_of_attack(template, crashed, place, case):
    """What is wrong after an attack and is no clear error: other answers, other exceptions, changes outside."""
    rng = random.Random(case)
    outside, before = crashed / "outside", contents_of(crashed / "outside")
    copy = shutil.copytree(crashed / "index", place / f"attack{case}")
    os.utime(copy / "index.sqlite", (0, 0))  # nobody is publishing just now
    harm, expected = [], template[2]
    try:
        is_theirs = attack(copy, outside, rng, template[0])
        for act in (
            lambda index: is_theirs or answers(index) == expected,
            lambda index: truth(index) is not None,
            lambda index: is_theirs or not index.add([LATE]).added,
            lambda index: index.delete(["a9"]) is not None,
            lambda index: index.save(copy.with_name(f"saved{case}")) is None,
        ):
            with suppress(SireError), opened(copy) as index:
                if not act(index):
                    harm.append("other answers")
        with suppress(SireError):
            check_folder(copy)
    except Exception as error:  # noqa: BLE001 - whatever is no error of ours
        harm.append(f"{type(error).__name__}: {error}")
    if contents_of(outside) != before:
        harm.append("changes outside")
    shutil.rmtree(copy)
    shutil.rmtree(copy.with_name(f"saved{case}"), ignore_errors=True)
    return harm


def cases(quick, first, count=CASES):
    """Numbers of cases: a few, and many in the slow tests."""
    return pytest.mark.parametrize(
        "numbers",
        [range(quick), pytest.param(range(first, first + count), marks=pytest.mark.slow)],
        ids=["few", "many"],
    )


@cases(36, 50_000, 2 * CASES)
def test_attacks_are_errors_or_change_nothing(template, crashed, tmp_path, numbers):
    harm = {case: found for case in numbers if (found := harm_of_attack(template, crashed, tmp_path, case))}
    assert harm == {}


@cases(80, 100_000, 2 * CASES)
def test_documents_of_a_damaged_database_are_all_there_or_refused(template, tmp_path, numbers):
    for case in numbers:
        assert harm_of_one_bit(template, tmp_path, case) == [], case


@pytest.mark.quick(recipe=["sirerag", "sire"])
@pytest.mark.parametrize("recipe", sorted(recipes.REGISTRY))
@cases(7, 1000, CASES // 4)
def test_damaged_derived_files(templates, tmp_path, recipe, numbers):
    for case in numbers:
        found, expected = answers_over_damage(templates, tmp_path, case, recipe)
        assert found == expected, case


@cases(14, 2000)
def test_damaged_databases(template, tmp_path, numbers):
    for case in numbers:
        assert harm_of_damaged_truth(template, tmp_path, case) == [], case


def test_a_file_that_is_damaged_while_it_is_open(template, tmp_path):
    """Who changes a file under a running server is noticed before the next search."""
    folder, expected, later = template
    copy = tmp_path / "index"
    shutil.copytree(folder, copy)
    with opened(copy) as index:
        assert answers(index) == expected
        for number, file in enumerate(sorted(path for path in copy.glob("derived/**/*.*") if path.is_file())):
            whole = file.read_bytes()
            other = whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2)
            if number % 2:
                file.with_name("new").write_bytes(other)
                file.with_name("new").replace(file)
            else:  # in the pages that are mapped
                with file.open("r+b") as opened_file:
                    opened_file.write(other)
                os.utime(file, (1, 1))
            assert answers(index) == expected
        index.add([LATE])
        assert answers(index) == later
    with opened(copy) as index:
        assert answers(index) == later


def refusals_of_forged_values(template, place, recipe, case):
    """Messages of the errors about a value that a derivation stored for itself and that was forged, sums included."""
    copy = shutil.copytree(template[0], place / f"forged{case}")
    forge_body(copy, random.Random(case))
    if case % 2:
        shutil.rmtree(copy / "derived")
    refusals = []
    for act in (
        lambda index: index.search(QUESTIONS[case % 3], 20),
        lambda index: index.stats(),
        lambda index: index.add([LATE]),
        lambda index: index.delete(["a0", "b1"]),
    ):
        refusals += refusal_of(copy, recipe, act)
    shutil.rmtree(copy)
    return refusals


def refusal_of(folder, recipe, act):
    try:
        with opened(folder, recipe) as index:
            act(index)
    except SireError as error:
        return [str(error)]
    return []


TELLS_WHAT_TO_DO = re.compile("delete it and build again|nothing was changed")


@pytest.mark.parametrize(
    ("recipe", "count"),
    [
        ("sirerag", 12),
        *(
            pytest.param(name, CASES // 5, marks=pytest.mark.slow)
            for name in ("raptor", "indexrag", "smart", "pagerank", "hipporag2", *RECIPES)
        ),
    ],
)
def test_forged_values_of_derivations(templates, tmp_path, recipe, count):
    said = [
        text for case in range(count) for text in refusals_of_forged_values(templates(recipe), tmp_path, recipe, case)
    ]
    assert said
    assert all(TELLS_WHAT_TO_DO.search(text) for text in said)


@pytest.mark.quick(table=["records", "vectors"])
@pytest.mark.parametrize("table", ["records", "answers", "answer_sources", "vectors", "fitted"])
def test_foreign_values_among_stored_answers(tmp_path, table):
    """With right checksums; what cannot be read is made again, or an error."""
    folder = tmp_path / "index"
    settings = {"recipe": "sirerag", "language_model": ScriptedModel(), "chunker": None}  # and an embedder that learns
    with Index(folder, **settings) as index:
        index.build(documents())
        index._reader.files().calls.put_vectors("f", ["h"], np.zeros((1, 4), dtype=np.float32))
        question = "Who lives in Drava 3?"
        expected = {hit.unit.id for hit in index.search(question, 40)}
    whole = (folder / "calls.sqlite").read_bytes()
    with closing(sqlite3.connect(folder / "calls.sqlite")) as db:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] != "checksum"]
    for place, column in enumerate(columns):
        for value in foreign_values()[place::5]:
            (folder / "calls.sqlite").write_bytes(whole)
            with closing(sqlite3.connect(folder / "calls.sqlite", isolation_level=None)) as db:
                row = list(db.execute(f"SELECT {', '.join(columns)} FROM {table} LIMIT 1").fetchone())
                where = " AND ".join(f"{name}=?" for name in columns)
                given = [*row[:place], value, *row[place + 1 :]]
                with suppress(sqlite3.IntegrityError):
                    sql = f"UPDATE {table} SET {column}=?, checksum=? WHERE {where}"
                    db.execute(sql, [value, row_checksum(given), *row])
            with suppress(SireError), Index(folder, **settings) as index:
                assert {hit.unit.id for hit in index.search(question, 40)} == expected
            for act in (
                lambda index: (index.delete(["a1"]), index.add(documents()[1:2])),
                lambda index: index.spent(),
                lambda index: index.failures(),
            ):
                with suppress(SireError), Index(folder, **settings) as index:
                    act(index)
            with suppress(SireError):
                check_folder(folder)
