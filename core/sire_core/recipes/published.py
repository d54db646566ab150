"""Presets, elements and rows of tables of a paper, from `published.toml` in its recipe's folder.

context = 20                      # hits that the paper's reader sees; 10 if left out

[main]                            # the paper's main table, for `sire reproduce`
tables = ["T4"]
preset = "published"              # of every recipe of the table that has it
of_set = { musique = "musique" }  # other presets by data set
answer = "single"                 # how questions are answered; empty where the table has no answers

[presets.published]               # named settings: `recipe(preset="published")`
singleton_rule = "paper"
copy_share = "null"               # None, as in `--set copy_share=null`

[[rows]]
table = "T5"
label = "B: and all propositions"
recipe = "sirerag"                # the folder's own recipe if left out
preset = "published"              # of that recipe; `settings` are added to them
settings = { variant = "B" }
answer = { via = "self-ask" }
needs = "model"
paper.musique = { EM = 39.1, F1 = 51.8 }

[elements]                        # cells of the table of elements in the documentation
rows = [["variants A to E", "table 5", "`variant=A`", "as published", "`unit/test_variants.py::test_a`"]]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar, cast

from sire_core.errors import ConfigurationError
from sire_core.protocols import Recipe
from sire_core.protocols.building import DEFAULT_PRESET
from sire_core.settings import UnknownSettingError, UnusedSettingError, read_toml

_PRESET_TEXT = (
    "Named settings, which other settings change: `ours`, the defaults, or a name in the `published.toml` of the "
    "recipe, such as `published`, the settings of its paper; a model then extracts with the paper's own prompts."
)

PUBLISHED: dict[str, Published] = {}  # Published figures and settings by recipe name

_PACKAGES: dict[str, str] = {}  # By recipe the package with its `published.toml`, until it is read

_SETS = {
    "musique": "musique",
    "2wiki": "2wiki",
    "hotpot": "hotpotqa",
    "quality": "quality",
    "multihop": "multihoprag",
    "trivia": "triviaqa",
    "asqa": "asqa",
    "iirc": "iirc",
}


@dataclass(frozen=True, slots=True)
class Ablation:
    """One row.

    Attributes:
        table: The paper's name of the table, such as `T5`.
        label: The row, in a few words.
        recipe: Name in the registry.
        settings: What differs from the recipe's defaults.
        paper: By data set (`musique`, `2wiki`, `hotpotqa`, `quality`, `multihoprag`, `triviaqa`, `asqa`, `iirc`) or
            `average`, figures by metric; empty when the paper has no such row. They come from the paper's models and
            readers, so that only their order and their differences compare with ours.
        needs: What the row cannot do without: `tokens`, an embedder with token vectors, `model`, a language model,
            `torch`, `umap`, the extra `paper`, or `checkpoint`, a trained scorer.
        answer: Fields of `AnswerConfig` that differ for this row, such as `via`; without answers it is left out.
    """

    table: str
    label: str
    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    needs: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)

    def figures(self, dataset: str) -> tuple[str, Mapping[str, float]]:
        """Look up the paper's figures for a data set by the start of its name; its average for any other set.

        Returns:
            Name of the set and figures by metric; an empty name if there are none.
        """
        for name in (data_set_name(dataset), "average"):
            if name in self.paper:
                return name, self.paper[name]
        return "", {}


@dataclass(frozen=True, slots=True)
class MainTable:
    """The main table of a paper."""

    tables: Sequence[str]  # Its rows are those of these tables
    preset: str = "published"  # Of every recipe in it that has a preset of this name
    of_set: Mapping[str, str] = field(default_factory=dict)  # Other presets by the name of a data set
    answer: str = ""  # How questions are answered; empty where the table has no answers


@dataclass(frozen=True, slots=True)
class Published:
    """Figures, presets and elements that the paper of a recipe prints."""

    rows: tuple[Ablation, ...] = ()  # Rows of its tables, in the order in which they are shown
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # Named settings of the recipe
    context: int = 10  # Hits that the paper's reader sees
    # Every element of the paper: what, where in the paper, how to use it, whether it is as published, and the test or
    # command that checks it
    elements: tuple[tuple[str, str, str, str, str], ...] = ()
    main: MainTable | None = None  # Its main table


def data_set_name(dataset: str) -> str:
    """Return the name under which papers' figures are stored, from the start of a data set's name; empty if unknown."""
    plain = re.sub(r"[\W_]+", "", dataset.lower())
    return next((name for start, name in _SETS.items() if plain.startswith(start)), "")


def register_published(recipe: str, package: str) -> None:
    """Register the `published.toml` of a recipe's package; it is read when it is first used.

    Args:
        recipe: Name in the registry.
        package: The package that has the file, such as `__package__`.
    """
    _PACKAGES[recipe] = package


def register_ablations(recipe: str, rows: Sequence[Ablation], context: int = 10) -> None:
    """Register the rows of a paper under its recipe's name.

    Args:
        recipe: Name in the registry.
        rows: In the order in which they are shown.
        context: Hits that the paper's reader sees.
    """
    PUBLISHED[recipe] = Published(tuple(rows), context=context)


def published_of(recipe: str) -> Published:
    """Return the published figures of a recipe; empty without a paper."""
    if recipe not in PUBLISHED and recipe in _PACKAGES:
        PUBLISHED[recipe] = _read(recipe, _PACKAGES[recipe])
    return PUBLISHED.get(recipe, Published())


def ablations_of(recipe: str) -> tuple[Ablation, ...]:
    """Return the rows of a recipe's paper."""
    names = recipes_with_ablations()
    if recipe not in names:
        raise ConfigurationError(f"There are no ablations of {recipe!r}; choose one of {', '.join(names)}.")
    return published_of(recipe).rows


def recipes_with_ablations() -> list[str]:
    """Return the names of all recipes that have rows, sorted."""
    return sorted({*PUBLISHED, *_PACKAGES})


def presets_of(recipe: str) -> dict[str, Mapping[str, Any]]:
    """Return the settings of every preset of a recipe; those of `ours` are empty."""
    return {DEFAULT_PRESET: {}, **published_of(recipe).presets}


MakeRecipe = TypeVar("MakeRecipe", bound="Callable[..., Any]")


def with_presets(make: MakeRecipe) -> MakeRecipe:
    """Give a recipe's function the argument `preset`; the preset is a setting of what it makes, before all others."""
    name = make.__name__

    @wraps(make)
    def with_preset(*, preset: str = DEFAULT_PRESET, **settings: Any) -> Recipe:
        presets = presets_of(name) if preset != DEFAULT_PRESET else {DEFAULT_PRESET: {}}
        if preset not in presets:
            raise ConfigurationError(f"{name} has no preset {preset!r}; it has {', '.join(presets)}.")
        try:
            recipe: Recipe = without_idle(make, settings, presets[preset])
        except UnknownSettingError as error:
            raise UnknownSettingError(error.name, ("preset", *error.known)) from None
        config, texts = {"preset": preset, **recipe.config}, {"preset": _PRESET_TEXT, **recipe.texts}
        return replace(recipe, config=config, texts=texts)

    return cast("MakeRecipe", with_preset)


def without_idle(make: Callable[..., Recipe], chosen: Mapping[str, Any], others: Mapping[str, Any]) -> Recipe:
    """Make a recipe; settings of `others` that have no effect with the given ones are left out."""
    try:
        return make(**{**others, **chosen})
    except UnusedSettingError as error:
        if error.name in chosen or error.name not in others:
            raise
        return without_idle(make, chosen, {key: value for key, value in others.items() if key != error.name})


def _read(recipe: str, package: str) -> Published:
    try:
        content = read_toml(package, "published.toml")
        presets = {name: _values(settings) for name, settings in content.get("presets", {}).items()}
        rows = tuple(_row(recipe, row, presets) for row in content["rows"])
        rows_of_elements = content.get("elements", {}).get("rows", ())
        elements = tuple(
            (what, section, use, published, check) for what, section, use, published, check in rows_of_elements
        )
        main = MainTable(**content["main"]) if "main" in content else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"published.toml of {package} cannot be used: {error!r}.") from error
    return Published(rows, presets, content.get("context", 10), elements, main)


def _row(recipe: str, row: Mapping[str, Any], presets: Mapping[str, Any]) -> Ablation:
    others = {name: value for name, value in row.items() if name not in ("preset", "settings")}
    preset = row.get("preset")
    if preset is not None and row.get("recipe", recipe) == recipe and preset not in presets:
        raise ValueError(f"there is no preset {preset!r}")
    settings = {} if preset is None else {"preset": preset}
    return Ablation(**{"recipe": recipe, **others}, settings={**settings, **_values(row.get("settings", {}))})


def _values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values of TOML, which has neither None nor tuples."""
    return {
        name: None if value == "null" else tuple(value) if isinstance(value, list) else value
        for name, value in settings.items()
    }
