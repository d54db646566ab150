"""`sire eval`: recipes and baselines measured on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.evaluation import run_ablations, run_clusters, run_evaluation, run_existing, say_size
from sire_core.cli.models import DEFAULT_KEY, Spending
from sire_core.cli.options import IndexOptions, is_index
from sire_core.cli.output import can_be_written, say
from sire_core.cli.progress import reporting
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.evaluate.answering import AnswerConfig
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import Row
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel

__all__ = ["eval_"]


def eval_(  # noqa: PLR0917 - typer passes every option by name
    dataset_dir: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET_DIR_or_INDEX",
            help="A folder with corpus.jsonl and questions*.jsonl, or an official HotpotQA, 2WikiMultiHopQA or MuSiQue "
            "file. Or an index folder, with --questions.",
        ),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="For an index folder: what to ask it, one JSON object a line: "
            '{"id", "question", "answers", "supporting"}; supporting holds ids of its documents.',
        ),
    ] = None,
    recipes: Annotated[
        list[str] | None,
        typer.Option(
            "--recipes",
            "--recipe",
            "-r",
            metavar="R,R",
            help="Recipes, separated by commas or several times. Default: all.",
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            help="Makes the vectors of all rows. `lexical` (nothing to download), `st:NAME_OR_FOLDER` "
            "(sentence-transformers), `openai:MODEL` or `file:PATH` (vectors made before). Default: lexical, or what "
            "the folder of --to was built with.",
        ),
    ] = None,
    extractions: arguments.Extractions = None,
    llm: arguments.Llm = None,
    base_url: arguments.BaseUrl = None,
    api_key_env: arguments.ApiKeyEnv = DEFAULT_KEY,
    model_timeout: arguments.ModelTimeout = None,
    native: arguments.Native = False,
    max_calls: arguments.MaxCalls = None,
    max_tokens: arguments.MaxTokens = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Ask a random sample of so many.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of that sample.")] = 0,
    budget: Annotated[
        int, typer.Option("--budget", min=1, help="Tokens of context for R@budget and answer@budget.")
    ] = 1500,
    returns: arguments.Returns = "units",
    chunk_tokens: Annotated[
        int | None, typer.Option("--chunk-tokens", min=1, help="Cut passages that are longer. Default: as they are.")
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="single|ircot|self-ask",
            help="Also have the model (--llm) answer the questions in this way: EM, F1, Acc, calls.",
        ),
    ] = None,
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Also what each kind of unit brought: hits and points of recall.")
    ] = False,
    ablations: Annotated[
        bool, typer.Option("--ablations", help="The rows of the recipes' papers, with the papers' figures beside ours.")
    ] = False,
    clusters: Annotated[
        bool,
        typer.Option("--clusters", help="Instead: how many gold pairs clusters by text and by topic bring together."),
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the rows here.")] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Keep the index here. Default: a temporary folder.")
    ] = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
) -> None:
    """Measure recipes on a data set.

    Beside them stand the baselines bm25, dense and hybrid over the passages. All rows share one folder:
    passages are embedded once (in the baselines' build seconds) and extracted once (in those of the first recipe that
    needs it).

    With --ablations the rows are those of the recipe's paper instead, whose answers came from other models; --answer
    puts the EM and F1 of yours beside the paper's.

    Example: sire eval data/musique -r raptor,sirerag --limit 50 --json rows.json

    An index that is there is asked the questions of a file, with the recipes that it holds; nothing is built and the
    folder is only read: sire eval my-index --questions questions.jsonl
    """
    from sire_core.evaluate.datasets import load_dataset
    from sire_core.evaluate.report import format_ablations, format_table, write_rows
    from sire_core.evaluate.runner import EvalConfig

    if clusters and (ablations or recipes or answer):
        raise ConfigurationError("--clusters looks at no recipe; leave --recipes, --ablations and --answer out.")
    existing = is_index(dataset_dir)
    _check_existing(dataset_dir, questions, existing=existing, builds=ablations or clusters or to is not None)
    names = _names(recipes, ablations) if recipes or not existing else []
    _check_file(json_file)
    model = Spending(
        llm, base_url, api_key_env, native, max_calls, max_tokens, workers=workers, model_timeout=model_timeout
    ).model()
    config = EvalConfig(
        budget=budget, limit=limit, seed=seed, answer=_answering(answer, model, workers), returns=returns
    )
    options = IndexOptions(
        folder=to,
        embedder=embedder,
        extractions=extractions,
        chunk_tokens=chunk_tokens,
        no_chunking=chunk_tokens is None,
        language_model=model,
        native=native,
        workers=workers,
        max_failure_ratio=max_failure_ratio,
    )
    if questions is not None:
        with reporting() as progress:
            tables = [run_existing(dataset_dir, questions, names, options, config, progress)]
    else:
        dataset = load_dataset(dataset_dir)
        if clusters:
            _say_clusters(dataset, options, json_file)
            return
        tables = _tables(dataset, names, options, config, ablations=ablations)
    rows = [row for table in tables for row in table]
    if json_file is not None:
        write_rows(json_file, rows)
    say("\n\n".join(map(format_ablations if ablations else format_table, tables)))
    if by_kind:
        _say_kinds(rows)


def _check_existing(place: Path, questions: Path | None, *, existing: bool, builds: bool) -> None:
    """Refuse options that do not go together with an index, or with a data set.

    Raises:
        ConfigurationError: They do not.
    """
    if existing and questions is None:
        raise ConfigurationError(f"{place} is an index: say what to ask it, with --questions FILE.")
    if questions is not None and not existing:
        raise ConfigurationError(f"--questions is for an index folder, and {place} is none.")
    if existing and builds:
        raise ConfigurationError("An index is only read: leave --ablations, --clusters and --to out.")


def _say_clusters(dataset: DataSet, options: IndexOptions, json_file: Path | None) -> None:
    from sire_core.evaluate.report import write_rows

    report = run_clusters(dataset, options)
    if json_file is not None:
        write_rows(json_file, [report])
    say(report.table())


def _tables(
    dataset: DataSet, names: list[str], options: IndexOptions, config: EvalConfig, *, ablations: bool
) -> list[list[Row]]:
    """Rows of each paper, or one table of all recipes."""
    say_size(dataset, config)
    with reporting() as progress:
        if ablations:
            return [run_ablations(dataset, name, options, config, progress) for name in names]
        return [run_evaluation(dataset, names, options, config, progress)]


def _answering(via: str | None, model: LanguageModel | None, workers: int) -> AnswerConfig | None:
    """How questions are answered.

    Raises:
        ConfigurationError: There is no model, or no such strategy.
    """
    if via is None:
        return None
    from sire_core.evaluate.answering import AnswerConfig
    from sire_core.reason import STRATEGIES

    if via not in STRATEGIES:
        raise ConfigurationError(f"--answer {via}: choose one of {', '.join(STRATEGIES)}.")
    if model is None:
        raise ConfigurationError("--answer needs --llm MODEL: somebody has to answer.")
    return AnswerConfig(via, workers=workers)


def _check_file(json_file: Path | None) -> None:
    """Find out now, not after an hour, that the rows cannot be written.

    Raises:
        ConfigurationError: There is no such folder, or it may not be written to.
    """
    if json_file is not None and not can_be_written(json_file):
        raise ConfigurationError(f"--json {json_file}: name a file in a folder that exists and is yours to write.")


def _names(given: list[str] | None, ablations: bool) -> list[str]:
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


def _say_kinds(rows: list[Row]) -> None:
    say("\nWhat each kind of unit brings: mean number among the first hits, and points of recall it was first to bring")
    header = f"{'recipe':<12} {'kind':<14} {'hits@5':>7} {'hits@20':>8} {'R@5':>6} {'R@20':>6}"
    say(header)
    for row in rows:
        for kind, value in row.by_kind().items():
            say(
                f"{row.setup.recipe:<12} {kind:<14} {value['hits_5']:>7.2f} {value['hits_20']:>8.2f} "
                f"{value['gold_5']:>6.1f} {value['gold_20']:>6.1f}"
            )
