"""What `sire eval` is asked for, checked before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.cli.options import is_index
from sire_core.cli.output import can_be_written
from sire_core.errors import ConfigurationError
from sire_core.evaluate.datasets import HALVES

if TYPE_CHECKING:
    from sire_core.evaluate.answered import AnswerConfig
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import LanguageModel
    from sire_core.reason.reader import ReaderConfig

__all__ = [
    "QuestionSelection",
    "answer_config",
    "check_file",
    "check_index",
    "check_together",
    "measured",
    "read_questions_option",
    "reader",
    "recipe_names",
]


@dataclass(frozen=True, slots=True)
class QuestionSelection:
    """Which questions over which texts.

    Attributes:
        half: `even`, `odd` or `all`.
        file: Questions to an index; None asks those of the data set.
        untitled: Titles are removed.
        titles_in_text: Titles are the first lines of the texts.

    Raises:
        ConfigurationError: Titles cannot be removed and written into the texts.
    """

    half: str = "all"
    file: Path | None = None
    untitled: bool = False
    titles_in_text: bool = False

    def __post_init__(self) -> None:
        if self.untitled and self.titles_in_text:
            raise ConfigurationError("Give --untitled or --titles-in-text, not both.")

    def of(self, dataset: DataSet) -> DataSet:
        """The data set as it was asked for."""
        if self.untitled:
            dataset = dataset.untitled()
        if self.titles_in_text:
            dataset = dataset.with_titles_in_text()
        return dataset.half(self.half)


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


def check_index(place: Path, asked: QuestionSelection, *, builds: bool) -> None:
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
    if existing and (builds or asked.untitled or asked.titles_in_text):
        raise ConfigurationError(
            "An index is only read: leave --ablations, --clusters, --repeats, --to, --untitled and "
            "--titles-in-text out."
        )


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


def check_together(given: Mapping[str, object]) -> None:
    """Refuse options that exclude each other, or that need one that is not there.

    Args:
        given: By name of the option its value; what is false was not given.

    Raises:
        ConfigurationError: They do not go together.
    """
    for (one, other), message in _APART.items():
        if given[one] and given[other]:
            raise ConfigurationError(message)
    for (one, other), message in _NEEDED.items():
        if given[one] and not given[other]:
            raise ConfigurationError(message)


def answer_config(
    via: str | None, model: LanguageModel | None, workers: int, k: int | None, reader: ReaderConfig
) -> AnswerConfig | None:
    """How questions are answered.

    Raises:
        ConfigurationError: There is no model, no such strategy, or a reader without anything to read.
    """
    from sire_core.reason.reader import ReaderConfig

    if via is None:
        if reader != ReaderConfig():
            raise ConfigurationError(
                "--reader-prompt, --context-tokens and --context-border need --answer single, ircot or self-ask."
            )
        return None
    from sire_core.evaluate.answered import CLOSED_BOOK, GOLDEN, AnswerConfig
    from sire_core.reason import STRATEGIES

    known = (*STRATEGIES, CLOSED_BOOK, GOLDEN)
    if via not in known:
        raise ConfigurationError(f"--answer {via}: choose one of {', '.join(known)}.")
    if model is None:
        raise ConfigurationError("--answer needs --llm MODEL: somebody has to answer.")
    return AnswerConfig(via, k=k or AnswerConfig().k, workers=workers, reader=reader, model=model)


def reader(prompt: str, tokens: int | None, border: str) -> ReaderConfig:
    """How answers are read from what was found.

    Raises:
        ConfigurationError: There is no such prompt or border.
    """
    from sire_core.reason.reader import ReaderConfig

    return ReaderConfig(prompt, tokens, border=border)  # type: ignore[arg-type]  # the config checks them


def measured(
    *,
    budget: int,
    limit: int | None,
    seed: int,
    returns: str,
    k: int | None,
    answer: AnswerConfig | None,
    errors: bool,
    missing: int,
    model: LanguageModel | None,
) -> EvalConfig:
    """What is measured; with `-k N` what a search for N hits finds, at the usual cut-offs and at N.

    Raises:
        ConfigurationError: A value makes no sense.
    """
    from sire_core.evaluate.runner import EvalConfig

    usual = EvalConfig(
        budget=budget,
        limit=limit,
        seed=seed,
        returns=returns,
        answer=answer,
        errors=errors,
        missing=missing,
        model=model,
    )
    return usual if k is None else replace(usual, ks=tuple(sorted({*usual.ks, k})), depth=k)


def check_file(file: Path | None, option: str) -> None:
    """Find out now, not after an hour, that results cannot be written.

    Raises:
        ConfigurationError: There is no such folder, or it may not be written to.
    """
    if file is not None and not can_be_written(file):
        raise ConfigurationError(f"{option} {file}: name a file in a folder that exists and is yours to write.")


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
