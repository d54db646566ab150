"""What things are known by: ids, hashes, and the kinds of units. Public in `sire_core.types`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, cast

from sire_core.errors import ConfigurationError

__all__ = ["BUILT_IN_KINDS", "UnitKind", "chunk_id", "content_hash", "digest", "hash64", "unit_id"]


def digest(*parts: str, size: int = 12) -> str:
    """Hash strings into a hexadecimal id.

    Parts are length-prefixed, so that no two different lists of parts collide by concatenation.
    """
    text = "".join([f"{len(part)}:{part}" for part in parts])
    if text.isascii():  # as many letters as bytes
        prefixed = text.encode()
    else:
        raw = [part.encode("utf-8", "surrogatepass") for part in parts]
        prefixed = b"".join([b"%d:%b" % (len(part), part) for part in raw])
    return hashlib.blake2b(prefixed, digest_size=size).hexdigest()


def hash64(text: str) -> int:
    """A hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def content_hash(title: str, text: str) -> str:
    """Hash of what a passage says; equal for duplicates in different documents."""
    return digest(title, text)


def chunk_id(doc_id: str, position: int, title: str, text: str) -> str:
    """Id of the chunk at `position` (0-based) of a document."""
    return digest("chunk", doc_id, str(position), title, text)


def unit_id(kind: str, fingerprint: str, chunk_ids: Iterable[str], text: str) -> str:
    """Id of a derived unit.

    Args:
        kind: A `UnitKind` value.
        fingerprint: Build fingerprint of the organizer that made the unit.
        chunk_ids: Source chunks in any order.
        text: The unit's text.
    """
    return digest(kind, fingerprint, *sorted(chunk_ids), text)


class UnitKind(str, Enum):
    """What a unit of the pool is: one of these, or a kind of your own (`define`)."""

    CHUNK = "chunk"
    SIM_SUMMARY = "sim_summary"
    AGGREGATE = "aggregate"
    REL_SUMMARY = "rel_summary"
    CROSS_SUMMARY = "cross_summary"
    PROPOSITION = "proposition"
    AKU = "aku"
    BRIDGE = "bridge"
    ENTITY = "entity"
    RELATION = "relation"
    REPORT = "report"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def define(cls, name: str) -> UnitKind:
        """A kind of your own, for units of your own organizers; or the one that has this name already.

        An index that holds units of it can be read in any process. Where kinds are given by name (quotas, adapters),
        it is known after this.

        Args:
            name: Lower-case letters, digits and underscores, at most 32.

        Raises:
            ConfigurationError: It is no such name.
        """
        known = cls._value2member_map_.get(name)
        if known is None:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
                raise ConfigurationError(
                    f"{name!r} names no kind: up to 32 lower-case letters, digits and underscores, a letter first."
                )
            known = str.__new__(cls, name)
            known._name_, known._value_ = name.upper(), name
            cls._member_names_.append(known.name)
            cls._member_map_[known.name] = cls._value2member_map_[name] = known
        return cast("UnitKind", known)

    def __reduce_ex__(self, proto: object) -> tuple[Any, ...]:
        """Pickled by name, so that a process that has not defined it can read it."""
        return UnitKind.define, (self.value,)


BUILT_IN_KINDS: tuple[str, ...] = tuple(kind.value for kind in UnitKind)
"""The names of the kinds that nobody has to define."""
