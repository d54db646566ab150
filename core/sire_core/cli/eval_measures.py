"""The options of `sire eval` that say how questions are answered, what is measured, and what is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.eval_options import (
    ComparisonOptions,
    QuestionOptions,
)
from sire_core.cli.output import check_writable
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sire_core.evaluate.answered import AnswerConfig
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel

__all__ = ["EvalAnswerOptions", "MeasureOptions", "ReportOptions"]


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

    def config(self, model: LanguageModel | None, workers: int, k: int | None) -> AnswerConfig | None:
        """How questions are answered; None where they are not.

        Args:
            model: Who answers.
            workers: Questions under way at once.
            k: Hits that an answer is read from; None for the usual number.

        Raises:
            ConfigurationError: There is no model, no such strategy, prompt or border, or nothing to read for a reader.
        """
        from sire_core.reason.reader import ReaderConfig

        reader = ReaderConfig(
            self.reader_prompt,  # type: ignore[arg-type]  # the config checks it
            self.context_tokens,
            border=self.context_border,  # type: ignore[arg-type]  # as above
        )
        if self.answer is None:
            if reader != ReaderConfig():
                raise ConfigurationError(
                    "--reader-prompt, --context-tokens and --context-border need --answer single, ircot or self-ask."
                )
            return None
        from sire_core.evaluate.answered import CLOSED_BOOK, GOLDEN, AnswerConfig
        from sire_core.reason import STRATEGIES

        known = (*STRATEGIES, CLOSED_BOOK, GOLDEN)
        if self.answer not in known:
            raise ConfigurationError(f"--answer {self.answer}: choose one of {', '.join(known)}.")
        if model is None:
            raise ConfigurationError("--answer needs --llm MODEL: somebody has to answer.")
        return AnswerConfig(self.answer, k=k or AnswerConfig().k, workers=workers, reader=reader, model=model)


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
        """What is measured; with `-k N` what a search for N hits finds, at the usual cut-offs and at N.

        Args:
            asked: Which sample.
            answering: How questions are answered.
            model: Who answers, and is asked by searches and analyses.
            workers: Questions under way at once.

        Raises:
            ConfigurationError: Values make no sense, alone or together.
        """
        from sire_core.evaluate.runner import EvalConfig

        usual = EvalConfig(
            budget=self.budget,
            limit=asked.limit,
            seed=asked.seed,
            returns=self.returns,
            answer=answering.config(model, workers, self.k),
            errors=self.errors,
            missing=self.missing_edges,
            model=model,
        )
        return usual if self.k is None else replace(usual, ks=tuple(sorted({*usual.ks, self.k})), depth=self.k)


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
            ConfigurationError: They do not, or cannot.
        """
        _check_together(
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
                or asked.file
                or compared.clusters
                or measured.errors
                or measured.missing_edges,
            }
        )
        for option, path in (("--json", self.json_file), ("--answers", answering.answers), ("--plot", self.plot)):
            if path is not None:
                check_writable(option, path)


_APART = {
    ("--clusters", "--ablations"): "--clusters looks at no recipe; leave --recipes, --ablations and --answer out.",
    ("--clusters", "--recipes"): "--clusters looks at no recipe; leave --recipes, --ablations and --answer out.",
    ("--clusters", "--answer"): "--clusters looks at no recipe; leave --recipes, --ablations and --answer out.",
    ("--plot", "--ablations"): "--plot shows recipes; leave --ablations out.",
    ("--repeats", "--ablations"): "--repeats is for recipes, not for --ablations.",
}
_NEEDED = {
    ("--reader-only", "--answer"): "--reader-only leaves the model nothing but the answers: give --answer, too.",
    ("--judge", "--answer"): "--judge compares answers: give --answer single, too.",
    ("--sentence-groups", "--llm"): "--sentence-groups needs --llm MODEL: a model cuts the documents.",
    (
        "--answers",
        "questions to a model",
    ): "--answers keeps what a model is asked beside the builds: give --answer, too, or "
    "another option that has the model asked. --to DIR keeps everything.",
    ("--missing-edges", "--llm"): "--missing-edges needs --llm MODEL: a model reads the passages.",
}


def _check_together(given: Mapping[str, object]) -> None:
    """Refuse options that exclude each other, or that need one that is not there."""
    for (one, other), message in _APART.items():
        if given[one] and given[other]:
            raise ConfigurationError(message)
    for (one, other), message in _NEEDED.items():
        if given[one] and not given[other]:
            raise ConfigurationError(message)
