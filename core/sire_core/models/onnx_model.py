"""Transformers as ONNX graphs on a CPU, without torch: the files of a model, its tokens, its runs (extra `onnx`).

Every text is a run of its own, and several runs happen at once on one thread each. Models for CPUs have 8-bit weights
and scale activations by the largest value of a run: in a batch the vector of a text would depend on its neighbours
(cosine with its own vector down to 0.985), and a batch saves no time from about 50 tokens on.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sire_core.errors import ConfigurationError
from sire_core.fork_handlers import register_after_fork
from sire_core.models.model_files import MODEL_SETTINGS, files_digest, hub_folder, local_folder, read_json

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

_MISSING = 'Models in the ONNX format need onnxruntime and tokenizers: pip install "sire-rag[onnx]"'
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_UNLIMITED = 1 << 20
"""Tokenizers without a limit state an astronomical one."""
_ROOM = 512
"""Tokens that a model reads if none of its files states a limit."""

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
        self.threads = threads or available_cores()
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
        """Where the model's files are; a model of the hub is downloaded if this machine does not have it."""
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
    """Tokenizer and graph of a model, loaded.

    Attributes:
        folder: See above.
        max_length: Tokens that a run reads, special ones included.
        outputs: Shapes by name, as the graph declares them; text where a length varies.
    """

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
        self.max_length = min(max_length or _UNLIMITED, _room(folder))
        self.outputs: dict[str, list[int | str]] = {out.name: list(out.shape) for out in self._session.get_outputs()}

    def tokens(self, text: str, limit: int = 0) -> Any:
        """Encode a text without special tokens."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        found.truncate(limit or self.max_length)
        return found

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
        """Run the graph; `mark` stands behind the first token.

        Returns:
            The output, float32, without the axis of the batch.
        """
        ids = [*encoding.ids[:1], *mark, *encoding.ids[1:]]
        types = [*encoding.type_ids[:1], *(0 for _ in mark), *encoding.type_ids[1:]]
        columns = (ids, [1] * len(ids), types, range(len(ids)))
        given = dict(zip(_INPUTS, columns, strict=True))
        inputs = {name: np.array([given[name]], dtype=kind) for name, kind in self._inputs.items()}
        return np.asarray(self._session.run([output], inputs)[0][0], dtype=np.float32)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def graph_size(folder: Path) -> int:
    """Bytes of the graph that a folder's model is loaded from."""
    return sum((folder / name).stat().st_size for name in _files_of(str(folder), _listed(folder)) if ".onnx" in name)


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
        for place in places
        if place.is_dir()
        for path in sorted(place.iterdir())
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
    own = "model_qint8_arm64" if platform.machine().lower() in ("arm64", "aarch64") else "model_quint8_avx2"
    usual = (own, "model_quantized", "model_int8", "model_uint8", "model", "model_optimized")
    stems = {Path(path).stem: path for path in graphs}
    found = next((stems[stem] for stem in usual if stem in stems), graphs[0] if len(graphs) == 1 else "")
    if not found:
        raise ConfigurationError(
            f"The model {name} has several .onnx files and none is called model.onnx: {', '.join(graphs)}. Put the one "
            "to use into a folder of its own, beside tokenizer.json."
        )
    return found
