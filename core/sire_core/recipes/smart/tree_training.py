"""Training of soft trees and choice of the best hard ones (SMART)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sire_core.recipes.smart.encoding_tree import (
    decoding_information,
    nested_labels,
    one_dimensional_entropy,
    repaired_labels,
    tree_of,
)
from sire_core.recipes.smart.finding import tree_information
from sire_core.recipes.smart.partitions import mutual_information, normalized_mutual_information
from sire_core.recipes.smart.soft_trees import (
    SoftTree,
    SoftTrees,
    positions,
    soft_decoding_information,
    soft_entropy,
    soft_modularity_loss,
    soft_mutual_information,
    sparse_adjacency,
)
from sire_core.recipes.smart.undirected import UndirectedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.recipes.smart.encoding_tree import EncodingTree
    from sire_core.recipes.smart.tree_settings import NeuralSettings

__all__ = ["train_trees"]

_FULL_BATCH = 50_000  # vertices
_LESS = 1e-4  # a loss that is lower by less has not become lower
_EVERY = 10  # epochs between two looks at the hard trees
_MI_ROWS, _MI_COST = 8192, 1e9  # a sample of this many rows when the joint distribution costs more


class _Problem(NamedTuple):
    """The graph as tensors."""

    adjacency: Tensor
    degrees: Tensor
    means: Tensor  # every row averages over the neighbors
    modular: Tensor  # what modularity is measured on
    features: Tensor
    scale: float  # decoding information is divided by this

    def run(self, model: SoftTrees, temperature: float) -> list[SoftTree]:
        return model(self.means, self.features, temperature)


def train_trees(
    graph: UndirectedGraph,
    features: NDArray[np.float32],
    held: NDArray[np.int64],
    *,
    kappa: int,
    sizes: tuple[int, ...],
    settings: NeuralSettings,
    seed: int,
) -> tuple[EncodingTree, ...]:
    """Train and keep the trees that are best once hardened.

    Up to 50,000 vertices every step sees the whole graph; of larger ones, a sample of vertices with their neighbors is
    trained on, and the trained network is applied to all.

    Args:
        graph: The graph.
        features: `[n, p]`.
        held: Vertices with edges, ascending; at least one.
        kappa: Heads.
        sizes: Clusters of every level, the finest first.
        settings: How to train.
        seed: Of parameters, dropout and samples.
    """
    generator = torch.Generator().manual_seed(seed)
    linked, rows = _linked(graph, features, held, settings.positions, seed)
    whole = _problem(linked, rows, settings)
    problem = whole if linked.size <= _FULL_BATCH else _problem(*_sample(linked, rows, seed), settings)
    model = SoftTrees(rows.shape[1], (settings.hidden, settings.dimension), assign=settings.assign, generator=generator)
    nested = settings.nest == "chain"
    model.add_heads(problem.means, problem.features, kappa, sizes, blind=settings.blind, nested=nested)
    optimizer = torch.optim.Adam(model.weights, lr=settings.rate)

    def harden(temperature: float) -> tuple[EncodingTree, ...]:
        with torch.no_grad():
            return tuple(_harden(head, held, graph.size) for head in whole.run(model, temperature))

    def step(temperature: float) -> float:
        optimizer.zero_grad()
        loss = _loss(problem, problem.run(model, temperature), settings, generator)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        optimizer.step()
        return loss.item()

    return _best(settings, step, harden, lambda trees: _value(graph, trees, held, settings))


def _best(
    settings: NeuralSettings,
    step: Callable[[float], float],
    harden: Callable[[float], tuple[EncodingTree, ...]],
    value: Callable[[tuple[EncodingTree, ...]], float],
) -> tuple[EncodingTree, ...]:
    """Step while the loss falls; of the trees looked at on the way, the most valuable."""
    best: tuple[float, tuple[EncodingTree, ...]] | None = None
    lowest, waited = np.inf, 0
    for epoch in range(settings.epochs + 1):
        temperature = settings.temperature ** (epoch / settings.epochs)
        last = epoch == settings.epochs or waited >= settings.patience
        if epoch % _EVERY == 0 or last:
            trees = harden(temperature)
            worth = value(trees)
            best = (worth, trees) if best is None or worth > best[0] else best
        if last:
            break
        loss = step(temperature)
        lowest, waited = (loss, 0) if loss < lowest - _LESS else (lowest, waited + 1)
    assert best is not None
    return best[1]


def _linked(
    graph: UndirectedGraph, features: NDArray[np.float32], held: NDArray[np.int64], width: int, seed: int
) -> tuple[UndirectedGraph, Tensor]:
    """The graph of the held vertices alone, and the features of each."""
    place = np.full(graph.size, -1, dtype=np.int64)
    place[held] = np.arange(len(held))
    linked = UndirectedGraph(len(held), place[graph.edges], graph.weights)
    texts = torch.nn.functional.normalize(torch.from_numpy(np.asarray(features[held], dtype=np.float32)))
    where = torch.from_numpy(positions(linked, width, np.random.default_rng(seed)).copy())
    blocks = [block / block.square().sum(1).mean().sqrt().clamp_min(1e-6) for block in (texts, where) if block.numel()]
    rows = torch.cat(blocks, dim=1)
    return linked, rows * rows.shape[1] ** 0.5


def _sample(linked: UndirectedGraph, rows: Tensor, seed: int) -> tuple[UndirectedGraph, Tensor]:
    """Random vertices and all their neighbors, as many as fit into a full batch, and the edges among them."""
    starts, targets, _ = linked.rows()
    chosen = np.zeros(linked.size, dtype=np.bool_)
    count = 0
    for vertex in np.random.default_rng(seed).permutation(linked.size).tolist():
        near = targets[starts[vertex] : starts[vertex + 1]]
        count += int((~chosen[near]).sum()) + int(not chosen[vertex])
        if count > _FULL_BATCH and chosen.any():
            break
        chosen[near] = chosen[vertex] = True
    place = np.cumsum(chosen) - 1
    kept = chosen[linked.edges].all(axis=1)
    part = UndirectedGraph(int(chosen.sum()), place[linked.edges[kept]], linked.weights[kept])
    return part, rows[torch.from_numpy(chosen)]


def _problem(linked: UndirectedGraph, rows: Tensor, settings: NeuralSettings) -> _Problem:
    edges, weights = torch.from_numpy(linked.edges), torch.from_numpy(linked.weights).to(torch.float32)
    adjacency = sparse_adjacency(linked.size, edges, weights)
    degrees = torch.from_numpy(linked.degrees()).to(torch.float32)
    values = adjacency.values() / degrees[adjacency.indices()[0]]
    means = torch.sparse_coo_tensor(adjacency.indices(), values, adjacency.shape, check_invariants=False).coalesce()
    modular = adjacency
    if settings.normalized_adjacency:
        modular = sparse_adjacency(linked.size, edges, weights, normalized=True)
    scale = one_dimensional_entropy(linked) if settings.normalize else 1.0
    return _Problem(adjacency, degrees, means, modular, rows, scale)


def _loss(problem: _Problem, heads: list[SoftTree], settings: NeuralSettings, generator: torch.Generator) -> Tensor:
    """What training makes small (SMART)."""
    saved = (
        torch.stack(
            [soft_decoding_information(problem.adjacency, problem.degrees, head.levels, head.parents) for head in heads]
        )
        / problem.scale
    )
    if settings.loss == "se":
        main = -saved.mean()
    else:
        sums = problem.modular.values().sum()
        losses = [soft_modularity_loss(problem.modular, level, settings.balance) for h in heads for level in h.levels]
        main = torch.stack(losses).sum() / sums / len(heads)
    if not settings.informative:
        return settings.diversity * _shared(heads, settings, generator)
    low = torch.relu(settings.floor * saved.max().detach() - saved).sum()
    blurred = torch.stack([soft_entropy(head.levels[0]).mean() for head in heads]).mean()
    return main + settings.diversity * _shared(heads, settings, generator) + low + settings.sharpen * blurred


def _shared(heads: list[SoftTree], settings: NeuralSettings, generator: torch.Generator) -> Tensor:
    """Mean mutual information of two heads at the same level."""
    if len(heads) < 2:
        return torch.zeros(())
    found = []
    for one, two in combinations(heads, 2):
        for first, second in zip(one.levels, two.levels, strict=True):
            n, normalized = len(first), settings.information == "nmi"
            if n > _MI_ROWS and n * first.shape[1] * second.shape[1] > _MI_COST:
                rows = torch.randperm(n, generator=generator)[:_MI_ROWS]
                found.append(soft_mutual_information(first[rows], second[rows], normalized=normalized))
            else:
                found.append(soft_mutual_information(first, second, normalized=normalized))
    return torch.stack(found).mean()


def _harden(soft: SoftTree, held: NDArray[np.int64], size: int) -> EncodingTree:
    levels = [level.argmax(1).numpy() for level in soft.levels]
    if soft.parents is None:
        return tree_of(repaired_labels(levels), held, size)
    return tree_of(nested_labels(levels[0], [parent.argmax(1).numpy() for parent in soft.parents]), held, size)


def _value(
    graph: UndirectedGraph, trees: tuple[EncodingTree, ...], held: NDArray[np.int64], settings: NeuralSettings
) -> float:
    """What hard trees say less what they share; trees below the floor count against it as in the loss."""
    scale = one_dimensional_entropy(graph) if settings.normalize else 1.0
    saved = np.array([decoding_information(graph, tree) for tree in trees]) / scale
    low = np.maximum(0.0, settings.floor * saved.max() - saved).sum()
    mask = np.zeros(graph.size, dtype=np.bool_)
    mask[held] = True
    measure = normalized_mutual_information if settings.information == "nmi" else mutual_information
    if not settings.informative:
        saved, low = np.zeros(1), 0.0
    shared = [tree_information(one, two, measure, mask) for one, two in combinations(trees, 2)]
    return float(saved.mean() - low - settings.diversity * (sum(shared) / max(1, len(shared))))
