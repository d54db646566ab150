"""The contract of imports: a kernel, neighbours that use it, papers that use `sire_core.extend`, and no circles.

Run by `make lint`. Imports inside functions count as imports at run time; those under `TYPE_CHECKING` are counted apart.
Numbers that are not zero yet are ceilings in `ceilings.toml`; `--lower` writes those that have fallen.
"""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

from ceilings import report

ROOT = Path(__file__).resolve().parents[2] / "core" / "sire_core"
PACKAGE = "sire_core"
NEIGHBOURS = frozenset("files papers evaluate explore reason cli serve stores".split())
ALLOWED = {
    "cli": NEIGHBOURS,
    "serve": NEIGHBOURS,
    "evaluate": {"reason", "files"},  # data sets are read from files
}
BY_NAME = {
    ("sire_core.index", "sire_core.explore"),  # `Index.show`, when it is called
    ("sire_core.recipes", "sire_core.papers"),  # the list of recipes
}


@dataclass(frozen=True)
class Imports:
    """Imports of the package's modules among themselves: by module, at run time and for type checkers."""

    runtime: dict[str, set[str]]
    typing: dict[str, set[str]]


def read_imports(root: Path = ROOT) -> Imports:
    """Parse all modules below a package's folder."""
    trees = {}
    for path in sorted(root.rglob("*.py")):
        name = ".".join([root.name, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    runtime, typing = {}, {}
    for name, tree in trees.items():
        runtime[name] = _targets(_statements(tree, typing=False), trees.keys()) - {name}
        typing[name] = _targets(_statements(tree, typing=True), trees.keys()) - {name}
    return Imports(runtime, typing)


def _statements(node, *, typing):
    """Nodes that run, or those under `TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            for part in child.body if typing else child.orelse:
                yield from ast.walk(part)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):  # no expression holds an import
            if not typing:
                yield child
            yield from _statements(child, typing=typing)


def _targets(nodes, modules):
    targets = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                targets.add(submodule if submodule in modules else node.module)
    return targets & set(modules)


def room(module):
    """Folder of a module, `papers.NAME` for methods; empty for modules at the top."""
    parts = module.split(".")
    return ".".join(parts[1 : 3 if parts[1:2] == ["papers"] else 2])


def ring(module):
    """Neighbour that a module belongs to; empty for the kernel."""
    folder = room(module).partition(".")[0]
    return folder if folder in NEIGHBOURS else ""


def leading_out(imports):
    return [
        (module, target)
        for module, targets in imports.runtime.items()
        for target in targets
        if not ring(module) and ring(target) and (module, ".".join(target.split(".")[:2])) not in BY_NAME
    ]


def between_neighbours(imports):
    """Imports of a neighbour by another that may not know it."""
    return [
        (module, target)
        for module, targets in imports.runtime.items()
        for target in targets
        if ring(module) and ring(target) not in ("", ring(module), *ALLOWED.get(ring(module), ()))
    ]


def beyond_extend(imports):
    """Imports of a paper, also for type checkers, that are neither `sire_core.extend` nor in its room."""
    return [
        (module, target)
        for part in (imports.runtime, imports.typing)
        for module, targets in part.items()
        for target in targets
        if ring(module) == "papers"
        and target != "sire_core.extend"
        and room(target) not in (room(module), "papers.trees")  # trees of summaries are shared
    ]


def between_rooms(imports):
    """Imports of one paper's room by another."""
    return [pair for pair in beyond_extend(imports) if ring(pair[1]) == "papers" and room(pair[1]) != "papers"]


def circles(graph):
    """Groups of modules that import one another, directly or not (Tarjan 1972, iterative)."""
    order, lowest, stack, found = {}, {}, [], []
    for start in graph:
        work = [(start, iter(sorted(graph[start])))] if start not in order else []
        if work:
            order[start] = lowest[start] = len(order)
            stack.append(start)
        while work:
            module, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = lowest[target] = len(order)
                    stack.append(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    lowest[module] = min(lowest[module], order[target])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[module])
                if lowest[module] == order[module]:
                    at = stack.index(module)
                    group, stack[at:] = stack[at:], []
                    found += [group] if len(group) > 1 else []
    return found


def in_typing_circles(imports):
    """Modules in circles that annotations close, but for pairs of files of one room."""
    both = {module: imports.runtime[module] | imports.typing[module] for module in imports.runtime}
    return [
        (module, f"one of {len(group)} modules")
        for group in circles(both)
        if len(group) > 2 or len({room(module) for module in group}) > 1
        for module in group
    ]


CHECKS = {
    "leading_out": leading_out,
    "between_neighbours": between_neighbours,
    "between_rooms": between_rooms,
    "beyond_extend": beyond_extend,
    "runtime_circles": lambda imports: [(" <-> ".join(group), "a circle") for group in circles(imports.runtime)],
    "typing_circles": in_typing_circles,
}


def main():
    """Check the package; the exit code is 1 if a number is above its ceiling."""
    imports = read_imports()
    findings = {name: [f"{one} -> {other}" for one, other in check(imports)] for name, check in CHECKS.items()}
    sys.exit(report("imports", findings, lower="--lower" in sys.argv, show=sys.argv[1:]))


if __name__ == "__main__":
    main()
