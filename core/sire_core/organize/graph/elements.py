"""`Elements`: ids of what hashed keys stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Elements", "id_codes"]


def id_codes(ids: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """The first 16 hexadecimal digits of ids as numbers, which sort as the ids do."""
    digits = np.ascontiguousarray(ids, dtype="S24").view(np.uint8).reshape(-1, 24)[:, :16]
    halves = (digits & 15) + (digits >> 6) * 9
    return np.ascontiguousarray(halves[:, ::2] << 4 | halves[:, 1::2]).view(">u8").astype(np.uint64).ravel()


@dataclass(frozen=True, slots=True)
class Elements:
    """Entities (or relations) by hash of their key; two of the same text and passages share an id.

    Attributes:
        keys: Ascending, uint64 `[n]`.
        ids: `[n]`.
        named: Whether it has a text and may be a unit, `[n]`.
    """

    keys: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    ids: NDArray[np.bytes_] = field(default_factory=lambda: np.empty(0, dtype="S24"))
    named: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))

    def places(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Numbers by key; -1 for a key that is not there."""
        if not len(self.keys):
            return np.full(len(keys), -1, dtype=np.int64)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, -1)

    def among(self, keys: NDArray[np.uint64]) -> dict[int, tuple[str, bool]]:
        """Id and `named` of some by key; those that are not there are left out."""
        places = self.places(keys)
        places = places[places >= 0]
        ids = self.ids[places].astype(str).tolist()
        return {
            key: (found, named)
            for key, found, named in zip(self.keys[places].tolist(), ids, self.named[places].tolist(), strict=True)
        }

    def with_twins(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Some keys, and all others that share an id with one of them; ascending."""
        codes = id_codes(self.ids)
        places = self.places(keys)
        return np.union1d(keys, self.keys[np.isin(codes, codes[places[places >= 0]])])

    def followed(self, gone: NDArray[np.uint64], put: Mapping[int, tuple[str, bool]]) -> Elements:
        """Without some keys, then with others.

        Args:
            gone: Keys to forget.
            put: Id and `named` by key, none of them left in what stays.
        """
        stays = ~np.isin(self.keys, gone)
        keys = np.concatenate([self.keys[stays], np.array(list(put), dtype=np.uint64)])
        ids = np.concatenate([self.ids[stays], np.array([found for found, _ in put.values()], dtype="S24")])
        named = np.concatenate([self.named[stays], np.array([named for _, named in put.values()], dtype=bool)])
        order = np.argsort(keys)
        return Elements(keys[order], ids[order], named[order])

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """All arrays by name, for a file."""
        return {f"{prefix}.keys": self.keys, f"{prefix}.ids": self.ids, f"{prefix}.named": self.named}

    @classmethod
    def from_arrays(cls, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Elements:
        """What `arrays` gave."""
        return cls(*(arrays[f"{prefix}.{name}"] for name in ("keys", "ids", "named")))
