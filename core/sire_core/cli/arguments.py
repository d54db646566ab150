"""Options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Allow",
    "Answerer",
    "ApiKeyEnv",
    "AsJson",
    "BaseUrl",
    "ChunkTokens",
    "Embedder",
    "EvalSettings",
    "Extractions",
    "Filter",
    "Folder",
    "K",
    "Llm",
    "MaxCalls",
    "MaxFailureRatio",
    "MaxTokens",
    "Media",
    "ModelTimeout",
    "Native",
    "NoChunking",
    "Prices",
    "Ranker",
    "RecipeName",
    "Returns",
    "SearchSettings",
    "Settings",
    "Sources",
    "Workers",
    "Yes",
]


def _recipe_names(incomplete: str) -> list[str]:
    """Names of recipes for the shell's completion."""
    from sire_core.recipes import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The index folder.")]
Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SRC",
        help="Files (.txt, .md, .html, .jsonl, .json; with the extra `files` .pdf, .docx and others) and folders of "
        "them. A JSON line is a document: "
        '{"id", "title", "text", "metadata"}.',
    ),
]
RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        "-r",
        metavar="NAME",
        autocompletion=_recipe_names,
        help="How to index and search; `sire recipes` lists them. Default: the folder's latest, sire in a new one.",
    ),
]
Returns = Annotated[
    str,
    typer.Option(
        "--returns",
        metavar="passages|units",
        help="Passages of the documents, or whatever ranks: summaries, aggregates and reports too.",
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
        help="A setting of the recipe, such as `depth=2`; may be repeated. The value is JSON or a plain word. Others "
        "keep the values that they have in the folder.",
    ),
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Search with another value of a setting, such as `damping=0.5` of pagerank; repeatable. Settings that "
        "decide what is built need `sire index`.",
    ),
]
Ranker = Annotated[
    str | None,
    typer.Option(
        "--ranker", metavar="dense|bm25|tfidf|hybrid|late", help="Rank with this instead of the recipe's own ranker."
    ),
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
ChunkTokens = Annotated[
    int | None,
    typer.Option("--chunk-tokens", metavar="N", min=1, help="Longest passage, in words and signs. Default: 512."),
]
NoChunking = Annotated[bool, typer.Option("--no-chunking", help="Take every document as one passage.")]
Llm = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="Let this model extract and summarize. Default: no model; a folder that a model built needs the same one "
        "for changes, and none for questions.",
    ),
]
Answerer = Annotated[
    str | None,
    typer.Option("--llm", metavar="MODEL", help="The model that thinks and answers. Without one: the evidence."),
]
Allow = Annotated[
    str | None, typer.Option("--allow", metavar="F", help="All that readers may see, as in --filter of sire query.")
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="An OpenAI-compatible server, such as http://localhost:11434/v1, for --llm."
    ),
]
ApiKeyEnv = Annotated[
    str, typer.Option("--api-key-env", metavar="NAME", help="The environment variable that holds the key for --llm.")
]
Native = Annotated[
    bool,
    typer.Option(
        "--native",
        help="Extract as the recipe's paper does: SiReRAG and MS-RAG in three calls a passage, IIER in one for its "
        "keywords, IndexRAG in one a document. Default: one call a passage for all recipes.",
    ),
]
Runner = Annotated[
    str | None,
    typer.Option(
        "--runner",
        metavar="RUNNER",
        help="Who does the work: local, ray (this machine, or the cluster of RAY_ADDRESS), ray://HOST:PORT.",
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", metavar="N", min=0, help="Most requests to the model; the same command goes on later."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="N", min=0, help="Most tokens of prompts and answers; as --max-calls."),
]
ModelTimeout = Annotated[
    float | None,
    typer.Option(
        "--model-timeout",
        metavar="SECONDS",
        min=0.001,
        help="Give a call of the model up after so long without a sign of life. Answers stream: a slow local server "
        "that still writes is waited for. Default: 60.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before anything is paid for or removed.")]
Media = Annotated[
    bool,
    typer.Option(
        "--media",
        help="Make every Markdown table and image a passage of its own; give it again with every change. The text of "
        "an image is its alternative text. To let a model describe images, use describe_images from Python.",
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help='Your own prices: {"prices": {"MODEL": [0.5, 1.5]}}, US dollars per million input and output tokens.',
    ),
]
Workers = Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Model calls in flight at once.")]
MaxFailureRatio = Annotated[
    float,
    typer.Option(
        "--max-failure-ratio",
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="Share of failed passages or summaries above which a build stops.",
    ),
]
EvalSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the recipes that have it, such as `damping=0.5` of pagerank; repeatable. The value is JSON "
        "or a plain word.",
    ),
]
K = Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many hits.")]
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
