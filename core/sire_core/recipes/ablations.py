"""Rows of papers' tables: settings of a recipe beside the figures that the paper prints for them.

A recipe's rows stand in `published.toml` in its folder:

    context = 20                      # hits that the paper's reader sees; 10 if left out

    [presets.published]               # named settings
    singleton_rule = "paper"
    copy_share = "null"               # None, as in `--set copy_share=null`

    [[rows]]
    table = "T5"
    label = "B: and all propositions"
    recipe = "sirerag"                # the folder's own recipe if left out
    preset = "published"              # settings of a preset; `settings` are added to them
    settings = { variant = "B" }
    answer = { via = "self-ask" }
    needs = "model"
    paper.musique = { EM = 39.1, F1 = 51.8 }
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sire_core.errors import ConfigurationError

ABLATIONS: dict[str, tuple[Ablation, ...]] = {}
"""Rows by the name of the recipe that the paper is about."""

CONTEXT: dict[str, int] = {}
"""By recipe how many hits the paper's reader sees."""

_PUBLISHED: dict[str, str] = {}
"""By recipe the package with its `published.toml`, until it is read."""

_SETS = {
    "musique": "musique",
    "2wiki": "2wiki",
    "hotpot": "hotpotqa",
    "quality": "quality",
    "multihop": "multihoprag",
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
        paper: By data set (`musique`, `2wiki`, `hotpotqa`, `quality`, `multihoprag`, `asqa`, `iirc`) or `average`,
            figures by metric; empty when the paper has no such row. They come from the paper's models and readers, so
            that only their order and their differences compare with ours.
        needs: What the row cannot do without: `tokens`, an embedder with token vectors, `model`, a language model,
            `torch`, or `umap`, the extra `paper`.
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


def data_set_name(given: str) -> str:
    """Return the name under which papers' figures are stored, from the start of a data set's name; empty if unknown."""
    plain = re.sub(r"[\W_]+", "", given.lower())
    return next((name for start, name in _SETS.items() if plain.startswith(start)), "")


def register_published(recipe: str, package: str) -> None:
    """Register the `published.toml` of a recipe's package; it is read when its rows are first used.

    Args:
        recipe: Name in the registry.
        package: The package that has the file, such as `__package__`.
    """
    _PUBLISHED[recipe] = package


def register_ablations(recipe: str, rows: Sequence[Ablation], context: int = 10) -> None:
    """Register the rows of a paper under its recipe's name.

    Args:
        recipe: Name in the registry.
        rows: In the order in which they are shown.
        context: Hits that the paper's reader sees.
    """
    ABLATIONS[recipe] = tuple(rows)
    CONTEXT[recipe] = context


def ablations_of(recipe: str) -> tuple[Ablation, ...]:
    """Return the rows of a recipe's paper.

    Raises:
        ConfigurationError: There are none, or its `published.toml` is not as described above.
    """
    known = recipes_with_ablations()
    if recipe not in known:
        raise ConfigurationError(f"There are no ablations of {recipe!r}; choose one of {', '.join(known)}.")
    if recipe not in ABLATIONS:
        _load(recipe, _PUBLISHED[recipe])
    return ABLATIONS[recipe]


def recipes_with_ablations() -> list[str]:
    """Return the names of all recipes that have rows, sorted."""
    return sorted({*ABLATIONS, *_PUBLISHED})


def _load(recipe: str, package: str) -> None:
    """Read and register a `published.toml`."""
    from importlib.resources import files

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        content = tomllib.loads(files(package).joinpath("published.toml").read_text(encoding="utf-8"))
        presets = content.get("presets", {})
        rows = [_row(recipe, row, presets) for row in content["rows"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"published.toml of {package} cannot be used: {error!r}.") from error
    register_ablations(recipe, rows, content.get("context", 10))


def _row(recipe: str, row: Mapping[str, Any], presets: Mapping[str, Any]) -> Ablation:
    others = {name: value for name, value in row.items() if name not in ("preset", "settings")}
    preset = presets[row["preset"]] if "preset" in row else {}
    settings = {name: _value(value) for name, value in {**preset, **row.get("settings", {})}.items()}
    return Ablation(**{"recipe": recipe, **others}, settings=settings)


def _value(value: Any) -> Any:
    """Convert a value of TOML, which has neither None nor tuples."""
    if value == "null":
        return None
    return tuple(value) if isinstance(value, list) else value
