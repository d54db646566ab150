"""Checks of imports and of words find what is planted; `make lint` runs them over the package."""

import ast
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[1] / "checks"
sys.path.insert(0, str(CHECKS))
import ceilings  # noqa: E402
import imports  # noqa: E402
import words  # noqa: E402

BELOW_RECIPES = "arrays text filters protocols models documents extraction storage search knowledge files".split()


@pytest.fixture(scope="module")
def package():
    return imports.read_imports()


def test_imports_in_functions_count_and_those_for_type_checkers_are_apart(package):
    assert "sire_core.papers.iier.rank" in package.runtime["sire_core.papers.iier.recipe"]
    assert "sire_core.search.snapshot" in package.typing["sire_core.index"]
    assert "sire_core.search.snapshot" not in package.runtime["sire_core.index"]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("leading_out", {"search/a.py": "def f():\n    from sire_core.explore import b", "explore/b.py": ""}),
        ("between_neighbours", {"files/a.py": "import sire_core.reason.b", "reason/b.py": ""}),
        ("between_rooms", {"papers/iier/a.py": "from sire_core.papers.smart import b", "papers/smart/b.py": ""}),
        ("beyond_extend", {"papers/iier/a.py": "from sire_core.text.b import c", "text/b.py": ""}),
        ("runtime_circles", {"a.py": "from sire_core import b", "b.py": "def f():\n    import sire_core.a"}),
        (
            "typing_circles",
            {"text/a.py": "from sire_core import b", "b.py": "if TYPE_CHECKING:\n    from sire_core.text.a import A"},
        ),
    ],
)
def test_a_planted_import_is_found(tmp_path, name, files):
    for path, text in {"__init__.py": "", **files}.items():
        file = tmp_path / "sire_core" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    planted = imports.read_imports(tmp_path / "sire_core")
    assert imports.CHECKS[name](planted)
    assert {other for other, check in imports.CHECKS.items() if check(planted)} - {name} <= {
        "typing_circles",
        "beyond_extend",
    }


def test_ceilings_only_fall():
    text = "[imports]\na = 3\nb = 5\n\n[words]\na = 9\n"
    assert ceilings.lowered("imports", {"a": 4, "b": 2}, text) == "[imports]\na = 3\nb = 2\n\n[words]\na = 9\n"


def test_nothing_below_the_recipes_knows_a_recipe(package):
    names = {path.parent.name for path in (imports.ROOT / "papers").glob("*/recipe.py")}
    assert len(names) > 8
    for module, targets in package.runtime.items():
        if imports.room(module) in BELOW_RECIPES:
            assert not {target for target in targets if imports.room(target) == "recipes"}, module
            path = imports.ROOT.parent.joinpath(*module.split("."))
            source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
            texts = {node.value for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Constant)}
            assert not texts & names, module


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
