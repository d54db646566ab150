"""The models of `sire eval`, and the places where what they answer is kept."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sire_core.cli.output import note
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.cli.models import ModelOptions
    from sire_core.models.caching import AnswerStore
    from sire_core.models.usage_meter import UsageMeter
    from sire_core.protocols import LanguageModel, WrapModel

__all__ = ["EvalModels", "eval_models"]


@dataclass(frozen=True, slots=True)
class EvalModels:
    """The models of an evaluation.

    Attributes:
        builder: Extracts and summarizes; the index keeps what it answers. None without a model.
        asked: The same model for everything else (groups of sentences, topics, searches, answers, analyses); what it
            answers is kept in a file.
        judge: Compares answers; kept there, and counted with the others.
        named: Makes of a model that a setting names one that is kept there, and counted with the others; None without
            `--llm`, whose limits hold for all.
        folder: Where indexes are built; None takes a temporary folder.
    """

    builder: LanguageModel | None
    asked: LanguageModel | None
    judge: LanguageModel | None
    named: WrapModel | None
    folder: Path | None


@contextmanager
def eval_models(
    calls: ModelOptions, *, judge: str | None, to: Path | None, answers: Path | None, builds: bool
) -> Iterator[EvalModels]:
    """The models, and the places where what they answer is kept: those that are named, else temporary ones.

    Temporary places stay where they are when the evaluation does not come to its end, and a line says how to go on.
    """
    from sire_core.evaluate.answer_file import AnswerFile
    from sire_core.models.caching import CachedModel

    model = calls.model()
    if model is None:
        if answers is not None:
            raise ConfigurationError("--answers FILE keeps what a model answers; it needs --llm MODEL.")
        yield EvalModels(None, None, None, None, to)
        return
    judging = None
    if judge is not None:
        unbounded = replace(calls, llm=judge, max_calls=None, max_tokens=None).model()
        assert unbounded is not None  # it has a name
        judging = unbounded.metered(model.meter, "judge")
    with _places(to, answers, model.meter, builds=builds) as (folder, file), closing(AnswerFile(file)) as kept:
        yield EvalModels(
            model,
            CachedModel(model, kept, "answers"),
            None if judging is None else CachedModel(judging, kept, "judge"),
            partial(_cached_once, {}, model.meter, kept),
            folder,
        )


def _cached_once(
    made: dict[LanguageModel, LanguageModel], meter: UsageMeter, kept: AnswerStore, named: LanguageModel
) -> LanguageModel:
    """Store a model's answers; one object per model, so that equal prompts in flight are one call."""
    from sire_core.models.caching import CachedModel
    from sire_core.models.usage_meter import with_meter

    if named not in made:
        made[named] = CachedModel(with_meter(named, meter, "search"), kept, "search")
    return made[named]


def _answers_file(folder: Path) -> Path:
    """The file of answers next to a folder, not inside it: an index is built in an empty folder only."""
    return Path(f"{folder}.answers.jsonl")


@contextmanager
def _places(
    to: Path | None, answers: Path | None, meter: UsageMeter, *, builds: bool
) -> Iterator[tuple[Path | None, Path]]:
    """Folder of the indexes, and file of the answers; temporary ones are kept where something was paid for."""
    if to is not None:
        file = answers or _answers_file(to)
        file.parent.mkdir(parents=True, exist_ok=True)
        yield to, file
        return
    place = Path(tempfile.mkdtemp(prefix="sire-eval-"))
    index = place / "index"
    words = ["--to", str(index)] if builds else ["--answers", str(_answers_file(index))]
    elsewhere = answers is not None and not builds  # nothing is in the temporary folder
    try:
        yield index if builds else None, answers or _answers_file(index)
    except BaseException:
        paid = meter.report().total.output_tokens
        if paid and elsewhere:
            note(f"What the model has answered is kept in {answers}. To go on, run the same command again.", "yellow")
        elif paid:
            note(
                f"What the model has answered is kept. The same command goes on from there with: {shlex.join(words)}",
                "yellow",
            )
        if elsewhere or not paid:
            shutil.rmtree(place, ignore_errors=True)
        raise
    shutil.rmtree(place, ignore_errors=True)
