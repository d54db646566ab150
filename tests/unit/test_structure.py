"""Imports run one way: no circles, no imports between the rooms of recipes, nothing below `recipes/` knows a recipe.

Imports inside functions count; imports for type checking do not, as they never run.
"""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import sire_core

ROOT = Path(sire_core.__file__).parent

# A folder imports from those before it only. `build` comes after `recipes`: it looks up stored recipes by name.
FOLDERS = (
    "algorithms filters protocols models corpus extraction data derive storage stores search knowledge trees recipes "
    "build explore reason serve evaluate testing cli"
).split()
ROOMS = sorted(path.parent.name for path in (ROOT / "recipes").glob("*/recipe.py"))


@cache
def modules():
    """Syntax trees by dotted name; a package by its own."""
    names = {
        path: ".".join(["sire_core", *path.relative_to(ROOT).with_suffix("").parts]) for path in ROOT.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): ast.parse(path.read_text(encoding="utf-8")) for path, name in names.items()}


def statements(node):
    """All nodes that may run."""
    for child in ast.iter_child_nodes(node):
        is_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        for found in child.orelse if is_typing else [child]:
            yield found
            yield from statements(found)


@cache
def imports():
    """By module the modules of ours that it imports."""
    found = {}
    for name, tree in modules().items():
        targets = set()
        for node in statements(tree):
            if isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                targets.update(
                    longer if (longer := f"{node.module}.{alias.name}") in modules() else node.module
                    for alias in node.names
                )
        found[name] = {target for target in targets if target in modules()} - {name}
    return found


def folder(module):
    """The folder of a module, or the module itself where it lies in none."""
    return module.split(".")[1] if "." in module else module


def room(module):
    """The recipe in whose room a module lies; empty for none."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["recipes"] and len(parts) > 2 and parts[2] in ROOMS else ""


def circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_the_imports_of_this_package_are_found():
    assert {"iier", "indexrag", "msrag", "pagerank", "sire", "smart"} <= set(ROOMS)
    assert "sire_core.recipes.iier.table" in imports()["sire_core.recipes.iier.derive"]
    assert "sire_core.recipes.registry" in imports()["sire_core.build.organizing"]
    assert "sire_core.recipes.iier.rank" in imports()["sire_core.recipes.iier.recipe"]  # inside a function
    assert "sire_core.index" not in imports()["sire_core.evaluate.retrieval"]  # for type checking
    assert circle({"a": {"b"}, "b": {"a"}}) is not None


def test_no_circle_of_modules():
    assert circle(imports()) is None


def test_folders_import_one_way():
    graph = {}
    for module, targets in imports().items():
        graph.setdefault(folder(module), set()).update(folder(target) for target in targets)
    for name, targets in graph.items():
        targets.discard(name)
    assert circle(graph) is None
    above = {
        (name, target)
        for name, targets in graph.items()
        for target in targets
        if name in FOLDERS and target in FOLDERS and FOLDERS.index(name) < FOLDERS.index(target)
    }
    assert above == set()
    unordered = {path.parent.name for path in ROOT.glob("*/__init__.py")} - set(FOLDERS)
    assert unordered == set()


def test_no_room_of_a_recipe_imports_another():
    pairs = {(module, target) for module, targets in imports().items() for target in targets}
    assert {pair for pair in pairs if room(pair[0]) and room(pair[1]) and room(pair[0]) != room(pair[1])} == set()


def test_nothing_below_the_recipes_knows_a_recipe():
    below = FOLDERS[: FOLDERS.index("recipes")]
    names = set(ROOMS) - {"sire"}  # also the name of the product
    for module, tree in modules().items():
        if folder(module) in below:
            assert not {target for target in imports()[module] if folder(target) == "recipes"}, module
            known = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & names
            assert not known, f"{module} names {known}"
