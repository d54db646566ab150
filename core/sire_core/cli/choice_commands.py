"""`sire recipes`, `compare`, `advise`, `questions`, `estimate`: recipes, what fits a text, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.cli import option_groups
from sire_core.cli.change_commands import with_documents
from sire_core.cli.model_options import ModelOptions
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import IndexOptions, RecipeOptions, is_index, manifest_of, open_index, setting_lines
from sire_core.cli.output import bar, check_writable, note, output_width, reporting, say, say_json, write_text
from sire_core.cli.source_reading import read_sources
from sire_core.errors import CorpusError
from sire_core.text.pluralize import count

if TYPE_CHECKING:
    from sire_core.changes.estimate import Estimate
    from sire_core.evaluate.advise import Advice
    from sire_core.evaluate.compare import ComparedSearches
    from sire_core.protocols import Recipe
    from sire_core.types import Document

_MODEL = "with --llm"


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="Explain every setting of this recipe.", show_default=False)
    ] = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """List the recipes. Shows what each finds, and what it uses a model for.

    With RECIPE, explain one recipe: what it builds, what that costs, how it ranks, and its settings for --set with
    their defaults and meaning.
    """
    from sire_core.recipes import recipe_by_name

    chosen = [recipe_by_name(name)] if name else list(_all())
    if as_json:
        say_json([{"name": r.name, "summary": r.summary, "paper": r.paper, "settings": dict(r.config)} for r in chosen])
    elif name:
        _explain(chosen[0])
    else:
        _list(chosen)


def _all() -> Iterator[Recipe]:
    """Every recipe; one of another package that cannot be made is named on stderr."""
    from sire_core.recipes import recipe_by_name, recipe_names
    from sire_core.recipes.registry import PluginError

    for name in recipe_names():
        try:
            yield recipe_by_name(name)
        except PluginError as error:  # noqa: PERF203 - a few
            note(f"{name}: left out. {error}", "yellow")


def _list(recipes_: list[Recipe]) -> None:
    from sire_core.recipes.registry import DEFAULT_RECIPE

    width = max(len(recipe.name) for recipe in recipes_)
    work = {recipe.name: _model_use(recipe) for recipe in recipes_}
    column = max(len(_MODEL), *map(len, work.values()))
    say(f"{'recipe':<{width}}  {_MODEL:<{column}}  what it finds", "bold")
    for recipe in recipes_:
        say(f"{recipe.name:<{width}}  {work[recipe.name]:<{column}}  {recipe.summary}", hang=width + column + 4)
    say(
        f"\nNo recipe needs a model: without --llm, rules are used instead. The default is {DEFAULT_RECIPE}. "
        "Settings, costs and ranking of a recipe: sire recipes RECIPE"
    )


def _model_use(recipe: Recipe) -> str:
    writes = any(organizer.needs_summaries for organizer in recipe.organizers)
    uses = [word for word, is_used in (("extraction", recipe.needs_records), ("texts", writes)) if is_used]
    return ", ".join(uses) or "nothing"


def _explain(recipe: Recipe) -> None:
    from sire_core.recipes.published import presets_of

    first, *rest = recipe.describe().splitlines()
    say(first, "bold")
    for line in rest:
        say(line)
    for line in setting_lines(recipe):
        say(line)
    for name, settings in presets_of(recipe.name).items():
        say(
            f"preset {name}: {', '.join(f'{key}={json.dumps(value)}' for key, value in settings.items()) or 'defaults'}"
        )


_BAR, _SHORTEST_BAR = 24, 6
_EXAMPLES = 4


def compare(
    sources: Annotated[
        list[Path], typer.Argument(metavar="FOLDER_OR_INDEX", help="Files and folders of files, or one index folder.")
    ],
    questions: Annotated[
        Path | None,
        option(
            "--questions FILE",
            'Your questions, one a line: {"id", "question", "supporting": [ID of a document or passage]}, or instead '
            'of ids quotes: "needs": [[{"doc", "quote"}, ...alternatives], ...].',
        ),
    ] = None,
    embedder: option_groups.Embedder = None,
    reranker: Annotated[
        str | None,
        option("--reranker SPEC", "`colbert:NAME`, `onnx:NAME` or `none`. Default: one of this machine, if there is."),
    ] = None,
    pieces: Annotated[
        bool,
        option("--pieces", "Also hybrid search over small pieces, where gold is quoted: a model takes minutes."),
    ] = False,
    as_json: option_groups.AsJson = False,
) -> None:
    """Compare sire with other searches on your text.

    Measures BM25, vectors, both fused, and `sire`.

    Shows which share of the evidence each finds among its first five passages and, where gold is quoted, within 1,000
    and 2,000 tokens of what is delivered (whole passages or pieces, and the context that `sire` chooses), with 95 %
    intervals, and says for each how far `sire` is above or below the best of the others, and whether that may be
    chance. Without --questions, questions are made from the text; these reuse its words, which favours BM25. Calls no
    language model and changes nothing: searches are built in a temporary folder. An index gives its passages, its
    vectors (with another --embedder, its documents alone) and its `sire`. Names the questions of which one search alone
    lacks evidence, and what they need.

    Example: sire compare docs --questions questions.jsonl

    JSON: {"questions", "made", "reranker", "rows": [{"name", "R@5": {"mean", "low", "high"}, "1,000 tokens": {...},
    "query_p50_ms"}], "against_best": {"R@5": {"baseline", "difference", "low", "high", "significant"}, ...}, "verdict",
    "missed": {search: [{"id", "question", "expected"}]}, "unmet"}.
    """
    from sire_core.evaluate.compare import compare as compared
    from sire_core.evaluate.datasets import check_measurable, load_questions, questions_of

    if questions is not None:
        # a mistake in it is told before documents are read
        check_measurable(questions_of(questions), str(questions), by_answers=False)
    documents, spec, index = _documents(sources, embedder)
    of_file = load_questions(questions, documents, "questions").questions if questions is not None else ()
    chosen = "" if reranker == "none" else reranker
    if index is not None:
        note(f"Passages, vectors and recipes are those of {index}; a temporary copy gets what they lack.")
    with reporting() as progress:
        result = compared(
            documents, of_file, index=index, embedder=spec, reranker=chosen, pieces=pieces, progress=progress
        )
    if as_json:
        say_json(result.as_json())
        return
    _print_comparison(result, len(documents))


def _print_comparison(result: ComparedSearches, documents: int) -> None:
    from sire_core.evaluate.report import unmet_note

    asked_of = "made from the text" if result.is_made else "yours"
    say(f"{count(result.questions, 'question')} ({asked_of}), {count(documents, 'document')}\n")
    say(f"{'':<16}{''.join(f'{name:>14}  95 % interval' for name in result.measures)}  ms/search", "bold")
    for name, means, milliseconds in result.table():
        cells = "".join(f"{mean.difference:>14.1f}  {f'[{mean.low:.1f}, {mean.high:.1f}]':<13}" for mean in means)
        say(f"{name:<16}{cells}  {milliseconds:>9.1f}")
    say(f"\n{result.verdict()}", "bold")
    for line in result.missed_lines():
        say(line)
    if not result.has_all_pieces:
        say("\nLeft out: hybrid search over small pieces, which the model would embed, too. --pieces measures it.")
    if result.is_made:
        say("Made questions reuse words of the text, which favours BM25: write 20 of your own for a better answer.")
    if result.reranker:
        say(f"Reranked by {result.reranker}.")
    if unmet := unmet_note(result.rows[0]):
        say(unmet)


def advise(
    sources: Annotated[
        list[Path], typer.Argument(metavar="FOLDER_OR_INDEX", help="Files and folders of files, or one index folder.")
    ],
    embedder: option_groups.Embedder = None,
    passages: Annotated[int, option("--passages", "Approximate sample size, in passages.", min=20)] = 500,
    questions: Annotated[int, option("--questions", "Maximum number of questions.", min=20)] = 100,
    k: option_groups.K = 5,
    as_json: option_groups.AsJson = False,
) -> None:
    """Recommend a recipe for your text.

    Makes questions that need two passages from sentences of the text, measures the recipes
    on them, and gives reasons. Says that it cannot tell where few sentences allow that, as in most manuals. Calls no
    model and changes nothing.

    Example: sire advise docs

    JSON: {"recommended", "undecided", "settings", "reasons", "passages", "sampled_documents", "titled", "linked",
    "technical", "duplicates", "questions", "k", "rows"}; shares are 0 to 1, recall 0 to 100.
    """
    from sire_core.evaluate.advise import advise as advised

    documents, spec, _ = _documents(sources, embedder)
    with reporting() as progress:
        advice = advised(documents, embedder=spec, passages=passages, n=questions, k=k, progress=progress)
    if as_json:
        say_json(advice.as_json())
        return
    _print_advice(advice, sources)


def questions(
    folder: option_groups.Folder,
    to: Annotated[Path | None, option("--output -o FILE", "Write to this file instead of standard output.")] = None,
    n: Annotated[int, option("-n", "Maximum number of questions.", min=1)] = 20,
) -> None:
    """Make readable questions about an index, for `sire eval`.

    Prints one JSON object per line. Questions over two passages come first: one says how a name is connected with
    another, and one is about that other name. Where sentences connect too few names, questions that headings ask
    follow ("How do I replace a disk?"), each with the passage below its heading. The questions are made without a
    model, use words of the text, and do not replace questions of people: add yours. If no readable question can be
    made, it says so.

    Example: sire questions my-index -o questions.jsonl, then sire eval my-index --questions questions.jsonl

    JSON of a line: {"id", "question", "answers", "supporting"}; "supporting" are the ids of the passages.
    """
    from sire_core.evaluate.advise import FEW
    from sire_core.evaluate.made_questions import LinkedPassages, heading_questions, made_questions

    if to is not None:
        check_writable("--output", to)
    with open_index(IndexOptions(folder=folder)) as index:
        linked = LinkedPassages.of(index.snapshot())
    of_links = made_questions(linked, n)
    of_headings = heading_questions(linked)[: n - len(of_links)]
    if not (made := [*of_links, *of_headings]):
        raise CorpusError(
            "No readable question can be made from this text: its sentences rarely say how one thing is connected with "
            "another, and its headings ask nothing. Write questions of your own, one a line: "
            '{"id": "q1", "question": "...", "supporting": ["ID of a document"]}.'
        )
    rows = [
        {"id": f"q{number}", "question": question.question, "answers": [], "supporting": list(question.passages)}
        for number, question in enumerate(made, 1)
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if len(made) < min(n, FEW):
        note(f"{count(len(made), 'question')}: too few to tell recipes apart ({FEW} are needed). Add yours.", "yellow")
    if of_headings:
        note(f"{len(of_headings)} of {len(made)} come from headings: one passage answers each, in the same words.")
    if to is None:
        say(lines.rstrip("\n"))
        return
    write_text(to, lines)
    note(f"Wrote {count(len(made), 'question')} to {to}. Measure with them: sire eval {folder} --questions {to}")


def _documents(sources: Sequence[Path], embedder: str | None) -> tuple[Sequence[Document], str | None, Path | None]:
    """The documents, the embedder that is to be used for them, and the index that has vectors by it."""
    if len(sources) != 1 or not is_index(sources[0]):
        return read_sources(sources, IndexOptions(embedder=embedder)).documents, embedder, None
    with open_index(IndexOptions(folder=sources[0], embedder=embedder)) as index:
        documents = index.documents()
    of_index = manifest_of(sources[0]).embedder_spec
    spec = embedder or of_index
    if not embedder and not spec.startswith(("lexical", "onnx:", "st:")):
        note(
            f"The index was embedded by {spec or 'an embedder of your own'}, which may cost money, so the recipes are "
            "compared with the embedder `lexical`. Use --embedder to select another one."
        )
        spec = "lexical"
    return documents, spec, sources[0] if spec == of_index else None


def _print_advice(advice: Advice, sources: Sequence[Path]) -> None:
    for line in advice.look.lines():
        say(line)
    if advice.sampled:
        say(f"That is a sample of {advice.sampled:,} documents.")
    if advice.questions:
        say(f"\n{count(len(advice.questions), 'question')} made from the text, for example:")
        for question in advice.questions[:_EXAMPLES]:
            say(question.question, indent=4)
    if advice.measures:
        _print_measures(advice)
    name = advice.recommended.name
    if advice.undecided:
        say(f"\nUndecided. The default is {name}.", "bold yellow")
    else:
        say(f"\nRecommended: {name}", "bold green")
    for reason in advice.reasons:
        say(reason, indent=4)
    if advice.undecided:
        say("Write 20 questions of your own and measure with them: sire eval INDEX --questions FILE.", indent=4)
    if len(sources) != 1 or not is_index(sources[0]):
        say(f"\nsire index {' '.join(map(str, sources))} --to my-index --recipe {name}")


def _print_measures(advice: Advice) -> None:
    best = max(measure.recall for measure in advice.measures) or 1.0
    width = max(len(measure.candidate.name) for measure in advice.measures)
    heads = f"  recall@{advice.k:<2}", "   both", "  build s", "  ms/search", "  model calls"
    room = output_width() - width - sum(map(len, heads)) - 2
    drawn = min(_BAR, room) if room > _SHORTEST_BAR else 0
    say(f"\n{'recipe':<{width}}{heads[0]}{'':<{drawn and drawn + 1}}{''.join(heads[1:])}")
    for measure in advice.measures:
        share = f" {bar(measure.recall / best, drawn)}" if drawn else ""
        cells = f"{measure.both:.1f}", f"{measure.build_s:.1f}", f"{measure.query_ms:.1f}", measure.candidate.calls
        aligned = "".join(f"{cell:>{len(head)}}" for cell, head in zip(cells, heads[1:], strict=True))
        say(f"{measure.candidate.name:<{width}}{measure.recall:>{len(heads[0])}.1f}{share}{aligned}")
    say("Model calls are for 1,000 passages, and only if the index is built with --llm.", indent=4)


@grouped
def estimate(
    sources: option_groups.Sources,
    built: RecipeOptions,
    llm: Annotated[str, option("--llm MODEL", "The model to estimate for.")],
    to: Annotated[
        Path | None,
        option("--to DIR", "An existing index folder: include its documents, and subtract what is stored."),
    ] = None,
    media: option_groups.Media = False,
    extractions: option_groups.Extractions = None,
    native: option_groups.Native = False,
    prices: option_groups.Prices = None,
    base_url: option_groups.BaseUrl = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """Estimate the cost of a build with a model.

    Shows the model calls, tokens and price of `sire index` with the same options, without calling the model. The number
    of calls for extraction is exact; all else is a median and the range to expect, from a trial over a sample. Retries
    and a paid embedder are not included.

    JSON: {"passages", "stored", "superseded", "extraction", "summaries", "total"}, each of the last three with "calls",
    "input_tokens", "output_tokens" and "price" in US dollars as [lowest, highest] to expect, and "median" with one
    number for each; "price" is null when it is unknown.
    "superseded": passages that another model or prompt extracted and that are extracted again, by its name.
    """
    asking = ModelOptions(llm, base_url, prices=prices)
    options = IndexOptions(
        folder=to,
        extractions=extractions,
        media=media,
        language_model=asking.model(is_used=False),
        native=native,
        writes=True,
        is_estimate=True,
        **built.as_given(),
    )
    price = asking.price()
    with open_index(options) as index:
        expected = index.estimate(with_documents(index, read_sources(sources, options).documents), price)
    if as_json:
        say_json(_estimate_json(expected))
    else:
        say(expected.describe())


def _estimate_json(estimate: Estimate) -> dict[str, Any]:
    """An estimate for scripts; ranges are pairs of the lowest and the highest value, with their medians."""
    stages = {"extraction": estimate.extraction, "summaries": estimate.summaries, "total": estimate.total}
    costs = {name: {**asdict(cost), "median": cost.median()} for name, cost in stages.items()}
    return {"passages": estimate.passages, "stored": estimate.stored, "superseded": dict(estimate.superseded), **costs}
