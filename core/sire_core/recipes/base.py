"""`Recipe`: which organizers, which ranker, which selectors; and the registry of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.protocols import Background, Embedder, Organizer, Ranker, Selector

__all__ = ["REGISTRY", "Recipe", "configure", "make_ranker", "recipe_by_name", "register"]

REGISTRY: dict[str, Callable[..., Recipe]] = {}
"""Factories by name. Command line, adapters and test suites take their list from here."""

Config = TypeVar("Config")
Factory = TypeVar("Factory", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to index and search.

    Attributes:
        name: Name in the registry.
        summary: One line for people who choose.
        paper: Where it comes from.
        organizers: What is built, in an order that respects `requires`.
        ranker: How the pool is ranked.
        selectors: How the ranking becomes context, applied in order.
        background: What an answer is told beside the selected hits; None for nothing.
        config: The settings that the factory was called with; `REGISTRY[name](**config)` makes the same recipe.
    """

    name: str
    summary: str
    paper: str
    organizers: tuple[Organizer, ...]
    ranker: Ranker
    selectors: tuple[Selector, ...] = ()
    background: Background | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs_records(self) -> bool:
        """Whether an extraction pass is needed."""
        return any(organizer.needs_records for organizer in self.organizers)

    def check_embedder(self, embedder: Embedder) -> None:
        """Refuse vectors that a trained ranker cannot read, before they are made or searched.

        Raises:
            EmbedderMismatchError: The ranker was trained on vectors of another embedder.
        """
        check = getattr(self.ranker, "check_embedder", None)
        if check is not None:
            check(embedder)

    def describe(self) -> str:
        """What will be built and what it costs, in a few lines."""
        lines = [f"{self.name}: {self.summary} ({self.paper})"]
        lines += [f"  builds {organizer.name}: {organizer.describe()}" for organizer in self.organizers]
        if not self.organizers:
            lines.append("  builds nothing beyond the passages and their vectors: no model calls.")
        lines.append(f"  ranks with {type(self.ranker).__name__}")
        lines += [f"  selects with {type(selector).__name__}" for selector in self.selectors]
        return "\n".join(lines)


def register(factory: Factory) -> Factory:
    """Add a recipe factory to the registry under its function name."""
    REGISTRY[factory.__name__] = factory
    return factory


def configure(kind: type[Config], config: Config | None, settings: Mapping[str, Any]) -> Config:
    """A recipe's config from an instance, from keyword settings, or from defaults.

    Raises:
        ConfigurationError: Both were given, or a setting does not exist.
    """
    if config is not None and settings:
        raise ConfigurationError("Give a config or keyword settings, not both.")
    if config is not None:
        return config
    known = getattr(kind, "__dataclass_fields__", {})
    unknown = ", ".join(repr(name) for name in settings if name not in known)
    if unknown:
        raise ConfigurationError(f"There is no setting {unknown}. The settings of this recipe are: {', '.join(known)}.")
    return kind(**settings)


def recipe_by_name(name: str, **settings: Any) -> Recipe:
    """Look a recipe up.

    Raises:
        ConfigurationError: No recipe has this name, or a setting does not exist.
    """
    from sire_core import recipes  # noqa: F401 - fills the registry

    if name not in REGISTRY:
        raise ConfigurationError(f"There is no recipe {name!r}; choose one of {', '.join(sorted(REGISTRY))}.")
    return REGISTRY[name](**settings)


def make_ranker(name: str, instruction: str = "", ann_threshold: int | None = None) -> Ranker:
    """The rankers that work over any pool: `dense`, `bm25`, `hybrid`, `late` (late interaction).

    Args:
        name: Which.
        instruction: See `Flat`.
        ann_threshold: See `Flat`.

    Raises:
        ConfigurationError: Unknown name, or a threshold that is none.
    """
    from sire_core.search.flat import Flat
    from sire_core.search.hybrid import Hybrid
    from sire_core.search.lexical import Lexical

    if name == "dense":
        return Flat(instruction, ann_threshold)
    if name == "bm25":
        return Lexical()
    if name == "hybrid":
        return Hybrid((Flat(instruction, ann_threshold), Lexical()))
    if name == "late":
        from sire_core.search.late_interaction import LateInteraction

        return LateInteraction()
    raise ConfigurationError(f"The ranker is 'dense', 'bm25', 'hybrid' or 'late', not {name!r}.")
