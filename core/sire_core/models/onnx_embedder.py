"""Runs models in the ONNX format; `OnnxEmbedder`."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.errors import ConfigurationError
from sire_core.fork_handlers import register_after_fork
from sire_core.models.model_files import (
    MODEL_SETTINGS,
    files_digest,
    hub_folder,
    join_options,
    local_folder,
    model_folders,
    read_json,
    short_name,
    split_options,
)

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

_logger = logging.getLogger(__name__)

_POOLINGS = ("cls", "mean", "max", "last")
_ENGLISH = "Represent this sentence for searching relevant passages: "
_CHINESE = (
    "\u4e3a\u8fd9\u4e2a\u53e5\u5b50\u751f\u6210\u8868\u793a\u4ee5\u7528\u4e8e\u68c0\u7d22\u76f8\u5173\u6587\u7ae0\uff1a"
)
_MISSING = 'Models in the ONNX format need onnxruntime and tokenizers: pip install "sire-rag[onnx]"'
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_UNLIMITED = 1 << 20  # Tokenizers without a limit state an astronomical one
_ROOM = 512  # Tokens that a model reads if none of its files states a limit

T = TypeVar("T")
R = TypeVar("R")


class OnnxModel:
    """A model that loads at its first run. Thread-safe, works after `os.fork`, pickles without the graph."""

    def __init__(
        self, name_or_folder: str | Path, *, max_length: int = 0, threads: int = 0, careful: bool = False
    ) -> None:
        if max_length < 0 or threads < 0:
            raise ConfigurationError(f"max_length and threads must not be negative, not {max_length} and {threads}")
        self.name = str(name_or_folder)
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        self.threads = threads or len(cores)  # Of the cores that this process may use
        self._folder = local_folder(name_or_folder)
        if self._folder is not None:
            _files_of(self.name, _listed(self._folder))
        self._max_length = max_length
        self._careful = careful
        self._graph: OnnxGraph | None = None
        self.after_fork()
        register_after_fork(self)

    def after_fork(self) -> None:
        """In a process that was just forked: threads of the parent hold no locks here."""
        self._lock = threading.Lock()
        self._running = threading.BoundedSemaphore(self.threads)

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which loads the model by itself."""
        return {**self.__dict__, "_graph": None, "_lock": None, "_running": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.after_fork()
        register_after_fork(self)

    def digest(self) -> str:
        """The name on the hub, or the name of the folder and a digest of the files that decide what is computed."""
        if self._folder is None:
            return self.name
        files = [self._folder / name for name in _files_of(self.name, _listed(self._folder))]
        return f"{self._folder.name}:{files_digest(self._folder, files)}"

    def folder(self) -> Path:
        """Folder of the model's files; a model of the hub is downloaded if it is not on this machine."""
        if self._folder is not None:
            return self._folder
        return hub_folder(self.name, lambda files: _files_of(self.name, files), download=not self._careful)

    def load(self) -> OnnxGraph:
        """Load tokenizer and graph, if that has not happened yet."""
        with self._lock:
            if self._graph is None:
                self._graph = OnnxGraph(self.name, self.folder(), self._max_length)
            return self._graph

    def map(self, run: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Call `run`, which runs the graph once, with every item."""

        def bounded(item: T) -> R:
            with self._running:
                return run(item)

        if len(items) < 2 or self.threads == 1:
            return [bounded(item) for item in items]
        with ThreadPoolExecutor(min(self.threads, len(items))) as pool:
            return list(pool.map(bounded, items))


class OnnxGraph:
    """Tokenizer and graph of a model, loaded."""

    def __init__(self, name: str, folder: Path, max_length: int) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ConfigurationError(_MISSING) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        path = folder / _graph_file(name, _listed(folder))
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # neither library has a class for its errors
            raise ConfigurationError(f"The model {name} cannot be loaded from {folder}: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._inputs = {
            needed.name: np.int32 if "int32" in needed.type else np.int64 for needed in self._session.get_inputs()
        }
        if unknown := sorted(set(self._inputs) - set(_INPUTS)):
            raise ConfigurationError(
                f"The model {name} reads {', '.join(unknown)}; only {', '.join(_INPUTS)} are known."
            )
        self.folder = folder
        self.max_length = min(max_length or _UNLIMITED, _room(folder))  # Tokens that a run reads, special ones included
        # Shapes by name, as the graph declares them; text where a length varies
        self.outputs: dict[str, list[int | str]] = {out.name: list(out.shape) for out in self._session.get_outputs()}

    def tokens(self, text: str, limit: int = 0) -> Any:
        """Encode a text without special tokens."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        encoding.truncate(limit or self.max_length)
        return encoding

    def encoded(self, text: str, question: Any | None = None, *, marks: int = 0) -> Any:
        """Encode what one run reads; the end of the text is cut off where it is too long, the question stays whole."""
        taken = marks + self._tokenizer.num_special_tokens_to_add(question is not None)
        room = self.max_length - taken - (0 if question is None else len(question))
        tokens = self.tokens(text, max(room, 1))
        return self._tokenizer.post_process(*((tokens,) if question is None else (question, tokens)))

    def first_known(self, *tokens: str) -> list[int]:
        """The number of the first of some tokens that the tokenizer knows; none if it knows none."""
        numbers = map(self._tokenizer.token_to_id, tokens)
        return [number for number in numbers if number is not None][:1]

    def run(self, encoding: Any, output: str, mark: Sequence[int] = ()) -> FloatArray:
        """Return the output without the axis of the batch; `mark` stands behind the first token."""
        ids = [*encoding.ids[:1], *mark, *encoding.ids[1:]]
        types = [*encoding.type_ids[:1], *(0 for _ in mark), *encoding.type_ids[1:]]
        columns = (ids, [1] * len(ids), types, range(len(ids)))
        values = dict(zip(_INPUTS, columns, strict=True))
        inputs = {name: np.array([values[name]], dtype=kind) for name, kind in self._inputs.items()}
        return np.asarray(self._session.run([output], inputs)[0][0], dtype=np.float32)


def _room(folder: Path) -> int:
    """Tokens that a model reads: the smallest limit that its files state."""
    config = read_json(folder / "config.json", {})
    places = int(config.get("max_position_embeddings") or 0)
    if config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        places -= 2  # their positions start behind the padding
    stated = (
        read_json(folder / "sentence_bert_config.json", {}).get("max_seq_length"),
        read_json(folder / "tokenizer_config.json", {}).get("model_max_length"),
        places,
    )
    return min([int(limit) for limit in stated if limit and 0 < int(limit) < _UNLIMITED], default=_ROOM)


def _listed(folder: Path) -> list[str]:
    """Names of the files of a folder and of those of its subfolders that models have."""
    places = (folder, folder / "onnx", folder / "1_Pooling")
    return [
        path.relative_to(folder).as_posix()
        for directory in places
        if directory.is_dir()
        for path in sorted(directory.iterdir())
        if path.is_file()
    ]


def _files_of(name: str, listed: Sequence[str]) -> list[str]:
    """The files of a listing that the model needs: graph, its weights where they lie beside it, settings."""
    graph = _graph_file(name, listed)
    if "tokenizer.json" not in listed:
        raise ConfigurationError(f"The model {name} has no tokenizer.json; take a model that has one beside its graph.")
    wanted = {graph, f"{graph}_data", f"{graph}.data", "1_Pooling/config.json", *MODEL_SETTINGS}
    return sorted(wanted & set(listed))


def _graph_file(name: str, listed: Sequence[str]) -> str:
    graphs = [path for path in listed if path.endswith(".onnx")]
    if not graphs:
        raise ConfigurationError(
            f"The model {name} has no .onnx file. Take one that has, for example Xenova/bge-small-en-v1.5 or "
            "cross-encoder/ms-marco-MiniLM-L6-v2; models of other formats need sentence-transformers (st:NAME)."
        )
    for_machine = "model_qint8_arm64" if platform.machine().lower() in ("arm64", "aarch64") else "model_quint8_avx2"
    usual = (for_machine, "model_quantized", "model_int8", "model_uint8", "model", "model_optimized")
    stems = {Path(path).stem: path for path in graphs}
    file = next((stems[stem] for stem in usual if stem in stems), graphs[0] if len(graphs) == 1 else "")
    if not file:
        raise ConfigurationError(
            f"The model {name} has several .onnx files and none is called model.onnx: {', '.join(graphs)}. Put the one "
            "to use into a folder of its own, beside tokenizer.json."
        )
    return file


@dataclass(frozen=True, slots=True)
class Convention:
    """Pooling and prompts of a family of models."""

    names: str  # Pattern of the names of the family, in lower case with `-` for `_`
    pooling: str = "mean"  # How the vectors of tokens become one: `cls`, `mean`, `max` or `last`
    query_prompt: str = ""  # Comes before questions
    document_prompt: str = ""  # Comes before passages


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
_OTHER_USE = re.compile(r"rerank|cross-encoder|marco|colbert|splade|-qa-|nli")  # Names of models that are no embedders


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
        stated = {"pooling": pooling or None, "query_prompt": query_prompt, "document_prompt": document_prompt}
        self._stated = {name: value for name, value in stated.items() if value is not None}
        self._options = {**self._stated, "max_length": max_length}
        # Creates this embedder again (`resolve_embedder`), but for the number of threads
        self.spec = f"onnx:{join_options(self._model.name, self._options)}"

    @classmethod
    def from_spec(cls, text: str, *, careful: bool = False) -> OnnxEmbedder:
        """The embedder of a name with options, see `spec`."""
        name, options = split_options(text, pooling=str, query_prompt=str, document_prompt=str, max_length=int)
        return cls(name, careful=careful, **options)

    @cached_property
    def fingerprint(self) -> str:
        """Depends on what the model's files hold and on the folder's own name, not on where the folder lies."""
        return f"onnx:{join_options(self._model.digest(), self._options)}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector; read from the graph, which is loaded."""
        graph = self._model.load()
        length = graph.outputs[_output(graph)][-1]
        return length if isinstance(length, int) else self._encode([""], "document").shape[1]

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
        before = convention.query_prompt if kind == "query" else convention.document_prompt
        return self._model.map(lambda text: graph.run(graph.encoded(before + text), output), texts)

    def _convention(self, folder: Path) -> Convention:
        return replace(_convention(self._model.name, folder), **self._stated)


def semantic_choice() -> tuple[str, str] | None:
    """Spec and origin of the embedding model of this machine that `semantic` stands for; None if there is none."""
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return None
    choices = sorted(_candidates())
    if not choices:
        return None
    (_, _, spec, origin), others = choices[0], len(choices) - 1
    beside = f", preferred to {others} other{'s' * (others > 1)}" if others else ""
    return spec, f"the embedding model found in {origin}{beside}"


def semantic_embedder() -> OnnxEmbedder:
    """The embedder that `semantic` stands for; it is logged."""
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
    for name, folder, origin in model_folders():
        short = short_name(name)
        rank = next((i for i, family in enumerate(_FAMILIES) if re.search(family.names, short)), None)
        if rank is not None and not _OTHER_USE.search(short):
            with suppress(ConfigurationError):  # in another format, or incomplete
                graphs = [folder / file for file in _files_of(str(folder), _listed(folder)) if ".onnx" in file]
                yield rank, sum(path.stat().st_size for path in graphs), f"onnx:{name}", origin


def _convention(name: str, folder: Path) -> Convention:
    """Pooling and prompts from a model's files, else by its name."""
    origin = str(read_json(folder / "config.json", {}).get("_name_or_path", ""))
    names = [short_name(name), short_name(origin)]
    families = (family for text in names for family in _FAMILIES if re.search(family.names, text))
    convention = next(families, Convention(""))
    stated = read_json(folder / "1_Pooling" / "config.json", {})
    poolings = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "lasttoken": "last"}
    used = [pooling for key, pooling in poolings.items() if stated.get(f"pooling_mode_{key}")]
    if len(used) == 1:
        convention = replace(convention, pooling=used[0])
    prompts = read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
    query, document = prompts.get("query"), prompts.get("document") or prompts.get("passage")
    return replace(
        convention,
        query_prompt=query or convention.query_prompt,
        document_prompt=document or convention.document_prompt,
    )


def _output(graph: OnnxGraph) -> str:
    """The output that holds vectors: of the text, else of its tokens."""
    usual = ("sentence_embedding", "last_hidden_state", "token_embeddings", *graph.outputs)
    output = next(name for name in usual if name in graph.outputs)
    if len(graph.outputs[output]) not in (2, 3) or graph.outputs[output][-1] == 1:
        raise ConfigurationError(
            f"The model in {graph.folder} answers {output} of shape {graph.outputs[output]}, which is no vector. "
            "Cross-encoders are for reranking: --set rerank=cross_encoder --set cross_encoder=onnx:NAME."
        )
    return output


def _pooled(tokens: FloatArray, pooling: str) -> FloatArray:
    """One vector from those of tokens, `[tokens, d]`."""
    if pooling in ("cls", "last"):
        return np.asarray(tokens[0 if pooling == "cls" else -1], dtype=np.float32)
    return np.asarray(tokens.max(axis=0) if pooling == "max" else tokens.mean(axis=0), dtype=np.float32)
