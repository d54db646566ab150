"""Options that several commands share, with their help; `grouped` takes dataclasses of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand


def _recipe_names(incomplete: str) -> list[str]:
    """Names of recipes for the shell's completion."""
    from sire_core.recipes import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]


def option(words: str, text: str, **limits: Any) -> Any:
    """An option from its names and the word for its value: `--recipe -r NAME`; without that word it is a flag."""
    *names, last = words.split()
    if last.startswith("-"):
        return typer.Option(*names, last, help=text, **limits)
    return typer.Option(*names, metavar=last, help=text, **limits)


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The index folder.")]
Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SRC",
        help="Files (.txt, .md, .html, .csv, .jsonl, .json, source code; with the extra `files` also .pdf, .docx and "
        "others), or folders of such files; hidden files and folders (.git) and installed packages (node_modules, "
        "Python environments) are skipped. "
        'Each line of a JSONL file is a document: {"id", "title", "text", "metadata"}.',
    ),
]
RecipeName = Annotated[
    str | None,
    option(
        "--recipe -r NAME",
        "The recipe; `sire recipes` lists all. Default: that of the folder, or `sire` for a new folder.",
        autocompletion=_recipe_names,
    ),
]
HeldRecipe = Annotated[
    str | None,
    option(
        "--recipe -r NAME",
        "A recipe of the folder; `sire stats` lists them, the default first.",
        autocompletion=_recipe_names,
    ),
]
Returns = Annotated[
    str,
    option(
        "--returns passages|units",
        "`passages`: passages of the documents. `units`: also summaries, aggregates and reports.",
    ),
]
Embedder = Annotated[
    str | None,
    option(
        "--embedder SPEC",
        "The embedder: `lexical` (no download), `semantic` (a model in the ONNX format on this machine), "
        "`onnx:NAME_OR_FOLDER`, `st:NAME_OR_FOLDER` (sentence-transformers), `openai:MODEL`, or "
        "`file:PATH` (precomputed vectors). Default: that of the folder; for a new folder `semantic` where there is "
        "such a model, else `lexical`.",
    ),
]
Settings = Annotated[
    list[str] | None,
    option(
        "--set KEY=VALUE",
        "A setting of the recipe, such as `depth=2`; repeatable. The value is JSON or a plain word. Settings that "
        "are not given keep their values from the folder. `--set help` explains all of them.",
    ),
]
Flavor = Annotated[
    str | None,
    option(
        "--flavor NAME",
        "For ircot: `indexrag` (default), `hipporag` or `original`. For self-ask: `search` (default) or `two_call`.",
    ),
]
Examples = Annotated[
    Path | None,
    option(
        "--examples FILE",
        "A text with solved examples, shown to the model in every step of ircot and self-ask, as in their papers.",
    ),
]
Preset = Annotated[
    str | None,
    option(
        "--preset NAME",
        "Named settings of the recipe: `ours`, the defaults, or `published`, those of its paper; --set changes "
        "single ones. `sire recipes NAME` lists them. With --llm, a model extracts with the paper's own prompts.",
    ),
]
SearchSettings = Annotated[
    list[str] | None,
    option(
        "--set KEY=VALUE",
        "Change a search setting, such as `damping=0.5` of pagerank; repeatable. To change a setting that affects "
        "what is built, use `sire index`. `--set help` explains all of them.",
    ),
]
Ranker = Annotated[
    str | None,
    option("--ranker dense|bm25|tfidf|hybrid|late", "Use this ranker instead of the recipe's own."),
]
Extractions = Annotated[
    Path | None,
    option(
        "--extractions FILE",
        "Use entities and triples that were extracted before, from a file with one JSON object per line: "
        '{"id", "entities", "triples", "model"}.',
    ),
]
ChunkTokens = Annotated[
    int | None,
    option("--chunk-tokens N", "Maximum passage length, in words and punctuation marks. Default: 512.", min=1),
]
Language = Annotated[
    str,
    option(
        "--language CODE",
        "Language of all documents that state none as metadata `lang`: a code such as `de`, or its English name. "
        "Default: found in the text of each. Give it with every change.",
    ),
]
NoChunking = Annotated[bool, option("--no-chunking", "Do not split documents: each one is a passage.")]
Llm = Annotated[
    str | None,
    option(
        "--llm MODEL",
        "Use this model to extract and summarize. Default: no model. A folder that was built with a model needs "
        "the same model for changes, but no model for searching.",
    ),
]
Answerer = Annotated[
    str | None,
    option("--llm MODEL", "The model that reasons and answers. Without one, sentences of the evidence are quoted."),
]
Allow = Annotated[
    str | None,
    option("--allow F", "Show only documents that match this filter; the syntax is that of `sire query --filter`."),
]
BaseUrl = Annotated[
    str | None,
    option("--base-url URL", "OpenAI-compatible server for --llm, such as http://localhost:11434/v1."),
]
ApiKeyEnv = Annotated[str, option("--api-key-env NAME", "Environment variable with the API key for --llm.")]
Native = Annotated[
    bool,
    option(
        "--native",
        "Extract as the recipe's paper does: SiReRAG's three calls per passage (also for sire and smart, which "
        "have no prompts of their own), MS-RAG's three (also for pagerank, hipporag2 and linearrag), IIER's one for "
        "keywords, IndexRAG's one per document. Default: one call per passage for all recipes.",
    ),
]
Runner = Annotated[
    str | None,
    option(
        "--runner RUNNER",
        "Where to run: `local`, in one process; `processes`, as by default for large builds; `ray`, on this machine or "
        "on the cluster of RAY_ADDRESS; or `ray://HOST:PORT`.",
    ),
]
Jobs = Annotated[
    int | None,
    option(
        "--jobs N",
        "Number of processes of a large build. Default: SIRE_JOBS, or one for each core that this process may use.",
        min=1,
    ),
]
MaxCalls = Annotated[
    int | None,
    option("--max-calls N", "Maximum requests to the model. To continue later, run the same command again.", min=0),
]
MaxTokens = Annotated[
    int | None,
    option(
        "--max-tokens N", "Maximum tokens of prompts and answers. To continue later, run the same command again.", min=0
    ),
]
ModelTimeout = Annotated[
    float | None,
    option(
        "--model-timeout SECONDS",
        "Give up a model call if nothing arrives for this long. Answers stream, so a slow server that is still "
        "sending does not time out. Default: 60.",
        min=0.001,
    ),
]
Yes = Annotated[bool, option("--yes -y", "Do not ask for confirmation before spending money or removing documents.")]
Media = Annotated[
    bool,
    option(
        "--media",
        "Make every Markdown table and image a separate passage. Give this option with every change of the index. "
        "The text of an image is its alternative text; for descriptions by a model, use describe_images in Python.",
    ),
]
Strict = Annotated[
    bool,
    option("--strict", "Change nothing and end with exit code 1 if a file cannot be read. By default it is skipped."),
]
Prices = Annotated[
    Path | None,
    option(
        "--prices FILE",
        'Your own prices: {"prices": {"MODEL": [0.5, 1.5]}}, US dollars per million input and output tokens.',
    ),
]
Workers = Annotated[int, option("--workers N", "Number of concurrent model calls.", min=1)]
MaxFailureRatio = Annotated[
    float,
    option(
        "--max-failure-ratio SHARE",
        "Stop a build if more than this share of passages or summaries fails.",
        min=0.0,
        max=1.0,
    ),
]
EvalSettings = Annotated[
    list[str] | None,
    option(
        "--set KEY=VALUE",
        "A setting, for all recipes that have it, such as `damping=0.5` of pagerank; repeatable. The value is "
        "JSON or a plain word.",
    ),
]
K = Annotated[int, option("-k N", "Number of hits.", min=1)]
AnswerK = Annotated[
    int | None,
    option("-k N", "Number of hits that the model reads. Default: 10, or with `original` all that it collects.", min=1),
]
Filter = Annotated[
    str | None,
    option(
        "--filter F",
        "Search only documents with this metadata: `tenant=a`, `year>1990, lang!=de`, or JSON: "
        '`{"lang": {"in": ["en", "de"]}}`, `{"or": [{"year": {"lt": 1900}}, {"not": {"tenant": "b"}}]}`.',
    ),
]
AsOf = Annotated[
    str | None,
    option(
        "--as-of DATE",
        "Leave out documents dated after this day, such as 2026-01-31; older versions of a source come last.",
    ),
]
AsJson = Annotated[bool, option("--json", "Print JSON for scripts, and nothing else on stdout.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer in which every parameter that is a dataclass stands for the options that are its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    options: dict[str, tuple[Any, Any]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            options[name] = hints[name], parameter.default
            continue
        types = get_type_hints(groups[name], include_extras=True)
        for member in fields(groups[name]):
            hint = types[member.name]
            shown = copy(hint.__metadata__[0])
            shown.rich_help_panel = groups[name].group  # type: ignore[attr-defined]  # every group of options has one
            options[member.name] = Annotated[hint.__origin__, shown], member.default

    def run(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{option.name: values.pop(option.name) for option in fields(kind)})
        command(**values)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {name: hint for name, (hint, _) in options.items()}
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=hint,
        )
        for name, (hint, default) in options.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what typer and inspect read
    return run


class GroupedCommand(TyperCommand):
    """A command whose help lists options under the names of their groups, its own under `Options`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and a section for each group of options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record := parameter.get_help_record(ctx):
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        for name in sorted(sections, key=lambda name: name not in ("Arguments", "Options")):
            with formatter.section(name):
                formatter.write_dl(sections[name])
