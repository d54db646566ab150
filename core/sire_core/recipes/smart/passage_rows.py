"""What a passage adds to a `NetworkTable`: whom it names, and what it states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sire_core.algorithms.text import count_tokens, name_key, normalize_answer
from sire_core.models.usage import estimate_tokens
from sire_core.types import hash64

if TYPE_CHECKING:
    from sire_core.recipes.smart.network_table import PassageRows
    from sire_core.recipes.smart.passage_statements import EntityMention, PassageStatements
    from sire_core.types import Unit

__all__ = ["mentioned_rows", "stated_rows"]


def mentioned_rows(
    mentions: Sequence[EntityMention], unnamed: Sequence[str], keys: Sequence[int] | None = None
) -> PassageRows:
    """Entities that a passage spells out, in order, and those that it only refers to.

    Args:
        mentions: What it spells out.
        unnamed: Ids of the others.
        keys: Hashes of the keys of the first names; None computes them.
    """
    found = [hash64(name_key(mention.first)) for mention in mentions] if keys is None else keys
    return {
        "named": [(m.entity.encode(), key, m.title) for m, key in zip(mentions, found, strict=True)],
        "unnamed": [(entity.encode(),) for entity in unnamed],
    }


def stated_rows(said: PassageStatements, mentions: Sequence[EntityMention], unit: Unit) -> PassageRows:
    """Pairs, statements and descriptions of a passage."""
    names = [mention.name for mention in mentions]
    version = "\0".join(unit.chunk_ids)
    statements = [
        (
            hash64("\0".join((version, str(number), found.text, *(names[place] for place in found.places)))),
            hash64(normalize_answer(found.text)),
            count_tokens(found.text),
            estimate_tokens(found.text),
            found.weight,
            len(found.places),
        )
        for number, found in enumerate(said.statements)
    ]
    return {
        "pairs": said.pairs,
        "statements": statements,
        "members": [(place,) for found in said.statements for place in found.places],
        "about": [(place, hash64(f"{version}\0{text}")) for place, text in said.about.items()],
        "traits": list(dict.fromkeys(said.traits)),
    }
