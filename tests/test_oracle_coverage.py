"""Every oracle of the specification has a test that carries its id: `test_oracle_<ID>_...`."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ORACLES = [
    "R1", "R2",
    "S1", "S1b", "S3", "S4", "S5",
    "I1", "I2", "I3", "I4", "I5", "I6", "I7",
    "X1", "X2", "X3", "X4", "X5", "X6", "X7",
    "M1", "M2", "M3", "M4", "M5", "M6", "M7",
    "E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10", "E11", "E12",
    "T1", "T2", "T3", "T4",
    "Q1", "Q2", "Q3",
]  # fmt: skip


def covered_oracles():
    texts = [file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py")]
    return set(re.findall(r"^(?:async )?def test_oracle_([A-Z]\d+[a-z]?)(?=_)", "\n".join(texts), re.MULTILINE))


def test_every_oracle_has_a_test_and_no_test_names_another():
    assert covered_oracles() == set(ORACLES)
