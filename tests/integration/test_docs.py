"""Every Python snippet of the documentation runs, page by page; the site names every page and every recipe."""

import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
CODE = {
    name: re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL) for name in PAGES
}
RUNNING = [name for name in PAGES if CODE[name]]
RUN = """
import os, sys, traceback
for name, code in {pages!r}.items():
    folder = os.path.join({place!r}, name.replace("/", "-"))
    os.mkdir(folder)
    os.chdir(folder)
    try:
        exec(compile(code, name, "exec"), {{"__name__": "__main__"}})
    except BaseException:
        print("FAILED in", name, file=sys.stderr)
        raise
"""


@pytest.mark.parametrize("part", [0, 1], ids=["first half", "second half"])
def test_snippets_run(part, tmp_path):
    # Many pages in one process: what takes long is to import the frameworks.
    pages = {name: "\n".join(CODE[name]) for name in RUNNING[part::2]}
    command = [sys.executable, "-c", RUN.format(pages=pages, place=str(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_site_has_every_page_and_every_recipe_its_picture_and_row():
    from sire_core.recipes import REGISTRY

    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    assert sorted(re.findall(r"[\w/-]+\.md", nav)) == PAGES
    how = (DOCS / "recipes" / "how-it-works.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"pictures/(\w+)\.svg", how)) == sorted(REGISTRY)
    linked = set(re.findall(r"\(([\w/-]+\.md)\)", (DOCS / "llms.txt").read_text(encoding="utf-8")))
    assert sorted(linked) == PAGES


def test_settings_of_every_recipe_are_in_the_tables_of_the_site():
    from sire_core.recipes import REGISTRY

    names: dict = {}
    exec((DOCS / "settings_tables.py").read_text(encoding="utf-8"), names)
    page = (DOCS / "recipes" / "settings.md").read_text(encoding="utf-8")
    sections = dict(
        re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", names["on_page_markdown"](page), re.MULTILINE | re.DOTALL)
    )
    assert sorted(sections) == sorted(REGISTRY)
    for name, section in sections.items():
        recipe = REGISTRY[name]()
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(recipe.config)
        assert all(text.replace("|", "\\|") in section for text in recipe.texts.values())


def test_compose_file_names_what_exists():
    yaml = pytest.importorskip("yaml")
    (block,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "deploying.md").read_text(encoding="utf-8"), re.DOTALL)
    compose = yaml.safe_load(block)
    services = compose["services"]
    assert set(services) == {"postgres", "service", "builder"}
    for service in services.values():
        sources = [mount.split(":")[0] for mount in service.get("volumes", ())]
        assert {source for source in sources if not source.startswith("./")} <= set(compose["volumes"])
        shell = shlex.split(service.get("command", "sh -c ''"))
        assert shell[:2] == ["sh", "-c"]
        for words in filter(None, map(shlex.split, shell[2].split("&&"))):
            parse_command([word for word in words if word != "exec"])


def parse_command(words: list[str]) -> None:
    """Raise where a program, a command or an option does not exist."""
    program, *rest = words
    if program == "pip":
        extras = re.findall(r"^([\w-]+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
        (named,) = re.findall(r"^install sire-rag\[(.*)\]$", " ".join(rest))
        assert set(named.split(",")) <= set(extras)
        return
    if program == "sire":
        from sire_core.cli.app import app

        group = get_command(app)
    else:
        assert program == "ray"
        group = pytest.importorskip("ray.scripts.scripts").cli
    group.commands[rest[0]].make_context(rest[0], rest[1:])


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html")]
    assert len(pages) > len(PAGES) / 2
    assert not [
        found for page in pages for found in re.findall(r'<(?:script|link)[^>]+(?:src|href)="(https?:[^"]+)', page)
    ]


NAMED = re.compile(r"\bsire_core(?:\.[a-z_]+)*\.[A-Za-z_]+\b")


def test_what_pages_and_messages_name_is_there():
    root = Path(__file__).parents[2]
    places = [*root.glob("docs/**/*.md"), *root.glob("core/**/*.py"), root / "README.md", root / "CHANGELOG.md"]
    named = {name for place in places for name in NAMED.findall(place.read_text(encoding="utf-8"))}
    named.discard("sire_core.shape")  # how tokens are counted, no module
    missing = [name for name in sorted(named) if not is_there(name)]
    assert not missing


def is_there(name):
    """Whether a dotted name is a module, or something in a module or in a class of one."""
    module, _, attribute = name.rpartition(".")
    if module == "sire_core" and hasattr(importlib.import_module(module), attribute):
        return True
    try:
        if importlib.util.find_spec(name) is not None:
            return True
    except ModuleNotFoundError:  # its parent is a class, or no package
        pass
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("sire_core"):
            return True  # it needs an extra that is not installed here
    outer, _, kind = module.rpartition(".")
    return hasattr(getattr(importlib.import_module(outer), kind, None), attribute)
