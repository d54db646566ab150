"""Named-entity recognition by spaCy for the LLM-free extractor (extra `spacy`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.extraction.spans import TextSpan, is_common

_TYPES = {
    "PERSON": "Person",
    "PER": "Person",
    "ORG": "Organization",
    "GPE": "Location",
    "LOC": "Location",
    "FAC": "Location",
    "EVENT": "Event",
    "WORK_OF_ART": "Work",
    "DATE": "Date",
    "QUANTITY": "Quantity",
    "MONEY": "Quantity",
    "PERCENT": "Quantity",
    "PRODUCT": "Name",
    "LAW": "Name",
    "MISC": "Name",
}
"""spaCy's labels of names; nationalities, ordinals, plain numbers and times are left out."""
_QUOTES = "\"'\u201c\u201d\u2018\u2019` "


class SpacyTagger:
    """Finds named spans with a spaCy pipeline: `RulesExtractor(tagger=SpacyTagger("en_core_web_sm"))`.

    Args:
        model: Name or path of a pipeline, or a loaded `spacy.Language`.
        batch_size: Sentences per call of the pipeline.

    Raises:
        ConfigurationError: spaCy or the pipeline is not installed.
    """

    def __init__(self, model: Any = "en_core_web_sm", *, batch_size: int = 256) -> None:
        self._pipeline = _load(model) if isinstance(model, str) or hasattr(model, "__fspath__") else model
        self._batch_size = batch_size
        meta = self._pipeline.meta
        parts = (meta.get("lang", ""), meta.get("name", ""), meta.get("version", ""), *self._pipeline.pipe_names)
        self.fingerprint = "spacy:" + "-".join(str(part) for part in parts)

    def tag(self, sentences: Sequence[str]) -> list[list[TextSpan]]:
        """Named spans per sentence, in order, without overlap; labels mapped to our coarse types."""
        return [_spans(parsed) for parsed in self._pipeline.pipe(sentences, batch_size=self._batch_size)]


def _spans(parsed: Any) -> list[TextSpan]:
    spans = []
    for entity in parsed.ents:
        kind = _TYPES.get(entity.label_)
        text = entity.text
        if text.lower().startswith("the ") and kind != "Work":
            text = text[4:]
        name = text.strip(_QUOTES).removesuffix("'s").removesuffix("\u2019s").rstrip(_QUOTES)
        capital = any(letter.isupper() or letter.isdigit() for letter in name)
        if kind is None or not capital or (kind not in ("Date", "Quantity") and is_common(name.split())):
            continue  # "the late 19th century" is kept, "two years later" and "Canadian" name nothing
        if kind == "Date" and not any(letter.isdigit() for letter in name):
            continue
        start = entity.start_char + entity.text.index(name)
        spans.append(TextSpan(start, start + len(name), name, kind))
    return spans


def _load(model: Any) -> Any:
    try:
        import spacy
    except ImportError as error:
        raise ConfigurationError('SpacyTagger needs spaCy: pip install "sire-rag[spacy]"') from error
    try:
        return spacy.load(model, exclude=["parser", "lemmatizer", "attribute_ruler"])
    except OSError as error:
        raise ConfigurationError(
            f"spaCy has no pipeline {str(model)!r}: python -m spacy download en_core_web_sm, or give a path."
        ) from error
