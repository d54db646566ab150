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


@dataclass(frozen=True, slots=True)
class EvalAnswerOptions:
    """How questions are answered."""

    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="single|ircot|self-ask|closed-book|golden",
            help="Also let --llm answer the questions in this way; shows EM, F1, Acc, calls, and the recall of "
            "everything that was read. `closed-book` reads nothing, `golden` reads the gold passages.",
        ),
    ] = None
    reader_prompt: Annotated[
        str,
        typer.Option(
            "--reader-prompt",
            metavar="ours|paper",
            help="`ours` allows the answer that the evidence is insufficient; `paper` requires an answer always, as in "
            "the papers.",
        ),
    ] = "ours"
    reader_only: Annotated[
        bool, typer.Option("--reader-only", help="Use the model only for answers, and build indexes without it.")
    ] = False
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", metavar="N", min=1, help="Maximum tokens that the model reads.")
    ] = None
    context_border: Annotated[
        str,
        typer.Option(
            "--context-border",
            metavar="cut|break|skip",
            help="What happens to the hit that crosses the limit: cut it there, end the context before it (as in "
            "RAPTOR's code), or skip it.",
        ),
    ] = "cut"
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            metavar="FILE",
            help="Store the model's answers here, except those of builds; the same command resumes. Default: a file "
            "next to the folder of --to, otherwise a temporary one that is kept if the run is interrupted.",
        ),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Let this model, on the same server, compare the answers with those of the first recipe, in both "
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
            help="Number of hits to measure, and for the model to read. Default: 20 to measure, 10 to read.",
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
            help="Also show the causes of misses: graph, recall, or reranking. With --llm, a model judges whether the "
            "graph contains what a question needs. For recipes with relations.",
        ),
    ] = False
    missing_edges: Annotated[
        int,
        typer.Option(
            "--missing-edges",
            metavar="N",
            min=0,
            help="Also let --llm count missing and wrong relations of the graph in N passages.",
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
        bool, typer.Option("--by-type", help="Also show R@5 by number of hops and type of question.")
    ] = False
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Also show what each kind of unit contributes: hits and points of recall.")
    ] = False
    compare: Annotated[
        bool, typer.Option("--compare", help="Also show published figures, and how they were measured.")
    ] = False
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            help="Also draw recall against the cost of building and searching, over k, and by hops, with intervals.",
        ),
    ] = None
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the rows to this file.")
    ] = None

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
