"""Training the scorer of evidence chains over frozen vectors (IIER section 3.2; ALGORITHMS 3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.search.chain_features import EDGE_FEATURES, PAIR_FEATURES
from sire_core.search.chain_scorers import HeuristicScorer, RandomScorer
from sire_core.search.neural_scorer import NeuralScorer
from sire_core.training.examples import Examples, make_examples
from sire_core.training.labels import LABELS
from sire_core.training.loss import LOSSES, step_loss
from sire_core.training.questions import match_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.protocols import Progress
    from sire_core.search.view import PoolView
    from sire_core.training.questions import KnownQuestion

__all__ = ["TrainedScorer", "TrainingConfig", "need_torch", "train_scorer"]


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a scorer is trained.

    Attributes:
        labels: `all_shortest`, or `one_path` as in the paper.
        loss: `listwise` or `bce`.
        max_hops: Pairs of gold passages further apart teach nothing; chosen by cross-validation.
        max_length: Passages of a chain at most, when the match rate is measured.
        validation: Share of the questions whose match rate decides when to stop.
        epochs: Passes over the decisions at most.
        patience: Passes without a better match rate after which training stops.
        batch: Decisions per step.
        rate: Learning rate of AdamW.
        hold: Weight of the squared distance from the heuristic that training starts as.
        hidden: Width of the scoring MLP.
        seed: Of the split, the first weights and the order.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    labels: str = "all_shortest"
    loss: str = "listwise"
    max_hops: int = 2
    max_length: int = 5
    validation: float = 0.2
    epochs: int = 40
    patience: int = 10
    batch: int = 64
    rate: float = 1e-3
    hold: float = 1e-3
    hidden: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("labels", LABELS), ("loss", LOSSES)):
            if getattr(self, name) not in known:
                raise ConfigurationError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}.")
        if min(self.epochs, self.patience, self.batch, self.hidden, self.max_hops) < 1 or self.max_length < 2:
            raise ConfigurationError(
                "epochs, patience, batch, hidden and max_hops must be at least 1, max_length at least 2."
            )
        if not 0 < self.validation < 1 or self.rate <= 0 or self.hold < 0 or self.seed < 0:
            raise ConfigurationError("validation lies between 0 and 1, rate is positive, hold and seed at least 0.")


@dataclass(frozen=True, slots=True)
class TrainedScorer:
    """What training made.

    Attributes:
        weights: See `NeuralScorer`.
        card: Says how they came about; `write_checkpoint` adds format and digest.
    """

    weights: Mapping[str, NDArray[np.float32]]
    card: Mapping[str, Any]

    @property
    def scorer(self) -> NeuralScorer:
        """Ready to walk with."""
        return NeuralScorer(self.weights, self.card)


async def train_scorer(
    view: PoolView,
    questions: Sequence[KnownQuestion],
    config: TrainingConfig | None = None,
    data: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> TrainedScorer:
    """Train on shortest paths between gold passages, keep the weights of the best match rate on held-back questions.

    Args:
        view: A pool with an `InteractionGraph`.
        questions: With their evidence.
        config: How.
        data: What the card says of the data.
        progress: Called as `progress("epochs", done, total)`.

    Raises:
        ConfigurationError: torch is missing.
        CorpusError: Too few questions, or none to learn from.
    """
    config = config or TrainingConfig()
    need_torch()
    learn, check = _split(questions, config)
    examples = make_examples(view, learn, config.labels, config.max_hops)
    card = {
        "kind": "light",
        "pair_features": list(PAIR_FEATURES),
        "edge_features": list(EDGE_FEATURES),
        "embedder": view.embedder_fingerprint,
        "dimension": view.matrix.shape[1],
        "config": asdict(config),
    }
    best: tuple[float, int, Mapping[str, NDArray[np.float32]]] = (-1.0, 0, {})
    for epoch, weights in enumerate(_epochs(examples, config)):
        rate = await match_rate(view, check, NeuralScorer(weights, card), config.max_length)
        if rate > best[0]:
            best = rate, epoch, weights
        if progress is not None:
            progress("epochs", epoch, config.epochs)
        if epoch - best[1] >= config.patience:
            break
    rates = {"neural": best[0]}
    for name, scorer in (("heuristic", HeuristicScorer()), ("random", RandomScorer(config.seed))):
        rates[name] = await match_rate(view, check, scorer, config.max_length)
    card["data"] = {
        **(data or {}),
        "questions": len(learn),
        "validation_questions": len(check),
        "decisions": examples.decisions,
        "candidates": len(examples.owners),
        "pairs_without_path": examples.unreachable,
    }
    card["metrics"] = {"epoch": best[1], "validation_match_rate": {name: round(r, 2) for name, r in rates.items()}}
    return TrainedScorer(best[2], card)


def _split(
    questions: Sequence[KnownQuestion], config: TrainingConfig
) -> tuple[list[KnownQuestion], list[KnownQuestion]]:
    """Questions to learn from and to stop by, both in their order."""
    if len(questions) < 2:
        raise CorpusError(f"A scorer needs at least two questions with gold passages, not {len(questions)}.")
    order = np.random.default_rng(config.seed).permutation(len(questions))
    held = max(1, round(config.validation * len(questions)))
    chosen = set(order[: min(held, len(questions) - 1)].tolist())
    learn = [known for number, known in enumerate(questions) if number not in chosen]
    return learn, [known for number, known in enumerate(questions) if number in chosen]


def _epochs(examples: Examples, config: TrainingConfig) -> Iterator[Mapping[str, NDArray[np.float32]]]:
    """The weights before the first pass, and after each."""
    import torch

    from sire_core.training.model import LightScorer

    with _deterministic(config.seed):
        model = LightScorer(config.hidden)
    start = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate, weight_decay=0.0)
    rng = np.random.default_rng([config.seed, 1])
    bounds = np.searchsorted(examples.owners, np.arange(examples.decisions + 1))
    yield model.arrays()
    for _ in range(config.epochs):
        with _deterministic(config.seed):
            order = rng.permutation(examples.decisions)
            for first in range(0, len(order), config.batch):
                chosen = order[first : first + config.batch]
                rows = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in chosen])
                owners = np.repeat(np.arange(len(chosen)), bounds[chosen + 1] - bounds[chosen])
                logits = model(torch.from_numpy(examples.pair[rows]), torch.from_numpy(examples.edge[rows]))
                right = torch.from_numpy(examples.positive[rows].astype(np.float32))
                loss = step_loss(logits, right, torch.from_numpy(owners), len(chosen), config.loss)
                for parameter, first_value in zip(model.parameters(), start, strict=True):
                    loss = loss + config.hold * ((parameter - first_value) ** 2).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        yield model.arrays()


@contextmanager
def _deterministic(seed: int) -> Iterator[None]:
    """One thread and a seed while the block runs; torch's own are as before when it ends."""
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def need_torch() -> None:
    """Say early what training needs.

    Raises:
        ConfigurationError: torch is missing.
    """
    try:
        import torch  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigurationError('Training needs torch: pip install "sire-rag[torch]"') from error
