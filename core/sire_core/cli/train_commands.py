"""`sire train-chains` trains the scorer of evidence chains, `sire export-training` writes what extractors learn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from sire_core.arguments import check_choice
from sire_core.cli import option_groups
from sire_core.cli.eval_options import read_questions_option
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import IndexOptions, is_index, manifest_of, open_index, parse_settings
from sire_core.cli.output import check_writable, note, reporting, say, say_json, write_text
from sire_core.errors import ConfigurationError
from sire_core.evaluate.datasets import DataSet, load_dataset, load_questions
from sire_core.settings import need_torch
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.papers.iier.training import TrainedScorer
    from sire_core.papers.iier.training_data import TrainingConfig
    from sire_core.protocols import Progress

_SCORERS = ("light", "encoder")
_BOOKS = ("schema", "hash", "model", "prompt", "status", "reason")  # Of a record what a model does not write


def training_examples(folder: Path, *, documents: int, seed: int, recipe: str) -> Iterator[dict[str, Any]]:
    """Passages of an index with what its model extracted from them, as chats: the joint prompt and its answer."""
    import numpy as np

    from sire_core.changes.estimate import DryRunModel
    from sire_core.extraction.model_extractor import ModelExtractor
    from sire_core.extraction.record import read_records, to_json
    from sire_core.extraction.stage import missing_chunks
    from sire_core.models.prompt_format import render
    from sire_core.storage.index_files import IndexFiles

    with closing(IndexFiles(folder)) as files:
        built = files.manifest().find(None, recipe)
        if "|extract/" not in built.extraction:
            raise ConfigurationError(
                f"{folder}: {built.name} was built from {built.extraction or 'no records'}, not by a model with one "
                "call per passage. Build it with --llm MODEL and without --native."
            )
        chunks = files.store.chunks()
        names = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        drawn = np.random.default_rng(seed).permutation(len(names))[:documents]
        wanted = {names[number] for number in drawn.tolist()}
        asker = ModelExtractor(DryRunModel())
        items = [item for item in missing_chunks(chunks, set()) if item.chunk.doc_id in wanted]
        records = read_records(files.calls.bodies(built.extraction, [item.chunk.hash for item in items]))
        for item in items:
            record = records.get(item.chunk.hash)
            if record is None or record.status == "failed":
                continue
            prompt = render(asker.prompt(item))
            answer = {"entities": [], "facts": [], "keywords": [], "topic": "", "abstractiveness": "low"}
            answer |= {name: value for name, value in json.loads(to_json(record)).items() if name not in _BOOKS}
            texts = (prompt.system, prompt.user, json.dumps(answer, ensure_ascii=False))
            roles = ("system", "user", "assistant")
            yield {"messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=True)]}


def run_training(folder: Path, source: TrainingData, config: TrainingConfig, progress: Progress) -> TrainedScorer:
    """Train on the questions of a data set, indexed in memory, or of an index, and measure on the others."""
    from sire_core.models.sync import run_sync
    from sire_core.papers.iier.training import measure_scorer, prepare_questions, train_scorer

    rates: dict[str, Mapping[str, float]] = {}
    part, file = read_questions_option(source.questions)
    opened = _in_memory(source, folder, source.extractions, progress) if file is None else _index(folder, source, file)
    with opened as (index, dataset):
        training = [question for question in dataset.part(part).questions if question.supporting]
        ids = {question.id for question in training}
        others = dataset.part("all" if part == "all" else "develop").questions  # a test part is for a last look
        held_out = [question for question in others if question.supporting and question.id not in ids]
        prepared = run_sync(prepare_questions(run_sync(index.asnapshot()), training, held_out))
        if prepared.left_out:
            note(f"{count(prepared.left_out, 'question')} left out: a held-out question has a gold passage of theirs.")
        data = {"name": dataset.name, "part": part, "left_out": prepared.left_out}
        trained = run_sync(train_scorer(prepared.view, prepared.training, config, data, progress))
        if prepared.held_out:
            name = f"{dataset.name}, {len(prepared.held_out)} held out"
            rates[name] = run_sync(measure_scorer(trained, prepared.view, prepared.held_out))
    for test_folder in source.tests or ():
        # Extractions belong to the passages that are trained on; other sets have other ids.
        with _in_memory(source, test_folder, None, progress) as (index, dataset):
            prepared = run_sync(prepare_questions(run_sync(index.asnapshot()), dataset.questions))
            name = f"{dataset.name}, {len(prepared.training)}"
            rates[name] = run_sync(measure_scorer(trained, prepared.view, prepared.training))
    trained.card["metrics"]["match_rate"] = rates
    return trained


@contextmanager
def _in_memory(
    source: TrainingData, folder: Path, extractions: Path | None, progress: Progress
) -> Iterator[tuple[Index, DataSet]]:
    dataset = load_dataset(folder)
    options = IndexOptions(
        recipe="iier",
        settings=parse_settings(source.settings),
        embedder=source.embedder,
        extractions=extractions,
        no_chunking=not dataset.whole,
        writes=True,
    )
    with open_index(options, progress) as index:
        index.build(dataset.documents)
        yield index, dataset


@contextmanager
def _index(folder: Path, source: TrainingData, file: Path) -> Iterator[tuple[Index, DataSet]]:
    """Open an index with the graph that its recipe built."""
    recipe_names = [built.name for built in reversed(manifest_of(folder).recipes)]
    name = next((name for name in ("iier", "smart") if name in recipe_names), "")
    if not name:
        raise ConfigurationError(
            f"{folder} has no graph of passages (its recipes are {', '.join(recipe_names)}). Add one: "
            f"sire index SRC... --to {folder} --recipe iier"
        )
    with open_index(IndexOptions(folder=folder, recipe=name, settings=parse_settings(source.settings))) as index:
        yield index, load_questions(file, index.documents(), folder.resolve().name)


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options of how a scorer is trained. Without `--epochs` 40 passes of the light one, 3 of the encoder."""

    group: ClassVar[str] = "Training"

    scorer: Annotated[
        str,
        option(
            "--scorer light|encoder",
            "`light` uses the index's vectors and needs no torch for searching. `encoder` is the paper's: it also "
            "trains a text encoder, and needs torch and transformers for searching, too.",
        ),
    ] = "light"
    encoder: Annotated[
        str | None,
        option("--encoder NAME_OR_FOLDER", "The text encoder to train, such as roberta-base in the paper."),
    ] = None
    encoder_tokens: Annotated[int, option("--encoder-tokens N", "Maximum text length for the encoder.", min=8)] = 512
    labels: Annotated[
        str,
        option(
            "--labels all_shortest|one_path",
            "Correct steps: all steps on any shortest path, or on one shortest path only, as in the paper.",
        ),
    ] = "all_shortest"
    max_hops: Annotated[
        int,
        option(
            "--max-hops N", "Ignore gold passages that are further apart; 0 means no limit, as in the paper.", min=0
        ),
    ] = 2
    loss: Annotated[str, option("--loss listwise|bce", "The loss function.")] = "listwise"
    epochs: Annotated[int | None, option("--epochs N", "Maximum number of passes over the questions.", min=1)] = None
    seed: Annotated[int, option("--seed", "Random seed; the same seed gives the same checkpoint.", min=0)] = 0

    def config(self, max_length: int | None) -> TrainingConfig:
        """The configuration of the training."""
        from sire_core.papers.iier.training_data import EncoderConfig, TrainingConfig

        check_choice("--scorer", self.scorer, _SCORERS)
        if (self.scorer == "encoder") != bool(self.encoder):
            raise ConfigurationError("--scorer encoder and --encoder NAME_OR_FOLDER go together; give both or none.")
        options = {"max_length": max_length, "epochs": self.epochs}
        values: dict[str, Any] = {}
        if self.encoder is not None:
            encoder = EncoderConfig(self.encoder, self.encoder_tokens)
            values = {"epochs": 3, "patience": 2, "batch": 8, "encoder": encoder}
        values |= {name: value for name, value in options.items() if value is not None}
        return TrainingConfig(
            labels=self.labels, loss=self.loss, max_hops=self.max_hops or None, seed=self.seed, **values
        )


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Options of what a scorer learns from, and is measured on."""

    group: ClassVar[str] = "Questions"

    questions: Annotated[
        list[str] | None,
        option(
            "--questions all|even|odd|FILE",
            "Questions to train on, by position counted from 0; the others are used for measuring. For an index, "
            "also the file of questions.",
        ),
    ] = None
    tests: Annotated[
        list[Path] | None,
        option("--test DATASET", "Also measure on this data set; repeatable."),
    ] = None
    embedder: Annotated[
        str | None,
        option(
            "--embedder SPEC",
            "The embedder for a data set, as for `sire index`; the light scorer needs an index with the same one. "
            "Default: lexical.",
        ),
    ] = None
    extractions: option_groups.Extractions = None
    settings: Annotated[
        list[str] | None,
        option(
            "--set KEY=VALUE", "A setting of iier's graph, seeds or chain length, such as `max_length=4`; repeatable."
        ),
    ] = None

    def check(self, folder: Path) -> None:
        """Refuse what does not go together, and settings without an effect on training."""
        from sire_core.papers.iier.training import training_settings
        from sire_core.recipes import recipe_by_name

        file, in_index = read_questions_option(self.questions)[1], is_index(folder)
        if in_index and file is None:
            raise ConfigurationError(f"{folder} is an index: name its questions with --questions FILE.")
        if file is not None and not in_index:
            raise ConfigurationError(f"{file}: --questions FILE is for an index folder, and {folder} is none.")
        if in_index and (self.tests or self.embedder or self.extractions):
            raise ConfigurationError("An index is used as it is: leave --test, --embedder and --extractions out.")
        settings = parse_settings(self.settings)
        defaults, used = recipe_by_name("iier").config, training_settings(with_graph=not in_index)
        for name in settings:
            if name in defaults and name not in used:
                raise ConfigurationError(
                    f"--set {name} has no effect on training{' over an index' * in_index}; leave it out. These "
                    f"have: {', '.join(used)}."
                )
        recipe_by_name("iier", **settings)


@grouped
def train_chains(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET_or_INDEX",
            help="A folder with corpus.jsonl and questions*.jsonl, or an official file of HotpotQA, 2WikiMultiHopQA or "
            "MuSiQue. Or, with --questions FILE, an index folder, to train on its graph. Questions need their gold "
            "passages ('supporting').",
        ),
    ],
    to: Annotated[Path, option("--to FILE", "Output file of the checkpoint (safetensors).")],
    options: TrainingOptions,
    data_options: TrainingData,
    as_json: option_groups.AsJson = False,
) -> None:
    """Train a scorer for the chains of iier.

    Use it with `--set scorer=neural --set checkpoint=FILE` of `sire query`, `sire eval` and `sire index`. The file must
    be named in every search, even if the folder was built with it. The scorer learns from shortest paths between gold
    passages. A fifth of the questions is held out, and training stops when the chains find no more of their gold
    passages. As published: --scorer encoder --labels one_path --max-hops 0.

    Training needs torch: pip install "sire-rag[torch]". Searching with the light scorer does not.

    Example: sire train-chains data/2wiki --to chains.safetensors --questions even --test data/hotpotqa
    """
    from sire_core.papers.iier.neural import write_checkpoint

    need_torch("Training")
    check_writable("--to", to)
    data_options.check(source)
    config = options.config(parse_settings(data_options.settings).get("max_length"))
    with reporting() as progress:
        trained = run_training(source, data_options, config, progress)
    card = write_checkpoint(to, trained.weights, trained.card)
    _warn(card["metrics"])
    if as_json:
        say_json({name: value for name, value in card.items() if name != "encoder"})  # its vocabulary is long
    else:
        _say_card(to, card)


def _measured(metrics: dict[str, Any], validation: str) -> dict[str, dict[str, float]]:
    """Match rates by what they were measured on."""
    return {validation: metrics["validation_match_rate"], **metrics["match_rate"]}


def _warn(metrics: dict[str, Any]) -> None:
    """Say where the heuristic, which costs nothing, finds more."""
    for name, rates in _measured(metrics, "the validation questions").items():
        if rates["neural"] < rates["heuristic"]:
            note(
                f"On {name} the trained scorer finds {rates['neural']:.1f} % of the gold passages, the heuristic "
                f"{rates['heuristic']:.1f} %: stay with scorer=heuristic, or train on more questions.",
                "yellow",
            )


def _say_card(path: Path, card: dict[str, Any]) -> None:
    data, metrics = card["data"], card["metrics"]
    say(
        f"{path}: learned from {data['decisions']:,} steps of {data['questions']:,} questions of {data['name']}, "
        f"stopped at epoch {metrics['epoch']}, digest {card['digest']}"
    )
    rows = _measured(metrics, f"validation, {data['validation_questions']}")
    head = "share of gold passages on chains"
    width = max(map(len, (head, *rows)))
    say(f"\n{head:<{width}} {'neural':>8} {'heuristic':>10} {'random':>8}")
    for name, rates in rows.items():
        say(f"{name:<{width}} {rates['neural']:>8.1f} {rates['heuristic']:>10.1f} {rates['random']:>8.1f}")


def export_training(
    folder: option_groups.Folder,
    to: Annotated[Path, option("--to FILE.jsonl", "Output file, with one chat per line.")],
    documents: Annotated[
        int, option("--documents N", "Maximum number of documents, chosen at random.", min=1)
    ] = 10_000,
    seed: Annotated[int, option("--seed", "Random seed.", min=0)] = 0,
    recipe: option_groups.HeldRecipe = None,
) -> None:
    """Export a model's extractions as training examples.

    An example consists of the prompt for a passage and the model's answer.

    The SiReRAG paper trains a small model on 10,000 documents labelled by a large one. The small model is then used
    with the same prompts: sire index SRC --to DIR --llm SMALL --base-url URL.
    """
    check_writable("--to", to)
    examples = training_examples(folder, documents=documents, seed=seed, recipe=recipe or "")
    lines = [json.dumps(example, ensure_ascii=False) + "\n" for example in examples]
    write_text(to, "".join(lines))
    say(f"{to}: {count(len(lines), 'example')}.")
