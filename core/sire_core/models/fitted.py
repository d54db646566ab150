"""`FittedEmbedder`: an embedder of the core for other libraries' stores, fitted once and saved in a file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.models.embedders import resolve_embedder
from sire_core.models.sync import run_sync
from sire_core.protocols import Embedder, Fittable, FloatArray

if TYPE_CHECKING:
    import os

    from typing_extensions import Self


class FittedEmbedder:
    """Embeds texts for a store that is not ours. The lexical embedder is fitted to the first documents it embeds.

    Args:
        embedder: As in `Index`; None means the lexical one.
        fit_on: Texts to fit to at once, for stores that embed documents in small batches.

    Raises:
        ConfigurationError: It is no embedder.
    """

    def __init__(self, embedder: Embedder | str | None = None, fit_on: Sequence[str] = ()) -> None:
        self.unfitted = resolve_embedder(embedder)  # What an index takes; it fits its own
        self._embedder: Any = self.unfitted
        self._lock = threading.Lock()
        if fit_on:
            self._fit(fit_on)

    @property
    def fingerprint(self) -> str:
        """Name of the model and, of a fitted one, of what it was fitted to."""
        return str(self._embedder.fingerprint)

    def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts, float32 `[len(texts), dimension]`."""
        return run_sync(self.aembed(texts, kind))

    async def aembed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """See `embed`; `ConfigurationError` for a question before any document, when nothing is fitted."""
        if kind == "document" and texts:
            self._fit(texts)
        if not self._is_fitted():
            raise ConfigurationError(
                "The lexical embedder is fitted to documents, and has seen none. Embed the documents first, pass "
                "fit_on=texts, or load a saved one."
            )
        vectors: FloatArray = await self._embedder.embed(list(texts), kind)
        return vectors

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned into a file (`.npz`); `ConfigurationError` if there is nothing."""
        if not isinstance(self._embedder, Fittable) or not self._embedder.fitted:
            raise ConfigurationError("There is nothing to save: only a fitted lexical embedder has learned something.")
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **self._embedder.state())  # type: ignore[arg-type]  # arrays by name

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FittedEmbedder:
        """Read a file that `save` wrote; `ConfigurationError` for any other."""
        made = cls()
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                made._embedder = made._embedder.from_state({name: file[name] for name in file.files})
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ConfigurationError(f"{path} is not a saved lexical embedder: {error}") from error
        return made

    def _is_fitted(self) -> bool:
        return not isinstance(self._embedder, Fittable) or self._embedder.fitted

    def _fit(self, texts: Sequence[str]) -> None:
        with self._lock:
            if not self._is_fitted():
                self._embedder = self._embedder.fit(list(texts))

    def __getstate__(self) -> dict[str, Any]:
        return {"unfitted": self.unfitted, "_embedder": self._embedder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


class FrameworkEmbeddings:
    """The part of a framework's embedding model over an embedder of the core that all frameworks share."""

    if TYPE_CHECKING:
        _embedder: FittedEmbedder

        def __init__(self, embedder: Embedder | str | None = None, **options: Any) -> None: ...

    @property
    def core_embedder(self) -> Embedder:
        """The embedder for an index of ours, whose vectors are the same; a lexical one is fitted to the index."""
        return self._embedder.unfitted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the lexical embedder has learned into a file."""
        self._embedder.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Read a file that `save` wrote; `options` are other arguments of the class."""
        made = cls(**options)
        made._embedder = FittedEmbedder.load(path)
        return made

    def _embedded(self, texts: Sequence[str], kind: str = "document") -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts, kind).tolist()
        return vectors
