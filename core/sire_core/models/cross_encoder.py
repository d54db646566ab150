"""Models that read texts again for a question and score how well each answers: cross-encoders, late interaction."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arguments import sentence_end
from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.errors import ConfigurationError
from sire_core.models.model_files import hub_options, is_installed, local_folder, split_options
from sire_core.models.onnx_embedder import OnnxModel

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray


class CrossEncoder(ABC):
    """A model that scores pairs of a question and a text; thread-safe."""

    part_size: int = 1  # Pairs that are scored at once; `scores_within` looks at the clock between them

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the model and every setting that changes its scores."""

    @abstractmethod
    def load(self) -> None:
        """Load the model, if that has not happened yet."""

    @abstractmethod
    def _scored(self, question: str, texts: Sequence[str]) -> FloatArray:
        """One number for each text, unchecked."""

    def scores(self, question: str, texts: Sequence[str]) -> FloatArray:
        """Score texts, float32 `[len(texts)]`, higher is better; the scale is the model's (ms-marco: -11 to 11)."""
        if not texts:
            return np.empty(0, dtype=np.float32)
        values = np.asarray(self._scored(question, texts), dtype=np.float32)
        if values.shape != (len(texts),) or not np.isfinite(values).all():
            raise ConfigurationError(
                f"The cross-encoder {self.fingerprint} does not answer one number per passage but shape "
                f"{values.shape}. Take one that was trained for ranking; a ColBERT model is colbert:NAME_OR_FOLDER."
            )
        return values

    def scores_within(self, question: str, texts: Sequence[str], milliseconds: float) -> FloatArray:
        """Score as many of the first texts as fit into a time, at least `part_size`; loading the model is free."""
        self.load()
        begin, slowest, scores = time.perf_counter(), 0.0, [np.empty(0, dtype=np.float32)]
        for at in range(0, len(texts), self.part_size):
            before = time.perf_counter()
            if at and before - begin + slowest > milliseconds / 1000:
                break
            scores.append(self.scores(question, texts[at : at + self.part_size]))
            slowest = max(slowest, time.perf_counter() - before)
        return np.concatenate(scores)


class OnnxCrossEncoder(CrossEncoder):
    """A cross-encoder in the ONNX format (extra `onnx`); see `OnnxModel` for the arguments."""

    form = "onnx"

    def __init__(self, name_or_folder: str | Path, *, max_length: int = 0, threads: int = 0) -> None:
        self._model = OnnxModel(name_or_folder, max_length=max_length, threads=threads)
        self._limit = f"?max_length={max_length}" if max_length else ""
        self.part_size = self._model.threads

    @property
    def fingerprint(self) -> str:
        """Depends on the model's files, not on where their folder lies."""
        return f"{self.form}:{self._model.digest()}{self._limit}"

    def load(self) -> None:
        """Load tokenizer and graph."""
        self._model.load()

    def _scored(self, question: str, texts: Sequence[str]) -> FloatArray:
        graph = self._model.load()
        output = next(iter(graph.outputs))
        question_tokens = graph.tokens(question, graph.max_length // 2)
        rows = self._model.map(lambda text: graph.run(graph.encoded(text, question_tokens), output), texts)
        scores = np.array(rows, dtype=np.float32)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


class OnnxLateInteraction(OnnxCrossEncoder):
    """A model of late interaction (ColBERT) in the ONNX format: question and text are read apart, token by token.

    A text scores the mean, over the tokens of the question, of the largest cosine with any of its own.
    """

    form = "colbert"

    def _scored(self, question: str, texts: Sequence[str]) -> FloatArray:
        graph = self._model.load()
        output = next((name for name, shape in graph.outputs.items() if len(shape) == 3), "")
        if not output:
            raise ConfigurationError(f"The graph in {graph.folder} answers no vectors of tokens: no ColBERT model.")

        def tokens(text: str, mark: list[int]) -> FloatArray:
            return unit_rows(graph.run(graph.encoded(text, marks=len(mark)), output, mark))

        question_vectors = tokens(question, graph.first_known("[Q]", "[unused0]"))
        mark = graph.first_known("[D]", "[unused1]")
        best = self._model.map(lambda text: (question_vectors @ tokens(text, mark).T).max(axis=1).mean(), texts)
        return np.array(best, dtype=np.float32)


class SentenceTransformerCrossEncoder(CrossEncoder):
    """A cross-encoder of the sentence-transformers library (extra `rerank`)."""

    part_size = 8

    def __init__(self, name_or_folder: str) -> None:
        self._name = name_or_folder
        self._model: Any = None
        # The tokenizers are not made for two threads at once.
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """The name."""
        return f"st:{self._name}"

    def load(self) -> None:
        """Load the model."""
        with self._lock:
            self._model = self._model or self._opened()

    def _scored(self, question: str, texts: Sequence[str]) -> FloatArray:
        self.load()
        with self._lock:
            scores: FloatArray = self._model.predict([(question, text) for text in texts], show_progress_bar=False)
        return scores

    def _opened(self) -> Any:
        folder = local_folder(self._name)  # one that is not there helps nobody to install a library first
        if not is_installed("sentence_transformers"):  # before the network is asked for a model
            raise ConfigurationError(
                'A cross-encoder needs onnxruntime (colbert: or onnx:NAME_OR_FOLDER, pip install "sire-rag[onnx]") or '
                'sentence-transformers (pip install "sire-rag[rerank]")'
            )
        options = {} if folder else hub_options(self._name)
        try:
            from sentence_transformers import CrossEncoder as Model

            return Model(self._name, **options)
        except Exception as error:
            raise ConfigurationError(f"The cross-encoder {self._name!r} cannot be loaded: {error}") from error


def check_cross_encoder_name(spec: str) -> None:
    """Refuse a form that `load_cross_encoder` does not read; nothing is loaded."""
    form, colon, _ = spec.partition(":")
    forms = (OnnxCrossEncoder.form, OnnxLateInteraction.form, "st")
    if colon and form.isalpha() and len(form) > 1 and form not in forms:  # one letter is a drive of Windows
        raise ConfigurationError(
            f"{str(spec)!r} names no cross-encoder{sentence_end(form, forms)} Its forms are onnx:NAME_OR_FOLDER, "
            "colbert:NAME_OR_FOLDER (late interaction), st:NAME, and a folder or name such as org/model."
        )


@lru_cache(maxsize=4)
def load_cross_encoder(spec: str) -> CrossEncoder:
    """Create the cross-encoder that a setting names; the same spec gives the same object."""
    check_cross_encoder_name(spec)
    form, _, rest = spec.partition(":")
    for kind in (OnnxCrossEncoder, OnnxLateInteraction):
        if form == kind.form and rest:
            name, options = split_options(rest, max_length=int)
            return kind(name, **options)
    name = rest if form == "st" else spec
    if not name:
        raise ConfigurationError("Name the cross-encoder: onnx:NAME_OR_FOLDER, or a folder or name such as org/model.")
    return SentenceTransformerCrossEncoder(name)
