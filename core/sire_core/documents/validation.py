"""Checks documents from Python code, their ids and metadata; keeps one document per id."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sire_core.errors import CorpusError
from sire_core.metadata_values import plain_value
from sire_core.text.languages import STATED, language_code
from sire_core.text.pluralize import count
from sire_core.text.words import clean_text, clean_value
from sire_core.types import Document, Passage

if TYPE_CHECKING:
    from sire_core.documents.blocks import Block

_logger = logging.getLogger(__name__)

T = TypeVar("T")


def check_list(objects: Iterable[T], kinds: tuple[type, ...], expected: str) -> list[T]:
    """The objects that a user gave as a list; `expected` names their classes in errors.

    Raises:
        CorpusError: It is no list, or one object in it is of another class.
    """
    is_one = isinstance(objects, (str, bytes, Mapping, *kinds)) or hasattr(type(objects), "model_fields")
    if is_one or not isinstance(objects, Iterable):
        raise CorpusError(f"Expected a list of {expected}, not {_class_path(objects)}.")
    listed = list(objects)
    for number, one in enumerate(listed):
        if not isinstance(one, kinds):
            raise CorpusError(f"Expected a list of {expected}; number {number} is {_class_path(one)}.")
    return listed


def id_list(ids: str | Iterable[str]) -> list[str]:
    """Ids that a user gave, or one of them, as a list."""
    return [ids] if isinstance(ids, str) else check_list(ids, (str,), "ids, which are texts")


def _class_path(value: object) -> str:
    """Where users import the class of an object from; of Python's own classes their name."""
    kind = type(value)
    if value is None or kind.__module__ == "builtins":
        return "None" if value is None else kind.__name__
    parts = kind.__module__.split(".")
    packages = (".".join(parts[:n]) for n in range(1, len(parts)))
    homes = (name for name in packages if vars(sys.modules.get(name, sys)).get(kind.__name__) is kind)
    return f"{next(homes, kind.__module__)}.{kind.__name__}"


def check_documents(documents: Iterable[Document], *, strict_metadata: bool = False) -> tuple[Document, ...]:
    """Check and tidy documents before they are indexed."""
    if isinstance(documents, (str, bytes, Mapping, Document)) or not isinstance(documents, Iterable):
        raise CorpusError(f"Expected a list of Document objects, not {type(documents).__name__}.")
    pool = DocumentPool()
    for number, document in enumerate(documents):
        checked = _checked(document, number)
        if strict_metadata:
            _require_json(document, f"Document {document.id!r} (number {number})")
        pool.add(checked, f"document number {number}")
    return pool.documents()


def _checked(document: object, number: int) -> Document:
    if not isinstance(document, Document):
        raise CorpusError(
            f"Document number {number} is a {type(document).__name__}; pass Document(id=..., text=...) objects."
        )
    if not isinstance(document.id, str):
        raise CorpusError(
            f"Document number {number}: id {document.id!r} is {type(document.id).__name__}, not str; use str(id)."
        )
    try:
        identifier = clean_id(document.id)
    except CorpusError as error:
        raise CorpusError(f"Document number {number}: {error}") from error
    if not identifier.strip():
        raise CorpusError(f"Document number {number} has a blank id; give each document an id of its own.")
    label = f"Document {identifier!r} (number {number})"
    _check_types(document, ("text", "title"), label)
    return Document(
        id=identifier,
        text=clean_text(document.text),
        title=clean_text(document.title),
        metadata=clean_metadata(document.metadata, label),
        chunks=_checked_chunks(document.chunks, label),
        blocks=_fitting(document.blocks, document.text),
    )


def _fitting(blocks: tuple[Block, ...], text: str) -> tuple[Block, ...]:
    """Blocks that lie in a text one behind the other; none of another text, which is parsed again."""
    ends = [0, *(block.end for block in blocks)]
    is_ordered = all(end <= block.start <= block.end for end, block in zip(ends, blocks, strict=False))
    return blocks if is_ordered and ends[-1] <= len(text) and clean_text(text) == text else ()


def _require_json(document: Document, label: str) -> None:
    require_json(document.metadata, label)
    for chunk in document.chunks:
        if isinstance(chunk, Passage):
            require_json(chunk.metadata, f"{label}, a passage")


def require_json(metadata: Mapping[str, Any], label: str) -> None:
    """Refuse metadata values that JSON does not have, such as dates, sets and NaN."""
    if refused := [key for key, value in metadata.items() if not _is_json(value)]:
        raise CorpusError(
            f"{label}: metadata key {refused[0]!r} holds {_kind(metadata[refused[0]])} that JSON does not have, and "
            "strict_metadata is on. Convert it, or turn strict_metadata off to store it in another form."
        )


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _check_types(item: Document | Passage, texts: Sequence[str], label: str, of: str = "") -> None:
    for name in texts:
        value = getattr(item, name)
        if not isinstance(value, str):
            raise CorpusError(f"{label}: {name}{of} is {type(value).__name__}, not str.")
    if not isinstance(item.metadata, Mapping):
        raise CorpusError(f"{label}: metadata{of} is {type(item.metadata).__name__}, not a mapping.")


def _checked_chunks(chunks: object, label: str) -> tuple[str | Passage, ...]:
    if not isinstance(chunks, (tuple, list)) or not all(isinstance(chunk, (str, Passage)) for chunk in chunks):
        raise CorpusError(
            f"{label}: chunks must be a tuple of strings or Passage objects; put a text that is not cut yet into "
            "'text'."
        )
    return tuple(clean_text(chunk) if isinstance(chunk, str) else _checked_passage(chunk, label) for chunk in chunks)


def _passage_id(value: str, label: str) -> str:
    try:
        return clean_id(value)
    except CorpusError as error:
        raise CorpusError(f"{label}: {error}") from error


def _checked_passage(passage: Passage, label: str) -> Passage:
    _check_types(passage, ("text", "id", "title"), label, " of a passage")
    repeated = passage.repeated
    if isinstance(repeated, bool) or not isinstance(repeated, int) or not 0 <= repeated <= len(passage.text):
        raise CorpusError(f"{label}: repeated of a passage is {repeated!r}, not a number of letters of its text.")
    return Passage(
        text=clean_text(passage.text),
        id=_passage_id(passage.id, label),
        title=clean_text(passage.title),
        metadata=clean_metadata(passage.metadata, label),
        blocks=_fitting(passage.blocks, passage.text),
        repeated=len(clean_text(passage.text[:repeated])),
    )


def clean_id(text: str) -> str:
    """Refuse an id that cannot be stored verbatim."""
    text = str.__str__(text)
    if clean_text(text) != text:
        raise CorpusError(f"the id {text!r} holds a NUL character or half a surrogate pair; choose another id")
    return text


def clean_metadata(metadata: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Copy metadata into plain JSON types with clean strings; see `metadata_values`."""
    cleaned: dict[str, Any] = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise CorpusError(f"{label}: metadata key {key!r} is {_kind(key)}; metadata keys must be strings.")
        try:
            cleaned[clean_text(key)] = clean_value(plain_value(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise CorpusError(
                f"{label}: metadata key {key!r} holds {_kind(value)} that cannot be stored as JSON ({error}); "
                "use strings, numbers, dates, true/false, null, lists or mappings of these."
            ) from error
    return cleaned


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


_SHOWN = 10


class DocumentPool:
    """Collects documents in order and keeps one of each id.

    Attributes:
        duplicates: Origin of each dropped repeat -> origin of the document that was kept.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Document, str]] = {}
        self._conflicts: dict[str, str] = {}
        self._folders: dict[str, None] = {}
        """The folders of different files with the same id."""
        self.duplicates: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, doc_id: str) -> bool:
        return doc_id in self._kept

    def add(self, document: Document, origin: str) -> None:
        """Add a document; `origin` is named in errors."""
        if document.id not in self._kept:
            self._kept[document.id] = (document, origin)
            return
        previous, first = self._kept[document.id]
        if previous == document:
            self.duplicates[origin] = first
            return
        part = "metadata differs" if _words(previous) == _words(document) else "text differs"
        self._conflicts.setdefault(document.id, f"{document.id!r} ({first} and {origin}: {part})")
        for source in (first, origin):
            if source.endswith(f"/{document.id}"):
                self._folders[source.removesuffix(f"/{document.id}")] = None

    def documents(self) -> tuple[Document, ...]:
        """The documents in their original order."""
        if self._conflicts:
            listed = "; ".join(list(self._conflicts.values())[:_SHOWN])
            more = f"; and {len(self._conflicts) - _SHOWN} more" if len(self._conflicts) > _SHOWN else ""
            folders = " ".join(self._folders)
            remedy = (
                f" To keep both, make a new index of the folders: sire index {folders} --to NEW_DIR" if folders else ""
            )
            raise CorpusError(
                f"{count(len(self._conflicts), 'document id')} with different content: {listed}{more}. "
                f"Give each document an id of its own, or remove one of the two.{remedy}"
            )
        return tuple(document for document, _ in self._kept.values())


def _words(document: Document) -> tuple[object, ...]:
    return document.title, document.text, document.chunks


_LONG = 8_000  # Characters, about 2,000 tokens: more than most embedding models read


def warn_of_long_passages(documents: Sequence[Document], remedy: str) -> None:
    """Log a warning if passages that a user gave are longer than most embedding models read."""
    lengths = [len(passage.text) for document in documents for passage in document.passages]
    if long := sum(length > _LONG for length in lengths):
        _logger.warning(
            "%s of %s longer than %s characters: long texts rank worse unless they are split, and embedding "
            "models may read only their beginning. %s",
            f"{long:,}",
            f"{count(len(lengths), 'passage')} {'is' if long == 1 else 'are'}",
            f"{_LONG:,}",
            remedy,
        )


def text_rows(
    texts: Iterable[str], metadatas: Sequence[Mapping[str, Any]] | None, ids: Sequence[str | None] | None
) -> list[tuple[str, dict[str, Any], str | None]]:
    """Texts with their metadata and ids from parallel lists, as frameworks give them."""
    listed = check_list(texts, (str,), "texts")
    check_as_many(len(listed), "texts", metadatas=metadatas, ids=ids)
    stated: Sequence[Mapping[str, Any]] = metadatas or [{}] * len(listed)
    rows = zip(listed, stated, ids or [None] * len(listed), strict=True)
    return [(text, dict(metadata), name) for text, metadata, name in rows]


def check_as_many(number: int, kind: str, **lists: Sequence[Any] | None) -> None:
    """Raise unless parallel lists have an entry for each of the texts or documents."""
    for name, values in lists.items():
        if values is not None and (isinstance(values, str) or len(values) != number):
            raise CorpusError(f"There are {number} {kind} but {len(values)} {name}; give one for each, or none.")


def in_language(documents: Iterable[Document], name: str) -> tuple[Document, ...]:
    """Documents that state a language; those that state one keep it."""
    stated = {STATED: language_code(name)}
    return tuple(replace(document, metadata={**stated, **document.metadata}) for document in documents)
