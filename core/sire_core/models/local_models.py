"""The models of this machine that need no network: what each is for, where it lies, and whether it works."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np

from sire_core.errors import SireError
from sire_core.models.model_files import model_folders, short_name
from sire_core.models.paraphrases import paraphrase_score

Purpose = Literal["embedder", "cross-encoder", "late interaction"]

_RERANKER = re.compile(r"rerank|cross-encoder|marco")
_OTHER = re.compile(r"splade|sparse|(?:^|-)ner(?:-|$)|nli")
_QUESTION = "How is a backup restored?"
_RELEVANT_SENTENCE, _OTHER_SENTENCE = (
    "To restore a backup, run the restore command.",
    "The harbour wall is made of granite.",
)
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model folder with an ONNX graph."""

    spec: str  # What `embedder=` or `rerank=` takes
    purpose: Purpose  # What the name says that it is for
    folder: Path  # Where it lies
    origin: str  # `SIRE_MODELS=...` or the cache of the hub
    megabytes: float  # Size of its graphs


@dataclass(frozen=True, slots=True)
class ModelTest:
    """Result of running a model on two sentences."""

    works: bool  # Whether it prefers the sentence that answers a question to one that does not
    detail: str  # Dimension and scores, or the error
    milliseconds: float = 0.0  # Time for one sentence


def local_models() -> list[LocalModel]:
    """List the models in the folders of `SIRE_MODELS` and in the cache of the hub."""
    models: dict[Path, LocalModel] = {}
    for name, folder, origin in model_folders():
        graphs = [path for directory in (folder, folder / "onnx") for path in sorted(directory.glob("*.onnx"))]
        if not graphs or not (folder / "tokenizer.json").is_file():
            continue
        purpose = _purpose(short_name(name))
        if purpose is not None:
            form = "colbert" if purpose == "late interaction" else "onnx"
            size = sum(path.stat().st_size for path in graphs) / 1e6
            models.setdefault(folder.resolve(), LocalModel(f"{form}:{name}", purpose, folder, origin, round(size, 1)))
    return list(models.values())


def _purpose(name: str) -> Purpose | None:
    if "colbert" in name:
        return "late interaction"
    if _RERANKER.search(name):
        return "cross-encoder"
    return None if _OTHER.search(name) else "embedder"


async def check_model(model: LocalModel) -> ModelTest:
    """Run a model on a question, a sentence that answers it and one that does not."""
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return ModelTest(works=False, detail='the extra is missing: pip install "sire-rag[onnx]"')
    try:
        return await (_embedding_test if model.purpose == "embedder" else _reranking_test)(model)
    except SireError as error:
        return ModelTest(works=False, detail=str(error))
    except Exception as error:  # noqa: BLE001 - files of strangers fail in every way, and the others are still tested
        return ModelTest(works=False, detail=f"{type(error).__name__}: {error}")


async def _embedding_test(model: LocalModel) -> ModelTest:
    from sire_core.models.embedders import resolve_embedder

    embedder = resolve_embedder(model.spec)
    [question] = await embedder.embed([_QUESTION], "query")
    started = time.perf_counter()
    for _ in range(_REPEATS):
        sentences = await embedder.embed([_RELEVANT_SENTENCE, _OTHER_SENTENCE], "document")
    spent = 1000 * (time.perf_counter() - started) / (2 * _REPEATS)
    test = _judged(np.asarray(sentences @ question), f"{embedder.dimension} dimensions, cosines", spent)
    return replace(test, detail=f"{test.detail}; paraphrases in English {await paraphrase_score(embedder):.2f}")


async def _reranking_test(model: LocalModel) -> ModelTest:
    import asyncio

    from sire_core.models.cross_encoder import load_cross_encoder

    encoder = load_cross_encoder(model.spec)
    scores = np.asarray(await asyncio.to_thread(encoder.scores, _QUESTION, [_RELEVANT_SENTENCE, _OTHER_SENTENCE]))
    started = time.perf_counter()
    for _ in range(_REPEATS):
        await asyncio.to_thread(encoder.scores, _QUESTION, [_RELEVANT_SENTENCE, _OTHER_SENTENCE])
    return _judged(scores, "scores", 1000 * (time.perf_counter() - started) / (2 * _REPEATS))


def _judged(scores: np.ndarray, what: str, milliseconds: float) -> ModelTest:
    answer, aside = scores.tolist()
    detail = f"{what} {answer:.2f} for an answer, {aside:.2f} for another sentence"
    return ModelTest(works=bool(np.isfinite(scores).all() and answer > aside), detail=detail, milliseconds=milliseconds)
