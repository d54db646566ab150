"""`sire stats`, `documents`, `check`, `backup`, `reembed`: what one looks at and does with an index as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from sire_core.arguments import similar_names
from sire_core.cli import option_groups
from sire_core.cli.change_commands import approval, existing_index, report_json, with_documents
from sire_core.cli.indexed_sources import ids_of
from sire_core.cli.model_options import SpendingOptions, say_usage
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import IndexOptions, ReadingOptions, check_folder, manifest_of, open_index
from sire_core.cli.output import bar, note, output_width, reporting, say, say_json
from sire_core.errors import IndexLockedError, QueryError, StorageError
from sire_core.filters import parse_filter
from sire_core.filters.conditions import passes
from sire_core.storage.plain_files import copy_adapter_files
from sire_core.text.languages import UNDETERMINED
from sire_core.text.pluralize import count, count_units, kind_name, some
from sire_core.types import Document, UnitKind

_MAX_LINES = 3  # Number of lines that are shown of what is not searched


def check(folder: option_groups.Folder, as_json: option_groups.AsJson = False) -> None:
    """Compare an index with its checksums. Says how to repair damage.

    The exit code is 0 if nothing is damaged, otherwise 1. The index is only read, and may be in use.
    """
    from sire_core.storage.check import check_folder

    result = check_folder(folder)
    if as_json:
        say_json({"ok": not result, "findings": [asdict(finding) for finding in result]})
    elif result:
        say(f"{folder}: {count(len(result), 'finding')}.")
        for finding in result:
            say(f"{finding.file}: {finding.problem}")
            say(finding.advice, indent=4)
    else:
        say(f"{folder}: nothing is damaged.")
    if result:
        raise typer.Exit(1)


def backup(
    folder: option_groups.Folder,
    to: Annotated[Path, typer.Argument(metavar="NEW_DIR", help="The new folder; created if it does not exist.")],
) -> None:
    """Copy an index, even while it is in use.

    The copy contains the last commit and all stored answers of models. An index that nobody uses can be copied and
    moved like any other folder.
    """
    check_folder(folder, to)
    with open_index(IndexOptions(folder=folder)) as index:
        index.save(to)
        say(f"{to}: a copy of {folder}, {index.stats()['documents']:,} documents.")


def documents(
    folder: option_groups.Folder,
    doc_id: Annotated[
        str | None, typer.Argument(metavar="DOC_ID", help="Show the text of this document, as it was read.")
    ] = None,
    filter: option_groups.Filter = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """List documents with their ids, or show one.

    With --filter, documents of which at least one passage passes the filter.

    Example: sire documents my-index guides/queue.md

    JSON: a list of {"id", "title", "passages", "metadata"}; of one document {"id", "title", "text", "metadata"}.
    """
    if doc_id is not None:
        _show_document(folder, doc_id, as_json=as_json)
        return
    from sire_core.documents.document_names import cited_names

    check_folder(folder)
    documents_found = documents_passing(folder, filter)
    if as_json:
        listed = (
            {"id": d.id, "title": d.title, "passages": len(d.chunks or ()), "metadata": dict(d.metadata)}
            for d in documents_found
        )
        say_json(list(listed))
        return
    width = min(max((len(document.id) for document in documents_found), default=0), output_width() // 2)
    for document in documents_found:
        called = [document.title, *cited_names([document.id], document.metadata, {})]
        name = ", from ".join(dict.fromkeys(part for part in called if part and part != document.id))
        title = f"{name} ({count(len(document.chunks or ()), 'passage')})"
        if len(document.id) <= width:
            say(f"{document.id:<{width}}  {title}", hang=width + 2)
        else:
            say(document.id)
            say(title, indent=4)
    note(f"{count(len(documents_found), 'document')}.")


def documents_passing(folder: Path, filter: str | None) -> list[Document]:
    """Documents of an index of which at least one passage passes a filter."""
    from sire_core.documents.stored_corpus import filter_fields

    wanted = parse_filter(filter)
    with open_index(IndexOptions(folder=folder)) as index:
        return [d for d in index.documents() if wanted is None or any(passes(wanted, filter_fields(d)))]


def _show_document(folder: Path, doc_id: str, *, as_json: bool) -> None:
    from sire_core.recipes.sire.evidence_index import boilerplate

    check_folder(folder)
    (doc_id,) = ids_of([doc_id], folder)
    with open_index(IndexOptions(folder=folder)) as index:
        matches = index.documents([doc_id])
        lines = boilerplate(index.snapshot().view, [doc_id]) if matches and index.recipe_name == "sire" else []
        unsearched = [line for line in lines if any(map(str.isalpha, line))]
        similar = [] if matches else similar_names(doc_id, index.snapshot().document_ids())
    if not matches:
        near = f" Similar ids: {', '.join(similar)}." if similar else f" `sire documents {folder}` lists the ids."
        raise QueryError(f"There is no document {doc_id!r} in {folder}.{near}")
    document = matches[0]
    if as_json:
        content = {name: getattr(document, name) for name in ("id", "title", "text")}
        say_json({**content, "metadata": dict(document.metadata), "not_searched": unsearched})
        return
    say(f"{document.title}\n")
    say(document.text)
    if unsearched:
        number = count(len(unsearched), "line")
        note(f"\nNot searched, because other documents repeat it ({number}; `--set boilerplate=true` searches them):")
        for line in unsearched[:_MAX_LINES]:
            note(f"  {line}")
        if len(unsearched) > _MAX_LINES:
            note(f"  and {len(unsearched) - _MAX_LINES:,} more: `sire documents {folder} {doc_id} --json` lists them")


@grouped
def reembed(
    folder: option_groups.Folder,
    embedder: Annotated[
        str,
        option(
            "--embedder SPEC",
            "The new embedder: `lexical`, `semantic`, `onnx:NAME_OR_FOLDER`, `st:NAME_OR_FOLDER`, "
            "`openai:MODEL` or `file:PATH`.",
        ),
    ],
    spending: SpendingOptions,
    to: Annotated[Path | None, option("--to DIR", "Write to a new folder and leave DIR as it is.")] = None,
    extractions: option_groups.Extractions = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """Change the embedder of an index.

    Documents are not read or extracted again. All recipes are rebuilt with the new vectors in a new folder, which then
    replaces DIR. An interrupted run leaves DIR unchanged; run the same command again to resume. Recipes that were built
    with a model need the same --llm, because changed clusters need new summaries.

    Example: sire reembed my-index --embedder st:all-MiniLM-L6-v2
    """
    from sire_core.models.embedders import model_name

    options = existing_index(folder, embedder, spending, ReadingOptions(extractions=extractions))
    approve = approval(spending, with_documents)
    real_folder = folder.resolve()
    target = to or real_folder.with_name(f".{real_folder.name}.reembed")
    if approve is not None:
        from sire_core.files.readers import LoadedDocuments

        with open_index(options) as index:
            approve(index, LoadedDocuments(()))
    with reporting() as progress, open_index(options, progress) as index:
        index.flush()  # documents that adapters have handed in: the generation is that of all of them
        generation = manifest_of(folder).generation
        report = index.reembed(target, embedder)
    if to is None:
        _take_place(real_folder, target, generation)
    if as_json:
        say_json(report_json(report, manifest_of(to or folder).recipes[-1].name))
    else:
        say(f"{to or folder}: embedded with {model_name(manifest_of(to or folder).embedder)}.")
    say_usage(report)


def _take_place(folder: Path, new: Path, generation: int) -> None:
    from sire_core.storage.folder import Folder, replace_folder

    with Folder(folder).writing():
        if manifest_of(folder).generation != generation:
            raise StorageError(f"{folder} was changed meanwhile. Run the same command again: it does only the rest.")
        try:
            copy_adapter_files(folder, new)  # once more: documents may have been handed in since the copy was made
            replace_folder(folder, new, folder.with_name(f".{folder.name}.before"))
        except OSError as error:
            raise IndexLockedError(
                f"{folder} cannot be replaced ({error}). Close what uses it; the new index is in {new}."
            ) from error


_TREES = {"drift_sim": "similarity tree", "drift_rel": "relatedness tree", "drift_cross": "cross tree"}


def stats(
    folder: option_groups.Folder, recipe: option_groups.HeldRecipe = None, as_json: option_groups.AsJson = False
) -> None:
    """Show the contents of an index and how it was built."""
    from sire_core.models.embedders import model_name

    with open_index(IndexOptions(folder=folder, recipe=recipe)) as index:
        statistics = index.stats()
    if as_json:
        say_json(statistics)
        return
    spoken = {{UNDETERMINED: "unknown"}.get(code, code): n for code, n in statistics.get("languages", {}).items()}
    rows = {
        "documents": f"{statistics['documents']:,}",
        "passages": _passages(statistics),
        **({"units": count_units(statistics["kinds"])} if set(statistics["kinds"]) - {UnitKind.CHUNK} else {}),
        **({"languages": some([f"{code} {number:,}" for code, number in spoken.items()])} if spoken else {}),
        "recipe": f"{statistics['recipe']} (the folder holds: {', '.join(statistics['recipes'])})",
        "embedder": f"{model_name(statistics['embedder'])}, {statistics['dimension']} dimensions{_score(statistics)}",
        "extraction": statistics["extraction"] or "none needed",
        "language model": statistics["language_model"] or "none",
        "failed": f"{statistics['failed']:,}",
        "generation": f"{statistics['generation']:,}",
    }
    rows |= _tree_rows(statistics)
    for name, value in rows.items():
        say(f"{name:<16} {value}", hang=17)
    sizes = statistics["kinds"]
    if len(sizes) > 1:
        say()
        for kind, number in sorted(sizes.items(), key=lambda item: -item[1]):
            say(f"{kind_name(kind):<16} {bar(number / max(1, *sizes.values()))} {number:,}")


def _score(statistics: Mapping[str, Any]) -> str:
    """Score of the embedder for paraphrases, if it was measured."""
    score = statistics["paraphrase_score"]
    return "" if score is None else f", paraphrase score {score:.2f}"


def _passages(statistics: Mapping[str, Any]) -> str:
    """Number of passages the documents have, and how many of them differ, if some repeat others."""
    total, distinct = statistics["passages"], statistics["kinds"].get(UnitKind.CHUNK, 0)
    return f"{total:,}, {distinct:,} distinct" if 0 < distinct < total else f"{total:,}"


def _tree_rows(statistics: Mapping[str, Any]) -> dict[str, str]:
    """Lines about the drift of trees and the perspectives of `smart`."""
    rows = {
        name: f"drifted {statistics[key]:.0%} of the way to a rebuild"
        for key, name in _TREES.items()
        if key in statistics
    }
    if bridging := statistics.get("bridging"):
        rows["bridging"] = (
            f"{bridging['facts']:,} facts of {bridging['entities']:,} entities that documents share; "
            f"{bridging['non_empty_rate']:.0f}% of these have one"
        )
    perspectives = statistics.get("perspectives", {})
    for number, tree in enumerate(perspectives.get("trees", ()), 1):
        levels = ", ".join(f"{size:,}" for size in tree["clusters"])
        explained = tree["information"] / perspectives["entropy"] if perspectives["entropy"] else 0.0
        view = f" ({tree['view']})" if tree.get("view") else ""
        rows[f"perspective {number}{view}"] = (
            f"clusters of entities by level: {levels}; they explain {explained:.0%} of how entities are related"
        )
    return rows
