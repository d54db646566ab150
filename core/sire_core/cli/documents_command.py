"""`sire documents`: what is in an index, by id."""

from __future__ import annotations

from sire_core.cli import arguments
from sire_core.cli.options import IndexOptions, check_folder, open_index
from sire_core.cli.output import count, note, say, say_json

__all__ = ["documents"]


def documents(folder: arguments.Folder, where: arguments.Filter = None, as_json: arguments.AsJson = False) -> None:
    """List the documents of an index, with their ids.

    Ids are what `sire delete` takes.

    Example: sire documents my-index --filter lang=en

    JSON: a list of {"id", "title", "passages", "metadata"}.
    """
    from sire_core.filter_ids import passes
    from sire_core.filters import parse_filter

    check_folder(folder)
    wanted = parse_filter(where)
    with open_index(IndexOptions(folder=folder)) as index:
        found = [d for d in index.documents() if wanted is None or all(passes(wanted, [(d.metadata, d.id, "")]))]
    if as_json:
        listed = (
            {"id": d.id, "title": d.title, "passages": len(d.chunks or ()), "metadata": dict(d.metadata)} for d in found
        )
        say_json(list(listed))
        return
    width = max((len(document.id) for document in found), default=0)
    for document in found:
        say(f"{document.id:<{min(width, 60)}}  {document.title} ({count(len(document.chunks or ()), 'passage')})")
    note(f"{count(len(found), 'document')}.")
