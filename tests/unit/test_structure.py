"""Imports run one way: no circles, the kernel imports no neighbour, no room of a recipe imports another.

Imports inside functions count; imports for type checking do not, as they never run.
"""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import sire_core

ROOT = Path(sire_core.__file__).parent

NEIGHBOURS = "files papers evaluate explore reason cli serve stores".split()
BELOW_RECIPES = "arrays text filters protocols models documents extraction storage search knowledge files".split()
ROOMS = sorted(path.parent.name for folder in ("recipes", "papers") for path in (ROOT / folder).glob("*/recipe.py"))
# Imports of the kernel that lead to a neighbour; `recipes` lists the methods of papers by name.
LEADING_OUT = {
    ("sire_core.changes.builder", "sire_core.papers.trees.summarizers"),
    ("sire_core.data", "sire_core.evaluate.question_files"),
    ("sire_core.documents.markdown_writing", "sire_core.files.html"),
    ("sire_core.index", "sire_core.explore.query_result"),
    ("sire_core.testing.contracts", "sire_core.papers.smart.select"),
}


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
    return parts[2] if parts[1:2] in (["recipes"], ["papers"]) and len(parts) > 2 and parts[2] in ROOMS else ""


def circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_the_imports_of_this_package_are_found():
    assert {"iier", "indexrag", "msrag", "pagerank", "sire", "smart"} <= set(ROOMS)
    assert "sire_core.papers.iier.table" in imports()["sire_core.papers.iier.derive"]
    assert "sire_core.recipes.registry" in imports()["sire_core.changes.organizing"]
    assert "sire_core.papers.iier.rank" in imports()["sire_core.papers.iier.recipe"]  # inside a function
    assert "sire_core.index" not in imports()["sire_core.evaluate.retrieval"]  # for type checking
    assert circle({"a": {"b"}, "b": {"a"}}) is not None


def test_no_circle_of_modules():
    assert circle(imports()) is None


def test_the_kernel_imports_no_neighbour():
    assert {
        (module, target)
        for module, targets in imports().items()
        for target in targets
        if folder(module) not in NEIGHBOURS and folder(target) in NEIGHBOURS and module != "sire_core.recipes"
    } == LEADING_OUT


def test_no_room_of_a_recipe_imports_another():
    pairs = {(module, target) for module, targets in imports().items() for target in targets}
    assert {pair for pair in pairs if room(pair[0]) and room(pair[1]) and room(pair[0]) != room(pair[1])} == set()


def test_nothing_below_the_recipes_knows_a_recipe():
    names = set(ROOMS) - {"sire"}  # also the name of the product
    for module, tree in modules().items():
        if folder(module) in BELOW_RECIPES:
            assert not {target for target in imports()[module] if folder(target) == "recipes"}, module
            known = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & names
            assert not known, f"{module} names {known}"
