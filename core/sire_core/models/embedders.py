"""Creates embedders from settings, fits and restores them; base class of the adapters' embedders."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.arguments import kind_of
from sire_core.errors import ConfigurationError, EmbedderMismatchError, ModelError
from sire_core.models.embedder_names import EMBEDDER_FORMS, check_embedder_name, embedder_form
from sire_core.models.embedding import check_vectors
from sire_core.models.lexical_embedder import LexicalEmbedder
from sire_core.models.model_files import split_options
from sire_core.models.onnx_embedder import OnnxEmbedder, semantic_embedder
from sire_core.models.precomputed import PrecomputedEmbedder
from sire_core.models.sentence_transformer import SentenceTransformerEmbedder
from sire_core.models.sync import run_sync
from sire_core.settings import is_elsewhere, is_from_folder

if TYPE_CHECKING:
    from typing_extensions import Self

    from sire_core.protocols import Embedder, FloatArray
    from sire_core.search.view import PoolView
    from sire_core.storage.call_cache import CallStore


def resolve_embedder(spec: str | Embedder | None) -> Embedder:
    """Create the embedder that a setting names; of the adapters' `SireEmbeddings` the one inside.

    These embedders have a `spec`, the string that creates them again; an index folder stores it. A spec that comes only
    from a folder can name only local files and models: nothing is downloaded, no code of a model folder runs, and the
    address of a server comes from the environment.

    Args:
        spec: None or one of the forms below; an embedder is returned as it is.

            - `lexical`: `LexicalEmbedder`
            - `semantic`: the `OnnxEmbedder` of a model that is on this machine; see `semantic_choice`
            - `onnx:NAME_OR_FOLDER`: `OnnxEmbedder`; `?pooling=`, `?query_prompt=`, `?document_prompt=` and
              `?max_length=` may follow, joined by `&`
            - `st:NAME_OR_FOLDER`, or the path of an existing folder: `SentenceTransformerEmbedder`
            - `file:PATH`: `PrecomputedEmbedder`
            - `openai:MODEL`: `OpenAIEmbedder`

    Raises:
        ConfigurationError: The spec has none of these forms, or names something that does not exist.
    """
    spec = getattr(spec, "core_embedder", spec)
    if spec is None or spec == "lexical":
        return LexicalEmbedder()
    if isinstance(spec, str):
        return semantic_embedder() if spec == "semantic" else _by_name(spec)
    # Looked up on the class: `isinstance(spec, Embedder)` would evaluate `dimension`, which may load a model.
    if not isinstance(spec, type) and callable(getattr(type(spec), "embed", None)):
        return spec
    raise ConfigurationError(f"{kind_of(spec)} is no embedder; use {EMBEDDER_FORMS}")


def other_embedder(before: str, now: str, spec: str = "") -> EmbedderMismatchError:
    """The error about an embedder that is not the one of the index; with a spec the index makes its own by itself."""
    spec = spec or ("lexical" if before.startswith("lexical") else "")
    by_itself = f" (leave the embedder out, or name it: {spec!r})" if spec else ""
    return EmbedderMismatchError(
        f"This index was built with the embedder {before}, not with {now}. Give that one{by_itself}, build into "
        "another folder, or change the vectors: sire reembed DIR --embedder NAME."
    )


def refuse_other_embedder(before: str, embedder: Embedder) -> None:
    """Refuse an embedder that is not the one of the index, by its fingerprint; an empty one takes any."""
    fitted = hasattr(embedder, "from_state") and embedder.fingerprint.split(":", 1)[0] == before.split(":", 1)[0]
    if before and embedder.fingerprint != before and not fitted:
        raise other_embedder(before, embedder.fingerprint)


def _by_name(spec: str) -> Embedder:
    careful = is_from_folder(spec)
    form, rest = embedder_form(spec)
    if careful and is_elsewhere(rest):
        raise ConfigurationError(
            f"This index names the embedder {str(spec)!r}, which is on another machine, and a folder does not decide "
            "where one is asked for. If you want it, give it yourself: --embedder, or Index(path, embedder=...)."
        )
    if form == "onnx":
        return OnnxEmbedder.from_spec(rest, careful=careful)
    if form == "openai":
        from sire_core.models.openai.embedder import OpenAIEmbedder

        return OpenAIEmbedder(rest)
    if form == "file":
        return PrecomputedEmbedder(rest)
    check_embedder_name(spec)
    name, options = split_options(rest, query_prompt=str)
    return SentenceTransformerEmbedder(name, careful=careful, **options)


def restore(thing: Any, role: str, fingerprint: str, store: CallStore) -> Any:
    """A copy of `thing` with the state that was stored for a fingerprint; `thing` itself if there is none."""
    if not fingerprint or not hasattr(thing, "from_state") or thing.fitted:
        return thing
    state = store.fitted(f"{role}:{fingerprint}")
    return thing if state is None else thing.from_state(state)


def lacks_state(restored: Embedder, fingerprint: str) -> bool:
    """True if the stored state of the embedder of an index is lost."""
    same = restored.fingerprint.split(":", 1)[0] == fingerprint.split(":", 1)[0]
    return same and not getattr(restored, "fitted", True)


def fit_once(thing: Any, role: str, fingerprint: str, store: CallStore, texts: Sequence[str], *, refit: bool) -> Any:
    """The fitted form of `thing`: restored, or fitted on `texts` and stored."""
    if not hasattr(thing, "from_state"):
        return thing
    fitted = restored = restore(thing, role, fingerprint, store)
    has_grown = refit and 0 < 2 * int(getattr(restored, "fitted_on", 0)) <= len(texts)
    if texts and (not restored.fitted or has_grown):
        fitted = thing.fit(list(texts))
    is_stored = fitted is restored and restored is not thing
    name = f"{role}:{fitted.fingerprint}"
    if fitted.fitted and not is_stored and store.fitted(name) is None:
        store.put_fitted(name, fitted.state())
    return fitted


_PROBE, _PROBED = "a short text that tells embedding models apart", 16
_PROBE_STEP = 0.04  # Of the mean size of a vector's numbers; the noise of half precision is a fortieth of it
_ANSWER_FINGERPRINT = re.compile(r"(?P<model>.*:answers-\d+-)(?P<numbers>(?:[0-9a-f]{2})*)", re.DOTALL)

_ANSWER_PART = re.compile(r":?answers-\d+-[0-9a-f]*$")
_FITTED = re.compile(r"^(lexical)-svd/\d+(?::[0-9a-f]+)?$")


def answer_text(called: str, embed: Callable[[str], Sequence[float]]) -> str:
    """Coarse vector of a short text as the last part of a fingerprint."""
    try:
        with ThreadPoolExecutor(1) as thread:  # some models run a loop of their own, which a loop's thread refuses
            vector = np.asarray(thread.submit(embed, _PROBE).result(), dtype=np.float64)
    except NotImplementedError:
        return ""
    except Exception as error:
        raise ModelError(f"{called} failed: {type(error).__name__}: {error}") from error
    size = float(np.sqrt(np.mean(vector**2))) or 1.0
    steps = np.clip(np.round(vector[:_PROBED] / (size * _PROBE_STEP)), -127, 127).astype(np.int64) + 128
    return f"answers-{len(vector)}-{bytes(steps.tolist()).hex()}"


def model_name(fingerprint: str) -> str:
    """The name of an embedder for people: its fingerprint without the digest of its state or of its answers."""
    name = _ANSWER_PART.sub("", fingerprint)
    return _FITTED.sub(r"\1", name) or fingerprint


def same_model(one: str, other: str) -> bool:
    """True if two fingerprints name one model: equal, or their last part is what one model answers at two times."""
    left, right = _ANSWER_FINGERPRINT.fullmatch(one), _ANSWER_FINGERPRINT.fullmatch(other)
    if left is None or right is None or left["model"] != right["model"]:
        return one == other
    numbers = [np.frombuffer(bytes.fromhex(match["numbers"]), dtype=np.uint8).astype(int) for match in (left, right)]
    return len(numbers[0]) == len(numbers[1]) and bool((np.abs(numbers[0] - numbers[1]) <= 1).all())


def check_length(view: PoolView, prefix: str) -> None:
    """Raise `EmbedderMismatchError` if a framework's embedder has vectors of another length than an index."""
    if view.size and view.embedder_fingerprint.startswith(prefix):
        with suppress(ModelError):
            run_sync(view.embed_queries(["dimension"]))


class FrameworkEmbedder(ABC):
    """An embedder whose fingerprint and dimension become known with its model.

    Args:
        fingerprint: Identifies the model; None asks `_identify`.
    """

    tells_texts_apart = True
    """True if the model gives different texts different vectors; see `check_vectors`."""

    def __init__(self, fingerprint: str | None = None) -> None:
        self._fingerprint = fingerprint
        self._dimension = 0

    @property
    def fingerprint(self) -> str:
        """Identifies the model; see the class."""
        if self._fingerprint is None:
            self._fingerprint = self._identify()
        return self._fingerprint

    def known_as(self, fingerprint: str) -> Self:
        """This embedder under the fingerprint of an index that its model built; itself for another model's."""
        if fingerprint == self.fingerprint or not same_model(fingerprint, self.fingerprint):
            return self
        renamed = copy.copy(self)
        renamed._fingerprint = fingerprint  # noqa: SLF001 - a copy of ourselves
        return renamed

    @property
    def dimension(self) -> int:
        """Length of a vector. Before the first vector is known, one word is embedded to find out."""
        if not self._dimension:
            self._dimension = len(self._embed_word("dimension"))
        return self._dimension

    def _checked(self, rows: Sequence[Sequence[float]], texts: Sequence[str]) -> FloatArray:
        matrix = check_vectors(rows, texts, self.fingerprint, self._dimension, knows_all=self.tells_texts_apart)
        self._dimension = matrix.shape[1]
        return matrix

    @abstractmethod
    def _identify(self) -> str:
        """The default fingerprint."""

    @abstractmethod
    def _embed_word(self, word: str) -> Sequence[Any]:
        """A vector of the model."""
