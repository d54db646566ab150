"""Embedders and extractors that learn from the corpus: fitted once, stored before they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import Fittable

__all__ = ["FittedStore", "fit_once", "restore"]

T = TypeVar("T")


class FittedStore(Protocol):
    """Where fitted state is kept; see `sire_core.storage.calls.CallStore`."""

    def fitted(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Arrays stored under a name, or None."""

    def put_fitted(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Store arrays under a name."""


def restore(thing: T, role: str, fingerprint: str, store: FittedStore) -> T:
    """A copy of `thing` with the state that was stored for a fingerprint; `thing` itself when there is none to restore.

    Args:
        thing: An embedder or extractor.
        role: `embedder` or `extractor`.
        fingerprint: As the manifest has it.
        store: Keeps the state.
    """
    if not _unfitted(thing) or not fingerprint:
        return thing
    state = store.fitted(f"{role}:{fingerprint}")
    return thing if state is None else cast("T", cast("Fittable", thing).from_state(state))


def fit_once(thing: T, role: str, fingerprint: str, store: FittedStore, texts: Sequence[str], *, refit: bool) -> T:
    """The fitted form of `thing`: restored, or fitted on `texts` and stored.

    Args:
        thing: An embedder or extractor; returned as it is when it does not learn.
        role: `embedder` or `extractor`.
        fingerprint: What the index was built with; empty at first.
        store: Keeps the state.
        texts: The corpus.
        refit: Whether to fit again once the corpus has doubled.
    """
    if not hasattr(thing, "from_state"):
        return thing
    known = restore(thing, role, fingerprint, store)
    fittable = cast("Fittable", known)
    grown = refit and 0 < 2 * int(getattr(known, "fitted_on", 0)) <= len(texts)
    if texts and (not fittable.fitted or grown):
        fittable = cast("Fittable", thing).fit(texts)
    name = f"{role}:{cast('Any', fittable).fingerprint}"
    restored = known is not thing and fittable is known  # it is stored, then
    if fittable.fitted and not restored and store.fitted(name) is None:
        store.put_fitted(name, fittable.state())
    return cast("T", fittable)


def _unfitted(thing: object) -> bool:
    return hasattr(thing, "from_state") and not cast("Fittable", thing).fitted
