"""Training of chain scorers: the light one over frozen vectors, or the paper's with a text encoder (IIER, 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.errors import ConfigurationError, CorpusError
from sire_core.extras import need_torch
from sire_core.progress import ProgressLike, progress_of
from sire_core.recipes.iier.derive import InteractionGraph
from sire_core.recipes.iier.examples import (
    LABELS,
    LOSSES,
    known_questions,
    make_examples,
    match_rate,
    text_steps,
    without_shared_evidence,
)
from sire_core.recipes.iier.neural import EDGE_FEATURES, PAIR_FEATURES, NeuralScorer, scorer_digest, scorer_of
from sire_core.recipes.iier.rank import EvidenceChains
from sire_core.recipes.iier.scorers import HeuristicScorer, RandomScorer
from sire_core.settings import Component

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sire_core.corpus.benchmarks import Question
    from sire_core.recipes.iier.examples import KnownQuestion
    from sire_core.recipes.iier.scorers import ChainScorer
    from sire_core.search.snapshot import SearchSnapshot
    from sire_core.search.view import PoolView

_START = {"question": 0.5, "chain": 0.2, "newly_covered": 0.2, "structural": 0.05, "similarity": 0.05, "keywords": 0.1}
FIRST_WEIGHTS = tuple(_START.get(name, 0.0) for name in (*PAIR_FEATURES, *EDGE_FEATURES))
"""Initial weights of the light scorer. Not those of `HeuristicScorer`: its large weight of shared keywords leaves
little to learn (3 points less of the evidence in cross-validation)."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The paper's scorer: one text encoder for question, path and passage, trained with the MLPs over its vectors.

    Attributes:
        folder: A folder of transformers or sentence-transformers, or a name that transformers knows (the paper has
            roberta-base).
        tokens: Longest text; a path keeps its last tokens.
        candidates: Candidates of a step at most that are learned from.
        rate: Learning rate of the encoder; that of the MLPs is the configuration's.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    folder: str
    tokens: int = 512
    candidates: int = 32
    rate: float = 2e-5

    def __post_init__(self) -> None:
        if not self.folder or self.tokens < 8 or self.candidates < 2 or self.rate <= 0:
            raise ConfigurationError(
                "An encoder has a name or a folder, at least 8 tokens and 2 candidates, and a positive rate."
            )


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a scorer is trained.

    Attributes:
        labels: `all_shortest`, or `one_path` as in the paper.
        loss: `listwise` or `bce`.
        max_hops: Pairs of gold passages further apart teach nothing, chosen by cross-validation; None as in the paper:
            all that a path joins do.
        max_length: Passages of a chain at most, when the match rate is measured.
        validation: Share of the questions whose match rate decides when to stop.
        epochs: Passes over the decisions at most.
        patience: Passes without a better match rate after which training stops.
        batch: Decisions per step.
        rate: Learning rate of AdamW.
        hold: Weight of the squared distance from the heuristic that training starts as; not of an encoder.
        hidden: Width of the scoring MLP; that of an encoder's is its own.
        seed: Of the split, the first weights and the order.
        encoder: Train the paper's scorer with this encoder; None trains the light one over the index's vectors.

    Raises:
        ConfigurationError: A value makes no sense.
    """

    labels: str = "all_shortest"
    loss: str = "listwise"
    max_hops: int | None = 2
    max_length: int = 5
    validation: float = 0.2
    epochs: int = 40
    patience: int = 10
    batch: int = 64
    rate: float = 1e-3
    hold: float = 1e-3
    hidden: int = 32
    seed: int = 0
    encoder: EncoderConfig | None = None

    def __post_init__(self) -> None:
        for name, known in (("labels", LABELS), ("loss", LOSSES)):
            if getattr(self, name) not in known:
                raise ConfigurationError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}.")
        hops = 1 if self.max_hops is None else self.max_hops
        if min(self.epochs, self.patience, self.batch, self.hidden, hops) < 1 or self.max_length < 2:
            raise ConfigurationError(
                "epochs, patience, batch, hidden and max_hops must be at least 1, max_length at least 2."
            )
        if not 0 < self.validation < 1 or self.rate <= 0 or self.hold < 0 or self.seed < 0:
            raise ConfigurationError("validation lies between 0 and 1, rate is positive, hold and seed at least 0.")


@dataclass(frozen=True, slots=True)
class TrainedScorer:
    """A trained scorer.

    Attributes:
        weights: See `NeuralScorer` and `EncoderScorer`.
        card: Data, settings and metrics of the training; `write_checkpoint` adds format and digest.
    """

    weights: Mapping[str, NDArray[np.float32]]
    card: Mapping[str, Any]

    @property
    def scorer(self) -> ChainScorer:
        """The scorer of weights and card."""
        return scorer_of(self.weights, {**self.card, "digest": scorer_digest(self.weights, self.card)})


@dataclass(frozen=True, slots=True)
class ChainQuestions:
    """Questions over a pool, prepared for training.

    Attributes:
        view: The pool.
        training: Questions to learn from.
        held_out: Questions to measure on.
        left_out: Number of training questions dropped because a held-out question has one of their gold passages.
    """

    view: PoolView
    training: tuple[KnownQuestion, ...]
    held_out: tuple[KnownQuestion, ...] = ()
    left_out: int = 0


def training_settings(*, with_graph: bool) -> tuple[str, ...]:
    """Settings of `iier` that training depends on; those of the graph only if the graph is built for training."""
    seeds = ("max_length", "seed_match", "fallback_seeds", "similar_seeds")
    return (*seeds, *(Component(InteractionGraph).fields() if with_graph else ()))


async def prepare_questions(
    snapshot: SearchSnapshot, training: Sequence[Question], held_out: Sequence[Question] = ()
) -> ChainQuestions:
    """Find keywords, seeds and gold passages of questions that name gold documents."""
    ranker = snapshot.recipe.ranker
    if not isinstance(ranker, EvidenceChains):
        raise ConfigurationError(f"The recipe {snapshot.recipe.name} has no chains; index with --recipe iier.")
    known = await known_questions(snapshot.view, training, ranker)
    known_held_out = await known_questions(snapshot.view, held_out, ranker)
    training_questions = without_shared_evidence(known, known_held_out)
    return ChainQuestions(snapshot.view, training_questions, known_held_out, len(known) - len(training_questions))


async def measure_scorer(
    trained: TrainedScorer, view: PoolView, questions: Sequence[KnownQuestion]
) -> dict[str, float]:
    """Match rates of a trained scorer (`neural`), the heuristic and the random one, in percent."""
    config = trained.card["config"]
    scorers = {
        "neural": trained.scorer,
        "heuristic": HeuristicScorer(),
        "random": RandomScorer(config["seed"]),
    }
    return {
        name: round(await match_rate(view, questions, scorer, config["max_length"]), 2)
        for name, scorer in scorers.items()
    }


async def train_scorer(
    view: PoolView,
    questions: Sequence[KnownQuestion],
    config: TrainingConfig | None = None,
    data: Mapping[str, Any] | None = None,
    progress: ProgressLike = None,
) -> TrainedScorer:
    """Train on shortest paths between gold passages; keep the weights with the best validation match rate."""
    config = config or TrainingConfig()
    need_torch("Training")
    learn, check = _split(questions, config)
    say = progress_of(progress)
    if config.encoder is None:
        training = _light(view, learn, config)
    else:
        training = _encoder(view, learn, config, config.encoder, partial(say, "steps"))
    best: tuple[float, int, Mapping[str, NDArray[np.float32]]] = (-1.0, 0, {})
    for epoch, (scorer, weights) in enumerate(training.passes):
        rate = await match_rate(view, check, scorer, config.max_length)
        if rate > best[0]:
            best = rate, epoch, weights()
        say("epochs", epoch, config.epochs)
        if epoch - best[1] >= config.patience:
            break
    card = training.card
    rates = {"neural": best[0]}
    for name, scorer in (("heuristic", HeuristicScorer()), ("random", RandomScorer(config.seed))):
        rates[name] = await match_rate(view, check, scorer, config.max_length)
    card["data"] = {
        **(data or {}),
        "questions": len(learn),
        "validation_questions": len(check),
        **training.counts,
    }
    card["metrics"] = {"epoch": best[1], "validation_match_rate": {name: round(r, 2) for name, r in rates.items()}}
    return TrainedScorer(best[2], card)


@dataclass(frozen=True, slots=True)
class _Passes:
    """A scorer before the first epoch and after each, with a function that copies its weights."""

    card: dict[str, Any]
    counts: Mapping[str, int]
    passes: Iterator[tuple[ChainScorer, Callable[[], Mapping[str, NDArray[np.float32]]]]]


def _light(view: PoolView, learn: Sequence[KnownQuestion], config: TrainingConfig) -> _Passes:
    from sire_core.recipes.iier.networks import train_epochs

    examples = make_examples(view, learn, config.labels, config.max_hops)
    card = {
        "kind": "light",
        "pair_features": list(PAIR_FEATURES),
        "edge_features": list(EDGE_FEATURES),
        "embedder": view.embedder_fingerprint,
        "dimension": view.matrix.shape[1],
        "config": asdict(config),
    }
    passes = train_epochs(
        (examples.pair, examples.edge),
        examples.positive,
        examples.owners,
        FIRST_WEIGHTS,
        config,
    )
    counts = _counts(examples.decisions, len(examples.owners), examples.unreachable)
    return _Passes(card, counts, ((NeuralScorer(weights, card), partial(dict, weights)) for weights in passes))


def _encoder(
    view: PoolView,
    learn: Sequence[KnownQuestion],
    config: TrainingConfig,
    encoder: EncoderConfig,
    progress: Callable[[int, int], None],
) -> _Passes:
    from sire_core.recipes.iier.networks import EncoderScorer, train_encoder
    from sire_core.recipes.iier.neural import EncoderChainScorer

    rng = np.random.default_rng([config.seed, 2])
    steps, unreachable = text_steps(view, learn, config.labels, config.max_hops, encoder.candidates, rng)
    model = EncoderScorer.from_folder(encoder.folder, encoder.tokens, config.seed)
    card = {"kind": "encoder", "encoder": model.about(), "config": asdict(config)}
    passes = train_encoder(model, steps, config, encoder.rate, progress)
    counts = _counts(len(steps), sum(len(step.candidates) for step in steps), unreachable)
    return _Passes(card, counts, ((EncoderChainScorer(scorer, {}), scorer.arrays) for scorer in passes))


def _counts(decisions: int, candidates: int, unreachable: int) -> dict[str, int]:
    return {"decisions": decisions, "candidates": candidates, "pairs_without_path": unreachable}


def _split(
    questions: Sequence[KnownQuestion], config: TrainingConfig
) -> tuple[list[KnownQuestion], list[KnownQuestion]]:
    """Split questions into those for training and those for early stopping."""
    if len(questions) < 2:
        raise CorpusError(f"A scorer needs at least two questions with gold passages, not {len(questions)}.")
    order = np.random.default_rng(config.seed).permutation(len(questions))
    n_validation = max(1, round(config.validation * len(questions)))
    chosen = set(order[: min(n_validation, len(questions) - 1)].tolist())
    learn = [known for number, known in enumerate(questions) if number not in chosen]
    return learn, [known for number, known in enumerate(questions) if number in chosen]
