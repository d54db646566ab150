"""From command-line options to an `Index`: the one place that knows how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sire_core.cli import option_groups
from sire_core.cli.output import note, say
from sire_core.errors import ConfigurationError, IndexMissingError, StorageError
from sire_core.index_options import MAX_FAILURE_RATIO, WORKERS
from sire_core.protocols.building import extraction_by_preset

if TYPE_CHECKING:
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.index import Index
    from sire_core.protocols import Embedder, LanguageModel, Progress, Recipe
    from sire_core.storage.manifest import BuiltRecipe, Manifest

HELP = "help"  # `--set help` explains the settings of a recipe

_LOCK_TIMEOUT = 10.0  # Seconds to wait for another writer, as `Index` does

_ORDER = "The index folder comes first, as in: sire query DIR QUESTION, sire add DIR SRC..."


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """Options of a command that takes documents: how they are read."""

    group: ClassVar[str] = "Reading"

    embedder: option_groups.Embedder = None
    media: option_groups.Media = False
    language: option_groups.Language = ""
    extractions: option_groups.Extractions = None
    strict: option_groups.Strict = False
    max_failure_ratio: option_groups.MaxFailureRatio = MAX_FAILURE_RATIO
    jobs: option_groups.Jobs = None


@dataclass(frozen=True, slots=True)
class RecipeOptions:
    """Options of a command that builds: which recipe, and how documents are cut."""

    group: ClassVar[str] = "Recipe and passages"

    recipe: option_groups.RecipeName = None
    preset: option_groups.Preset = None
    settings: option_groups.Settings = None
    chunk_tokens: option_groups.ChunkTokens = None
    no_chunking: option_groups.NoChunking = False

    def as_given(self) -> dict[str, Any]:
        """Return them as fields of `IndexOptions`."""
        explain_on_request(self.settings, self.recipe)
        values = asdict(self) | {"settings": parse_settings(self.settings, self.preset)}
        del values["preset"]  # it is a setting
        return values


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Index options shared by the commands. None means: as the folder was built, else the default."""

    folder: Path | None = None  # The index folder; None keeps it in memory
    recipe: str | None = None  # Name of a recipe
    settings: Mapping[str, Any] | None = None  # Settings of the recipe; for a search those that decide how is searched
    # For a search, settings of all recipes that have them, where `settings` say nothing else
    defaults: Mapping[str, Any] | None = None
    ranker: str | None = None  # Ranker that replaces the recipe's own, in searches
    embedder: Embedder | str | None = None  # See `resolve_embedder`
    extractions: Path | None = None  # File of recorded extractions
    chunk_tokens: int | None = None  # Longest passage
    no_chunking: bool = False  # Takes documents as they are
    media: bool = False  # Whether Markdown tables and images are passages of their own
    strict: bool = False  # Whether a file that cannot be read is an error
    language: str = ""  # Language of documents that state none; found in their text if empty
    language_model: LanguageModel | None = None  # Extracts and summarizes
    native: bool = False  # Whether it extracts in the paper's separate steps
    seed: int | None = None  # Seed of every random choice
    workers: int = WORKERS  # Model calls in flight at once
    max_failure_ratio: float = MAX_FAILURE_RATIO  # Share of failed passages above which a build stops
    writes: bool = False  # Whether the index is going to be changed
    is_estimate: bool = False  # Whether only the cost of the change is asked for: what would be refused is said
    allow: str | None = None  # What its readers may see
    runner: str | None = None  # Who does the work that falls into parts
    jobs: int | None = None  # Number of processes of a large build

    @property
    def cuts(self) -> bool:
        """True if the options say how documents are cut."""
        return self.no_chunking or self.chunk_tokens is not None


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a command that asks an index: how is searched."""

    group: ClassVar[str] = "Search"

    recipe: option_groups.HeldRecipe = None
    settings: option_groups.SearchSettings = None
    ranker: option_groups.Ranker = None
    embedder: option_groups.Embedder = None

    def options(
        self, folder: Path, language_model: LanguageModel | None = None, allow: str | None = None
    ) -> IndexOptions:
        """All that is said about the index in a folder."""
        if HELP in (self.settings or ()):
            explain_on_request(self.settings, manifest_of(folder).find(None, self.recipe or "").name)
        values = {**asdict(self), "settings": parse_settings(self.settings)}
        return IndexOptions(folder, language_model=language_model, allow=allow, **values)


def open_index(options: IndexOptions, progress: Progress | None = None) -> Index:
    """Make the index that options describe. A mistake in them is found here, before a folder is made."""
    from sire_core.index import Index
    from sire_core.models.embedders import resolve_embedder

    manifest = manifest_of(options.folder)
    settings, embedder = options.settings or {}, options.embedder
    if options.writes:
        embedder = embedder or default_embedder(manifest)
        check_writing(options, manifest)
        recipe = recipe_to_build(options.recipe, settings, manifest)
    else:
        check_folder(options.folder)
        recipe = recipe_to_search(options.recipe, settings, options.ranker, manifest, options.defaults or {})
    return Index(
        options.folder,
        recipe=recipe,
        language_model=options.language_model,
        embedder=None if embedder is None else resolve_embedder(embedder),
        extractor=extractor_of(options),
        chunker=chunker_of(options) if options.cuts else "folder",
        language=options.language,
        seed=options.seed or 0,
        workers=options.workers,
        max_failure_ratio=options.max_failure_ratio,
        progress=progress,
        extraction="native" if options.native else None,
        allow=options.allow,
        runner=options.runner or (f"processes:{options.jobs}" if options.jobs else None),
    )


def default_embedder(manifest: Manifest) -> str | None:
    """Return the embedder of a first build: a model of this machine; None for `lexical`, or for that of the folder."""
    from sire_core.models.onnx_embedder import semantic_choice

    return "semantic" if not manifest.embedder and semantic_choice() else None


def check_folder(folder: Path | None, other: str | Path = "") -> None:
    """Refuse what is no index folder because the arguments are in the wrong order."""
    if folder is not None and folder.is_file():
        raise IndexMissingError(
            f"{folder} is a file, not an index folder. {_ORDER} To make an index of the file: sire index {folder} "
            "--to DIR"
        )
    if folder is not None and other and not is_index(folder) and is_index(other):
        raise IndexMissingError(f"There is no index in {folder}, but {other} is one. {_ORDER}")


def check_target(options: IndexOptions) -> None:
    """Refuse, before documents are read, a folder or an option with which they could not be indexed."""
    from sire_core.changes.runners import resolve_runner
    from sire_core.models.embedders import refuse_other_embedder, resolve_embedder
    from sire_core.recipes.registry import recipe_by_name
    from sire_core.storage.folder import Folder, file_lock

    manifest = manifest_of(options.folder)
    recipe = recipe_to_build(options.recipe, options.settings or {}, manifest)
    if recipe is not None:
        (recipe_by_name(recipe) if isinstance(recipe, str) else recipe).check_installed()
    if options.embedder is not None:
        refuse_other_embedder(manifest.embedder, resolve_embedder(options.embedder))
    resolve_runner(options.runner)
    if options.folder is None:
        return
    folder = Folder(options.folder)
    folder.check_place()
    if framework := folder.framework():
        raise ConfigurationError(
            f"The documents of {folder.path} were added by a {framework} app, which names and splits them in its own "
            "way: a file that is there already would be indexed a second time. Add documents in the app, or index "
            "into another folder: sire index SRC... --to DIR."
        )
    if options.writes and not options.is_estimate and folder.exists():
        with file_lock(folder.path, "writer.lock", _LOCK_TIMEOUT):
            pass


def is_index(path: str | Path) -> bool:
    """True if an index was built or begun here; what is no path at all is none."""
    from sire_core.storage.folder import Folder

    try:
        return Folder(path).exists()
    except (StorageError, ValueError):  # a long question is no path
        return False


def manifest_of(folder: Path | None) -> Manifest:
    """The manifest of an index folder; an empty one when there is no index."""
    from sire_core.storage.index_files import read_manifest

    return read_manifest(folder)


def chunker_of(options: IndexOptions) -> SentenceChunker | None:
    """The chunker of the options, else that of the folder; None where documents are taken as they are."""
    from sire_core.documents.chunker import SentenceChunker, stored_chunker

    if options.no_chunking and options.chunk_tokens is not None:
        raise ConfigurationError("Give --chunk-tokens or --no-chunking, not both.")
    if options.no_chunking:
        return None
    if options.chunk_tokens is not None:
        # An eighth, as in the defaults (64 of 512).
        return SentenceChunker(options.chunk_tokens, overlap_tokens=options.chunk_tokens // 8)
    manifest = manifest_of(options.folder)
    return stored_chunker(manifest.chunker) if manifest.generation else SentenceChunker()


def extractor_of(options: IndexOptions) -> Any:
    """The extractor that reads `--extractions`; None without it."""
    if options.extractions is None:
        return None
    from sire_core.extraction.record import RecordedExtractor

    return RecordedExtractor(options.extractions)


def check_writing(options: IndexOptions, manifest: Manifest) -> None:
    """Refuse options that would quietly give way to what is in the folder, or replace it by something else."""
    if manifest.generation and options.seed is not None and options.seed != manifest.seed:
        raise ConfigurationError(
            f"{options.folder} was built with --seed {manifest.seed}; leave --seed out or build into another folder."
        )
    if options.native and options.extractions is not None:
        raise ConfigurationError("Give --native or --extractions, not both: recorded extractions ask no model.")
    refusals = [refusal for built in manifest.recipes if (refusal := _refusal_of_others(options, built))]
    if refusals and not options.is_estimate:
        raise ConfigurationError(refusals[0])
    for refusal in refusals:
        note(f"`sire index` would refuse this: {refusal}")


def _refusal_of_others(options: IndexOptions, built: BuiltRecipe) -> str:
    """Why no change is made with another model or extractor than the recipe was built with; empty if it is the same."""
    hints = []
    recorded = built.extraction.startswith("recorded/")
    if recorded and options.extractions is None:
        hints.append("the same --extractions FILE")
    model = options.language_model
    # A recipe without organizers asked its model nothing.
    if built.language_model and built.organizers and (model is None or model.fingerprint != built.language_model):
        name = built.language_model.removeprefix("openai:")
        # The folder does not remember the server: an address is no property of a model.
        hints.append(f"--llm {name} (with its --base-url, if that was a server of your own)")
    by_model = bool(built.extraction) and not recorded and not built.extraction.startswith("rules/")
    if by_model and built.extraction != _records_of(options, built):
        native = "native" in built.extraction.rpartition("|")[2]
        if native != _is_native(options, built):
            hints.append("--native" if native else "no --native")
        if options.extractions is not None:
            hints.append("no --extractions")
        if not hints:
            hints.append("what made them, from Python")
    if not hints:
        return ""
    builders = " and ".join(filter(None, dict.fromkeys((built.extraction, built.language_model))))
    return (
        f"{built.name} in {options.folder} was made by {builders}; a change without would replace what that made. "
        f"Give {', '.join(hints)}, or build into another folder."
    )


def _records_of(options: IndexOptions, built: BuiltRecipe) -> str:
    """Fingerprint of the records that a model would make for a recipe; empty without one."""
    if options.language_model is None or options.extractions is not None:
        return ""
    from sire_core.extraction.model_extractor import ModelExtractor
    from sire_core.recipes.registry import factory_of, recipe_with

    native = None
    if _is_native(options, built):
        native = recipe_with(built.name, {}, built.config).native if factory_of(built.name) else "rewrite"
    return ModelExtractor(options.language_model, native=native).fingerprint


def _is_native(options: IndexOptions, built: BuiltRecipe) -> bool:
    return options.native or extraction_by_preset(built.config) == "native"


def explain_on_request(pairs: Sequence[str] | None, recipe: str | None) -> None:
    """Where `--set help` was given, print the settings of a recipe (of the default one without a name) and exit."""
    if HELP not in (pairs or ()):
        return
    import typer

    from sire_core.recipes.registry import DEFAULT_RECIPE, recipe_by_name

    for line in setting_lines(recipe_by_name(recipe or DEFAULT_RECIPE)):
        say(line)
    raise typer.Exit


def setting_lines(recipe: Recipe) -> list[str]:
    """A line for each setting of a recipe: default, and what the docstring of its part says of it."""
    return [f"  {key}={json.dumps(value)}: {recipe.texts.get(key, '')}" for key, value in recipe.config.items()]


def parse_settings(pairs: Sequence[str] | None, preset: str | None = None) -> dict[str, Any]:
    """Read `key=value` words, a value is JSON or else a string; `--preset` is the setting `preset`."""
    settings: dict[str, Any] = {} if preset is None else {"preset": preset}
    for word in pairs or ():
        key, mark, value = word.partition("=")
        if not mark or not key.strip():
            raise ConfigurationError(
                f"--set takes key=value, for example --set depth=2, or help, which explains all of them, not {word!r}."
            )
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = value
        if key.strip() in settings:
            raise ConfigurationError(f"--set {key.strip()} is given twice; give it once, with the value that counts.")
        settings[key.strip()] = tuple(parsed) if isinstance(parsed, list) else parsed
    return settings


def read_examples(path: Path | None) -> str:
    """Read the solved examples of `--examples`."""
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--examples {path} cannot be read: {error}.") from error


def recipe_to_build(name: str | None, settings: Mapping[str, Any], manifest: Manifest) -> Recipe | str | None:
    """The recipe that a build makes; settings that are not given are those that the folder's has, or the defaults."""
    if not settings and name is None:
        return None
    from sire_core.recipes.registry import DEFAULT_RECIPE, recipe_by_name, recipe_with

    chosen = name or (manifest.recipes[-1].name if manifest.recipes else DEFAULT_RECIPE)
    before: Mapping[str, Any] = next((b.config for b in reversed(manifest.recipes) if b.name == chosen), {})
    return recipe_with(chosen, settings, before) if settings else recipe_by_name(chosen).name


def recipe_to_search(
    name: str | None,
    settings: Mapping[str, Any],
    ranker: str | None,
    manifest: Manifest,
    defaults: Mapping[str, Any],
) -> Recipe | str | None:
    """The recipe that a search means; settings that are not given are those that it was built with."""
    changes = {**settings, **({} if ranker is None else {"ranker": ranker})}
    if not (changes or defaults) or not manifest.generation:
        return recipe_to_build(name, changes, manifest)
    from sire_core.recipes.registry import factory_of, recipe_by_name, recipe_with, split_settings

    if name is not None:
        recipe_by_name(name)  # an unknown one is an error of its own
    built = manifest.find(None, name or "")
    names = dict.fromkeys(built.name for built in manifest.recipes if factory_of(built.name))
    of_recipe = split_settings(tuple(names), defaults)
    below = of_recipe.get(built.name, {})
    if not (changes or below):
        return name
    if ranker is not None:
        _check_ranker(built.name)
    try:
        recipe = recipe_with(built.name, below, built.config)
    except ConfigurationError:
        others = [other for other in manifest.recipes if other.name != built.name and other.name in of_recipe]
        if not any(_takes(other, of_recipe[other.name]) for other in others):
            raise
        recipe = recipe_with(built.name, {}, {**built.config, **below})  # they were meant for another recipe
    recipe = recipe_with(built.name, changes, recipe.config) if changes else recipe
    if not any(built.builds_like(recipe) for built in manifest.recipes):
        raise ConfigurationError(_not_built(built, {**below, **changes}))
    return recipe


def _takes(built: BuiltRecipe, settings: Mapping[str, Any]) -> bool:
    """True if settings have an effect in a recipe of an index, and are allowed there."""
    from sire_core.recipes.registry import recipe_with

    try:
        return bool(settings) and recipe_with(built.name, settings, built.config) is not None
    except ConfigurationError:
        return False


def _check_ranker(name: str) -> None:
    from sire_core.recipes import REGISTRY, recipe_by_name

    if "ranker" not in recipe_by_name(name).config:
        taking = [recipe_name for recipe_name in sorted(REGISTRY) if "ranker" in REGISTRY[recipe_name]().config]
        raise ConfigurationError(
            f"{name} ranks in its own way and takes no --ranker (these do: {', '.join(taking)}). "
            f"`sire recipes {name}` lists its settings, for --set."
        )


def _not_built(built: BuiltRecipe, changes: Mapping[str, Any]) -> str:
    """The error for settings that affect what is built: it names them and the command that builds it."""
    from sire_core.recipes import recipe_by_name

    fixed = []
    for key, value in changes.items():
        try:
            alone = recipe_by_name(built.name, **{**built.config, key: value})
        except ConfigurationError:  # it makes sense with the others only
            continue
        if not built.builds_like(alone):
            fixed.append(key)
    fixed = fixed or list(changes)
    was = ", ".join(f"{key}={json.dumps(built.config.get(key))}" for key in fixed)
    words = " ".join(f"--set {key}={json.dumps(changes[key])}" for key in fixed)
    return (
        f"{', '.join(fixed)} of {built.name} decides what is built, and the folder was built with {was}. Build it the "
        f"other way, too: sire index SRC... --to DIR --recipe {built.name} {words}; both can live in one folder."
    )
