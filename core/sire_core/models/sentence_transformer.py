"""Embedding models of the sentence-transformers library, from a folder or by name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arrays.nearest_neighbors import unit_rows
from sire_core.errors import ConfigurationError
from sire_core.models.model_files import (
    MODEL_SETTINGS,
    files_digest,
    hub_options,
    is_installed,
    join_options,
    local_folder,
    read_json,
)

if TYPE_CHECKING:
    from sire_core.protocols import FloatArray

_WEIGHTS = (".safetensors", ".bin", ".onnx")
_PLAIN_MODULES = ("Transformer", "Pooling", "Normalize", "Dense", "LayerNorm", "Dropout", "StaticEmbedding")


class SentenceTransformerEmbedder:
    """A sentence-transformers model, loaded when it is first needed, in a worker thread."""

    def __init__(
        self,
        name_or_folder: str | Path,
        *,
        query_prompt: str | None = None,
        careful: bool = False,
    ) -> None:
        self._folder = _model_folder(name_or_folder)
        if careful and self._folder is not None:
            _refuse_code(self._folder)
        self._careful = careful
        self._name = str(name_or_folder)
        self._query_prompt = query_prompt
        # Creates this embedder again: `resolve_embedder(spec)`
        self.spec = f"st:{join_options(self._name, {'query_prompt': query_prompt})}"
        self._model: Any = None
        # The tokenizers are not made for two threads at once, and two forward passes only fight for the same cores.
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which loads the model by itself."""
        return {**self.__dict__, "_model": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @cached_property
    def fingerprint(self) -> str:
        """Depends on what the model's files say and on the folder's own name, not on where the folder lies."""
        folder, prompt = self._folder, "" if self._query_prompt is None else f"?{self._query_prompt}"
        model = f"{folder.name}:{files_digest(folder, _folder_files(folder))}" if folder else self._name
        return f"st:{model}{prompt}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector; the model is loaded."""
        with self._lock:
            model = self._load()
        # The method was renamed in version 5.
        ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        dimension = ask()
        return int(dimension) if dimension else int(model.encode([""], show_progress_bar=False).shape[1])

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts; float32 `[len(texts), dimension]`."""
        return await asyncio.to_thread(self._encode, list(texts), kind)

    async def embed_tokens(self, texts: Sequence[str], kind: str = "document") -> list[FloatArray]:
        """Unit-length vectors of the tokens of every text, each float32 `[tokens, d]`; for late interaction."""
        vectors = await asyncio.to_thread(self._run, list(texts), kind, output_value="token_embeddings")
        return [unit_rows(np.asarray(tokens.detach().cpu().numpy(), dtype=np.float32)) for tokens in vectors]

    def _encode(self, texts: list[str], kind: str) -> FloatArray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.asarray(self._run(texts, kind, convert_to_numpy=True), dtype=np.float32)

    def _run(self, texts: list[str], kind: str, **wanted: Any) -> Any:
        with self._lock:
            model = self._load()
            options: dict[str, Any] = {"batch_size": 64, "show_progress_bar": False, **wanted}
            encode = model.encode
            if kind == "query" and self._query_prompt is not None:
                options["prompt"] = self._query_prompt
            else:  # before version 5 the library has no methods of their own for questions and documents
                method = "encode_query" if kind == "query" else "encode_document"
                encode = getattr(model, method, None) or encode
                if encode == model.encode and kind in (getattr(model, "prompts", None) or {}):
                    options["prompt_name"] = kind
            return encode(texts, **options)

    def _load(self) -> Any:
        if self._model is None:
            if not is_installed("sentence_transformers"):  # before the network is asked for a model
                raise ConfigurationError(f'{self.spec} needs sentence-transformers: pip install "sire-rag[local]"')
            # Before a heavy library is imported
            options = {} if self._folder else hub_options(self._name, download=not self._careful)
            try:
                from sentence_transformers import SentenceTransformer

                model = SentenceTransformer(str(self._folder or self._name), **options)
            except Exception as error:
                raise ConfigurationError(
                    f"sentence-transformers cannot load {self._name}: {error}; check the name, or name a folder"
                ) from error
            # Half-precision weights are slow on a CPU and give other vectors on other machines.
            self._model = model.float()
        return self._model


def _model_folder(name: str | Path) -> Path | None:
    """The folder of a model, or None when `name` can only be a name on the hub."""
    folder = local_folder(name)
    if folder and not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
        raise ConfigurationError(f"{folder} holds no sentence-transformers model (no modules.json or config.json)")
    return folder


def _refuse_code(folder: Path) -> None:
    """Refuse a model folder that may bring code, which the library would run: its modules are classes by name."""
    modules = read_json(folder / "modules.json", [])
    if not isinstance(modules, list) or not all(_is_plain(folder, module) for module in modules):
        raise ConfigurationError(
            f"This index names the model folder {str(folder)!r}, whose modules may bring code of their own, and an "
            "index does not decide what is run. If you trust it, give it yourself: --embedder st:FOLDER, or "
            "Index(path, embedder='st:FOLDER')."
        )


def _is_plain(folder: Path, module: Any) -> bool:
    kind = str(module.get("type", "")) if isinstance(module, dict) else ""
    if not kind.startswith("sentence_transformers.") or kind.rpartition(".")[2] not in _PLAIN_MODULES:
        return False
    settings = read_json(folder / str(module.get("path", "")) / "config.json", {})
    # A dense module calls the class that it names as its function.
    function = settings.get("activation_function", "torch.nn.Identity") if isinstance(settings, dict) else ""
    return str(function).startswith("torch.nn.")


def _folder_files(folder: Path) -> Iterator[Path]:
    """Files that decide what the model computes: at the top and in the folders of its modules."""
    places = [folder, *(folder / str(module.get("path", "")) for module in read_json(folder / "modules.json", []))]
    for directory in sorted({directory for directory in places if directory.is_dir()}):
        for path in sorted(directory.iterdir()):
            if path.is_file() and (path.name in MODEL_SETTINGS or path.suffix in _WEIGHTS):
                yield path
