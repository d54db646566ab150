"""`Recipe`: organizers, ranker and selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.protocols.building import Organizer
    from sire_core.protocols.models import Embedder
    from sire_core.protocols.searching import ContextProvider, Ranker, Selector, VectorIndex


DEFAULT_PRESET = "ours"
"""The preset of every recipe that leaves all settings at their defaults."""


def extraction_by_preset(config: Mapping[str, Any]) -> str:
    """Return how a model extracts for a recipe with these settings: with its paper's prompts in a paper's preset."""
    return "joint" if config.get("preset", DEFAULT_PRESET) == DEFAULT_PRESET else "native"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to index and search.

    Attributes:
        name: Name in the registry.
        summary: One line that helps to choose a recipe.
        paper: The paper that it implements.
        organizers: What is derived, in an order that respects `requires`.
        ranker: Ranks the units.
        selectors: Choose from the ranking, applied in order.
        context: Adds text to an answer's prompt, in addition to the hits; None adds nothing.
        native: The prompts for `Index(extraction="native")`: a name of `sire_core.extraction.model.NATIVE`, maybe
            with types of entities (`strengths:Disease, Drug`); those of SiReRAG where its paper has none.
        vectors: The user's vector store for nearest-neighbour search; None uses the built-in scan.
        config: The settings of the recipe; `REGISTRY[name](**config)` creates the same recipe.
        texts: Explanations of these settings.
    """

    name: str
    summary: str
    paper: str
    organizers: tuple[Organizer, ...]
    ranker: Ranker
    selectors: tuple[Selector, ...] = ()
    context: ContextProvider | None = None
    native: str = "rewrite"
    vectors: VectorIndex | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def extraction(self) -> str:
        """How a model extracts where nothing else is said, see `extraction_by_preset`."""
        return extraction_by_preset(self.config)

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

    def check_installed(self) -> None:
        """Refuse a build whose libraries are missing, before anything is asked of a model or priced.

        Raises:
            ConfigurationError: An organizer cannot work here; with what to install.
        """
        for organizer in self.organizers:
            check = getattr(organizer, "check_installed", None)  # organizers of your own need none
            if check is not None:
                check()

    def describe(self) -> str:
        """What will be built and what it costs, in a few lines."""
        lines = [f"{self.name}: {self.summary} ({self.paper})"]
        lines += [f"  builds {organizer.name}: {organizer.describe()}" for organizer in self.organizers]
        if not self.organizers:
            lines.append("  builds nothing beyond the passages and their vectors: no model calls.")
        lines.append(f"  ranks with {type(self.ranker).__name__}")
        lines += [f"  selects with {type(selector).__name__}" for selector in self.selectors]
        return "\n".join(lines)
