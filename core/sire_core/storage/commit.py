"""`Commit`: everything that one build, add, update or delete changes, in one piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sire_core.corpus.document_export import StoredDocument
    from sire_core.protocols import Delta
    from sire_core.types import Chunk


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that one build, add, update or delete changes.

    Attributes:
        put_documents: New or changed documents.
        drop_documents: Ids of documents that are gone.
        put_chunks: New chunks.
        drop_chunks: Ids of chunks that are gone.
        deltas: Changes by owner (organizer fingerprints and `CORPUS`).
        vectors: Vectors of all put units, by unit id.
        revectors: New vectors of units that stay, after the embedder was refitted.
        drop_owners: Owners whose units, edges and state go altogether.
        manifest: The manifest after the change.
    """

    put_documents: Sequence[StoredDocument] = ()
    drop_documents: Sequence[str] = ()
    put_chunks: Sequence[Chunk] = ()
    drop_chunks: Sequence[str] = ()
    deltas: Mapping[str, Delta] = field(default_factory=dict)
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    revectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    drop_owners: Sequence[str] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
