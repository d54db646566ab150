"""Embedding models in the ONNX format (extra `onnx`), and which one of this machine `semantic` means."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.vectors import unit_rows
from sire_core.errors import ConfigurationError
from sire_core.models.model_files import cached_models, join_options, read_json, split_options
from sire_core.models.onnx_model import OnnxModel, graph_size

if TYPE_CHECKING:
    from sire_core.models.onnx_model import OnnxGraph
    from sire_core.protocols import FloatArray

_logger = logging.getLogger(__name__)

_POOLINGS = ("cls", "mean", "max", "last")
_ENGLISH = "Represent this sentence for searching relevant passages: "
_CHINESE = (
    "\u4e3a\u8fd9\u4e2a\u53e5\u5b50\u751f\u6210\u8868\u793a\u4ee5\u7528\u4e8e\u68c0\u7d22\u76f8\u5173\u6587\u7ae0\uff1a"
)


@dataclass(frozen=True, slots=True)
class Convention:
    """How a family of models is used.

    Attributes:
        names: Pattern of the names of the family, in lower case with `-` for `_`.
        pooling: How the vectors of tokens become one: `cls`, `mean`, `max` or `last`.
        query: Comes before questions.
        document: Comes before passages.
    """

    names: str
    pooling: str = "mean"
    query: str = ""
    document: str = ""


_FAMILIES = (
    Convention(r"bge-m3", "cls"),
    Convention(r"bge-.*zh", "cls", _CHINESE),
    Convention(r"bge-", "cls", _ENGLISH),
    Convention(r"arctic-embed|mxbai-embed", "cls", _ENGLISH),
    Convention(r"(^|-)e5-(?!.*instruct)", "mean", "query: ", "passage: "),
    Convention(r"nomic-embed", "mean", "search_query: ", "search_document: "),
    Convention(r"gte-(multilingual|modernbert|.*-v1\.5)", "cls"),
    Convention(r"gte-|minilm|mpnet|jina-embeddings-v2|distiluse"),
)
"""The first that fits completes what a model's own files state. Also the order in which `semantic` chooses."""
_OTHER_USE = re.compile(r"rerank|cross-encoder|marco|colbert|splade|-qa-|nli")
"""Names of models that are no embedders."""


class OnnxEmbedder:
    """An embedding model in the ONNX format, loaded when it is first needed.

    Pooling and the texts before questions and passages are read from the model's files (1_Pooling/config.json,
    config_sentence_transformers.json), else known from its name (bge, e5, gte, MiniLM and others).
    """

    def __init__(
        self,
        name_or_folder: str | Path,
        *,
        pooling: str = "",
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        max_length: int = 0,
        threads: int = 0,
        careful: bool = False,
    ) -> None:
        if pooling and pooling not in _POOLINGS:
            raise ConfigurationError(f"pooling must be one of {', '.join(_POOLINGS)}, not {pooling!r}")
        self._model = OnnxModel(name_or_folder, max_length=max_length, threads=threads, careful=careful)
        self._pooling = pooling
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._max_length = max_length
        self._fingerprint = ""
        self._dimension = 0

    @classmethod
    def from_spec(cls, text: str, *, careful: bool = False) -> OnnxEmbedder:
        """Create an embedder."""
        name, options = split_options(text, pooling=str, query_prompt=str, document_prompt=str, max_length=int)
        return cls(name, careful=careful, **options)

    def _options(self) -> dict[str, Any]:
        return {
            "pooling": self._pooling or None,
            "query_prompt": self._query_prompt,
            "document_prompt": self._document_prompt,
            "max_length": self._max_length or None,
        }

    @property
    def spec(self) -> str:
        """What makes this embedder again: `resolve_embedder(spec)`. The number of threads is left out."""
        return f"onnx:{join_options(self._model.name, self._options())}"

    @property
    def fingerprint(self) -> str:
        """Depends on what the model's files hold and on the folder's own name, not on where the folder lies."""
        if not self._fingerprint:
            self._fingerprint = f"onnx:{join_options(self._model.digest(), self._options())}"
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length of a vector; read from the graph, which is loaded."""
        if not self._dimension:
            graph = self._model.load()
            length = graph.outputs[_output(graph)][-1]
            self._dimension = length if isinstance(length, int) else self._encode([""], "document").shape[1]
        return self._dimension

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts; unit-length float32 `[len(texts), dimension]`. A vector does not depend on the other texts."""
        return await asyncio.to_thread(self._encode, list(texts), kind)

    async def embed_tokens(self, texts: Sequence[str], kind: str = "document") -> list[FloatArray]:
        """Unit-length vectors of the tokens of every text, each float32 `[tokens, d]`; for late interaction."""
        graph = await asyncio.to_thread(self._model.load)
        if len(graph.outputs[_output(graph)]) != 3:
            raise ConfigurationError(f"The graph of {self.spec} answers one vector for a text, none for its tokens.")
        rows = await asyncio.to_thread(self._run, list(texts), kind)
        return [unit_rows(tokens) for tokens in rows]

    def _encode(self, texts: list[str], kind: str) -> FloatArray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        rows = self._run(texts, kind)
        if rows[0].ndim == 2:
            pooling = self._convention(self._model.load().folder).pooling
            rows = [_pooled(tokens, pooling) for tokens in rows]
        return unit_rows(np.stack(rows))

    def _run(self, texts: list[str], kind: str) -> list[FloatArray]:
        graph = self._model.load()
        output, convention = _output(graph), self._convention(graph.folder)
        before = convention.query if kind == "query" else convention.document
        return self._model.map(lambda text: graph.run(graph.encoded(before + text), output), texts)

    def _convention(self, folder: Path) -> Convention:
        found = _convention(self._model.name, folder)
        return replace(
            found,
            pooling=self._pooling or found.pooling,
            query=found.query if self._query_prompt is None else self._query_prompt,
            document=found.document if self._document_prompt is None else self._document_prompt,
        )


def semantic_choice() -> tuple[str, str] | None:
    """Which embedding model of this machine `semantic` means."""
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return None
    found = sorted(_candidates())
    if not found:
        return None
    (_, _, spec, place), others = found[0], len(found) - 1
    beside = f", preferred to {others} other{'s' * (others > 1)}" if others else ""
    return spec, f"the embedding model found in {place}{beside}"


def semantic_embedder() -> OnnxEmbedder:
    """The embedder that `semantic` means; the log says which."""
    choice = semantic_choice()
    if choice is None:
        raise ConfigurationError(
            'The embedder "semantic" takes an embedding model in the ONNX format from this machine, and '
            + (
                "there is none in the folders of SIRE_MODELS or in the cache of the hub (HF_HOME). With a network, "
                "onnx:Xenova/bge-small-en-v1.5 downloads one (34 MB); without, name a folder: onnx:FOLDER."
                if find_spec("onnxruntime") and find_spec("tokenizers")
                else 'the extra is missing: pip install "sire-rag[onnx]".'
            )
        )
    _logger.info("embedder %s: %s", *choice)
    return OnnxEmbedder.from_spec(choice[0].partition(":")[2])


def _candidates() -> Iterator[tuple[int, int, str, str]]:
    """Rank of the family, size, spec and place of the embedding models of this machine."""
    given = os.environ.get("SIRE_MODELS", "")
    if given and (root := Path(given).expanduser()).is_dir():
        for folder in (root, *sorted(path for path in root.iterdir() if path.is_dir())):
            yield from _candidate(str(folder.resolve()), folder, f"SIRE_MODELS={given}")
    for name, folder in cached_models():
        yield from _candidate(name, folder, "the cache of the hub")


def _candidate(name: str, folder: Path, place: str) -> Iterator[tuple[int, int, str, str]]:
    short = _plain(name)
    rank = next((i for i, family in enumerate(_FAMILIES) if re.search(family.names, short)), None)
    if rank is None or _OTHER_USE.search(short):
        return
    try:
        size = graph_size(folder)
    except ConfigurationError:  # in another format, or incomplete
        return
    yield rank, size, f"onnx:{name}", place


def _plain(name: str) -> str:
    """The last part of a name, as the patterns of families have it."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1].lower().replace("_", "-")


def _convention(name: str, folder: Path) -> Convention:
    """What a model's files state, completed by what its name means."""
    origin = str(read_json(folder / "config.json", {}).get("_name_or_path", ""))
    names = [_plain(name), _plain(origin)]
    known = (family for text in names for family in _FAMILIES if re.search(family.names, text))
    found = next(known, Convention(""))
    stated = read_json(folder / "1_Pooling" / "config.json", {})
    poolings = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "lasttoken": "last"}
    used = [pooling for key, pooling in poolings.items() if stated.get(f"pooling_mode_{key}")]
    if len(used) == 1:
        found = replace(found, pooling=used[0])
    prompts = read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
    document = prompts.get("document") or prompts.get("passage")
    return replace(found, query=prompts.get("query") or found.query, document=document or found.document)


def _output(graph: OnnxGraph) -> str:
    """The output that holds vectors: of the text, else of its tokens."""
    usual = ("sentence_embedding", "last_hidden_state", "token_embeddings", *graph.outputs)
    found = next(name for name in usual if name in graph.outputs)
    if len(graph.outputs[found]) not in (2, 3) or graph.outputs[found][-1] == 1:
        raise ConfigurationError(
            f"The model in {graph.folder} answers {found} of shape {graph.outputs[found]}, which is no vector. "
            "Cross-encoders are for reranking: --set rerank=cross_encoder --set cross_encoder=onnx:NAME."
        )
    return found


def _pooled(tokens: FloatArray, pooling: str) -> FloatArray:
    """One vector from those of tokens, `[tokens, d]`."""
    if pooling in ("cls", "last"):
        return np.asarray(tokens[0 if pooling == "cls" else -1], dtype=np.float32)
    return np.asarray(tokens.max(axis=0) if pooling == "max" else tokens.mean(axis=0), dtype=np.float32)
