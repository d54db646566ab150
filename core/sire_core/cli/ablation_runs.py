"""The rows of a recipe's paper, built in one folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sire_core.cli.evaluation import Rows, settings_by_recipe
from sire_core.cli.evaluation_rows import ask, build, shared
from sire_core.cli.options import IndexOptions
from sire_core.cli.output import note

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet
    from sire_core.evaluate.rows import EvalRow
    from sire_core.evaluate.runner import EvalConfig
    from sire_core.protocols import Progress
    from sire_core.recipes.ablation import Ablation

__all__ = ["run_ablations"]


def run_ablations(
    dataset: DataSet,
    recipe: str,
    options: IndexOptions,
    config: EvalConfig,
    progress: Progress,
    finished: Callable[[EvalRow], None] | None = None,
) -> list[EvalRow]:
    """Build every row of a recipe's paper in one folder, and ask all of them the questions.

    Args:
        dataset: Corpus and questions.
        recipe: A recipe with ablations; see `sire_core.recipes.ablations`.
        options: How indexes are made; without a folder a temporary one is used. Settings are those that every row of
            this recipe has beside its own.
        config: What is measured.
        progress: Told about every batch and question.
        finished: Told about every row as soon as it is there.

    Returns:
        The rows `dense` and `hybrid`, then one per ablation that can be made with these options, with the paper's
        figures in `Setup.paper`; a row that found what an earlier one of its recipe found is marked. `build_s` is what
        a row costs beyond the vectors and records of the rows before it.

    Raises:
        ConfigurationError: No ablations, nothing to ask, or the folder holds another corpus.
    """
    from sire_core.evaluate.bootstrap import with_intervals
    from sire_core.evaluate.row_sets import mark_same, with_tper
    from sire_core.evaluate.rows import Setup
    from sire_core.recipes import recipe_by_name
    from sire_core.recipes.ablation import CONTEXT, Ablation
    from sire_core.recipes.ablations import ablations_of

    given = settings_by_recipe([recipe], options.settings)[recipe]
    if config.answer is not None and config.depth is None:  # no -k: as many hits as the paper reads
        config = replace(config, answer=replace(config.answer, k=CONTEXT.get(recipe, config.answer.k)))
    baselines = [Ablation("baseline", ranker, "flat", {"ranker": ranker}) for ranker in ("dense", "hybrid")]
    rows = Rows(finished)
    with shared(dataset, replace(options, settings=None)) as common:
        for ablation in (*baselines, *ablations_of(recipe)):
            if missing := _missing(ablation, common, config):
                note(f"{ablation.label}: left out, {missing}", "yellow")
                continue
            # Every setting is named: an unnamed one means what the folder was built with last.
            own = {**(given if ablation.recipe == recipe else {}), **ablation.settings}
            made = replace(common, recipe=ablation.recipe, settings=recipe_by_name(ablation.recipe, **own).config)
            built = build(dataset, made, progress)
            printed, figures = ablation.figures(dataset.name)
            paper = {"table": ablation.table, **({"dataset": printed, **figures} if printed else {})}
            setup = Setup(
                ablation.label,
                build_s=built.seconds,
                paper=paper,
                settings=own,
                family=ablation.recipe,
                calls=built.calls,
            )
            answer = config.answer and replace(config.answer, **ablation.answer)
            asked = replace(config, answer=answer)
            rows.add(ask(dataset, setup, replace(made, writes=False), asked, progress))
    return mark_same(with_tper(with_intervals(rows.found)))


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
