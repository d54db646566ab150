"""The rows of papers: every one is settled before the first is built, and all are made in one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from sire_core.cli.evaluation import Rows
from sire_core.cli.output import note
from sire_core.cli.recipe_options import settings_had
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.cli.evaluation_rows import Evaluation
    from sire_core.cli.options import IndexOptions
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.recipes.ablations import Ablation

__all__ = ["AblationRow", "ablation_rows", "run_ablations"]


class AblationRow(NamedTuple):
    """A row with all that decides how it is made.

    Attributes:
        ablation: The paper's row.
        own: Its settings: those that were given, and over them the row's.
        config: Every setting of its recipe: an unnamed one would mean what a folder was built with last.
        note: Which of the given settings it is made without; empty if none.
    """

    ablation: Ablation
    own: Mapping[str, Any]
    config: Mapping[str, Any]
    note: str


def ablation_rows(recipes: Sequence[str], given: Mapping[str, Any]) -> dict[str, list[AblationRow]]:
    """The rows of each recipe's paper, below the baselines `dense` and `hybrid`, which no setting changes.

    A given setting holds in every row whose recipe has it and that does not set it itself. What the row's own settings
    make idle is left out there, with a note; a row that makes no sense beside the given settings is left out itself.

    Args:
        recipes: Recipes with ablations; see `sire_core.recipes.ablations`.
        given: Settings of `--set`.

    Raises:
        ConfigurationError: None of the recipes has one of the settings, or one refuses a value.
    """
    from sire_core.recipes import recipe_by_name
    from sire_core.recipes.ablations import Ablation, ablations_of

    for name, known in settings_had(recipes, given).items():
        recipe_by_name(name, **known)
    baselines = [
        _settled(Ablation("baseline", ranker, "flat", {"ranker": ranker}), {}) for ranker in ("dense", "hybrid")
    ]
    found: dict[str, list[AblationRow]] = {}
    for name in recipes:
        rows = [_settled_or_said(ablation, given) for ablation in ablations_of(name)]
        found[name] = [*baselines, *(row for row in rows if row is not None)]
    return found


def _settled_or_said(ablation: Ablation, given: Mapping[str, Any]) -> AblationRow | None:
    """A row beside the given settings; None where they do not go together, which is said."""
    try:
        return _settled(ablation, given)
    except ConfigurationError as error:
        note(f"{ablation.label}: left out, {error}", "yellow")
        return None


def _settled(ablation: Ablation, given: Mapping[str, Any]) -> AblationRow:
    """A row beside the given settings.

    Raises:
        ConfigurationError: They do not go together.
    """
    from sire_core.recipes import recipe_by_name
    from sire_core.recipes.registry import recipe_with

    known = recipe_by_name(ablation.recipe).config
    beside = {key: value for key, value in given.items() if key in known and key not in ablation.settings}
    config = recipe_with(ablation.recipe, ablation.settings, beside).config
    # One that is idle has its default again.
    idle = [key for key, value in beside.items() if config[key] != value]
    own = {**{key: value for key, value in beside.items() if key not in idle}, **ablation.settings}
    return AblationRow(ablation, own, config, f"without {', '.join(idle)}, idle here" if idle else "")


def run_ablations(
    asked: Evaluation,
    recipe: str,
    finished: Callable[[EvalRow], None] | None = None,
    rows: Sequence[AblationRow] | None = None,
) -> list[EvalRow]:
    """Build every row of a recipe's paper in one folder, and ask all of them the questions.

    Args:
        asked: What is measured on what; the settings of its options are those that every row has beside its own, see
            `ablation_rows`.
        recipe: A recipe with ablations; see `sire_core.recipes.ablations`.
        finished: Told about every row as soon as it is there.
        rows: What `ablation_rows` found for the recipe; None asks it.

    Returns:
        The rows `dense` and `hybrid`, then one per ablation that can be made with these options, with the paper's
        figures in `Setup.paper`; a row that found what an earlier one of its recipe found is marked. `build_s` is what
        a row costs beyond the vectors and records of the rows before it.

    Raises:
        ConfigurationError: No ablations, nothing to ask, or the folder holds another corpus.
    """
    from sire_core.evaluate.bootstrap import mark_same, with_intervals, with_tper
    from sire_core.evaluate.rows import Setup
    from sire_core.recipes.ablations import CONTEXT

    settled = ablation_rows([recipe], asked.options.settings or {})[recipe] if rows is None else rows
    config = asked.config
    if config.answer is not None and config.depth is None:  # no -k: as many hits as the paper reads
        config = replace(config, answer=replace(config.answer, k=CONTEXT.get(recipe, config.answer.k)))
    done = Rows(finished)
    with asked.shared() as common:
        for ablation, own, every, left_out in settled:
            if missing := _missing(ablation, common, config):
                note(f"{ablation.label}: left out, {missing}", "yellow")
                continue
            made = replace(common, recipe=ablation.recipe, settings=every)
            built = asked.build(made)
            printed, figures = ablation.figures(asked.dataset.name)
            paper = {"table": ablation.table, **({"dataset": printed, **figures} if printed else {})}
            setup = Setup(
                ablation.label,
                build_s=built.seconds,
                paper=paper,
                settings=own,
                family=ablation.recipe,
                calls=built.calls,
                note=left_out,
            )
            answer = config.answer and replace(config.answer, **ablation.answer)
            row = replace(asked, config=replace(config, answer=answer))
            done.add(row.ask(setup, replace(made, writes=False)))
    return mark_same(with_tper(with_intervals(done.found)))


def _missing(ablation: Ablation, options: IndexOptions, config: EvalConfig) -> str:
    """What a row would need that is not there, for people; empty when it can be made."""
    if ablation.answer and config.answer is None:
        return "it is about answers: --answer single --llm MODEL"
    if ablation.needs == "tokens" and not hasattr(options.embedder, "embed_tokens"):
        return "it needs an embedder with token vectors: --embedder st:NAME_OR_FOLDER"
    if ablation.needs == "model" and options.language_model is None:
        return "it needs a language model: --llm MODEL"
    if ablation.needs == "torch" and find_spec("torch") is None:
        return 'it needs torch: pip install "sire-rag[torch]"'
    if ablation.needs == "umap" and find_spec("umap") is None:
        return 'it needs the reference clustering: pip install "sire-rag[paper]"'
    return ""
