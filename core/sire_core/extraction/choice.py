"""Ways to extract with a language model, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sire_core.protocols import Extractor, LanguageModel

__all__ = ["EXTRACTIONS", "model_extractor"]

EXTRACTIONS = ("joint", "native", "model+rules")
"""What `Index(extraction=...)` takes."""


def model_extractor(
    model: LanguageModel, extraction: str, concurrency: int | None = None, *, native: str = "sirerag"
) -> Extractor:
    """The extractor of a name in `EXTRACTIONS`.

    Args:
        model: Who is asked.
        extraction: `joint`, `native` or `model+rules`.
        concurrency: Passages under way at once; None takes the model's own.
        native: Whose way `native` means; see `Recipe.native`.
    """
    if extraction == "model+rules":
        from sire_core.extraction.merged import MergedExtractor

        return MergedExtractor(model, concurrency=concurrency)
    from sire_core.extraction.model import ModelExtractor

    return ModelExtractor(model, native=native if extraction == "native" else None, concurrency=concurrency)
