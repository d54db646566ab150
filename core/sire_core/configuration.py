"""`Configuration`: the checked arguments of an `Index`, with gaps filled from the folder; errors for unknown ones."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.arguments import check_choice, kind_of, limits_of, named, parameters
from sire_core.errors import ConfigurationError, EmbedderMismatchError, StorageError
from sire_core.filters import Filter, FilterLike, parse_filter
from sire_core.index_options import MAX_FAILURE_RATIO, WORKERS
from sire_core.models.usage import UsageLimits
from sire_core.progress import ProgressLike, progress_of
from sire_core.search.search_options import SearchOptions
from sire_core.settings import check_settings, setting
from sire_core.text.languages import language_code

if TYPE_CHECKING:
    from sire_core.documents.chunker import SentenceChunker
    from sire_core.protocols import (
        Embedder,
        Extractor,
        LanguageModel,
        Mirror,
        Progress,
        Recipe,
        Runner,
        UnitStore,
        WrapModel,
    )
    from sire_core.storage.manifest import BuiltRecipe, Manifest


@dataclass(frozen=True, slots=True)
class Configuration:
    """The arguments of `Index`; see there."""

    path: Path | None
    recipe: Recipe | str | None
    language_model: LanguageModel | None
    embedder: Embedder | str | None
    extractor: Extractor | None
    chunker: SentenceChunker | str | None
    progress: Progress
    seed: int = 0
    workers: int = setting(WORKERS, low=1)
    max_failure_ratio: float = setting(MAX_FAILURE_RATIO, low=0, high=1)
    limits: UsageLimits | None = None
    extraction: str | None = setting(None, choices=("joint", "native", "model+rules"))
    mirrors: tuple[Mirror, ...] = ()
    store: UnitStore | None = None
    lock_timeout: float = setting(10.0, low=0)  # Seconds
    allow: Filter | None = None
    runner: Runner | str | None = None
    wrap_model: WrapModel | None = None
    strict_metadata: bool = False
    language: str = ""
    sets_chunker: bool = False  # Whether a change stores the chunker as that of the folder, see `Index`

    @classmethod
    def of(
        cls,
        *,
        path: str | os.PathLike[str] | None,
        progress: ProgressLike,
        limits: UsageLimits | Mapping[str, int] | None,
        mirrors: Sequence[Mirror],
        store: UnitStore | None,
        allow: FilterLike,
        **others: Any,
    ) -> Configuration:
        """Return the configuration that the arguments of `Index` describe."""
        return cls(
            path=None if path is None else Path(path),
            progress=progress_of(progress),
            limits=None if limits is None else limits_of(limits, UsageLimits),
            mirrors=(*mirrors, *([store] if store is not None else [])),
            store=store,
            allow=parse_filter(allow),
            **others,
        )

    def __post_init__(self) -> None:
        if self.path is not None:
            from sire_core.storage.plain_files import check_path

            check_path(self.path)
        check_settings(self)
        if self.language:
            language_code(self.language)
        for mirror in self.mirrors:
            if not isinstance(getattr(mirror, "name", None), str):
                raise ConfigurationError(
                    f"{kind_of(mirror)} is no mirror of an index; pass a VectorStoreMirror of the adapters, or a store "
                    "of sire_core.stores."
                )
        names = [mirror.name for mirror in self.mirrors]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"Two vector stores have the same name: {', '.join(names)}. Name them apart.")
        if self.language_model is not None:
            from sire_core.models.base import check_language_model

            check_language_model(self.language_model)
        self._check_names()

    def _check_names(self) -> None:
        """Refuse names that nothing has here, before documents are read or a search is made."""
        if isinstance(self.recipe, str):
            from sire_core.recipes.registry import check_recipe_name

            check_recipe_name(self.recipe, self.path)
        elif self.recipe is not None:
            _check_recipe(self.recipe)
        if isinstance(self.embedder, str):
            from sire_core.models.embedder_names import check_embedder_name

            check_embedder_name(self.embedder)
        if isinstance(self.runner, str):
            from sire_core.changes.runners import resolve_runner

            resolve_runner(self.runner)
        if isinstance(self.chunker, str):
            check_choice("chunker by name", self.chunker, ("sentences", "whole", "folder"))
        if isinstance(self.extractor, str):
            raise ConfigurationError(
                f"extractor is an object that extracts, not {self.extractor!r}; extraction= takes a name."
            )

    @property
    def recipe_object(self) -> Recipe | None:
        """The recipe, if one was given as an object."""
        return None if isinstance(self.recipe, str) else self.recipe

    @property
    def recipe_name(self) -> str:
        """The recipe's name, if only that was given; else empty."""
        return self.recipe if isinstance(self.recipe, str) else ""

    def recipe_to_build(self, manifest: Manifest) -> Recipe:
        """Return the given recipe; else the folder's latest of that name or its default; else `sire`."""
        from sire_core.recipes.registry import DEFAULT_RECIPE, recipe_by_name, registered_recipe

        if self.recipe_object is not None:
            return self.recipe_object
        name = self.recipe_name
        built_recipes = [built for built in manifest.recipes if not name or built.name == name]
        return registered_recipe(built_recipes[-1]) if built_recipes else recipe_by_name(name or DEFAULT_RECIPE)

    def extraction_for(self, recipe: Recipe) -> str:
        """Return how a model extracts for a recipe."""
        return self.extraction or recipe.extraction

    def embedder_for(self, manifest: Manifest) -> Embedder:
        """Return the given embedder; else that of the folder; else the default."""
        from sire_core.models.embedders import resolve_embedder

        if self.embedder is not None:
            embedder = resolve_embedder(self.embedder)
            known_as = getattr(embedder, "known_as", None)
            return known_as(manifest.embedder) if known_as and manifest.embedder else embedder
        if manifest.embedder and not manifest.embedder_spec:
            raise EmbedderMismatchError(
                f"This index was built with the embedder {manifest.embedder}, which cannot be made from its name. "
                f"Pass it: {_OPENED_BY.get(manifest.embedder.partition(':')[0], 'Index(path, embedder=...)')}."
            )
        return resolve_embedder(manifest.embedder_spec or None)

    def built_by(self, manifest: Manifest) -> tuple[Recipe, Embedder]:
        """Return the recipe and the embedder of a build, after a check that they fit."""
        recipe, embedder = self.recipe_to_build(manifest), self.embedder_for(manifest)
        recipe.check_embedder(embedder)
        return recipe, embedder

    def check_rebuilds(self, built: BuiltRecipe) -> None:
        """Raise `ConfigurationError` if a model or extractor that the recipe was built with is not given."""
        model = self.language_model
        by_model = bool(built.language_model) and bool(built.organizers)
        if by_model and (model is None or model.fingerprint != built.language_model):
            raise ConfigurationError(
                f"{built.name} was made with the language model {built.language_model}. Pass it: Index(path, "
                "language_model=...)."
            )
        if built.extraction.startswith("recorded/") and self.extractor is None:
            raise ConfigurationError(
                f"{built.name} was made from the extractions {built.extraction}. Pass them: Index(path, extractor=...)."
            )

    def refuse_in_memory(self) -> None:
        """Raise without a folder: an index in memory stays in its process."""
        if self.path is None:
            raise ConfigurationError(
                "An index in memory cannot be sent to another process. Give it a path, or save() it and open the copy."
            )

    def refuse_limited(self, reason: str) -> None:
        """Raise if the index was opened with `allow`, for operations that return everything."""
        if self.allow is not None:
            raise ConfigurationError(
                f"This index was opened with allow=..., and {reason}. Use snapshot(), search() or documents(); for "
                "exports and copies open it without allow."
            )

    def chunker_for(self, manifest: Manifest) -> SentenceChunker | None:
        """Return the given chunker, else that of the folder, else the default; None makes each document one passage."""
        if not isinstance(self.chunker, str):
            return self.chunker
        from sire_core.documents.chunker import SentenceChunker, stored_chunker

        if self.chunker == "folder" and manifest.generation:
            return stored_chunker(manifest.chunker)
        return None if self.chunker == "whole" else SentenceChunker()

    def chunker_to_store(self, manifest: Manifest) -> SentenceChunker | None:
        """Return the chunker of a folder after a first build or `Index.build`."""
        return (
            replace(self, chunker="folder").chunker_for(manifest)
            if self.chunker == "whole"
            else self.chunker_for(manifest)
        )


def _check_recipe(recipe: object) -> None:
    from sire_core.protocols import Recipe

    if not isinstance(recipe, Recipe):
        raise ConfigurationError(
            f"{kind_of(recipe)} is no recipe; pass its name (`sire recipes` lists all) or one of sire_core.recipes "
            "with its settings, for example sirerag(...)."
        )


_OPENED_BY = {
    "llama-index": "SireRetriever.from_persist_dir(path, embed_model=...)",
    "langchain": "SireRetriever.load(path, embeddings), or embedding=... of what opens it (vector_store=... instead if "
    "one was passed when it was built)",
}
"""Calls that open a folder whose embedder belongs to a framework, by the first word of its fingerprint."""


T = TypeVar("T")

_SPELLINGS = {
    "top_k": "k",
    "limit": "k",
    "filters": "filter",
    "where": "filter",
    "llm": "language_model",
    "embedding": "embedder",
    "embed_model": "embedder",
}
"""Words of other libraries for arguments of `Index`."""


def explains_settings(kind: type[T]) -> type[T]:
    """An `Index` whose public methods say where a keyword belongs that they do not have, and what may not be read."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _explaining(method))
    return kind


def _explaining(method: Callable[..., Any]) -> Callable[..., Any]:
    names, called = parameters(method), method.__qualname__.removesuffix(".__init__")
    if inspect.getfullargspec(method).varkw:  # `**options: Unpack[SearchOptions]`
        names = (*names, *SearchOptions.__annotations__)

    def check(arguments: Mapping[str, Any]) -> None:
        for word in arguments.keys() - set(names):
            _refuse_keyword(called, names, word, arguments[word])

    @functools.wraps(method)
    async def acall(*args: Any, **kwargs: Any) -> Any:
        check(kwargs)
        with _explaining_permissions(*args):
            return await method(*args, **kwargs)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        check(kwargs)
        with _explaining_permissions(*args):
            return method(*args, **kwargs)

    return acall if inspect.iscoroutinefunction(method) else call


@contextmanager
def _explaining_permissions(index: Any, *_: Any) -> Iterator[None]:
    """Raise our error where the system refuses a file of the index."""
    try:
        yield
    except PermissionError as error:
        if index.path is None or not Path(str(error.filename)).is_relative_to(index.path):
            raise
        raise StorageError(
            f"{error.filename} may not be read or written by this user. Check the permissions of {index.path}."
        ) from error


def _refuse_keyword(called: str, names: Collection[str], word: str, value: object) -> None:
    from sire_core.recipes.registry import recipes_with

    if owners := recipes_with(word):
        first = owners[0]
        raise TypeError(
            f"{called}() has no argument {word!r}: it is a setting of recipes ({', '.join(owners)}), with which an "
            f"index is opened: Index(path, recipe={first}({word}={value!r})), with {first} from sire_core.recipes."
        )
    if word == "recipe":
        raise TypeError(f"{called}() has no argument 'recipe': call the method of index.using({value!r}).")
    named(called, {word: value}, names, _SPELLINGS)
    raise TypeError(f"{called}() has no argument {word!r}; use {_SPELLINGS[word]!r}.")
