"""`RerankSettings`: the rerank of the first hits, as settings of a recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sire_core.errors import ConfigurationError
from sire_core.protocols import Selector
from sire_core.settings import check_settings, refuse_unused, setting


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """Settings of the rerank of the first hits.

    Attributes:
        rerank: `model` (one call for each search), `cross_encoder`, the name of a cross-encoder (`rerank="onnx:X"` is
            `rerank="cross_encoder", cross_encoder="onnx:X"`), or `none`.
        rerank_pool: Number of first passages to rerank.
        rerank_named: Number of passages that the model selects; the others keep their order after them.
        rerank_model: Another model for `rerank="model"`; see `Rerank`. Empty means the model of the index.
        rerank_ms: Milliseconds that the cross-encoder may read: as many of the first passages as fit. 0 for all of
            `rerank_pool`.
        rerank_weight: Weight of the cross-encoder beside the ranking's own scores, both as standard scores among the
            passages that it reads. A large one leaves the order to the cross-encoder, which buries what only a link
            explains.
        rerank_characters: Characters of each passage that it reads: the sentences that share most with the question.
            0 for whole passages.
        cross_encoder: The model: `colbert:NAME_OR_FOLDER` (late interaction) or `onnx:NAME_OR_FOLDER` (extra `onnx`),
            or name or folder of a cross-encoder for sentence-transformers (extra `rerank`).

    Raises:
        ConfigurationError: A setting is not allowed, or has no effect.
    """

    rerank: str = setting("none", choices=("model", "cross_encoder", "none"))
    rerank_pool: int = setting(20, low=1, high=1000)
    rerank_named: int = setting(5, low=1)
    rerank_model: str = ""
    rerank_ms: int = setting(0, low=0)
    rerank_weight: float = setting(0.5, above=0)
    rerank_characters: int = setting(500, low=0)
    cross_encoder: str = ""

    @staticmethod
    def spelled_out(settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings in which a cross-encoder that `rerank` names stands under `cross_encoder`.

        Raises:
            ConfigurationError: Two cross-encoders are named.
        """
        model = settings.get("rerank")
        if not isinstance(model, str) or not re.search(r"[:/\\]", model):
            return settings
        if settings.get("cross_encoder", model) != model:
            raise ConfigurationError(
                f"rerank names the cross-encoder {str(model)!r}, and cross_encoder {str(settings['cross_encoder'])!r}. "
                "Name one of the two."
            )
        return {**settings, "rerank": "cross_encoder", "cross_encoder": model}

    def __post_init__(self) -> None:
        check_settings(self)
        if self.cross_encoder:
            from sire_core.models.cross_encoder import check_cross_encoder_name

            check_cross_encoder_name(self.cross_encoder)
        beside = f"rerank={self.rerank!r}"
        if self.rerank != "cross_encoder":
            refuse_unused(self, beside, ("cross_encoder", "rerank_ms", "rerank_weight", "rerank_characters"))
        if self.rerank != "model":
            refuse_unused(self, beside, ("rerank_model", "rerank_named"))
        if self.rerank == "none":
            refuse_unused(self, beside, ("rerank_pool",))

    def selectors(self) -> tuple[Selector, ...]:
        """The rerank, if there is one."""
        from sire_core.search.selectors.rerank import CrossEncoderRerank, Rerank

        if self.rerank == "cross_encoder":
            settings = (self.rerank_pool, self.rerank_ms, self.rerank_weight, self.rerank_characters)
            return (CrossEncoderRerank(self.cross_encoder, *settings),)
        if self.rerank == "model":
            chosen = self.rerank != type(self).__dataclass_fields__["rerank"].default
            return (Rerank(self.rerank_pool, self.rerank_named, self.rerank_model, required=chosen),)
        return ()
