"""Errors of the package. Every message says what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from typing_extensions import Self


class SireError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigurationError(SireError, ValueError):
    """A setting, recipe, filter or argument is invalid."""


class QueryError(SireError, ValueError):
    """The question, `k` or filter of a search cannot be used."""


class CorpusError(SireError, ValueError):
    """Input documents contradict each other or cannot be read at all."""


class KnownDocumentError(CorpusError):
    """Documents to be added are already in the index, with a different text.

    Attributes:
        ids: Their ids.
    """

    def __init__(self, message: str, ids: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ids = ids


class StorageError(SireError):
    """The index folder cannot be read or written."""


class NoSpaceError(StorageError):
    """A file could not be written because the disk is full, or a limit on the size of files was reached."""


class IndexMissingError(StorageError, FileNotFoundError):
    """There is no index at the given place."""

    @classmethod
    def of(cls, folder: str | os.PathLike[str], advice: str) -> Self:
        """The error of a folder without an index.

        Args:
            folder: The folder.
            advice: How to make an index of `{source}` in `{folder}`. A folder of other files is the source, and the
                index is made beside it.
        """
        path = Path(folder)
        holds_others = False
        with suppress(OSError):  # one may not look
            holds_others = path.is_dir() and any(path.iterdir())
        if holds_others:
            beside = f"{path.resolve()}-index"
            return cls(f"There is no index in {path}, but other files. {advice.format(source=path, folder=beside)}")
        return cls(f"There is no index in {path}. {advice.format(source='SOURCE', folder=path)}")


class IndexClosedError(StorageError):
    """`close` was called on the `Index` that is used."""


class IndexLockedError(StorageError):
    """Another process is writing to the same index."""


class RefusedUnitsError(StorageError):
    """A vector store refused some units and took the others."""


class SnapshotExpiredError(StorageError):
    """The index has changed, and data that an older snapshot still needs no longer exists."""


class EmbedderMismatchError(StorageError):
    """The index was built with another embedder than the one given."""


class ModelError(SireError):
    """A language or embedding model failed or gave an invalid answer."""


class NoAnswerError(ModelError):
    """The model failed before there was an answer.

    Args:
        message: How it failed.
        answer: The `sire_core.reason.Answer` without text; None if there is none.
        evidence: What was found so far, as the framework has it: documents of LangChain, nodes of LlamaIndex.
    """

    def __init__(self, message: str, answer: Any = None, evidence: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.answer = answer
        self.evidence = list(evidence)


class RefusalError(ModelError):
    """The model declined to answer; the same request is not repeated."""


class UnusableAnswerError(ModelError):
    """The model's answer does not have the requested form.

    Args:
        message: What is wrong.
        text: The answer as received; may be empty.
    """

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class LimitExceededError(SireError):
    """The next call would exceed a limit of `UsageLimits`.

    Args:
        message: Which limit, and the usage so far.
        bound: What is limited: `calls` or `tokens`.

    Attributes:
        said: The model's answer, if only its repair was refused; otherwise empty.
    """

    def __init__(self, message: str, bound: str = "calls") -> None:
        super().__init__(message)
        self.bound = bound
        self.said = ""


class BuildError(SireError):
    """Too many passages failed; results so far are stored and the next build resumes."""
