"""Options of `sire eval`, in groups, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from sire_core.arguments import check_choice
from sire_core.cli import option_groups
from sire_core.cli.model_options import EvalModels, ModelOptions
from sire_core.cli.option_groups import option
from sire_core.cli.options import (
    IndexOptions,
    check_writing,
    extractor_of,
    is_index,
    manifest_of,
    parse_settings,
    read_examples,
)
from sire_core.cli.output import check_writable, note
from sire_core.errors import ConfigurationError
from sire_core.evaluate.datasets import PARTS, DataSet
from sire_core.index_options import MAX_FAILURE_RATIO
from sire_core.protocols.building import extraction_by_preset

if TYPE_CHECKING:
    from sire_core.evaluate.answer_eval import AnswerConfig
    from sire_core.evaluate.experiment import Experiment
    from sire_core.evaluate.gate import Gate
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel

DataSetOrIndex = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET_DIR_or_INDEX",
        help="A folder with corpus.jsonl and questions*.jsonl, an official file of HotpotQA, 2WikiMultiHopQA, "
        "MuSiQue and others, or, with --questions FILE, an index folder.",
    ),
]


def read_questions_option(values: Sequence[str] | None) -> tuple[str, Path | None]:
    """Split `--questions` into a part and a file."""
    parts = [word for word in values or () if word in PARTS]
    files = [word for word in values or () if word not in PARTS]
    if len(parts) > 1 or len(files) > 1:
        raise ConfigurationError(f"--questions takes one of {', '.join(PARTS)} and, for an index, one file.")
    return parts[0] if parts else "all", Path(files[0]) if files else None


def check_index(folder: Path, options: QuestionOptions, *, builds: bool) -> None:
    """Refuse options that do not go together with an index, or with a data set."""
    existing = is_index(folder)
    if existing and options.file is None:
        raise ConfigurationError(f"{folder} is an index; give it questions with --questions FILE.")
    if options.file is not None and not existing:
        raise ConfigurationError(
            f"{options.file}: --questions is for an index folder, and {folder} is none; of a data set it takes "
            f"{', '.join(PARTS)}."
        )
    if existing and (builds or options.untitled or options.titles_in_text or options.chunks):
        raise ConfigurationError(
            "An index is only read: leave --ablations, --repeats, --to, --chunks, --untitled and --titles-in-text out."
        )


def recipe_names(chosen: Sequence[str] | None, *, ablations: bool) -> list[str]:
    """Names of recipes, each once; without any given, all but the baseline, or all that have ablations."""
    from sire_core.recipes import REGISTRY, recipe_by_name
    from sire_core.recipes.published import ablations_of, recipes_with_ablations

    split = [name.strip() for word in chosen or () for name in word.split(",") if name.strip()]
    available = recipes_with_ablations() if ablations else sorted(name for name in REGISTRY if name != "flat")
    names = list(dict.fromkeys(split)) or available
    for name in names:
        recipe_by_name(name)
        if ablations:
            ablations_of(name)
    return names


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Options of the questions and texts."""

    group: ClassVar[str] = "Questions and texts"

    questions: Annotated[
        list[str] | None,
        option(
            "--questions even|odd|test|develop|all|FILE",
            "Use only a part of the questions: `test` is a third, chosen by a hash of their ids, to be kept for a last "
            "look; of the others `even` and `odd` are those at such positions, to learn from and to choose by, and "
            "`develop` is both. For an index folder, the file of questions, with one JSON object per line: "
            '{"id", "question", "answers", "supporting"}; supporting lists ids of documents or passages; in its place '
            '"needs" lists quotes: [[{"doc", "quote"}, ...alternatives], ...].',
        ),
    ] = None
    chunks: Annotated[
        str | None,
        option(
            "--chunks files|langchain|llama-index|none",
            "Cut the documents into passages like `sire index` (files), with LangChain's header and character "
            "splitters, with LlamaIndex's SentenceSplitter, or not at all. Default: files where the data set has a "
            "folder of files or whole documents, otherwise none.",
        ),
    ] = None
    untitled: Annotated[bool, option("--untitled", "Index the documents without their titles.")] = False
    titles_in_text: Annotated[bool, option("--titles-in-text", "Put titles into the first line of the texts only.")] = (
        False
    )
    limit: Annotated[int | None, option("--limit", "Use a random sample of this many questions.", min=1)] = None
    seed: Annotated[int, option("--seed", "Random seed of the sample.", min=0)] = 0
    sentence_groups: Annotated[
        bool,
        option("--sentence-groups", "Let --llm split the documents into groups of sentences: details and overviews."),
    ] = False

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        read_questions_option(self.questions)
        if self.untitled and self.titles_in_text:
            raise ConfigurationError("Give --untitled or --titles-in-text, not both.")

    @property
    def part(self) -> str:
        """The part of the questions, one of `PARTS`."""
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
        return dataset.part(self.part)


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options of the recipes and of their builds."""

    group: ClassVar[str] = "Recipes and builds"

    recipes: Annotated[
        list[str] | None,
        option("--recipes --recipe -r R,R", "Recipes, separated by commas; repeatable. Default: all."),
    ] = None
    preset: option_groups.Preset = None
    settings: option_groups.EvalSettings = None
    embedder: option_groups.Embedder = None
    extractions: option_groups.Extractions = None
    chunk_tokens: Annotated[
        int | None, option("--chunk-tokens", "Split longer passages. Default: do not split.", min=1)
    ] = None
    to: Annotated[
        Path | None,
        option(
            "--to DIR",
            "Keep the index here, and all other answers of models in DIR.answers.sqlite. Default: a temporary "
            "folder, which is kept if a run with --llm is interrupted.",
        ),
    ] = None
    repeats: Annotated[
        int,
        option("--repeats N", "Build N times with different seeds; show mean and spread.", min=1),
    ] = 1
    ablations: Annotated[
        bool, option("--ablations", "Show the ablation tables of the papers, with the published figures.")
    ] = False
    max_failure_ratio: option_groups.MaxFailureRatio = MAX_FAILURE_RATIO

    @property
    def values(self) -> dict[str, Any]:
        """Settings by name."""
        return parse_settings(self.settings, self.preset)

    @property
    def builds(self) -> bool:
        """True if these options need something to be built."""
        return self.ablations or self.repeats > 1 or self.to is not None

    def experiment(self, dataset: DataSet, models: EvalModels, calls: ModelOptions) -> Experiment:
        """The experiment that these options describe."""
        from sire_core.evaluate.experiment import Experiment

        folders = [models.folder]
        if self.repeats > 1 and models.folder is not None:
            folders = [models.folder / f"seed-{seed}" for seed in range(self.repeats)]
        options = IndexOptions(extractions=self.extractions, language_model=models.builder, native=calls.native)
        for folder in folders:
            check_writing(replace(options, folder=folder), manifest_of(folder))
        return Experiment(
            dataset,
            repeats=self.repeats,
            ablations=self.ablations,
            settings=self.values,
            folder=models.folder,
            embedder=self.embedder,
            chunk_tokens=self.chunk_tokens,
            extractor=extractor_of(options),
            language_model=models.builder,
            extraction="native" if calls.native else None,
            wrap_model=models.named,
            workers=calls.workers,
            max_failure_ratio=self.max_failure_ratio,
            log=note,
        )


@dataclass(frozen=True, slots=True)
class EvalAnswerOptions:
    """Options of the answers."""

    group: ClassVar[str] = "Answers of a model"

    answer: Annotated[
        str | None,
        option(
            "--answer single|ircot|self-ask|closed-book|golden",
            "Also let --llm answer the questions in this way; shows EM, F1, Acc, calls, and the recall of "
            "everything that was read. `closed-book` reads nothing, `golden` reads the gold passages.",
        ),
    ] = None
    flavor: option_groups.Flavor = None
    examples: option_groups.Examples = None
    reader_prompt: Annotated[
        str | None,
        option(
            "--reader-prompt ours|paper|brief",
            "`ours` allows the answer that the evidence is insufficient; `paper` requires an answer always, as in "
            "the papers; `brief` in less than six words (IIER). Default: `ours`, with a preset of the paper `paper`.",
        ),
    ] = None
    reader_only: Annotated[
        bool, option("--reader-only", "Use the model only for answers, and build indexes without it.")
    ] = False
    context_tokens: Annotated[
        int | None, option("--context-tokens N", "Maximum tokens that the model reads.", min=1)
    ] = None
    context_border: Annotated[
        str,
        option(
            "--context-border cut|break|skip|choose",
            "What happens to the hit that crosses the limit: cut it there, end the context before it (as in "
            "RAPTOR's code), or skip it. `choose` reads the parts of all hits that answer the question.",
        ),
    ] = "cut"
    answers: Annotated[
        Path | None,
        option(
            "--answers FILE",
            "Store the model's answers here, except those of builds; the same command resumes. Default: a file "
            "next to the folder of --to, otherwise a temporary one that is kept if the run is interrupted.",
        ),
    ] = None
    judge: Annotated[
        str | None,
        option(
            "--judge MODEL",
            "Let this model, on the same server, compare the answers with those of the first recipe, in both "
            "orders. Needs --answer.",
        ),
    ] = None

    def like_paper(self, settings: Mapping[str, Any]) -> EvalAnswerOptions:
        """These options; where the settings are those of a paper, so is the prompt of the reader."""
        if self.answer and self.reader_prompt is None and extraction_by_preset(settings) == "native":
            return replace(self, reader_prompt="paper")
        return self

    def config(self, model: LanguageModel | None, workers: int, k: int | None) -> AnswerConfig | None:
        """The configuration of answers; None without --answer."""
        from sire_core.reason.answer_reader import ReaderConfig

        reader = ReaderConfig(
            self.reader_prompt or "ours",  # type: ignore[arg-type]  # the config checks it
            self.context_tokens,
            border=self.context_border,  # type: ignore[arg-type]  # as above
        )
        if self.answer is None:
            if self.flavor or self.examples:
                raise ConfigurationError("--flavor and --examples need --answer ircot or self-ask.")
            if reader != ReaderConfig():
                raise ConfigurationError(
                    "--reader-prompt, --context-tokens and --context-border need --answer single, ircot or self-ask."
                )
            return None
        from sire_core.evaluate.answer_eval import CLOSED_BOOK, GOLDEN, AnswerConfig
        from sire_core.reason import STRATEGIES, IRCoTConfig, settings_of

        ways = (*STRATEGIES, CLOSED_BOOK, GOLDEN)
        check_choice("--answer", self.answer, ways)
        if model is None:
            raise ConfigurationError("--answer needs --llm MODEL: somebody has to answer.")
        examples = read_examples(self.examples)
        settings_of(self.answer if self.answer in STRATEGIES else "single", self.flavor, examples)
        collects = (self.answer, self.flavor) == ("ircot", "original")  # all that it collected is read
        k = k or (IRCoTConfig().paragraphs if collects else AnswerConfig().k)
        return AnswerConfig(self.answer, self.flavor, k, workers, reader, model, examples)


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of the measures."""

    group: ClassVar[str] = "Measures"

    k: Annotated[
        int | None,
        option(
            "-k N", "Number of hits to measure, and for the model to read. Default: 20 to measure, 10 to read.", min=1
        ),
    ] = None
    budget: Annotated[int, option("--budget", "Tokens of context for R@budget and answer@budget.", min=1)] = 1500
    budgets: Annotated[
        str | None,
        option(
            "--budgets N,N,...",
            "Also measure how much of the required evidence is delivered within so many tokens, such as "
            "300,1000,2000,4000: by whole passages, and by contexts (`sire query --max-tokens`). Adds baselines over "
            "pieces of 450 characters.",
        ),
    ] = None
    returns: option_groups.Returns = "units"
    missing_edges: Annotated[
        int,
        option(
            "--missing-edges N", "Also let --llm count missing and wrong relations of the graph in N passages.", min=0
        ),
    ] = 0

    def config(
        self, questions: QuestionOptions, answering: EvalAnswerOptions, model: LanguageModel | None, workers: int
    ) -> EvalConfig:
        """The configuration of the measures; with `-k N` of a search for N hits, at N and the usual cut-offs below."""
        from sire_core.evaluate.runner import EvalConfig

        usual = EvalConfig(
            budget=self.budget,
            limit=questions.limit,
            seed=questions.seed,
            returns=self.returns,
            answer=answering.config(model, workers, self.k),
            missing=self.missing_edges,
            budgets=_budgets(self.budgets),
            model=model,
        )
        if self.k is None:
            return usual
        return replace(usual, ks=(*(k for k in usual.ks if k < self.k), self.k), depth=self.k)


def _budgets(text: str | None) -> tuple[int, ...]:
    """Numbers of tokens, ascending."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if not all(part.isdigit() for part in parts):
        raise ConfigurationError(f"--budgets {text}: write numbers of tokens, such as 300,1000,2000,4000.")
    return tuple(sorted(set(map(int, parts))))


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of a printed table."""

    group: ClassVar[str] = "Output"

    wide: Annotated[
        bool,
        option("--wide", "Show all columns. Default: those that fit the terminal; in a file or pipe, 100 columns."),
    ] = False
    json_file: Annotated[
        Path | None,
        option("--json FILE", "Also write the rows, with every question's result, to this file."),
    ] = None
    export: Annotated[
        Path | None,
        option(
            "--export DIR",
            "Also write for a paper: rows.csv, rows.tex, comparisons.csv (each two rows, corrected p-values), and for "
            "programs of TREC qrels.txt and a run per row.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ReportOptions(TableOptions):
    """Options of the output."""

    group: ClassVar[str] = "Output"

    by_type: Annotated[bool, option("--by-type", "Also show R@5 by number of hops and type of question.")] = False
    by_kind: Annotated[
        bool, option("--by-kind", "Also show what each kind of unit contributes: hits and points of recall.")
    ] = False
    compare: Annotated[bool, option("--compare", "Also show published figures, and how they were measured.")] = False
    runs: Annotated[
        list[Path] | None,
        option("--run FILE", "Also measure a run of another system, in the format of TREC; repeatable."),
    ] = None
    fail_under: Annotated[
        list[str] | None,
        option(
            "--fail-under METRIC@K=PERCENT",
            "Exit with code 1 if a recipe is below, such as recall@5=80, all@5=60, ndcg@10=70 or mrr=75. "
            "Repeatable; the baselines do not count.",
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        option(
            "--baseline FILE",
            "Exit with code 1 if a recipe's recall is below that in this file, which --json wrote earlier.",
        ),
    ] = None

    @property
    def gate(self) -> Gate:
        """The conditions that recipes have to meet."""
        from sire_core.evaluate.gate import Gate

        return Gate.read(self.fail_under or (), self.baseline)

    def check(
        self,
        questions: QuestionOptions,
        answering: EvalAnswerOptions,
        measured: MeasureOptions,
        llm: str | None,
    ) -> None:
        """Refuse options that do not go together, and files that cannot be written, before anything is built."""
        answer = answering.answer
        uses_model = answer or questions.sentence_groups or questions.file or measured.missing_edges
        mistakes = {
            "--reader-only leaves the model nothing but the answers: give --answer, too.": (
                answering.reader_only and not answer
            ),
            "--judge compares answers: give --answer single, too.": answering.judge and not answer,
            "--sentence-groups needs --llm MODEL: a model cuts the documents.": questions.sentence_groups and not llm,
            "--answers keeps what a model is asked beside the builds: give --answer, too, or another option that has "
            "the model asked. --to DIR keeps everything.": llm and answering.answers and not uses_model,
            "--missing-edges needs --llm MODEL: a model reads the passages.": measured.missing_edges and not llm,
        }
        for message, is_wrong in mistakes.items():
            if is_wrong:
                raise ConfigurationError(message)
        for name, path in (("--json", self.json_file), ("--answers", answering.answers)):
            if path is not None:
                check_writable(name, path)
