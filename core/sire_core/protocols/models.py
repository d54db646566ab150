"""Language models and embedders."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]
    DoubleArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]
    Int32Array = NDArray[np.int32]
    BoolArray = NDArray[np.bool_]
    HashArray = NDArray[np.uint64]
    IdArray = NDArray[np.bytes_]
else:  # for annotations only: importing this package does not import numpy
    FloatArray = DoubleArray = IntArray = Int32Array = BoolArray = HashArray = IdArray = "numpy.ndarray"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: instructions and untrusted data.

    Attributes:
        instructions: Our words.
        data: Untrusted text (passages, questions). The client fences and escapes it, so that it can neither steer the
            instructions nor close a delimiter.
        images: Bytes of images for vision models.
    """

    instructions: str
    data: str = ""
    images: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The arguments of `LanguageModel.complete` as one value, for models that pass them on.

    Attributes:
        prompt: Instructions and data.
        schema: A pydantic model class; the answer is validated against it.
        stop: Texts that end the answer.
        max_tokens: Upper bound of the answer.
        temperature: 0 for repeatable answers.
    """

    prompt: Prompt
    schema: type[Any] | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float = 0.0

    @property
    def settings(self) -> dict[str, Any]:
        """Everything but the prompt, as keywords of `complete`."""
        return {
            "schema": self.schema,
            "stop": self.stop,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer.

    `parsed` is set when a schema was asked for; `finish` is `stop`, `length` or `refusal`; `stored` means that it was
    given before and nobody was asked now.
    """

    text: str
    parsed: Any = None
    input_tokens: int = 0
    output_tokens: int = 0
    finish: str = "stop"
    stored: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """A chat model. `sire_core.models.base.ModelBase` has the signatures; a subclass answers a `ModelRequest`."""

    @property
    def fingerprint(self) -> str:
        """Names the model and every setting that changes its answers."""

    async def complete(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Completion:
        """Answer a prompt.

        Args:
            prompt: Instructions and data.
            schema: A pydantic model class; the answer is validated against it and returned as `parsed`.
            stop: Texts that end the answer.
            max_tokens: Upper bound of the answer.
            temperature: 0 for repeatable answers.

        Raises:
            RefusalError: The model declined.
            ModelError: The call failed, or the answer did not fit the schema after one repair.
            LimitExceededError: A usage limit would be passed.
        """


WrapModel = Callable[[LanguageModel], LanguageModel]
"""Makes of a model another one that asks it, and counts or keeps its answers for example."""


@runtime_checkable
class StreamingModel(LanguageModel, Protocol):
    """A chat model that can also give its answer piece by piece. Optional: every use has a way without it."""

    def stream(
        self,
        prompt: Prompt,
        *,
        schema: type[Any] | None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> AsyncGenerator[str | Completion, None]:
        """Answer a prompt as `complete` does: the same answer, limits and errors.

        A call that fails after the first piece is not repeated. Closing the generator early ends the request.

        Yields:
            Pieces of the text as they come (with a schema of the JSON text), then the `Completion`. The pieces add up
            to its text, unless the answer did not fit the schema or was cut off and had to be asked for again, or a
            model thought aloud first.
        """


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors.

    One whose attribute `portable` is True is pickled and works on other machines where the build's `Runner` says so.
    One whose fingerprint can vary a little has a method `known_as(fingerprint)`: it is called with the fingerprint that
    an index was built with and returns an embedder of that fingerprint if it is of the same model, else itself.
    A build stores the vectors of every call of `embed` at once; an attribute `batch_size` asks for so many texts a call
    where a request takes more than 128.
    """

    @property
    def fingerprint(self) -> str:
        """Names the model; two embedders with the same fingerprint give the same vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    async def embed(self, texts: Sequence[str], kind: str = "document") -> FloatArray:
        """Embed texts.

        Args:
            texts: Any number of texts.
            kind: `document` or `query`; some models treat them differently.

        Returns:
            float32 `[len(texts), dimension]`; the index normalises the rows.
        """


@runtime_checkable
class Fittable(Protocol):
    """An embedder or extractor that learns from the first batch and is then frozen.

    The index fits it once, stores `state()` before anything is made with it, and restores it with `from_state`.
    """

    @property
    def fitted(self) -> bool:
        """True if `fit` or `from_state` has run."""

    def fit(self, texts: Sequence[str]) -> Fittable:
        """Return a fitted copy. Deterministic in `texts`."""

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Arrays (no objects) that restore the fitted copy."""

    def from_state(self, state: Mapping[str, NDArray[Any]]) -> Fittable:
        """Return a copy restored from `state()`."""
