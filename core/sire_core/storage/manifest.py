"""The manifest of an index: embedder, recipes, counts. In the store, with a copy in `manifest.json`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError, StorageError
from sire_core.settings import UntrustedText, from_folder
from sire_core.types import digest

if TYPE_CHECKING:
    from sire_core.protocols import Recipe

VECTORS = "vectors"  # Key of `Manifest.failed` under which stand ids of units without a vector, each with the reason


FORGOTTEN = "forgotten"
"""Key of `Manifest.failed` under which stand hashes of passages whose answers were forgotten, see `with_forgotten`."""


@dataclass(frozen=True, slots=True)
class BuiltRecipe:
    """A recipe whose units are in the index."""

    name: str  # Name in the registry
    # Settings; `REGISTRY[name](**config)` makes the recipe again. Those read from a folder stay marked as such; see
    # `sire_core.settings`.
    config: Mapping[str, Any]
    organizers: tuple[tuple[str, Mapping[str, Any]], ...]  # (name, settings) of what was built
    owners: tuple[str, ...]  # Build fingerprints of the organizers, in the same order
    extraction: str = ""  # Fingerprint of the records it was built from; empty when it needs none
    language_model: str = ""  # Fingerprint of the model it was built with; empty without one

    @property
    def pool(self) -> str:
        """Key of the recipe's pool; recipes with the same derivations share it."""
        return digest("pool", *self.owners, size=6)

    @property
    def extracted_by_model(self) -> bool:
        """True if a model alone wrote the records; where rules had a part, they found the names."""
        return bool(self.extraction) and "rules/" not in self.extraction

    def builds_like(self, recipe: Recipe) -> bool:
        """True if a recipe would build what this one built."""
        wanted = tuple((o.name, dict(o.settings())) for o in recipe.organizers)
        return self.name == recipe.name and wanted == tuple((name, dict(s)) for name, s in self.organizers)


FormT = TypeVar("FormT")


def _typed(value: object, form: type[FormT]) -> FormT:
    """Return a value after a check of its type; booleans are not numbers."""
    if not isinstance(value, form) or isinstance(value, bool):
        raise TypeError(f"{value!r:.80} is no {form.__name__}")
    return value


def _texts(values: object) -> tuple[str, ...]:
    return tuple(_typed(value, str) for value in _typed(values, list))


def _recipe(row: object) -> BuiltRecipe:
    data = _typed(row, dict)
    organizers = [_typed(pair, list) for pair in _typed(data["organizers"], list)]
    return BuiltRecipe(
        name=_typed(data["name"], str),
        config=from_folder(_typed(data["config"], dict)),
        organizers=tuple((_typed(name, str), _typed(settings, dict)) for name, settings in organizers),
        owners=_texts(data["owners"]),
        extraction=_typed(data["extraction"], str),
        language_model=_typed(data["language_model"], str),
    )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of an index after a commit."""

    generation: int = 0
    embedder: str = ""
    embedder_spec: str = ""
    dimension: int = 0
    paraphrase_score: float | None = None  # of the embedder; None if it was not measured
    extractor: str = ""
    chunker: Mapping[str, Any] | None = None
    seed: int = 0
    recipes: tuple[BuiltRecipe, ...] = ()  # In the order of their builds; but the last one is the default of searches
    counts: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def recipe_names(self) -> list[str]:
        """Names of the recipes, the default first, then in the order of their builds."""
        return list(dict.fromkeys(built.name for built in (*self.recipes[-1:], *self.recipes)))

    def failed_count(self, built: BuiltRecipe) -> int:
        """Return how many passages, vectors, summaries, bridges and reports of a recipe failed."""
        return sum(len(self.failed.get(key, ())) for key in {built.extraction, VECTORS, *built.owners})

    def to_json(self) -> dict[str, Any]:
        """Return JSON-serialisable values."""
        from sire_core.storage.folder import FORMAT

        return {
            "format": FORMAT,
            "generation": self.generation,
            "embedder": {
                "fingerprint": self.embedder,
                "spec": self.embedder_spec,
                "dimension": self.dimension,
                "paraphrase_score": self.paraphrase_score,
            },
            "extractor": self.extractor,
            "chunker": self.chunker,
            "seed": self.seed,
            "recipes": [
                {
                    "name": r.name,
                    "config": dict(r.config),
                    "organizers": [[name, dict(settings)] for name, settings in r.organizers],
                    "owners": list(r.owners),
                    "extraction": r.extraction,
                    "language_model": r.language_model,
                }
                for r in self.recipes
            ],
            "counts": dict(self.counts),
            "failed": {key: list(value) for key, value in self.failed.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Read what `to_json` wrote; an empty mapping is an index that was never built."""
        if not data:
            return cls()
        try:
            embedder = _typed(data["embedder"], dict)
            return cls(
                generation=_typed(data["generation"], int),
                embedder=_typed(embedder["fingerprint"], str),
                embedder_spec=UntrustedText(_typed(embedder["spec"], str)),
                dimension=_typed(embedder["dimension"], int),
                paraphrase_score=None if (score := embedder.get("paraphrase_score")) is None else _typed(score, float),
                extractor=_typed(data["extractor"], str),
                chunker=None if data["chunker"] is None else _typed(data["chunker"], dict),
                seed=_typed(data["seed"], int),
                recipes=tuple(_recipe(row) for row in _typed(data["recipes"], list)),
                counts={name: _typed(count, int) for name, count in _typed(data["counts"], dict).items()},
                failed={name: list(_texts(texts)) for name, texts in _typed(data["failed"], dict).items()},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(
                f"The manifest of the index is not what was written ({error!r}). Restore the folder from a backup, or "
                "delete index.sqlite and manifest.json and build again; what was extracted and answered is kept in "
                "calls.sqlite and not paid for twice."
            ) from error

    def find(self, recipe: Recipe | None, name: str = "") -> BuiltRecipe:
        """Return the built recipe to search: the one that builds the same, or the latest of a name, or the default."""
        fitting = [r for r in self.recipes if (r.builds_like(recipe) if recipe else not name or r.name == name)]
        if fitting:
            return fitting[-1]
        wanted = recipe.name if recipe else name
        same = [r for r in self.recipes if r.name == wanted]
        built = ", ".join(self.recipe_names) or "nothing yet"
        if same:
            raise ConfigurationError(
                f"This index holds {wanted!r} built with other settings ({dict(same[-1].config)}). "
                "Use those, or build it again with yours; both can live in one folder."
            )
        name = wanted or "RECIPE"
        raise ConfigurationError(
            f"This index does not hold {wanted or 'any recipe'!r} (it holds: {built}). Choose one of these, or "
            f"add it: sire index SOURCES --to DIR --recipe {name}, or Index(path, "
            f"recipe={name!r}).build(documents)."
        )

    def again(self, began: BuiltRecipe) -> BuiltRecipe:
        """Return a recipe of an earlier `find`, with its settings, whatever was built after it."""
        same = [r for r in self.recipes if r.name == began.name and r.organizers == began.organizers]
        if not same:
            built = ", ".join(self.recipe_names) or "nothing"
            raise ConfigurationError(
                f"The recipe {began.name!r}, which this object began with, was removed from the index (it holds: "
                f"{built}). Open the index again, with a recipe that it holds."
            )
        recipe = next((r for r in same if r.owners == began.owners), same[-1])
        return replace(recipe, config=began.config)

    def with_recipe(self, built: BuiltRecipe) -> Manifest:
        """Return a manifest with this recipe, the latest of its name. The default stays; a first recipe becomes it."""
        is_default = not self.recipes or self.recipes[-1].name == built.name
        others = [r for r in self.recipes if r.owners != built.owners or r.name != built.name]
        others.insert(len(others) if is_default else len(others) - 1, built)
        return replace(self, recipes=tuple(others))

    @property
    def owners(self) -> dict[str, None]:
        """Build fingerprints of the organizers of all recipes, each once, in order."""
        return dict.fromkeys(owner for built in self.recipes for owner in built.owners)

    def without_recipe(self, name: str) -> Manifest:
        """Return the manifest of the next generation, in which a recipe is gone."""
        remaining = tuple(built for built in self.recipes if built.name != name)
        if len(remaining) == len(self.recipes):
            raise ConfigurationError(f"This index does not hold {name!r}; it holds: {', '.join(self.recipe_names)}.")
        if not remaining:
            raise ConfigurationError(f"{name!r} is the only recipe of this index. Build another one first.")
        return replace(self, generation=self.generation + 1, recipes=remaining)

    def with_chunker(self, settings: Mapping[str, Any] | None) -> Manifest:
        """Return a manifest in which the folder's documents are cut by another chunker from now on."""
        return replace(self, chunker=settings)

    def with_default(self, name: str) -> Manifest:
        """Return a manifest in which the latest recipe of this name is the default."""
        chosen = self.find(None, name)
        return replace(self, recipes=(*(r for r in self.recipes if r is not chosen), chosen))

    def with_forgotten(self, hashes: Collection[str]) -> Manifest:
        """Return a manifest whose next change extracts passages again and writes again what models made of them."""
        failed = {key: list(values) for key, values in self.failed.items()}
        for key in {FORGOTTEN, *(built.extraction for built in self.recipes if built.extraction)}:
            failed[key] = sorted({*failed.get(key, ()), *hashes})
        return replace(self, failed={key: values for key, values in failed.items() if values})
