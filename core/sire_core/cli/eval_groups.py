"""The options of `sire eval` that say what is asked, and which recipes are measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.eval_options import (
    QuestionSelection,
    read_questions_option,
)
from sire_core.cli.options import IndexOptions
from sire_core.cli.recipe_options import parse_settings

if TYPE_CHECKING:
    from sire_core.protocols import LanguageModel

__all__ = ["ComparisonOptions", "QuestionOptions"]


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What is asked, over which texts."""

    questions: Annotated[
        list[str] | None,
        typer.Option(
            "--questions",
            metavar="even|odd|all|FILE",
            help="Use only the questions at even or odd positions, counted from 0: develop on one half, report on the "
            "other. For an index folder, the file of questions, with one JSON object per line: "
            '{"id", "question", "answers", "supporting"}; supporting lists document ids.',
        ),
    ] = None
    untitled: Annotated[bool, typer.Option("--untitled", help="Index the documents without their titles.")] = False
    titles_in_text: Annotated[
        bool, typer.Option("--titles-in-text", help="Put titles into the first line of the texts only.")
    ] = False
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Use a random sample of this many questions.")] = (
        None
    )
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed of the sample.")] = 0
    sentence_groups: Annotated[
        bool,
        typer.Option(
            "--sentence-groups", help="Let --llm split the documents into groups of sentences: details and overviews."
        ),
    ] = False

    def asked(self) -> QuestionSelection:
        """Which questions over which texts.

        Raises:
            ConfigurationError: They do not go together.
        """
        half, file = read_questions_option(self.questions)
        return QuestionSelection(half, file, self.untitled, self.titles_in_text)


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Which recipes are measured, made how."""

    recipes: Annotated[
        list[str] | None,
        typer.Option(
            "--recipes",
            "--recipe",
            "-r",
            metavar="R,R",
            help="Recipes, separated by commas; repeatable. Default: all.",
        ),
    ] = None
    settings: arguments.EvalSettings = None
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            help="The embedder of all rows: `lexical` (no download), `st:NAME_OR_FOLDER` (sentence-transformers), "
            "`openai:MODEL`, or `file:PATH` (precomputed vectors). Default: lexical, or what the folder of --to was "
            "built with.",
        ),
    ] = None
    extractions: arguments.Extractions = None
    chunk_tokens: Annotated[
        int | None, typer.Option("--chunk-tokens", min=1, help="Split longer passages. Default: do not split.")
    ] = None
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Keep the index here, and all other answers of models in DIR.answers.jsonl. Default: a temporary "
            "folder, which is kept if a run with --llm is interrupted.",
        ),
    ] = None
    repeats: Annotated[
        int,
        typer.Option("--repeats", metavar="N", min=1, help="Build N times with different seeds; show mean and spread."),
    ] = 1
    ablations: Annotated[
        bool, typer.Option("--ablations", help="Show the ablation tables of the papers, with the published figures.")
    ] = False
    clusters: Annotated[
        bool,
        typer.Option(
            "--clusters",
            help="Instead of recipes, measure how many pairs of gold passages fall into the same cluster, by text and "
            "by topic. With --llm, a model names the topics; --set clustering=paper clusters as in the paper.",
        ),
    ] = False
    max_failure_ratio: arguments.MaxFailureRatio = 0.1

    @property
    def builds(self) -> bool:
        """Whether these options need something to be built."""
        return self.ablations or self.clusters or self.repeats > 1 or self.to is not None

    def options(self, model: LanguageModel | None, folder: Path | None, *, native: bool, workers: int) -> IndexOptions:
        """How indexes are made.

        Args:
            folder: Where; None takes a temporary folder.
            model: Who extracts and summarizes.
            native: Whether it does so as the papers do.
            workers: Its calls in flight at once.
        """
        return IndexOptions(
            folder=folder,
            settings=parse_settings(self.settings),
            embedder=self.embedder,
            extractions=self.extractions,
            chunk_tokens=self.chunk_tokens,
            no_chunking=self.chunk_tokens is None,
            language_model=model,
            native=native,
            workers=workers,
            max_failure_ratio=self.max_failure_ratio,
        )
