"""The options of `sire eval`, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.eval_options import (
    QuestionSelection,
    answer_config,
    check_file,
    check_together,
    measured,
    read_questions_option,
    reader,
)
from sire_core.cli.options import IndexOptions
from sire_core.cli.recipe_options import parse_settings

if TYPE_CHECKING:
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel

__all__ = ["ComparisonOptions", "EvalAnswerOptions", "MeasureOptions", "QuestionOptions", "ReportOptions"]


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What is asked, over which texts."""

    questions: Annotated[
        list[str] | None,
        typer.Option(
            "--questions",
            metavar="even|odd|all|FILE",
            help="Those at even or odd positions, counted from 0: develop on one half, report the other. For an index "
            "folder a file, what to ask it, one JSON object a line: "
            '{"id", "question", "answers", "supporting"}; supporting holds ids of its documents.',
        ),
    ] = None
    untitled: Annotated[bool, typer.Option("--untitled", help="Without the documents' titles.")] = False
    titles_in_text: Annotated[
        bool, typer.Option("--titles-in-text", help="Titles as the first lines of the texts, and nowhere else.")
    ] = False
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Ask a random sample of so many.")] = None
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of that sample.")] = 0
    sentence_groups: Annotated[
        bool,
        typer.Option(
            "--sentence-groups", help="Let --llm cut the documents into groups of sentences, details and overviews."
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
            help="Recipes, separated by commas or several times. Default: all.",
        ),
    ] = None
    settings: arguments.EvalSettings = None
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            help="Makes the vectors of all rows. `lexical` (nothing to download), `st:NAME_OR_FOLDER` "
            "(sentence-transformers), `openai:MODEL` or `file:PATH` (vectors made before). Default: lexical, or what "
            "the folder of --to was built with.",
        ),
    ] = None
    extractions: arguments.Extractions = None
    chunk_tokens: Annotated[
        int | None, typer.Option("--chunk-tokens", min=1, help="Cut passages that are longer. Default: as they are.")
    ] = None
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Keep the index here, and what a model is asked beside the builds in DIR.answers.jsonl. Default: a "
            "temporary folder, which is kept when a run with --llm does not end.",
        ),
    ] = None
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Build N times with other seeds: mean and spread.")
    ] = 1
    ablations: Annotated[
        bool, typer.Option("--ablations", help="The rows of the recipes' papers, with the papers' figures beside ours.")
    ] = False
    clusters: Annotated[
        bool,
        typer.Option(
            "--clusters",
            help="Instead: how many gold pairs clusters by text and by topic bring together; topics are a model's with "
            "--llm, clusters those of the paper with --set clustering=paper.",
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


@dataclass(frozen=True, slots=True)
class EvalAnswerOptions:
    """How questions are answered."""

    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="single|ircot|self-ask|closed-book|golden",
            help="Also have the model (--llm) answer the questions in this way: EM, F1, Acc, calls, and recall of what "
            "was read, of several searches together. `closed-book` reads nothing, `golden` the gold passages.",
        ),
    ] = None
    reader_prompt: Annotated[
        str,
        typer.Option(
            "--reader-prompt",
            metavar="ours|paper",
            help="`paper` lets the reader answer in any case, as the papers do; `ours` lets it say that the evidence "
            "does not suffice.",
        ),
    ] = "ours"
    reader_only: Annotated[
        bool, typer.Option("--reader-only", help="The model answers and does nothing else: indexes are built without.")
    ] = False
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", metavar="N", min=1, help="Read no more than N tokens.")
    ] = None
    context_border: Annotated[
        str,
        typer.Option(
            "--context-border",
            metavar="cut|break|skip",
            help="The hit that crosses N tokens is cut there, ends the context (as RAPTOR's code does) or is left out.",
        ),
    ] = "cut"
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            metavar="FILE",
            help="Keep here what the model is asked beside the builds; the same command goes on where it ended. "
            "Default: a file beside the folder of --to, else a temporary one that is kept when the run does not end.",
        ),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Let this model, behind the same server, compare the answers with those of the first recipe, in both "
            "orders. Needs --answer.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """What is measured."""

    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            help="Measure what a search for N hits finds, and read answers from N hits. Default: 20, and 10 to read.",
        ),
    ] = None
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Tokens of context for R@budget and answer@budget.")
    ] = 1500
    returns: arguments.Returns = "units"
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Also where misses come from: the graph, the recall, or the rerank. With --llm a model judges whether "
            "the graph holds what a question needs. For recipes with relations.",
        ),
    ] = False
    missing_edges: Annotated[
        int,
        typer.Option(
            "--missing-edges",
            metavar="N",
            min=0,
            help="Also let --llm count in N passages the relations that the graph lacks or has wrong.",
        ),
    ] = 0

    def config(
        self, asked: QuestionOptions, answering: EvalAnswerOptions, model: LanguageModel | None, workers: int
    ) -> EvalConfig:
        """What is measured.

        Args:
            asked: Which sample.
            answering: How questions are answered.
            model: Who answers, and is asked by searches and analyses.
            workers: Questions under way at once.

        Raises:
            ConfigurationError: Values make no sense, alone or together.
        """
        how = reader(answering.reader_prompt, answering.context_tokens, answering.context_border)
        return measured(
            budget=self.budget,
            limit=asked.limit,
            seed=asked.seed,
            returns=self.returns,
            k=self.k,
            answer=answer_config(answering.answer, model, workers, self.k, how),
            errors=self.errors,
            missing=self.missing_edges,
            model=model,
        )


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What is printed and written."""

    by_type: Annotated[
        bool, typer.Option("--by-type", help="Also R@5 by the number of hops and the type of question.")
    ] = False
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Also what each kind of unit brought: hits and points of recall.")
    ] = False
    compare: Annotated[
        bool, typer.Option("--compare", help="Beside ours: the figures that papers print, and what they measured with.")
    ] = False
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            help="Also a picture: recall against the cost of index and query, over k, and by hops, with intervals.",
        ),
    ] = None
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the rows here.")] = None

    def check(
        self,
        compared: ComparisonOptions,
        asked: QuestionOptions,
        answering: EvalAnswerOptions,
        measured: MeasureOptions,
        llm: str | None,
    ) -> None:
        """Refuse options that do not go together, and files that cannot be written, before anything is built.

        Args:
            compared: Other options,
            asked: and these,
            answering: and these,
            measured: and these.
            llm: `--llm`.

        Raises:
            ConfigurationError: See `check_together` and `check_file`.
        """
        check_together(
            {
                "--clusters": compared.clusters,
                "--ablations": compared.ablations,
                "--recipes": compared.recipes,
                "--answer": answering.answer,
                "--plot": self.plot,
                "--repeats": compared.repeats > 1,
                "--reader-only": answering.reader_only,
                "--sentence-groups": asked.sentence_groups,
                "--missing-edges": measured.missing_edges,
                "--judge": answering.judge,
                "--llm": llm,
                "--answers": llm and answering.answers,
                "questions to a model": answering.answer
                or asked.sentence_groups
                or asked.asked().file
                or compared.clusters
                or measured.errors
                or measured.missing_edges,
            }
        )
        for option, path in (("--json", self.json_file), ("--answers", answering.answers), ("--plot", self.plot)):
            check_file(path, option)
