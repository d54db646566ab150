"""Options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Embedder",
    "Extractions",
    "Filter",
    "Folder",
    "K",
    "MaxFailureRatio",
    "Ranker",
    "RecipeName",
    "Settings",
    "Sources",
    "Workers",
]

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The index folder.")]
Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SRC...",
        help="Files (.txt, .md, .jsonl, .json) and folders of them. A JSON line is a document: "
        '{"id", "title", "text", "metadata"}.',
    ),
]
RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        "-r",
        help="How to index and search; `sire recipes` lists them. Default: the folder's latest, sirerag in a new one.",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="SPEC",
        help="`lexical` (nothing to download), `st:NAME_OR_FOLDER` (sentence-transformers), `openai:MODEL` or "
        "`file:PATH` (vectors made before). Default: the folder's own, lexical in a new one.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the recipe, such as `depth=2`; may be repeated. The value is JSON or a plain word.",
    ),
]
Ranker = Annotated[
    str | None,
    typer.Option("--ranker", metavar="dense|bm25|hybrid", help="Rank with this instead of the recipe's own ranker."),
]
Extractions = Annotated[
    Path | None,
    typer.Option(
        "--extractions",
        metavar="FILE",
        help="Entities and triples that a model wrote before, one JSON object a line: "
        '{"id", "entities", "triples", "model"}. Default: extraction without a model.',
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Model calls in flight at once.")]
MaxFailureRatio = Annotated[
    float,
    typer.Option("--max-failure-ratio", min=0.0, max=1.0, help="Share of failed passages above which a build stops."),
]
K = Annotated[int, typer.Option("-k", min=1, help="How many hits.")]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="F",
        help="Only what comes from documents with such metadata: `tenant=a`, `year>1990, lang!=de`, or JSON: "
        '`{"lang": {"in": ["en", "de"]}}`, `{"or": [{"year": {"lt": 1900}}, {"not": {"tenant": "b"}}]}`.',
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts, and nothing else on stdout.")]
