"""`sire advise`: which recipe fits this text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sire_core.cli import arguments
from sire_core.cli.changes import read_sources
from sire_core.cli.options import IndexOptions, is_index, manifest_of, open_index
from sire_core.cli.output import bar, note, say, say_json
from sire_core.cli.progress import reporting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sire_core.evaluate.advise.advice import Advice
    from sire_core.types import Document

__all__ = ["advise"]

_BAR = 24


def advise(
    sources: Annotated[
        list[Path], typer.Argument(metavar="FOLDER_OR_INDEX", help="Files and folders of files, or one index folder.")
    ],
    embedder: arguments.Embedder = None,
    passages: Annotated[int, typer.Option("--passages", min=20, help="Approximate sample size, in passages.")] = 1500,
    questions: Annotated[int, typer.Option("--questions", min=10, help="Number of questions to generate.")] = 150,
    k: arguments.K = 5,
    as_json: arguments.AsJson = False,
) -> None:
    """Recommend a recipe for your text.

    Generates questions from the text that need two passages, measures the recipes on them, and gives reasons. Calls no
    model and changes nothing.

    Example: sire advise docs

    JSON: {"recommended", "settings", "reasons", "passages", "sampled_documents", "titled", "linked", "technical",
    "duplicates", "questions", "k", "rows"}; shares are 0 to 1, recall 0 to 100.
    """
    from sire_core.evaluate.advise.advice import advise as advised

    documents, spec = _documents(sources, embedder)
    with reporting() as progress:
        found = advised(documents, embedder=spec, passages=passages, n=questions, k=k, progress=progress)
    if as_json:
        say_json(found.as_json())
        return
    _say(found, sources)


def _documents(sources: Sequence[Path], embedder: str | None) -> tuple[Sequence[Document], str | None]:
    """The documents, and the embedder that is to be used for them."""
    if len(sources) != 1 or not is_index(sources[0]):
        return read_sources(sources, IndexOptions()).documents, embedder
    with open_index(IndexOptions(folder=sources[0], embedder=embedder)) as index:
        documents = index.documents()
    spec = embedder or manifest_of(sources[0]).embedder_spec
    if not embedder and not spec.startswith(("lexical", "st:")):
        note(
            f"The index was embedded by {spec or 'an embedder of your own'}, which may cost money, so the recipes are "
            "compared with the embedder `lexical`. Use --embedder to select another one."
        )
        spec = "lexical"
    return documents, spec


def _say(found: Advice, sources: Sequence[Path]) -> None:
    for line in found.look.lines():
        say(line)
    if found.sampled:
        say(f"That is a sample of {found.sampled:,} documents.")
    say(f"\n{len(found.questions):,} generated questions, for example:")
    shown = {question.kind: question for question in reversed(found.questions)}
    for kind, question in shown.items():
        say(f"{kind}: {question.question}", indent=4)
    best = max(measure.recall for measure in found.measures) or 1.0
    width = max(len(measure.candidate.name) for measure in found.measures)
    say(f"\n{'recipe':<{width}}  recall@{found.k:<3} {'':<{_BAR}} both   build CPU s  ms a search  model calls/1,000")
    for measure in found.measures:
        drawn = bar(measure.recall / best, _BAR)
        say(
            f"{measure.candidate.name:<{width}}  {measure.recall:>8.1f}  {drawn} {measure.both:>5.1f}  "
            f"{measure.build_s:>10.1f}  {measure.query_ms:>11.1f}  {measure.candidate.calls:>12}"
        )
    say(f"\nRecommended: {found.recommended.candidate.name}", "bold green")
    for reason in found.reasons:
        say(reason, indent=4)
    name = found.recommended.candidate.name
    if len(sources) != 1 or not is_index(sources[0]):
        say(f"\nsire index {' '.join(map(str, sources))} --to my-index --recipe {name}")
