"""`sire query`: a question to an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.algorithms.wording import shorten
from sire_core.cli import arguments
from sire_core.cli.arguments import grouped
from sire_core.cli.options import SearchOptions, check_folder, open_index
from sire_core.cli.output import can_be_written, note, say, say_json, some
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.types import Hit

__all__ = ["hit_json", "query", "say_hit"]

_TEXT = 320


@grouped
def query(
    folder: arguments.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    searching: SearchOptions,
    k: arguments.K = 10,
    where: arguments.Filter = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show whole texts, why each hit was found, and its sources.")
    ] = False,
    returns: arguments.Returns = "passages",
    as_json: arguments.AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Also write an HTML page with the paths to the hits; works offline."
        ),
    ] = None,
) -> None:
    """Find evidence for a question.

    Example: sire query my-index "When did Lothair II's mother die?" -k 5 --explain

    JSON: a list of {"id", "kind", "score", "title", "text", "doc_ids", "chunk_ids", "metadata", "path"}; path is
    a list of {"step", "ids", "note"}.
    """
    check_folder(folder, question)
    if html is not None and not can_be_written(html):
        raise ConfigurationError(f"{html} cannot be written. Name a file in a folder that exists.")
    with open_index(searching.options(folder)) as index:
        if html is not None:
            index.show(question, k, filter=where, returns=returns).save(html)
            note(f"Wrote {html}")
        if explain and not as_json:
            say(index.explain(question, k, filter=where, returns=returns))
            return
        hits = index.search(question, k, filter=where, returns=returns)
    if as_json:
        say_json([hit_json(hit) for hit in hits])
        return
    if not hits:
        note("No hits: nothing in the index passes the filter." if where else "No hits: the index holds no documents.")
    for number, hit in enumerate(hits, 1):
        say_hit(number, hit)


def say_hit(number: int, hit: Hit) -> None:
    """Print a numbered hit."""
    from sire_core.search.explanation import text_below_title

    unit = hit.unit
    say(f"[{number}] {unit.title or shorten(unit.text, 60)}", "bold")
    say(f"{unit.kind}, score {hit.score:.4f}, from {some(hit.doc_ids)}", "cyan", indent=4)
    say(f"{shorten(text_below_title(unit), _TEXT)}\n", indent=4)


def hit_json(hit: Hit) -> dict[str, Any]:
    """A hit for scripts."""
    unit = hit.unit
    return {
        "id": unit.id,
        "kind": str(unit.kind),
        "score": hit.score,
        "title": unit.title,
        "text": unit.text,
        "doc_ids": list(hit.doc_ids),
        "chunk_ids": list(unit.chunk_ids),
        "metadata": dict(hit.metadata),
        "path": [{"step": step.step, "ids": list(step.ids), "note": step.note} for step in hit.path],
    }
