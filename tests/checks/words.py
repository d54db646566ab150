"""The lint of words: local names that say nothing, riddles as docstrings, one constant's name in many modules.

Run by `make lint`; DESIGN's words, counted. The counts are ceilings in `ceilings.toml`; `--lower` writes those that have
fallen, and the name of a check lists all its findings.
"""

import ast
import re
import sys
from pathlib import Path

from ceilings import report

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT / "core" / "sire_core", ROOT / "langchain_sire", ROOT / "llama_index_sire")
NAMES = frozenset("known place own found where asked given kept said most told meant".split())
OPENING = re.compile(r"\s*(What|Who|Whether|How|Those|Of|None where|The same)\b")
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
MODULES = 3  # Modules that may define a constant of one name

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def read_modules(folders=PACKAGES):
    """Parse the modules below some folders; by path."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8")) for folder in folders for path in sorted(folder.rglob("*.py"))
    }


def local_names(modules):
    """Parameters and local variables with names that do not say what they hold, once per function."""
    return [
        f"{_shown(path)}:{number} {name}"
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
        for name, number in sorted(_bound(node).items())
        if name in NAMES
    ]


def _bound(function):
    """Names that a function binds, without those of functions in it, with the line of each."""
    names = {}
    nodes = [function.args, *(function.body if isinstance(function.body, list) else [function.body])]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.arg):
            names.setdefault(node.arg, node.lineno)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, node.lineno)
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            nodes += ast.iter_child_nodes(node)
    return names


def docstring_openings(modules):
    """Docstrings, also of attributes and constants, that begin like a riddle."""
    return [
        f"{_shown(path)}:{node.lineno} {node.value.value.strip().splitlines()[0]}"
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if OPENING.match(node.value.value)
    ]


def shared_constants(modules):
    """Names of constants that are defined in many modules, where each means something else."""
    places = {}
    for path, tree in modules.items():
        for node in tree.body:
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and not _makes_type(value):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name) and CONSTANT.fullmatch(name.id):
                            places.setdefault(name.id, set()).add(_shown(path))
    return [f"{name}: {', '.join(sorted(paths))}" for name, paths in sorted(places.items()) if len(paths) > MODULES]


def _makes_type(value):
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("TypeVar", "ParamSpec")


def _shown(path):
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


CHECKS = {"local_names": local_names, "docstring_openings": docstring_openings, "shared_constants": shared_constants}


def main():
    """Check the packages; the exit code is 1 if a number is above its ceiling."""
    modules = read_modules()
    findings = {name: check(modules) for name, check in CHECKS.items()}
    sys.exit(report("words", findings, lower="--lower" in sys.argv, show=sys.argv[1:]))


if __name__ == "__main__":
    main()
