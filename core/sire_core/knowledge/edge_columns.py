"""`EdgeColumns`: edges of one kind as arrays, in blocks, so that a change rewrites only the blocks that it touches."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sire_core.arrays.grouping import id_codes
from sire_core.arrays.lists import PackedTexts, Ragged
from sire_core.changes.runners import results_of
from sire_core.extraction.title_links import WORD, title_forms
from sire_core.knowledge import MENTIONS, RELATES
from sire_core.storage.array_file import pack_arrays, unpack_arrays
from sire_core.storage.checksums import stored_texts, stored_values
from sire_core.text.words import cached_key
from sire_core.types import Edge, hash64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import BoolArray, HashArray, IdArray, IntArray, Runner, View

_FORM = {"keys": np.uint64, "first": np.uint64, "second": np.uint64, "last": np.uint64}


def list_hash(names: Iterable[str]) -> int:
    """Hash of the names that one passage gives one entity, in their order."""
    return hash64("\0".join(names))


@dataclass(frozen=True, slots=True)
class NameLists:
    """Distinct lists of names, by hash."""

    hashes: HashArray = field(default_factory=lambda: np.empty(0, dtype=np.uint64))  # of `list_hash`
    texts: PackedTexts = field(default_factory=lambda: PackedTexts.of(()))  # lists as JSON
    forms: Ragged = field(default_factory=lambda: Ragged.of((), _FORM))  # see `TitleLinker`

    def places(self, hashes: HashArray) -> IntArray:
        """Return the numbers of lists by hash; all must exist."""
        return np.searchsorted(self.hashes, hashes)

    def names(self, index: int) -> list[str]:
        """Return the names of a list."""
        with stored_values("The list of names"):
            text = self.texts[index]
        return list(stored_texts(text, "a list of names"))

    def names_of(self, indexes: IntArray) -> list[list[str]]:
        """Return the names of several lists."""
        text, ends = np.ascontiguousarray(self.texts.letters).data, self.texts.ends[indexes]
        bounds = zip((ends - self.texts.sizes()[indexes]).tolist(), ends.tolist(), strict=True)
        bodies = b",".join([text[start:end] for start, end in bounds])
        lists: list[list[str]] = json.loads(f"[{bodies.decode('utf-8', 'surrogatepass')}]")
        return lists

    def updated(self, needed: HashArray, added: Mapping[int, Sequence[str]]) -> NameLists:
        """Return the lists with the hashes `needed` (distinct, ascending); new ones come from `added`, by hash."""
        remaining = np.flatnonzero(np.isin(self.hashes, needed))
        new = needed[~np.isin(needed, self.hashes)].tolist()
        texts = PackedTexts.of([json.dumps(list(added[identifier]), ensure_ascii=False) for identifier in new])
        hashes = np.concatenate([self.hashes[remaining], np.array(new, dtype=np.uint64)])
        order = np.argsort(hashes)
        forms = Ragged.of([_forms(added[identifier]) for identifier in new], _FORM)
        chosen = np.concatenate([remaining, len(self.hashes) + np.arange(len(new))])[order]
        return NameLists(
            hashes=hashes[order],
            texts=PackedTexts.joined([self.texts, texts]).chosen(chosen),
            forms=self.forms.chosen(forms, chosen),
        )

    @classmethod
    def joined(cls, parts: Sequence[NameLists]) -> NameLists:
        """Concatenate lists; the result may repeat a list, so that `updated` and `places` do not work on it."""
        return cls(
            np.concatenate([part.hashes for part in parts]),
            PackedTexts.joined([part.texts for part in parts]),
            Ragged.joined([part.forms for part in parts]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, for a file."""
        ends = np.append(0, self.texts.ends)
        lists = {"lists.hashes": self.hashes, "lists.ends": ends, "lists.text": self.texts.letters}
        return {**lists, **self.forms.arrays("forms")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NameLists:
        """Inverse of `arrays`."""
        forms = Ragged.from_arrays("forms", arrays)
        return cls(arrays["lists.hashes"], PackedTexts(arrays["lists.text"], arrays["lists.ends"][1:]), forms)


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


_DOCUMENTS = 256  # Documents whose edges share a block
_AT_ONCE = 1 << 13  # Changes that are Python objects at the same time; others are serialized


class EdgeChange(NamedTuple):
    """An edge that is added, replaced or deleted."""

    source: str  # id of what it comes from
    target: str  # id of what it leads to
    document: int  # sequence number of its document, which determines the block
    put: bool  # whether it is written, replacing an edge with the same ends, or deleted
    names: Sequence[str] = ()  # names under which the source knows the target
    title: bool = False  # whether the target titles the source


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """Edges of one kind as columns."""

    sources: IdArray  # ids, `[m]`
    targets: IdArray  # ids, `[m]`
    titles: BoolArray  # whether the target titles the source, `[m]`
    numbers: IntArray  # row in `lists` of every edge, int64 `[m]`
    lists: NameLists  # names under which sources know targets

    @classmethod
    def empty(cls) -> EdgeColumns:
        """No edges."""
        ids = np.empty(0, dtype="S24")
        return cls(ids, ids, np.empty(0, dtype=bool), np.empty(0, dtype=np.int64), NameLists())

    @classmethod
    def of_blocks(cls, blocks: Iterable[bytes]) -> EdgeColumns:
        """Concatenate the edges of blocks."""
        parts = [cls.from_bytes(block, in_place=True) for block in blocks]
        if not parts:
            return cls.empty()
        starts = np.cumsum([0, *(len(part.lists.hashes) for part in parts)])
        return cls(
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.targets for part in parts]),
            np.concatenate([part.titles for part in parts]),
            np.concatenate([part.numbers + start for part, start in zip(parts, starts[:-1], strict=True)]),
            NameLists.joined([part.lists for part in parts]),
        )

    def updated(self, changes: Sequence[EdgeChange]) -> EdgeColumns:
        """Return the columns after changes; the last change of an edge counts."""
        ends = {(c.source.encode(), c.target.encode()) for c in changes}
        sources = np.array(sorted({source for source, _ in ends}), dtype="S24")
        touched = np.flatnonzero(np.isin(self.sources, sources))
        pairs = zip(self.sources[touched].tolist(), self.targets[touched].tolist(), strict=True)
        mask = np.ones(len(self.sources), dtype=bool)
        mask[touched] = [pair not in ends for pair in pairs]
        last = {(c.source, c.target): c for c in changes}  # the last word on an edge counts
        added = [change for change in last.values() if change.put]
        names = [tuple(change.names) for change in added]
        new = np.array([list_hash(name_list) for name_list in names], dtype=np.uint64)
        hashes = np.concatenate([self.lists.hashes[self.numbers[mask]], new])
        lists = self.lists.updated(np.unique(hashes), dict(zip(new.tolist(), names, strict=True)))
        return EdgeColumns(
            np.concatenate([self.sources[mask], np.array([change.source for change in added], dtype="S24")]),
            np.concatenate([self.targets[mask], np.array([change.target for change in added], dtype="S24")]),
            np.concatenate([self.titles[mask], np.array([change.title for change in added], dtype=bool)]),
            lists.places(hashes),
            lists,
        )

    def edges(self, kind: str) -> list[Edge]:
        """Return the edges one by one."""
        names = self.lists.names_of(self.numbers)
        columns = (self.sources.tolist(), self.targets.tolist(), self.titles.tolist())
        edges = []
        for source, target, title, edge_names in zip(*columns, names, strict=True):
            metadata: dict[str, Any] = {"names": edge_names} if kind == MENTIONS else {}
            metadata |= {"title": True} if title else {}
            edges.append(Edge(kind, source.decode(), target.decode(), 1.0, metadata))
        return edges

    def to_bytes(self) -> bytes:
        """Serialize as a block."""
        arrays: dict[str, NDArray[Any]] = {
            "sources": self.sources,
            "targets": self.targets,
            "titles": self.titles,
            "numbers": self.numbers.astype(np.int32),
            **self.lists.arrays(),
        }
        return pack_arrays(arrays)

    @classmethod
    def from_bytes(cls, block: bytes, *, in_place: bool = False) -> EdgeColumns:
        """Inverse of `to_bytes`."""
        arrays = unpack_arrays(block, in_place=in_place)
        numbers = arrays["numbers"].astype(np.int64)
        return cls(arrays["sources"], arrays["targets"], arrays["titles"], numbers, NameLists.from_arrays(arrays))


def block_of(kind: str, document: int) -> str:
    """Return the key of the block with the edges of a document."""
    return f"{kind}/{document // _DOCUMENTS:08d}"


def updated_blocks(
    kind: str,
    changes: Iterable[EdgeChange],
    read: Callable[[Sequence[str]], Mapping[str, bytes]],
    runner: Runner | None = None,
) -> dict[str, bytes | None]:
    """Return the changed blocks by key; None for an empty one. `read` loads blocks by key, as far as they exist."""
    waiting: dict[str, list[bytes]] = {}
    rest = iter(changes)
    while part := list(islice(rest, _AT_ONCE)):
        by_block: dict[str, list[tuple[object, ...]]] = {}
        for change in part:
            by_block.setdefault(block_of(kind, change.document), []).append(tuple(change))
        for key, rows in by_block.items():
            waiting.setdefault(key, []).append(marshal.dumps(rows))
    stored = read(sorted(waiting)) if waiting else {}
    keys = sorted(waiting)
    blocks = [(stored.get(key), waiting.pop(key)) for key in keys]
    return dict(zip(keys, results_of(runner, _updated_block, None, blocks, part_size=1), strict=True))


def _updated_block(_: None, part: Sequence[tuple[bytes | None, Sequence[bytes]]]) -> bytes | None:
    """Return a block after its changes, wherever this runs; None for an empty one."""
    [(stored, changes)] = part
    before = EdgeColumns.empty() if stored is None else EdgeColumns.from_bytes(stored)
    after = before.updated([EdgeChange(*row) for rows in changes for row in marshal.loads(rows)])  # noqa: S302 - of this build
    return after.to_bytes() if len(after.sources) else None


class IdPositions:
    """Looks up positions of units by id, on arrays instead of a dict.

    Args:
        ids: Unit ids, `[size]`.
    """

    def __init__(self, ids: IdArray) -> None:
        self._ids = ids
        codes = id_codes(ids)
        self._order = np.argsort(codes)
        self._codes = codes[self._order]

    @classmethod
    def of(cls, view: View) -> IdPositions:
        """Return those of a pool, made once per snapshot."""
        return view.derived("places of ids", lambda: cls(view.ids))

    def find(self, ids: IdArray) -> IntArray:
        """Return positions of ids; -1 for an unknown id."""
        if not len(self._order):
            return np.full(len(ids), -1, dtype=np.int64)
        rows = np.minimum(np.searchsorted(self._codes, id_codes(ids)), len(self._codes) - 1)
        positions = self._order[rows]
        return np.where(self._ids[positions] == ids, positions, -1).astype(np.int64)


def relation_ends(view: View) -> IntArray:
    """Return positions of relations and of the entities at their ends, `[2, pairs]`, without ends that are no units."""
    positions = IdPositions.of(view)
    columns = EdgeColumns.of_blocks(view.notes(f"{RELATES}/"))
    pairs = np.stack([positions.find(columns.sources), positions.find(columns.targets)])
    return np.asarray(pairs[:, (pairs >= 0).all(axis=0)])
