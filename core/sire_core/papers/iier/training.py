"""Training of chain scorers: the light one over frozen vectors, or the paper's with a text encoder (IIER, 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sire_core.extend import (
    Component,
    ConfigurationError,
    CorpusError,
    KnownSimilarities,
    ProgressLike,
    need_torch,
    progress_of,
)
from sire_core.papers.iier.chain_graph import MAX_KEYWORDS, ChainGraph, GoldNodes, KeywordFinder, PassageKeywords
from sire_core.papers.iier.derive import InteractionGraph
from sire_core.papers.iier.neural import (
    EDGE_FEATURES,
    PAIR_FEATURES,
    EncoderChainScorer,
    NeuralScorer,
    edge_features,
    pair_features,
    scorer_digest,
    scorer_of,
    title_keywords,
)
from sire_core.papers.iier.rank import EvidenceChains, find_seeds, frontier, walk_chains
from sire_core.papers.iier.scorers import ChainQuestion, ChainScorer, HeuristicScorer, RandomScorer
from sire_core.papers.iier.training_data import Decision, EncoderConfig, Examples, TextStep, TrainingConfig, path_labels

if TYPE_CHECKING:
    from sire_core.extend import BoolArray, FloatArray, IntArray, PoolView, Question, SearchSnapshot, View

_START = {"question": 0.5, "chain": 0.2, "newly_covered": 0.2, "structural": 0.05, "similarity": 0.05, "keywords": 0.1}
FIRST_WEIGHTS = tuple(_START.get(name, 0.0) for name in (*PAIR_FEATURES, *EDGE_FEATURES))
"""Initial weights of the light scorer. Not those of `HeuristicScorer`: its large weight of shared keywords leaves
little to learn (3 points less of the evidence in cross-validation)."""


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question with its gold passages."""

    question: ChainQuestion  # the question with its features
    seeds: Sequence[int]  # first nodes of its chains
    evidence: tuple[int, ...]  # nodes of its gold passages


async def known_questions(
    view: PoolView, questions: Sequence[Question], ranker: EvidenceChains
) -> tuple[KnownQuestion, ...]:
    """Prepare questions with gold documents: keywords by rules, the most similar passage of each document."""
    graph = ChainGraph.of(view)
    finder = KeywordFinder(graph, PassageKeywords(view, graph.positions), None, ranker.seed_match == "strict")
    gold = GoldNodes.of(view, graph)
    result = []
    for question in questions:
        if not question.supporting:
            continue
        vector = await view.embed_query(question.question)
        of_nodes = graph.vectors @ vector
        cosines = KnownSimilarities(of_nodes)
        keywords = finder.keywords(question.question)[:MAX_KEYWORDS]
        seeds = find_seeds(keywords, finder, cosines, None, ranker.fallback_seeds, ranker.similar_seeds)
        evidence = [max(group, key=lambda node: (of_nodes[node], -node)) for group in gold.groups(question) if group]
        features = ChainQuestion(question.question, vector, cosines, seeds.query_keywords, seeds.coverage)
        result.append(KnownQuestion(features, seeds.nodes, tuple(dict.fromkeys(evidence))))
    return tuple(result)


async def match_rate(
    view: PoolView, questions: Sequence[KnownQuestion], scorer: ChainScorer, max_length: int = 5
) -> float:
    """Share of gold passages on chains, a mean over questions, 0-100; 0 without questions."""
    graph = ChainGraph.of(view)
    rates = []
    for question in questions:
        chains = await walk_chains(graph, view, question.question, question.seeds, scorer, max_length)
        on_chains = {node for chain in chains for node in chain}
        rates.append(sum(node in on_chains for node in question.evidence) / len(question.evidence))
    return 100 * sum(rates) / len(rates) if rates else 0.0


def without_shared_evidence(
    training: Sequence[KnownQuestion], held_out: Sequence[KnownQuestion]
) -> tuple[KnownQuestion, ...]:
    """Training questions that share no gold passage with a held-out one."""
    pages = {node for question in held_out for node in question.evidence}
    return tuple(question for question in training if pages.isdisjoint(question.evidence))


def make_examples(view: View, questions: Sequence[KnownQuestion], labels: str, max_hops: int | None) -> Examples:
    """Make feature rows from the shortest paths of questions."""
    graph = ChainGraph.of(view)
    titles = title_keywords(graph, view)
    decisions, unreachable = _labelled(graph, questions, labels, max_hops)
    parts = [_rows(graph, titles, question, decision) for question, decision in decisions]
    pairs, edges, positives = zip(*parts, strict=True)
    return Examples(
        np.concatenate(pairs),
        np.concatenate(edges),
        np.concatenate(positives),
        np.repeat(np.arange(len(parts)), [len(right) for right in positives]),
        unreachable,
    )


def text_steps(
    view: View,
    questions: Sequence[KnownQuestion],
    labels: str,
    max_hops: int | None,
    max_candidates: int,
    rng: np.random.Generator,
) -> tuple[tuple[TextStep, ...], int]:
    """Make texts from the shortest paths of questions, with the number of pairs without a path."""
    graph = ChainGraph.of(view)
    decisions, unreachable = _labelled(graph, questions, labels, max_hops)

    def texts(nodes: Sequence[int] | IntArray) -> tuple[str, ...]:
        return tuple(unit.index_text for unit in view.units(graph.positions[np.asarray(nodes)]))

    steps = []
    for question, decision in decisions:
        wrong = np.flatnonzero(~decision.positive)
        nearest_wrong = wrong[np.argsort(-question.question.cosines.at(decision.candidates[wrong]), kind="stable")]
        room = max(1, max_candidates - int(decision.positive.sum()))
        hard, rest = nearest_wrong[: (room + 1) // 2], nearest_wrong[(room + 1) // 2 :]
        drawn = rng.permutation(rest)[: room - len(hard)]
        rows = np.sort(np.concatenate((np.flatnonzero(decision.positive), hard, drawn)))
        chosen = decision.candidates[rows]
        edges = np.stack([graph.edge(decision.chain[-1], node) for node in chosen.tolist()])
        path = "\n".join(texts(decision.chain))
        steps.append(TextStep(question.question.query, path, texts(chosen), edges, decision.positive[rows]))
    return tuple(steps), unreachable


def _labelled(
    graph: ChainGraph, questions: Sequence[KnownQuestion], labels: str, max_hops: int | None
) -> tuple[list[tuple[KnownQuestion, Decision]], int]:
    """All decisions with their questions, and the number of pairs without a path."""
    decisions: list[tuple[KnownQuestion, Decision]] = []
    unreachable = 0
    for question in questions:
        paths = path_labels(graph.indptr, graph.neighbors, question.evidence, labels, max_hops=max_hops)
        unreachable += paths.unreachable
        decisions += [(question, decision) for decision in paths.decisions]
    if not decisions:
        raise CorpusError(
            "There is nothing to learn from: no question has two gold passages ('supporting') that the interaction "
            "graph joins within --max-hops. Give questions with two or more, a graph with more edges (a larger n_sim), "
            "or more hops."
        )
    return decisions, unreachable


def _rows(
    graph: ChainGraph, titles: IntArray, question: KnownQuestion, decision: Decision
) -> tuple[FloatArray, FloatArray, BoolArray]:
    state, _ = frontier(graph, question.question, np.array([decision.chain], dtype=np.int64))
    return pair_features(state, graph), edge_features(state, graph, titles), decision.positive


@dataclass(frozen=True, slots=True)
class TrainedScorer:
    """A trained scorer."""

    weights: Mapping[str, FloatArray]  # see `NeuralScorer` and `EncoderScorer`
    card: Mapping[str, Any]  # data, settings and metrics of the training; `write_checkpoint` adds format and digest

    @property
    def scorer(self) -> ChainScorer:
        """The scorer of weights and card."""
        return scorer_of(self.weights, {**self.card, "digest": scorer_digest(self.weights, self.card)})


@dataclass(frozen=True, slots=True)
class ChainQuestions:
    """Questions over a pool, prepared for training."""

    view: PoolView  # the pool
    training: tuple[KnownQuestion, ...]  # questions to learn from
    held_out: tuple[KnownQuestion, ...] = ()  # questions to measure on
    left_out: int = 0  # number of training questions dropped because a held-out question has one of their gold passages


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
    examples = await known_questions(snapshot.view, training, ranker)
    known_held_out = await known_questions(snapshot.view, held_out, ranker)
    training_questions = without_shared_evidence(examples, known_held_out)
    return ChainQuestions(snapshot.view, training_questions, known_held_out, len(examples) - len(training_questions))


async def measure_scorer(
    trained: TrainedScorer, view: PoolView, questions: Sequence[KnownQuestion]
) -> dict[str, float]:
    """Match rates of a trained scorer (`neural`), the heuristic and the random one, in percent."""
    seed, max_length = (trained.card["config"][name] for name in ("seed", "max_length"))
    neural = await match_rate(view, questions, trained.scorer, max_length)
    return {"neural": round(neural, 2), **await _untrained_rates(view, questions, seed, max_length)}


async def _untrained_rates(
    view: PoolView, questions: Sequence[KnownQuestion], seed: int, max_length: int
) -> dict[str, float]:
    scorers: dict[str, ChainScorer] = {"heuristic": HeuristicScorer(), "random": RandomScorer(seed)}
    return {name: round(await match_rate(view, questions, scorer, max_length), 2) for name, scorer in scorers.items()}


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
    best: tuple[float, int, Mapping[str, FloatArray]] = (-1.0, 0, {})
    for epoch, (scorer, weights) in enumerate(training.passes):
        rate = await match_rate(view, check, scorer, config.max_length)
        if rate > best[0]:
            best = rate, epoch, weights()
        say("epochs", epoch, config.epochs)
        if epoch - best[1] >= config.patience:
            break
    card = training.card
    untrained = await _untrained_rates(view, check, config.seed, config.max_length)
    card["data"] = {
        **(data or {}),
        "questions": len(learn),
        "validation_questions": len(check),
        **training.counts,
    }
    card["metrics"] = {"epoch": best[1], "validation_match_rate": {"neural": round(best[0], 2), **untrained}}
    return TrainedScorer(best[2], card)


@dataclass(frozen=True, slots=True)
class _Passes:
    """A scorer before the first epoch and after each, with a function that copies its weights."""

    card: dict[str, Any]
    counts: Mapping[str, int]
    passes: Iterator[tuple[ChainScorer, Callable[[], Mapping[str, FloatArray]]]]


def _light(view: PoolView, learn: Sequence[KnownQuestion], config: TrainingConfig) -> _Passes:
    from sire_core.papers.iier.scorer_networks import train_epochs

    examples = make_examples(view, learn, config.labels, config.max_hops)
    card = {
        "kind": "light",
        "pair_features": list(PAIR_FEATURES),
        "edge_features": list(EDGE_FEATURES),
        "embedder": view.embedder_fingerprint,
        "dimension": view.matrix.shape[1],
        "config": asdict(config),
    }
    passes = train_epochs(examples, FIRST_WEIGHTS, config)
    counts = _counts(int(examples.owners[-1]) + 1, len(examples.owners), examples.unreachable)
    return _Passes(card, counts, ((NeuralScorer(weights, card), partial(dict, weights)) for weights in passes))


def _encoder(
    view: PoolView,
    learn: Sequence[KnownQuestion],
    config: TrainingConfig,
    encoder: EncoderConfig,
    progress: Callable[[int, int], None],
) -> _Passes:
    from sire_core.papers.iier.scorer_networks import EncoderScorer, train_encoder

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
    learn = [question for number, question in enumerate(questions) if number not in chosen]
    return learn, [question for number, question in enumerate(questions) if number in chosen]
