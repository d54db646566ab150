"""SMART's own abstractor: soft trees, learned by a graph network with memberships on nested levels per head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sire_core.papers.smart.communities import MergeLevel, entropy_partition, entropy_tree
from sire_core.papers.smart.encoding_tree import (
    EncodingTree,
    UndirectedGraph,
    decoding_information,
    mutual_information,
    nested_labels,
    normalized_mutual_information,
    repaired_labels,
    tree_of,
)
from sire_core.papers.smart.perspectives import shrunk, tree_information

if TYPE_CHECKING:
    from sire_core.extend import FloatArray, IntArray
    from sire_core.papers.smart.derive import Perspectives

_FLOOR = 0.5  # share of the best head's information that others are pushed above; empty ones share nothing
_SHARPEN = 0.01  # weight of the mean entropy of the finest memberships (eta)
_RATE = 0.003  # step size of Adam
_PATIENCE = 50  # epochs in a row without a lower loss after which training stops
_HIDDEN, _DIMENSION = 256, 128  # widths of both graph layers
_BLIND = 0.5  # share of the features that a head does not see, others for every head
_POSITIONS = 32  # coordinates of the vertices in the graph that are added to the features
_TEMPERATURE = 0.2  # of the softmax at the end; it starts at 1
_MIN_VERTICES = 4  # vertices with edges; below, there is nothing to abstract
_MAX_CLUSTERS = 512  # clusters of a level by default: memory grows with vertices times clusters
_FULL_BATCH = 50_000  # vertices
_MIN_DECREASE = 1e-4  # a loss that is lower by less has not become lower
_CHECK_EPOCHS = 10  # epochs between two looks at the hard trees
_MI_ROWS, _MI_COST = 8192, 1e9  # a sample of this many rows when the joint distribution costs more


def abstract_neural(
    graph: UndirectedGraph, features: FloatArray, settings: Perspectives, seed: int = 0
) -> tuple[EncodingTree, ...]:
    """Train a network on the graph and features `[n, p]`; harden each of its heads to an encoding tree."""
    connected = np.flatnonzero(graph.degrees() > 0)
    if len(connected) < _MIN_VERTICES:
        return (EncodingTree(graph.size),)
    return _polished(graph, train_trees(graph, features, connected, settings, seed), settings)


def _polished(
    graph: UndirectedGraph, trees: tuple[EncodingTree, ...], settings: Perspectives
) -> tuple[EncodingTree, ...]:
    """Grow trees by entropy from each head's finest clusters; edges inside other heads' clusters weigh less."""
    if not settings.polish or not all(tree.height for tree in trees):
        return trees
    groups = [tree.filled()[0] for tree in trees]
    one_level = [EncodingTree(graph.size, tree.filled()[-1:]) for tree in trees]  # what a head groups, on one level
    for _ in range(settings.polish):
        for number in range(len(trees)):
            seen = shrunk(graph, [*one_level[:number], *one_level[number + 1 :]])
            groups[number] = entropy_partition(MergeLevel.of(seen), groups[number])
            one_level[number] = EncodingTree(graph.size, (groups[number],))
    return tuple(entropy_tree(graph, settings.levels, labels) for labels in groups)


def level_sizes(vertices: int, levels: int) -> tuple[int, ...]:
    """Return the clusters of every level, the finest first: n^((L + 1 - m) / (L + 1)), at least 2 and at most 512."""
    shares = ((levels + 1 - m) / (levels + 1) for m in range(1, levels + 1))
    return tuple(max(2, min(_MAX_CLUSTERS, round(vertices**share))) for share in shares)


class _Problem(NamedTuple):
    """The graph as tensors."""

    adjacency: Tensor
    degrees: Tensor
    means: Tensor  # every row averages over the neighbors
    features: Tensor


def train_trees(
    graph: UndirectedGraph, features: FloatArray, vertices: IntArray, settings: Perspectives, seed: int
) -> tuple[EncodingTree, ...]:
    """Train and return the trees that are best once hardened."""
    generator = torch.Generator().manual_seed(seed)
    linked, rows = _connected_part(graph, features, vertices, seed)
    whole = _problem(linked, rows)
    problem = whole if linked.size <= _FULL_BATCH else _problem(*_sample(linked, rows, seed))
    model = SoftTrees(problem, settings, settings.sizes or level_sizes(len(vertices), settings.levels), generator)
    optimizer = torch.optim.Adam(model.weights, lr=_RATE)

    def harden(temperature: float) -> tuple[EncodingTree, ...]:
        with torch.no_grad():
            return tuple(_harden(head, vertices, graph.size) for head in model(whole, temperature))

    def step(temperature: float) -> float:
        optimizer.zero_grad()
        loss = _loss(problem, model(problem, temperature), settings, generator)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        optimizer.step()
        return loss.item()

    return _train(settings.epochs, step, harden, lambda trees: _hard_value(graph, trees, vertices, settings))


def _train(
    epochs: int,
    step: Callable[[float], float],
    harden: Callable[[float], tuple[EncodingTree, ...]],
    value: Callable[[tuple[EncodingTree, ...]], float],
) -> tuple[EncodingTree, ...]:
    """Step while the loss falls; return the best hard trees seen on the way."""
    best: tuple[float, tuple[EncodingTree, ...]] | None = None
    lowest, waited = np.inf, 0
    for epoch in range(epochs + 1):
        temperature = _TEMPERATURE ** (epoch / epochs)
        last = epoch == epochs or waited >= _PATIENCE
        if epoch % _CHECK_EPOCHS == 0 or last:
            trees = harden(temperature)
            tree_value = value(trees)
            best = (tree_value, trees) if best is None or tree_value > best[0] else best
        if last:
            break
        loss = step(temperature)
        lowest, waited = (loss, 0) if loss < lowest - _MIN_DECREASE else (lowest, waited + 1)
    assert best is not None
    return best[1]


def _connected_part(
    graph: UndirectedGraph, features: FloatArray, vertices: IntArray, seed: int
) -> tuple[UndirectedGraph, Tensor]:
    """Return the graph of the held vertices alone, and the features of each."""
    numbers = np.full(graph.size, -1, dtype=np.int64)
    numbers[vertices] = np.arange(len(vertices))
    linked = UndirectedGraph(len(vertices), numbers[graph.edges], graph.weights)
    texts = torch.nn.functional.normalize(torch.from_numpy(np.asarray(features[vertices], dtype=np.float32)))
    coordinates = torch.from_numpy(positions(linked, _POSITIONS, np.random.default_rng(seed)).copy())
    blocks = [
        block / block.square().sum(1).mean().sqrt().clamp_min(1e-6) for block in (texts, coordinates) if block.numel()
    ]
    rows = torch.cat(blocks, dim=1)
    return linked, rows * rows.shape[1] ** 0.5


def _sample(linked: UndirectedGraph, rows: Tensor, seed: int) -> tuple[UndirectedGraph, Tensor]:
    """Sample vertices with all their neighbors, as many as fit into a full batch, and the edges among them."""
    starts, targets, _ = linked.rows()
    chosen = np.zeros(linked.size, dtype=np.bool_)
    count = 0
    for vertex in np.random.default_rng(seed).permutation(linked.size).tolist():
        neighbours = targets[starts[vertex] : starts[vertex + 1]]
        count += int((~chosen[neighbours]).sum()) + int(not chosen[vertex])
        if count > _FULL_BATCH and chosen.any():
            break
        chosen[neighbours] = chosen[vertex] = True
    numbers = np.cumsum(chosen) - 1
    is_inside = chosen[linked.edges].all(axis=1)
    part = UndirectedGraph(int(chosen.sum()), numbers[linked.edges[is_inside]], linked.weights[is_inside])
    return part, rows[torch.from_numpy(chosen)]


def _problem(linked: UndirectedGraph, rows: Tensor) -> _Problem:
    edges, weights = torch.from_numpy(linked.edges), torch.from_numpy(linked.weights).to(torch.float32)
    adjacency = sparse_adjacency(linked.size, edges, weights)
    degrees = torch.from_numpy(linked.degrees()).to(torch.float32)
    values = adjacency.values() / degrees[adjacency.indices()[0]]
    means = torch.sparse_coo_tensor(adjacency.indices(), values, adjacency.shape, check_invariants=False).coalesce()
    return _Problem(adjacency, degrees, means, rows)


def _loss(problem: _Problem, heads: list[SoftTree], settings: Perspectives, generator: torch.Generator) -> Tensor:
    """Return what training minimizes (SMART)."""
    saved = torch.stack(
        [soft_decoding_information(problem.adjacency, problem.degrees, head.levels, head.parents) for head in heads]
    )
    if settings.loss == "se":
        main = -saved.mean()
    else:
        sums = problem.adjacency.values().sum()
        losses = [soft_modularity_loss(problem.adjacency, level, settings.mu) for h in heads for level in h.levels]
        main = torch.stack(losses).sum() / sums / len(heads)
    if not settings.info:
        return settings.diversity * _shared_information(heads, settings, generator)
    low = torch.relu(_FLOOR * saved.max().detach() - saved).sum()
    blurred = torch.stack([soft_entropy(head.levels[0]).mean() for head in heads]).mean()
    return main + settings.diversity * _shared_information(heads, settings, generator) + low + _SHARPEN * blurred


def _shared_information(heads: list[SoftTree], settings: Perspectives, generator: torch.Generator) -> Tensor:
    """Return the mean mutual information of two heads at the same level."""
    if len(heads) < 2:
        return torch.zeros(())
    values = []
    for one, two in combinations(heads, 2):
        for first, second in zip(one.levels, two.levels, strict=True):
            n, normalized = len(first), settings.information == "nmi"
            if n > _MI_ROWS and n * first.shape[1] * second.shape[1] > _MI_COST:
                rows = torch.randperm(n, generator=generator)[:_MI_ROWS]
                values.append(soft_mutual_information(first[rows], second[rows], normalized=normalized))
            else:
                values.append(soft_mutual_information(first, second, normalized=normalized))
    return torch.stack(values).mean()


def _harden(soft: SoftTree, vertices: IntArray, size: int) -> EncodingTree:
    best = [logits.argmax(1).numpy() for logits in soft.logits]
    return tree_of(repaired_labels(best) if soft.parents is None else nested_labels(best[0], best[1:]), vertices, size)


def _hard_value(
    graph: UndirectedGraph, trees: tuple[EncodingTree, ...], vertices: IntArray, settings: Perspectives
) -> float:
    """Return what hard trees save minus what they share; trees below the floor count against it as in the loss."""
    saved = np.array([decoding_information(graph, tree) for tree in trees])
    low = np.maximum(0.0, _FLOOR * saved.max() - saved).sum()
    mask = np.zeros(graph.size, dtype=np.bool_)
    mask[vertices] = True
    measure = normalized_mutual_information if settings.information == "nmi" else mutual_information
    if not settings.info:
        saved, low = np.zeros(1), 0.0
    shared = [tree_information(one, two, measure, mask) for one, two in combinations(trees, 2)]
    return float(saved.mean() - low - settings.diversity * (sum(shared) / max(1, len(shared))))


_TINY = 1e-12


def sparse_adjacency(size: int, edges: Tensor, weights: Tensor) -> Tensor:
    """Return the symmetric sparse matrix of edges int64 `[m, 2]` with weights `[m]`."""
    pairs = torch.cat([edges, edges.flip(1)]).T
    values = torch.cat([weights, weights])
    return torch.sparse_coo_tensor(pairs, values, (size, size), check_invariants=False).coalesce()


def soft_decoding_information(
    adjacency: Tensor, degrees: Tensor, levels: Sequence[Tensor], parents: Sequence[Tensor] | None = None
) -> Tensor:
    """Return D of a soft tree in bits, from memberships `[n, d_m]`, the finest first, and parents `[d_m, d_(m+1)]`."""
    total = degrees.sum()
    volumes = [level.T @ degrees for level in levels]
    saved = torch.zeros((), dtype=degrees.dtype)
    for m, level in enumerate(levels):
        inner = (level * torch.sparse.mm(adjacency, level)).sum(0)
        log_volumes = volumes[m].clamp_min(_TINY).log2()
        if m + 1 == len(levels):
            above = total.log2()
        else:
            share = parents[m] if parents is not None else _parent_shares(level, levels[m + 1], degrees)
            above = share @ volumes[m + 1].clamp_min(_TINY).log2()
        saved = saved + (inner / total * (above - log_volumes)).sum()
    return saved


def soft_modularity_loss(adjacency: Tensor, level: Tensor, balance: float | None = None) -> Tensor:
    """Return -Tr(Y'AY) + mu |Y'A1|^2 of one level, after equation (10) of SMART; less is better."""
    sums = torch.sparse.mm(adjacency, torch.ones((level.shape[0], 1), dtype=level.dtype)).squeeze(1)
    factor = 1 / sums.sum() if balance is None else balance
    loss: Tensor = factor * ((level.T @ sums) ** 2).sum() - (level * torch.sparse.mm(adjacency, level)).sum()
    return loss


def soft_mutual_information(first: Tensor, second: Tensor, *, normalized: bool = False) -> Tensor:
    """Return what two soft partitions `[n, a]` and `[n, b]` share, in bits, or normalized to 0 to 1; rows sum to 1."""
    joint = first.T @ second / len(first)
    one, two = first.mean(0), second.mean(0)
    ratio = joint.clamp_min(_TINY).log2() - one.clamp_min(_TINY).log2()[:, None] - two.clamp_min(_TINY).log2()[None]
    shared = (joint * ratio).sum()
    if not normalized:
        return shared
    return 2 * shared / (soft_entropy(one) + soft_entropy(two)).clamp_min(_TINY)


def soft_entropy(shares: Tensor) -> Tensor:
    """Return the entropy in bits of the last axis, whose entries sum to 1."""
    return -(shares * shares.clamp_min(_TINY).log2()).sum(-1)


def _parent_shares(level: Tensor, above: Tensor, degrees: Tensor) -> Tensor:
    joint = (level * degrees[:, None]).T @ above
    return joint / joint.sum(1, keepdim=True).clamp_min(_TINY)


_DIFFUSION_STEPS = 20


def positions(graph: UndirectedGraph, width: int, rng: np.random.Generator) -> FloatArray:
    """Return diffusion-map coordinates float32 `[n, at most width]` by subspace iteration, the slowest modes first."""
    from scipy.sparse import csr_array

    starts, targets, weights = graph.rows()
    roots = np.sqrt(graph.degrees())
    values = weights / (np.repeat(roots, np.diff(starts)) * roots[targets])
    walk = csr_array((values, targets, starts), shape=(graph.size, graph.size))
    steady = roots / np.linalg.norm(roots)
    basis = rng.standard_normal((graph.size, min(width, graph.size - 1)))
    for _ in range(_DIFFUSION_STEPS):
        basis -= np.outer(steady, steady @ basis)
        # Lazy steps: a mode that changes sign at every step is no neighborhood.
        basis = np.linalg.qr(basis + walk @ basis)[0]
    decay, turn = np.linalg.eigh(basis.T @ (walk @ basis))
    modes = (basis @ turn) / roots[:, None] * np.linalg.norm(roots)
    return np.asarray((modes * np.maximum(decay, 0.0))[:, ::-1], dtype=np.float32)


_KMEANS_PASSES = 5  # passes of k-means
_SHARPNESS = 5.0  # first memberships: with those of a plain mixture of Gaussians all clusters are nearly the same


class SoftTree(NamedTuple):
    """One head's soft tree."""

    levels: list[Tensor]  # memberships `[n, d_m]`, the finest first; rows sum to 1
    parents: list[Tensor] | None  # `[d_m, d_(m+1)]` per level but the highest; None for independent levels
    logits: list[Tensor]  # of the finest level and of the parents, or of independent levels; memberships may saturate


class SoftTrees:
    """Two graph layers shared by all heads (GraphSAGE with weighted means), then one chain of matrices per head.

    A head starts from clusters of the encoded vertices, found by a few passes of k-means in the part of the features
    that it sees: from random matrices training ends where all memberships are the same.
    """

    def __init__(
        self, problem: _Problem, settings: Perspectives, sizes: Sequence[int], generator: torch.Generator
    ) -> None:
        self._assign, self._nested, self._generator = settings.assign, settings.nest == "chain", generator
        first, second = (problem.features.shape[1], _HIDDEN), (_HIDDEN, _DIMENSION)
        self._encoder = [self._random_matrix(*shape) for shape in (first, first, second, second)]
        self._heads: list[list[Tensor]] = []
        self._masks: list[Tensor] = []
        self.weights = list(self._encoder)  # all parameters, in a fixed order
        with torch.no_grad():
            encoded = self._encode(problem)
        for _ in range(settings.kappa):
            mask = (torch.rand(encoded.shape[1], generator=self._generator) >= _BLIND).float()
            centers, logits = self._clusters(encoded * mask, sizes[0])
            head = [*logits]
            for _, size in pairwise(sizes):
                above, upper = self._clusters(centers, size)
                scores = centers @ upper[0] + upper[1]
                head.append(scores if self._nested else self._pooling(scores))
                centers = above
            self._masks.append(mask)
            self._heads.append([matrix.clone().requires_grad_() for matrix in head])
            self.weights += self._heads[-1]

    def __call__(self, problem: _Problem, temperature: float) -> list[SoftTree]:
        """Return the soft trees of all heads, also of other vertices than the heads started from."""
        encoded = self._encode(problem)
        return [
            self._tree(encoded * mask, head, temperature) for mask, head in zip(self._masks, self._heads, strict=True)
        ]

    def _encode(self, problem: _Problem) -> Tensor:
        self_one, near_one, own_two, near_two = self._encoder
        means, features = problem.means, problem.features
        inner = torch.relu(features @ self_one + torch.sparse.mm(means, features @ near_one))
        encoded = inner @ own_two + torch.sparse.mm(means, inner @ near_two)
        normal: Tensor = torch.nn.functional.layer_norm(encoded, encoded.shape[1:])
        return normal

    def _tree(self, encoded: Tensor, head: list[Tensor], temperature: float) -> SoftTree:
        logits = [encoded @ head[0] + head[1]]
        if not self._nested:
            for matrix in head[2:]:
                logits.append(logits[-1] @ matrix)
            return SoftTree([self._memberships(each / temperature) for each in logits], None, logits)
        levels = [self._memberships(logits[0] / temperature)]
        parents = [torch.softmax(matrix / temperature, dim=1) for matrix in head[2:]]
        for parent in parents:
            levels.append(levels[-1] @ parent)
        return SoftTree(levels, parents, logits + head[2:])

    def _memberships(self, logits: Tensor) -> Tensor:
        # The softmax of log-sigmoids is the sigmoids over their sum, also where all of them are nearly 0.
        is_sigmoid = self._assign == "sigmoid"
        return torch.softmax(torch.nn.functional.logsigmoid(logits) if is_sigmoid else logits, dim=1)

    def _clusters(self, points: Tensor, count: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return centers, and the matrix and offsets whose logits say how near a point is to each of them."""
        centers = points[torch.randperm(len(points), generator=self._generator)[:count]]
        if len(centers) < count:
            again = torch.randint(len(points), (count - len(centers),), generator=self._generator)
            centers = torch.cat([centers, points[again]])
        for _ in range(_KMEANS_PASSES):
            nearest = torch.cdist(points, centers).argmin(1)
            sizes = torch.bincount(nearest, minlength=count)
            sums = torch.zeros_like(centers).index_add_(0, nearest, points)
            centers = torch.where(sizes[:, None] > 0, sums / sizes.clamp_min(1)[:, None], centers)
        spread = torch.cdist(points, centers).min(1).values.square().mean().clamp_min(1e-6) / _SHARPNESS
        return centers, (centers.T / spread, -centers.square().sum(1) / (2 * spread))

    def _pooling(self, scores: Tensor) -> Tensor:
        """Average the logits of the clusters below each cluster."""
        belongs = torch.nn.functional.one_hot(scores.argmax(1), scores.shape[1]).float()
        average: Tensor = belongs / belongs.sum(0).clamp_min(1)
        return average

    def _random_matrix(self, rows: int, columns: int) -> Tensor:
        drawn: Tensor = torch.randn((rows, columns), generator=self._generator) / rows**0.5
        return drawn.requires_grad_()
