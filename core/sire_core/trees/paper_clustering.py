"""RAPTOR's soft clustering: UMAP, Gaussian mixtures chosen by BIC, globally and then locally."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["paper_clusters", "soft_labels"]

_BIC_SEED = 224
_MIXTURE_SEED = 0
_LOCAL_NEIGHBORS = 10
_DIMENSION = 10
"""Dimensions that UMAP keeps; one point more, or fewer, are one cluster."""
_THRESHOLD = 0.1
_MAX_COMPONENTS = 50
"""The largest mixture tried has one component less, and less than there are points."""


def soft_labels(posteriors: NDArray[np.float64], *, repair: bool = True) -> NDArray[np.bool_]:
    """Components that a point belongs to: those with a posterior above .1.

    Args:
        posteriors: `[n, components]`.
        repair: Give points without any such component their most probable one, the first of equals. The reference
            loses these points.

    Returns:
        Membership, `[n, components]`.
    """
    labels = np.asarray(posteriors > _THRESHOLD)
    if repair and posteriors.shape[1]:
        lost = np.flatnonzero(~labels.any(axis=1))
        labels[lost, posteriors[lost].argmax(axis=1)] = True
    return labels


def paper_clusters(
    vectors: NDArray[np.float32], *, rng: np.random.Generator, repair: bool = True
) -> list[NDArray[np.int64]]:
    """Cluster as the RAPTOR reference does, with the argmax repair and with a seed for UMAP.

    Args:
        vectors: `[n, d]`.
        rng: Seeds UMAP. The mixtures keep the reference's seeds (224 to choose, 0 to fit).
        repair: See `soft_labels`.

    Returns:
        Members of each cluster in ascending order, clusters as they were found; single members and repetitions may
        occur, and without repair a row may be missing.

    Raises:
        ConfigurationError: umap-learn is not installed.
    """
    n = len(vectors)
    # Equal rows leave UMAP nothing but noise to spread.
    if n <= _DIMENSION + 1 or (vectors == vectors[0]).all():
        return [np.arange(n, dtype=np.int64)] if n else []
    clusters = []
    neighbors = int(np.sqrt(n - 1))
    for group in _mixture(_reduce(vectors, neighbors, rng), repair):
        if len(group) <= _DIMENSION + 1 or (vectors[group] == vectors[group[0]]).all():
            clusters.append(group)
            continue
        points = _reduce(vectors[group], _LOCAL_NEIGHBORS, rng)
        clusters += [group[part] for part in _mixture(points, repair)]
    return clusters


def _reduce(vectors: NDArray[np.float32], neighbors: int, rng: np.random.Generator) -> NDArray[np.float64]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It warns that its neural variant lacks TensorFlow.
            from umap import UMAP
    except ImportError as error:
        raise ConfigurationError('clustering="paper" needs umap-learn: pip install "sire-rag[paper]"') from error
    n = len(vectors)
    model = UMAP(
        n_neighbors=max(2, min(neighbors, n - 1)),
        n_components=min(_DIMENSION, n - 2),
        metric="cosine",
        random_state=int(rng.integers(2**31)),
        n_jobs=1,  # A seeded UMAP runs on one thread anyway, and warns unless it is set.
    )
    with warnings.catch_warnings():
        # Disconnected or duplicate points make UMAP warn; the result is used as it is, like the reference's.
        warnings.simplefilter("ignore")
        return np.asarray(model.fit_transform(vectors), dtype=np.float64)


def _mixture(points: NDArray[np.float64], repair: bool) -> list[NDArray[np.int64]]:
    """Members of each component of the mixture with the least BIC, empty components left out."""
    from threadpoolctl import threadpool_limits

    # One thread: sums of the k-means start then have one order, and these matrices are too small to share anyway.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # Fits that stop at the iteration limit, or start from fewer distinct points than components, are legitimate.
        warnings.simplefilter("ignore")
        candidates = range(1, max(2, min(_MAX_COMPONENTS, len(points))))
        best = min(candidates, key=lambda count: float(_fit(points, count, _BIC_SEED).bic(points)))
        posteriors = _fit(points, best, _MIXTURE_SEED).predict_proba(points)
    labels = soft_labels(posteriors, repair=repair)
    return [np.flatnonzero(column).astype(np.int64) for column in labels.T if column.any()]


def _fit(points: NDArray[np.float64], components: int, seed: int) -> Any:
    from sklearn.mixture import GaussianMixture

    try:
        return GaussianMixture(n_components=components, random_state=seed).fit(points)
    except ValueError:
        # A component collapsed onto equal points. A floor under its variance keeps it usable.
        floor = 1e-3 * float(points.var() or 1.0)
        return GaussianMixture(n_components=components, random_state=seed, covariance_type="diag", reg_covar=floor).fit(
            points
        )
