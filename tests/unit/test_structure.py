"""The contract of imports that `make lint` checks, and that it finds what breaks it."""

import ast
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[1] / "checks"
sys.path.insert(0, str(CHECKS))
import ceilings  # noqa: E402
import imports  # noqa: E402

BELOW_RECIPES = "arrays text filters protocols models documents extraction storage search knowledge files".split()


@pytest.fixture(scope="module")
def package():
    return imports.read_imports()


@pytest.mark.parametrize("name", imports.CHECKS)
def test_the_contract_holds(package, name):
    findings = imports.CHECKS[name](package)
    assert len(findings) <= ceilings.read("imports").get(name, 0), findings


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
            {
                "text/a.py": "from sire_core import b",
                "b.py": "if TYPE_CHECKING:\n    from sire_core.text.a import A",
            },
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
