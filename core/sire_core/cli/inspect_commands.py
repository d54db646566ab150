"""`sire explain`, `doctor`, `models`, `export`, `skill`: why and why not, what works here, and an index for others."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from sire_core.cli import option_groups
from sire_core.cli.folder_commands import documents_passing
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import IndexOptions, SearchOptions, check_folder, open_index
from sire_core.cli.output import check_writable, note, say, say_json, write_text
from sire_core.models.sync import run_sync
from sire_core.text.pluralize import count
from sire_core.version import __version__


@grouped
def explain(
    folder: option_groups.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    searching: SearchOptions,
    doc_id: Annotated[
        str | None, typer.Argument(metavar="DOC_ID", help="Explain why this document is, or is not, among the hits.")
    ] = None,
    k: option_groups.K = 5,
    filter: option_groups.Filter = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """Explain each hit, or why a document is none.

    With DOC_ID (or the id of a passage), shows the rank of its best passage, what it shares with the question, and what
    the hits have that it lacks.

    Example: sire explain my-index "How do I restore a backup?" guides/backup.md

    JSON without DOC_ID: {"explanation"}; with it {"doc_id", "title", "rank", "reasons": [{"examined", "finding"}]}.
    """
    check_folder(folder, question)
    with open_index(searching.options(folder)) as index:
        if doc_id is None:
            text = index.explain(question, k, filter=filter)
            say_json({"explanation": text}) if as_json else say(text)
            return
        from sire_core.explore.why_not import why_no_hit

        reasons = run_sync(why_no_hit(index.snapshot(filter=filter), question, doc_id, k))
    if as_json:
        rows = [{"examined": examined, "finding": finding} for examined, finding in reasons.reasons]
        say_json({"doc_id": doc_id, "title": reasons.title, "rank": reasons.rank, "reasons": rows})
        return
    say(reasons.title, "bold")
    for examined, finding in reasons.reasons:
        say(f"{examined:<12} {finding}", hang=13)


_EXTRAS = {
    "langchain": "langchain_core",
    "llama-index": "llama_index",
    "files": "docx",
    "mcp": "mcp",
    "explore": "starlette",
    "openai": "openai",
    "onnx": "onnxruntime",
    "rerank": "sentence_transformers",
    "ray": "ray",
}
"""A module that each extra brings."""


def doctor(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Also check this index folder.", show_default=False)
    ] = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """Show what works on this machine, and check an index.

    Shows the version, the extras and the models; with DIR, whether the index is intact.

    Example: sire doctor my-index

    JSON: {"version", "python", "extras": {name: bool}, "models": [spec], "findings": [...]}. The exit code is 1 if the
    index is damaged.
    """
    from sire_core.models.local_models import local_models
    from sire_core.storage.check import check_folder as check_files

    extras = {name: find_spec(module) is not None for name, module in _EXTRAS.items()}
    models_here = [model.spec for model in local_models()]
    findings = check_files(folder) if folder is not None else []
    if as_json:
        rows = [asdict(finding) for finding in findings]
        python = platform.python_version()
        say_json({"version": __version__, "python": python, "extras": extras, "models": models_here, "findings": rows})
    else:
        missing = [name for name, is_there in extras.items() if not is_there]
        say(f"sire {__version__}, Python {platform.python_version()}, {platform.system()}")
        say(f"extras: {', '.join(name for name, is_there in extras.items() if is_there) or 'none'}", hang=8)
        if missing:
            say(f'not installed: {", ".join(missing)} (pip install "sire-rag[{missing[0]}]")', hang=8)
        say(f"models: {', '.join(models_here) or 'none; the default embedder needs none'} (tested by sire models)")
        if folder is not None:
            say(f"{folder}: {count(len(findings), 'finding') if findings else 'nothing is damaged'}.")
            for finding in findings:
                say(f"{finding.file}: {finding.problem} {finding.advice}", indent=4)
    if findings:
        raise typer.Exit(1)


def models(as_json: option_groups.AsJson = False) -> None:
    """List and test the models on this machine.

    Lists those that need no network, and tests each on two sentences.

    Looks in the folders of SIRE_MODELS (a model folder, or a folder of them) and in the cache of the hub. A model
    folder has a tokenizer.json and an .onnx file.

    JSON: a list of {"spec", "purpose", "folder", "origin", "megabytes", "works", "detail", "milliseconds"}.
    """
    from sire_core.models.local_models import check_model, local_models

    rows: list[dict[str, Any]] = []
    for model in local_models():
        test = run_sync(check_model(model))
        rows.append({**asdict(model), "folder": str(model.folder), **asdict(test)})
        if not as_json:
            option_name = "--embedder" if model.purpose == "embedder" else "--set rerank="
            say(f"{option_name}{'' if option_name.endswith('=') else ' '}{model.spec}", "bold")
            say(f"{model.purpose}, {model.megabytes:,.0f} MB, from {model.origin}", indent=4)
            verdict = f"works, {test.milliseconds:.0f} ms a sentence" if test.works else "does not work"
            say(f"{verdict}: {test.detail}", "" if test.works else "yellow", indent=4)
    if as_json:
        say_json(rows)
    elif not rows:
        say(
            "No model was found. The default embedder needs none. For vectors by meaning put a model folder "
            "(tokenizer.json, model.onnx) into a folder that SIRE_MODELS names; docs/models.md says where models come "
            "from."
        )


def export(
    folder: option_groups.Folder,
    to: Annotated[Path | None, option("--output -o FILE", "Write to this file instead of standard output.")] = None,
    filter: option_groups.Filter = None,
) -> None:
    """Write the documents of an index as JSON lines.

    `sire import FILE --to NEW_DIR` (or `sire index`) reads them. For a copy of the whole index with everything derived,
    use `sire backup`.

    Example: sire export my-index -o documents.jsonl

    JSON of a line: {"id", "title", "text", "metadata"}.
    """
    from sire_core.documents.chunker import joined

    check_folder(folder)
    if to is not None:
        check_writable("--output", to)
    rows = (
        {"id": d.id, "title": d.title, "text": joined(d.passages), "metadata": d.metadata}
        for d in documents_passing(folder, filter)
    )
    written = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
    if to is None:
        say("\n".join(written))
        return
    write_text(to, "".join(f"{line}\n" for line in written))
    note(f"Wrote {count(len(written), 'document')} to {to}. Read them with: sire import {to} --to NEW_DIR")


def skill(
    folder: option_groups.Folder,
    name: Annotated[str, option("--name", "Name of the skill, in lower case with dashes.")] = "search-documents",
) -> None:
    """Print a skill for agents that run commands.

    It says when to search, open a document, ask for more, and cite.

    Example: sire skill my-index > .skills/search-documents/SKILL.md
    """
    from sire_core.serve.skill import skill_text

    check_folder(folder)
    with open_index(IndexOptions(folder=folder)) as index:
        say(skill_text(index, str(Path(folder).absolute()), name))
