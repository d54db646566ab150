"""Metadata that JSON does not have: stored in a stated form, compared rightly by filters, refused where there is none."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel

from sire_core.errors import CorpusError
from sire_core.index import Index
from sire_core.metadata_values import lost_types, plain_value, restored, with_types
from sire_core.testing.doubles import HashEmbedder
from sire_core.types import Document, Passage


class Color(Enum):
    RED = "red"


class Model(BaseModel):
    when: date


@dataclass
class Plain:
    path: Path


ID = UUID("12345678123456781234567812345678")
EAST = timezone(timedelta(hours=2))
CASES = [
    (datetime.fromisoformat("2024-05-31T10:00:00"), "2024-05-31T10:00:00", True),
    (datetime(2024, 5, 31, 10, 0, tzinfo=EAST), "2024-05-31T08:00:00+00:00", True),
    (date(2024, 5, 31), "2024-05-31", True),
    (time(10, 30), "10:30:00", True),
    (Path("a/b.md"), "a/b.md", True),
    (ID, str(ID), True),
    (Decimal("1.50"), 1.5, True),
    (Decimal(7), 7, True),
    ({2, 10, 1}, [1, 2, 10], True),
    (frozenset({"b", "a"}), ["a", "b"], True),
    ((1, date(2024, 1, 1)), [1, "2024-01-01"], True),
    ({"deep": [{"at": date(2024, 1, 1)}]}, {"deep": [{"at": "2024-01-01"}]}, True),
    (float("inf"), None, True),
    (Color.RED, "red", False),
    (np.float32(0.5), 0.5, False),
    (np.int64(3), 3, False),
    (np.array([1, 2]), [1, 2], False),
    (Model(when=date(2024, 1, 1)), {"when": "2024-01-01"}, False),
    (Plain(Path("x")), {"path": "x"}, False),
    ([1, "a", None, True, 0.5], [1, "a", None, True, 0.5], True),
]


@pytest.mark.parametrize(("value", "stored", "comes_back"), CASES)
def test_forms(value, stored, comes_back):
    assert plain_value(value) == stored
    kept = {"key": plain_value(value)} | {k: v for k, v in with_types({"key": value}).items() if k != "key"}
    back = restored(kept)
    assert list(back) == ["key"]
    expected = value if comes_back else stored
    assert back["key"] == expected
    assert type(back["key"]) is type(expected) or isinstance(expected, Path)


def test_not_a_number_is_null_and_comes_back():
    assert plain_value(float("nan")) is None
    assert np.isnan(restored({"x": None, "sire_types": with_types({"x": float("nan")})["sire_types"]})["x"])
    assert lost_types({"x": 1, "y": ["a"]}) == {}


@pytest.fixture(scope="module")
def index():
    built = Index(recipe="flat", embedder=HashEmbedder())
    built.build(
        Document(
            str(n), f"Text {n}.", metadata={"at": datetime(2024, n, 1, tzinfo=EAST), "cost": Decimal(n), "id_": ID}
        )
        for n in range(1, 6)
    )
    return built


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"at": {"gte": datetime(2024, 4, 1, tzinfo=EAST)}}, {"4", "5"}),
        ({"at": {"lt": datetime(2024, 2, 1, tzinfo=EAST).astimezone(timezone.utc)}}, {"1"}),
        ({"at": {"gt": date(2024, 4, 30)}}, {"5"}),
        ({"cost": {"lte": Decimal("2.5")}}, {"1", "2"}),
        ({"cost": {"in": [Decimal(3), np.int64(4)]}}, {"3", "4"}),
        ({"id_": ID}, {"1", "2", "3", "4", "5"}),
        ("at>2024-04-30", {"5"}),
    ],
)
def test_filters_compare_what_is_stored(index, where, expected):
    assert {hit.doc_ids[0] for hit in index.search("Text", 10, filter=where)} == expected


def test_what_has_no_form_is_refused_by_name():
    with pytest.raises(CorpusError, match=r"'a'.*'thing'.*object"):
        Index().build([Document("a", "x", metadata={"thing": object()})])


@pytest.mark.parametrize("value", [date(2024, 1, 1), Path("x"), {1}, float("nan"), Color.RED, [Decimal(1)], ID])
def test_an_option_refuses_what_json_does_not_have(value):
    index = Index(recipe="flat", embedder=HashEmbedder(), strict_metadata=True)
    for document in (
        Document("a", "x", metadata={"thing": value}),
        Document("a", chunks=(Passage("x", metadata={"thing": value}),)),
    ):
        with pytest.raises(CorpusError, match=r"'a'.*'thing'.*strict_metadata"):
            index.update([document])
        with pytest.raises(CorpusError, match="'thing'"):
            index.defer([document])
    assert index.update([Document("a", "x", metadata={"thing": [1, None, {"b": "c"}]})]).added == 1
