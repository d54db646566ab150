"""The lint of words that `make lint` runs: it counts what it should, and the package is within its ceilings."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "checks"))
import ceilings
import words


@pytest.mark.parametrize("name", words.CHECKS)
def test_the_package_is_within_its_ceilings(name):
    findings = words.CHECKS[name](words.read_modules())
    assert len(findings) <= ceilings.read("words").get(name, 0), findings[:20]


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        (
            "local_names",
            "known = 1\ndef f(where, filter):\n    found, *own = g()\n    return [1 for place in found]",
            4,
        ),
        ("local_names", "def f():\n    def known(asked): ...\n    return lambda told: told", 2),
        ("local_names", "class A:\n    known: int\n    def found(self): self.known = 1", 0),
        ("docstring_openings", '"""What it is."""\nA = 1\n"""Whether it is."""\ndef f():\n    "Of whom."', 3),
        ("docstring_openings", '"""Whatever."""\ndef f():\n    """Often."""\n    x = "What"\n    return x', 0),
    ],
)
def test_what_counts(tmp_path, name, text, count):
    (tmp_path / "a.py").write_text(text)
    assert len(words.CHECKS[name](words.read_modules([tmp_path]))) == count


def test_a_constant_of_one_name_in_many_modules_counts_once(tmp_path):
    for number in range(4):
        (tmp_path / f"a{number}.py").write_text("_SHOWN, OTHER = 1, 2\nT = TypeVar('T')\n" if number else "_SHOWN = 3")
    (found,) = words.shared_constants(words.read_modules([tmp_path]))
    assert found == "_SHOWN: a0.py, a1.py, a2.py, a3.py"
