"""`sire eval`: recipes and baselines measured on a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.eval_options import (
    Asked,
    answer_config,
    check_file,
    check_index,
    check_together,
    measured,
    read_questions_option,
    reader,
    recipe_names,
    recorded,
)
from sire_core.cli.evaluation import (
    judged,
    run_ablations,
    run_clusters,
    run_evaluation,
    run_existing,
    run_repeats,
    say_size,
)
from sire_core.cli.models import DEFAULT_KEY, Spending
from sire_core.cli.options import IndexOptions
from sire_core.cli.output import say
from sire_core.cli.progress import reporting
from sire_core.cli.recipe_options import parse_settings

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import Row
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel, Progress

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
        list[str] | None,
        typer.Option(
            "--questions",
            metavar="even|odd|all|FILE",
            help="Those at even or odd positions, counted from 0: develop on one half, report the other. For an index "
            "folder a file, what to ask it, one JSON object a line: "
            '{"id", "question", "answers", "supporting"}; supporting holds ids of its documents.',
        ),
    ] = None,
    untitled: Annotated[bool, typer.Option("--untitled", help="Without the documents' titles.")] = False,
    titles_in_text: Annotated[
        bool, typer.Option("--titles-in-text", help="Titles as the first lines of the texts, and nowhere else.")
    ] = False,
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
    settings: arguments.EvalSettings = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            help="Measure what a search for N hits finds, and read answers from N hits. Default: 20, and 10 to read.",
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
            metavar="single|ircot|self-ask|closed-book",
            help="Also have the model (--llm) answer the questions in this way: EM, F1, Acc, calls, and recall of what "
            "was read, of several searches together.",
        ),
    ] = None,
    reader_prompt: Annotated[
        str,
        typer.Option(
            "--reader-prompt",
            metavar="ours|paper",
            help="`paper` lets the reader answer in any case, as the papers do; `ours` lets it say that the evidence "
            "does not suffice.",
        ),
    ] = "ours",
    reader_only: Annotated[
        bool, typer.Option("--reader-only", help="The model answers and does nothing else: indexes are built without.")
    ] = False,
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", metavar="N", min=1, help="Read no more than N tokens.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers", metavar="FILE", help="Keep the model's answers here; the same command goes on where it ended."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Build N times with other seeds: mean and spread.")
    ] = 1,
    by_type: Annotated[
        bool, typer.Option("--by-type", help="Also R@5 by the number of hops and the type of question.")
    ] = False,
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Also what each kind of unit brought: hits and points of recall.")
    ] = False,
    ablations: Annotated[
        bool, typer.Option("--ablations", help="The rows of the recipes' papers, with the papers' figures beside ours.")
    ] = False,
    clusters: Annotated[
        bool,
        typer.Option(
            "--clusters",
            help="Instead: how many gold pairs clusters by text and by topic bring together; topics are a model's with "
            "--llm, clusters those of the paper with --set clustering=paper.",
        ),
    ] = False,
    sentence_groups: Annotated[
        bool,
        typer.Option(
            "--sentence-groups", help="Let --llm cut the documents into groups of sentences, details and overviews."
        ),
    ] = False,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Also where misses come from: the graph, the recall, or the rerank. With --llm a model judges whether "
            "the graph holds what a question needs. For recipes with relations.",
        ),
    ] = False,
    missing_edges: Annotated[
        int,
        typer.Option(
            "--missing-edges",
            metavar="N",
            min=0,
            help="Also let --llm count in N passages the relations that the graph lacks or has wrong.",
        ),
    ] = 0,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Let this model, behind the same server, compare the answers with those of the first recipe, in both "
            "orders. Needs --answer.",
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Beside ours: the figures that papers print, and what they measured with.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.svg",
            help="Also a picture: recall against the cost of index and query, over k, and by hops, with intervals.",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the rows here.")] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Keep the index here. Default: a temporary folder.")
    ] = None,
    workers: arguments.Workers = 8,
    max_failure_ratio: arguments.MaxFailureRatio = 0.1,
) -> None:
    """Measure recipes on a data set.

    Beside them stand the baselines bm25, dense and hybrid over the passages. All rows share the passages' vectors
    (in the baselines' build seconds); with --llm or --to also what earlier rows extracted. R@k counts what a search for
    passages returns; `vs hybrid` is the difference of R@5 with its 95 % interval over the questions, a star where zero
    lies outside.

    With --ablations the rows are those of the recipe's paper instead, whose answers came from other models; --answer
    puts the EM and F1 of yours beside the paper's.

    Example: sire eval data/musique -r raptor,sirerag --limit 50 --json rows.json

    An index that is there is asked the questions of a file, with the recipes that it holds; nothing is built and the
    folder is only read: sire eval my-index --questions questions.jsonl
    """
    from sire_core.evaluate.charts import chart
    from sire_core.evaluate.report import write_text

    half, file = read_questions_option(questions)
    asked = Asked(half, file, untitled, titles_in_text)
    check_together(
        {
            "--clusters": clusters,
            "--ablations": ablations,
            "--recipes": recipes,
            "--answer": answer,
            "--plot": plot,
            "--repeats": repeats > 1,
            "--reader-only": reader_only,
            "--sentence-groups": sentence_groups,
            "--missing-edges": missing_edges,
            "--judge": judge,
            "--llm": llm,
        }
    )
    check_index(dataset_dir, asked, builds=ablations or clusters or repeats > 1 or to is not None)
    names = recipe_names(recipes, ablations=ablations) if recipes or file is None else []
    for option, path in (("--json", json_file), ("--answers", answers), ("--plot", plot)):
        check_file(path, option)
    spending = Spending(
        llm, base_url, api_key_env, native, max_calls, max_tokens, workers=workers, model_timeout=model_timeout
    )
    model = spending.model()
    grouped = model if sentence_groups else None
    with recorded(model, answers) as answering, reporting() as progress:
        config = measured(
            budget=budget,
            limit=limit,
            seed=seed,
            returns=returns,
            k=k,
            answer=answer_config(answer, answering, workers, k, reader(reader_prompt, context_tokens)),
        )
        config = replace(config, errors=errors, missing=missing_edges)
        options = IndexOptions(
            folder=to,
            settings=parse_settings(settings),
            embedder=embedder,
            extractions=extractions,
            chunk_tokens=chunk_tokens,
            no_chunking=chunk_tokens is None,
            language_model=None if reader_only else model,
            native=native,
            workers=workers,
            max_failure_ratio=max_failure_ratio,
        )
        if clusters:
            _say_clusters(_data(dataset_dir, asked, grouped), options, json_file)
            return
        if file is not None:
            tables = [run_existing(dataset_dir, file, names, options, config, progress, half)]
        else:
            dataset = _data(dataset_dir, asked, grouped)
            say_size(dataset, config)
            tables = _tables(dataset, names, options, config, progress, ablations=ablations, repeats=repeats)
    if judge is not None:
        judging = replace(spending, llm=judge).model()
        tables = [judged(table, names, judging) for table in tables]
    if plot is not None:
        write_text(plot, chart(tables[0]))
    _say(tables, json_file, ablations=ablations, by_kind=by_kind, by_type=by_type, compare=compare)


def _data(place: Path, asked: Asked, grouped: LanguageModel | None) -> DataSet:
    """The data set as it was asked for, its documents cut by a model where there is one."""
    from sire_core.evaluate.datasets import load_dataset

    dataset = asked.of(load_dataset(place))
    if grouped is None:
        return dataset
    from sire_core.corpus.sentence_groups import group_sentences
    from sire_core.models.sync import run_sync

    return replace(dataset, documents=tuple(run_sync(group_sentences(dataset.documents, grouped))))


def _say(
    tables: list[list[Row]], json_file: Path | None, *, ablations: bool, by_kind: bool, by_type: bool, compare: bool
) -> None:
    """Write the rows, and print their tables."""
    from sire_core.evaluate.report import (
        format_ablations,
        format_analysis,
        format_comparison,
        format_groups,
        format_table,
        write_rows,
    )

    rows = [row for table in tables for row in table]
    if json_file is not None:
        write_rows(json_file, rows)
    say("\n\n".join(map(format_ablations if ablations else format_table, tables)))
    for found in filter(None, map(format_analysis, tables)):
        say("\n" + found)
    if by_type:
        say("\n" + "\n\n".join(map(format_groups, tables)))
    if compare:
        say("\n" + "\n\n".join(map(format_comparison, tables)))
    if by_kind:
        _say_kinds(rows)


def _say_clusters(dataset: DataSet, options: IndexOptions, json_file: Path | None) -> None:
    from sire_core.evaluate.report import write_rows

    report = run_clusters(dataset, options)
    if json_file is not None:
        write_rows(json_file, [report])
    say(report.table())


def _tables(
    dataset: DataSet,
    names: list[str],
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    *,
    ablations: bool,
    repeats: int,
) -> list[list[Row]]:
    """Rows of each paper, or one table of all recipes."""
    if ablations:
        return [run_ablations(dataset, name, options, config, progress) for name in names]
    if repeats > 1:
        return [run_repeats(dataset, names, options, config, progress, repeats)]
    return [run_evaluation(dataset, names, options, config, progress)]


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
