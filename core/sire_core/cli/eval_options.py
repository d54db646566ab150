"""The options of `sire eval` that say what is asked, and which recipes are measured; checked before a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.options import IndexOptions, is_index
from sire_core.cli.recipe_options import parse_settings
from sire_core.errors import ConfigurationError
from sire_core.evaluate.datasets import HALVES

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.protocols import LanguageModel

__all__ = ["ComparisonOptions", "QuestionOptions", "check_index", "read_questions_option", "recipe_names"]


def read_questions_option(given: Sequence[str] | None) -> tuple[str, Path | None]:
    """What `--questions` says: a half, a file, or one of each.

    Raises:
        ConfigurationError: Two halves or two files.
    """
    halves = [word for word in given or () if word in HALVES]
    files = [word for word in given or () if word not in HALVES]
    if len(halves) > 1 or len(files) > 1:
        raise ConfigurationError(f"--questions takes one of {', '.join(HALVES)} and, for an index, one file.")
    return halves[0] if halves else "all", Path(files[0]) if files else None


def check_index(place: Path, asked: QuestionOptions, *, builds: bool) -> None:
    """Refuse options that do not go together with an index, or with a data set.

    Raises:
        ConfigurationError: They do not.
    """
    existing = is_index(place)
    if existing and asked.file is None:
        raise ConfigurationError(f"{place} is an index: say what to ask it, with --questions FILE.")
    if asked.file is not None and not existing:
        raise ConfigurationError(
            f"{asked.file}: --questions is for an index folder, and {place} is none; of a data set it takes "
            f"{', '.join(HALVES)}."
        )
    if existing and (builds or asked.untitled or asked.titles_in_text or asked.chunks):
        raise ConfigurationError(
            "An index is only read: leave --ablations, --clusters, --repeats, --to, --chunks, --untitled and "
            "--titles-in-text out."
        )


def recipe_names(given: Sequence[str] | None, *, ablations: bool) -> list[str]:
    """Names of recipes, each once; without any given, all but the baseline, or all that have ablations.

    Raises:
        ConfigurationError: One is unknown, or has no ablations when they are asked for.
    """
    from sire_core.recipes import REGISTRY, recipe_by_name
    from sire_core.recipes.ablations import ablations_of, recipes_with_ablations

    split = [name.strip() for word in given or () for name in word.split(",") if name.strip()]
    known = recipes_with_ablations() if ablations else sorted(name for name in REGISTRY if name != "flat")
    names = list(dict.fromkeys(split)) or known
    for name in names:
        recipe_by_name(name)
        if ablations:
            ablations_of(name)
    return names


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
            '{"id", "question", "answers", "supporting"}; supporting lists ids of documents or passages; in its place '
            '"needs" lists quotes: [[{"doc", "quote"}, ...alternatives], ...].',
        ),
    ] = None
    chunks: Annotated[
        str | None,
        typer.Option(
            "--chunks",
            metavar="files|langchain|llama-index|none",
            help="Cut the documents into passages like `sire index` (files), with LangChain's header and character "
            "splitters, with LlamaIndex's SentenceSplitter, or not at all. Default: files where the data set has a "
            "folder of files or whole documents, otherwise none.",
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

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises:
            ConfigurationError: Two halves or two files; or titles cannot be removed and written into the texts.
        """
        read_questions_option(self.questions)
        if self.untitled and self.titles_in_text:
            raise ConfigurationError("Give --untitled or --titles-in-text, not both.")

    @property
    def half(self) -> str:
        """Which questions: `even`, `odd` or `all`."""
        return read_questions_option(self.questions)[0]

    @property
    def file(self) -> Path | None:
        """Questions to an index; None asks those of the data set."""
        return read_questions_option(self.questions)[1]

    def of(self, dataset: DataSet) -> DataSet:
        """The data set as it was asked for."""
        if self.untitled:
            dataset = dataset.untitled()
        if self.titles_in_text:
            dataset = dataset.with_titles_in_text()
        return dataset.half(self.half)


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
