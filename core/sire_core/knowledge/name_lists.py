"""`NameLists`: the names by which passages know entities, and the ways to write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.algorithms.grouping import ranges
from sire_core.algorithms.text import cached_key
from sire_core.extraction.titles import WORD, title_forms
from sire_core.knowledge.ragged import Ragged
from sire_core.types import hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NameLists", "list_hash", "word_hashes"]

_FORM = {"keys": np.uint64, "first": np.uint64, "second": np.uint64, "last": np.uint64}


def list_hash(names: Iterable[str]) -> int:
    """Hash of the names that one passage gives one entity, in their order."""
    return hash64("\0".join(names))


@dataclass(frozen=True, slots=True)
class NameLists:
    """Distinct lists of names, by hash.

    Attributes:
        hashes: See `list_hash`; ascending, uint64 `[lists]`.
        ends: List i is `text[ends[i]:ends[i + 1]]`, int64 `[lists + 1]`.
        text: Lists as JSON, uint8.
        forms: Ways to write the names of each list (see `TitleLinker`): hash of the form's key, and of its first,
            second and last word, 0 for a form without words.
    """

    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    ends: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    text: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    forms: Ragged = field(default_factory=lambda: Ragged.of((), _FORM))

    def places(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Numbers of lists that are there, by hash."""
        return np.searchsorted(self.hashes, hashes)

    def names(self, place: int) -> list[str]:
        """The names of a list by its number."""
        found: list[str] = json.loads(
            self.text[self.ends[place] : self.ends[place + 1]].tobytes().decode("utf-8", "surrogatepass")
        )
        return found

    def all_names(self) -> list[list[str]]:
        """The names of every list, by its number."""
        return self.names_of(np.arange(len(self.hashes)))

    def names_of(self, places: NDArray[np.int64]) -> list[list[str]]:
        """The names of some lists by their numbers."""
        text = np.ascontiguousarray(self.text).data
        ends = zip(self.ends[places].tolist(), self.ends[places + 1].tolist(), strict=True)
        bodies = b",".join([text[start:end] for start, end in ends])
        found: list[list[str]] = json.loads(f"[{bodies.decode('utf-8', 'surrogatepass')}]")
        return found

    def updated(self, needed: NDArray[np.uint64], added: Mapping[int, Sequence[str]]) -> NameLists:
        """The lists of these hashes: those that are here already, and new ones.

        Args:
            needed: Distinct hashes, ascending.
            added: Lists by hash; those that are not here must be among them.
        """
        kept = np.flatnonzero(np.isin(self.hashes, needed))
        new = needed[~np.isin(needed, self.hashes)].tolist()
        bodies = [json.dumps(list(added[found]), ensure_ascii=False).encode("utf-8", "surrogatepass") for found in new]
        hashes = np.concatenate([self.hashes[kept], np.array(new, dtype=np.uint64)])
        sizes = np.diff(self.ends)
        lengths = np.concatenate([sizes[kept], np.array([len(body) for body in bodies], dtype=np.int64)])
        text = np.concatenate([self.text[ranges(self.ends[:-1][kept], sizes[kept])], _bytes(b"".join(bodies))])
        order = np.argsort(hashes)
        forms = Ragged.of([_forms(added[found]) for found in new], _FORM)
        chosen = np.concatenate([kept, len(self.hashes) + np.arange(len(new))])[order]
        starts = np.cumsum(lengths) - lengths
        return NameLists(
            hashes=hashes[order],
            ends=np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int64),
            text=text[ranges(starts[order], lengths[order])],
            forms=self.forms.chosen(forms, chosen),
        )

    @classmethod
    def joined(cls, parts: Sequence[NameLists]) -> NameLists:
        """Lists of several, one after the other. A list may come up again; `updated` and `places` are not for these."""
        ends = np.cumsum([0, *(int(part.ends[-1]) for part in parts)])
        return cls(
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([[0], *(part.ends[1:] + end for part, end in zip(parts, ends[:-1], strict=True))]),
            np.concatenate([part.text for part in parts]),
            Ragged.joined([part.forms for part in parts]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name, for a file."""
        own: dict[str, NDArray[Any]] = {"lists.hashes": self.hashes, "lists.ends": self.ends, "lists.text": self.text}
        return {**own, **self.forms.arrays("forms")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NameLists:
        """What `arrays` gave."""
        forms = Ragged.from_arrays("forms", arrays)
        return cls(arrays["lists.hashes"], arrays["lists.ends"], arrays["lists.text"], forms)


def word_hashes(text: str) -> list[int]:
    """Hashes of the words of a text, as `TitleLinker` compares them."""
    return [hash64("and" if word == "&" else word) for word in WORD.findall(text.lower())]


def _forms(names: Sequence[str]) -> list[tuple[int, ...]]:
    rows: dict[tuple[int, ...], None] = {}
    for name in names:
        for form in title_forms({name: None} if name.strip() else {}):
            words = word_hashes(form.text) or [0]
            rows[(hash64(cached_key(form.text)), words[0], words[min(1, len(words) - 1)], words[-1])] = None
    return list(rows)


def _bytes(body: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(body, dtype=np.uint8)
