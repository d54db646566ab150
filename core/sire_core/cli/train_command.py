"""`sire train-chains`: the scorer of evidence chains, trained on questions whose evidence is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sire_core.cli import arguments
from sire_core.cli.output import say, say_json
from sire_core.cli.progress import reporting
from sire_core.cli.recipe_options import parse_settings
from sire_core.cli.training import check_target, run_training

__all__ = ["train_chains"]


def train_chains(  # noqa: PLR0917 - typer passes every option by name
    dataset_dir: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET",
            help="A folder with corpus.jsonl and questions*.jsonl, or an official HotpotQA, 2WikiMultiHopQA or MuSiQue "
            "file. Questions need their gold passages ('supporting').",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="Where the checkpoint goes (safetensors).")],
    questions: Annotated[
        str,
        typer.Option(
            "--questions",
            metavar="all|even|odd",
            help="Questions to learn from, by their place from 0; the rate on the others is measured.",
        ),
    ] = "all",
    tests: Annotated[
        list[Path] | None,
        typer.Option("--test", metavar="DATASET", help="Measure on this data set, too; may be repeated."),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            help="Whose vectors it is trained on; the index needs the same. As for `sire index`. Default: lexical.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of iier, such as `max_length=4`; may be repeated."),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            "--labels", metavar="all_shortest|one_path", help="Right steps: of all shortest paths, or of one."
        ),
    ] = "all_shortest",
    loss: Annotated[str, typer.Option("--loss", metavar="listwise|bce", help="What is minimized.")] = "listwise",
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the questions at most.")] = 40,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same checkpoint.")] = 0,
    as_json: arguments.AsJson = False,
) -> None:
    """Train a scorer for the chains of iier.

    Used with `sire index --recipe iier --set scorer=neural --set checkpoint=FILE`. Learns from
    shortest paths between gold passages over frozen vectors, and stops by the share of gold passages that chains find
    on a fifth of the questions. Needs torch: pip install "sire-rag[torch]". Searching with it does not.

    Example: sire train-chains data/2wiki --to chains.safetensors --questions even --test data/hotpotqa
    """
    from sire_core.evaluate.datasets import load_dataset
    from sire_core.models.embedders import resolve_embedder
    from sire_core.search.chains.neural_scorer import write_checkpoint
    from sire_core.search.chains.training import TrainingConfig, need_torch

    need_torch()
    check_target(to)
    chosen = parse_settings(settings)
    length = {name: chosen[name] for name in ("max_length",) if name in chosen}  # chains are tried at that length, too
    config = TrainingConfig(labels=labels, loss=loss, epochs=epochs, seed=seed, **length)
    sets = [load_dataset(path) for path in (dataset_dir, *(tests or ()))]
    with reporting() as progress:
        trained = run_training(sets[0], sets[1:], questions, resolve_embedder(embedder), chosen, config, progress)
    card = write_checkpoint(to, trained.weights, trained.card)
    if as_json:
        say_json(card)
    else:
        _say_card(to, card)


def _say_card(path: Path, card: dict[str, Any]) -> None:
    data, metrics = card["data"], card["metrics"]
    say(
        f"{path}: learned from {data['decisions']:,} steps of {data['questions']:,} questions of {data['name']}, "
        f"stopped at epoch {metrics['epoch']}, digest {card['digest']}"
    )
    validation = f"validation, {data['validation_questions']}"
    rows = {validation: metrics["validation_match_rate"], **metrics["match_rate"]}
    head = "share of gold passages on chains"
    width = max(map(len, (head, *rows)))
    say(f"\n{head:<{width}} {'neural':>8} {'heuristic':>10} {'random':>8}")
    for name, rates in rows.items():
        say(f"{name:<{width}} {rates['neural']:>8.1f} {rates['heuristic']:>10.1f} {rates['random']:>8.1f}")
