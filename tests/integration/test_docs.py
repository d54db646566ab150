"""Snippets of the documentation and the README and notebooks run; the site names every page, recipe and setting."""

import importlib
import importlib.util
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from sire_core.cli.app import app
from sire_core.cli.options import parse_settings
from sire_core.errors import ConfigurationError
from sire_core.recipes import recipe_by_name
from sire_core.recipes.published import presets_of, published_of, recipes_with_ablations
from support.command import run

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
CODE = {
    name: re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL) for name in PAGES
}
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
RUN = """
import os, sys
for name, code in {pages!r}.items():
    folder = os.path.join({place!r}, name.replace("/", "-"))
    os.mkdir(folder)
    os.chdir(folder)
    print("\\f" + name)
    try:
        exec(compile(code, name, "exec"), {{"__name__": "__main__"}})
    except BaseException:
        print("FAILED in", name, file=sys.stderr)
        raise
"""


def test_snippets_run(tmp_path):
    # All in one process: what takes long is to import the frameworks.
    pages = {name: "\n".join(code) for name, code in CODE.items() if code}
    readme = {f"README {number}": code for number, code in enumerate(SNIPPETS)}
    code = RUN.format(pages=readme | pages, place=str(tmp_path))
    command = [sys.executable, "-W", "error::DeprecationWarning:sire_core", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    printed = dict(part.split("\n", 1) for part in done.stdout.split("\f")[1:])
    assert all(printed[name].strip() for name in readme)
    (two,) = (printed[name] for name, code in readme.items() if "my-folder" in code)
    assert "film" in two
    assert "person" in two


def test_site_has_every_page_and_every_recipe_its_picture_and_row():
    from sire_core.recipes import REGISTRY

    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    assert sorted(re.findall(r"[\w/-]+\.md", nav)) == PAGES
    how = (DOCS / "recipes" / "how-it-works.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"pictures/(\w+)\.svg", how)) == sorted(REGISTRY)
    make = runpy.run_path(str(DOCS / "pictures" / "make.py"))
    stored = {name: (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") for name in make["RECIPES"]}
    assert [name for name in stored if stored[name] != make["drawn"](name)] == []  # `make docs` draws them anew
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


def test_tests_that_pages_name_are_there():
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
    named = {path for page in pages for path in re.findall(r"\btests/[\w/]+\.py", page.read_text(encoding="utf-8"))}
    assert len(named) > 30
    assert not [path for path in sorted(named) if not (ROOT / path).exists()]


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


NOTEBOOKS = ROOT / "examples" / "notebooks"
# What has to be among the outputs: both passages of the question, and the drawn path.
SHOWN = {
    "langchain": ["sire:    ['northern-wren', 'aldous-brack'", "<svg", "'plaque'"],
    "llama_index": ["['northern-wren', 'aldous-brack'", "<svg", "'plaque'", "QueryResult('Who was the mother"],
    "compare_recipes": ["| sire ", "0.50 -> 1.00", "The paths to the hits of sire"],
}


def test_every_notebook_is_checked():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(SHOWN)


@pytest.mark.filterwarnings("ignore")  # of Jupyter, about itself
def test_notebooks_run_and_show(tmp_path, monkeypatch):
    # One after the other in one kernel, each without the names of those before: it imports the frameworks once.
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    books = {name: nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4) for name in SHOWN}
    together = nbformat.v4.new_notebook()
    for name, book in books.items():
        assert not any(cell.get("outputs") for cell in book.cells), "kept without outputs: they would go stale"
        (tmp_path / name).mkdir()
        together.cells += [nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path / name}"), *book.cells]
    nbclient.NotebookClient(together, timeout=120).execute()
    for name, book in books.items():
        outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
        shown = "\n".join(
            output.get("text", "") + "\n".join(map(str, output.get("data", {}).values())) for output in outputs
        )
        for text in SHOWN[name]:
            assert text in shown, f"{text!r} is not in {shown[:3000]}"


CONSOLE = [
    line[2:].split("#")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
]


def test_every_recipe_has_its_line_in_the_table() -> None:
    from sire_core.recipes import REGISTRY

    page = (ROOT / "docs" / "recipes" / "which.md").read_text(encoding="utf-8")
    table = page.split("\n## All recipes")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == sorted(REGISTRY)


@pytest.mark.default_recipe
def test_console_lines_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, name, text in (
        ("docs", "bridge.md", "# The Slate Bridge\n\nThe Slate Bridge was built by Hale & Dunmore in 1884."),
        ("docs", "company.md", "# Hale & Dunmore\n\nHale & Dunmore is a company that was founded by Ada Hale."),
        ("more-docs", "person.md", "# Ada Hale\n\nAda Hale was an engineer from Port Ansel."),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text, encoding="utf-8")
    outputs = {}
    for line in CONSOLE:
        words = shlex.split(line)
        assert words[0] == "sire"
        outputs[line] = run(*words[1:]).stdout
    assert "Slate Bridge" in next(output for line, output in outputs.items() if "-k 5" in line)
    assert "Ada Hale" not in next(output for line, output in outputs.items() if "--json" in line)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


RECIPES = [name for name in recipes_with_ablations() if published_of(name).elements]
COMMANDS = typer.main.get_command(app).commands


def ticks(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_element_has_a_test_or_a_command(recipe):
    assert len(published_of(recipe).elements) > 5
    for element, _, reach, whose, check in published_of(recipe).elements:
        assert whose, element
        assert ticks(check), element
        for found in ticks(check):
            if found.startswith("sire "):
                continue
            file, _, name = found.partition("::")
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert not name or re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), found
        for command in [found for found in ticks(reach) + ticks(check) if found.startswith("sire ")]:
            words = command.split()
            known = {option for parameter in COMMANDS[words[1]].params for option in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= known, command


@pytest.mark.parametrize("recipe", RECIPES)
def test_settings_of_the_elements_are_settings_of_the_recipes(recipe):
    for element, _, reach, *_ in published_of(recipe).elements:
        for found in ticks(reach):
            if re.match(r"[a-z_]+=", found):
                settings = parse_settings(found.split())
                if settings.get("scorer") == "neural":
                    with pytest.raises(ConfigurationError, match="sire train-chains DATASET --to FILE"):
                        recipe_by_name(recipe, **settings)
                    continue
                assert recipe_by_name(recipe, **settings).config.items() >= settings.items(), element


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_setting_of_the_published_preset_is_an_element(recipe):
    named = set()
    for _, _, reach, *_ in published_of(recipe).elements:
        for found in ticks(reach):
            if re.match(r"[a-z_]+=", found):
                named |= set(parse_settings(found.split()).items())
    assert set(presets_of(recipe)["published"].items()) <= named


def test_the_page_has_the_table_of_every_paper():
    page = (ROOT / "docs/papers/elements.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- elements of (\w+) -->", page)) == RECIPES
    names: dict = {}
    exec((ROOT / "docs/settings_tables.py").read_text(encoding="utf-8"), names)
    text = names["on_page_markdown"](page)
    assert all(f"| {row[0]} |" in text for recipe in RECIPES for row in published_of(recipe).elements)
