"""The common part of `index`, `add`, `update` and `delete`: read sources, run the change, report it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import typer

from sire_core.algorithms.wording import shorten
from sire_core.cli.models import say_usage
from sire_core.cli.options import IndexOptions, chunker_of, is_index, manifest_of, open_index
from sire_core.cli.output import count, kinds, note, reporting, say, say_json
from sire_core.errors import ConfigurationError, CorpusError
from sire_core.version import __version__

if TYPE_CHECKING:
    from sire_core.cli.known_files import KnownFiles
    from sire_core.corpus.readers import LoadedDocuments
    from sire_core.index import Index
    from sire_core.storage.manifest import Manifest
    from sire_core.types import BuildReport, Failure

__all__ = ["ids_of", "is_inside", "left_out_sources", "read_sources", "report_json", "run_change", "stored_hashes"]

_SHOWN = 20
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Result:
    report: BuildReport
    recipe: str
    before: Manifest
    after: Manifest

    def settings(self) -> str:
        """Settings of the recipe that differ from those that it had in the folder, as text."""
        had = [built.config for built in self.before.recipes if built.name == self.recipe][-1:]
        has = [built.config for built in self.after.recipes if built.name == self.recipe][-1:]
        changed = [
            f"{name}={json.dumps(value)} (was {json.dumps(old[name])})"
            for old, new in zip(had, has, strict=False)
            for name, value in new.items()
            if name in old and json.dumps(old[name]) != json.dumps(value)
        ]
        return ", ".join(changed)


def run_change(
    options: IndexOptions,
    change: Callable[[Index, LoadedDocuments], BuildReport],
    *,
    sources: Sequence[Path] | None = None,
    as_json: bool = False,
    approve: Callable[[Index, LoadedDocuments], object] | None = None,
    whole: bool = False,
    also: str = "",
) -> None:
    """Read sources, change an index, and say on stderr what was read and what failed, on stdout what was done."""
    from sire_core.corpus.readers import LoadedDocuments

    before, known = manifest_of(options.folder), _known_files(sources, options)
    corpus = None if sources is not None else LoadedDocuments(())
    if approve is not None:
        with open_index(options) as index:  # before the change: progress bars would hide the question
            corpus = corpus or read_sources(sources or (), options, known)
            if whole and corpus.failures and options.folder is not None:
                _check_whole(index, corpus, options.folder)
            approve(index, corpus)
    try:
        with reporting() as progress, open_index(options, progress) as index:
            corpus = corpus or read_sources(sources or (), options, known)
            report = change(index, corpus)
            recipe = str(index.stats()["recipe"])
        if options.folder is not None and sources is not None:
            from sire_core.storage.folder import Folder

            Folder(options.folder).note_sources(os.path.realpath(path) for path in sources if path.is_dir())
            known.note(corpus.whole, stored_hashes(options.folder))
    except KeyboardInterrupt:  # here, when the bars have gone
        note(
            f"Interrupted. {options.folder} is unchanged, and the finished part of the work is stored. "
            "Run the same command again to resume."
        )
        raise typer.Exit(130) from None
    if as_json:
        say_json(report_json(report, recipe, corpus.failures))
    else:
        if not also or report.generation != before.generation:
            _say(_Result(report, recipe, before, manifest_of(options.folder)), options.folder)
        if also:
            say(also)
        if not before.embedder and options.embedder in (None, "semantic"):
            _note_embedder(options.embedder is not None)
    say_usage(report)
    _list_failures(
        report.failures,
        "passage or summary failed; the same command tries it again",
        "passages or summaries failed; the same command tries them again",
    )


def _known_files(sources: Sequence[Path] | None, options: IndexOptions) -> KnownFiles:
    """What an index folder knows of files; nothing of single ones, which are read in no time."""
    from sire_core.cli.known_files import KnownFiles
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.corpus.readers import READING

    folder = options.folder
    if folder is None or not any(path.is_dir() for path in sources or ()) or (folder / "pending").exists():
        return KnownFiles(None, "", {})
    chunker = chunker_of(options, manifest_of(folder))
    cutter = SentenceChunker() if isinstance(chunker, str) else chunker
    rules = f"{READING} {__version__} {cutter.fingerprint if cutter else 'whole'} media={options.media}"
    return KnownFiles(folder, rules, stored_hashes(folder) if is_index(folder) else {})


def _check_whole(index: Index, corpus: LoadedDocuments, folder: Path) -> None:
    """Refuse to remove documents that may be in what could not be read."""
    given = corpus.ids
    gone = index.documents(name for name in stored_hashes(folder) if name not in given)
    files = {document.id: document.metadata.get("source") == document.id for document in gone}
    found = {name: place for name, own in files.items() if (place := corpus.may_hold(name, a_file=own)) is not None}
    if found:
        shown = ", ".join(f"{name} (in {place})" for name, place in list(found.items())[:3])
        more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
        raise CorpusError(
            f"Nothing was changed: {count(len(found), 'document')} would be removed that may be in what could not be "
            f"read: {shown}{more}. Put that right, or move it away."
        )


def read_sources(sources: Sequence[Path], options: IndexOptions, known: KnownFiles | None = None) -> LoadedDocuments:
    """Read documents, and say on stderr what was read, repeated or skipped."""
    from sire_core.corpus.readers import read_documents

    for source in sources:
        _refuse_inside(source, options.folder)
    from sire_core.storage.folder import Folder

    corpus = read_documents(
        list(sources),
        roots=Folder(options.folder).sources() if options.folder else (),
        is_known=None if known is None else known.holds,
    )
    same = f"; {count(len(corpus.known), 'file')} unchanged" if corpus.known else ""
    twice = f", {count(len(corpus.duplicates), 'identical repeat')} left out" if corpus.duplicates else ""
    note(f"Read {count(len(corpus.documents), 'document')}{twice}{same}.")
    if options.folder is not None:
        _warn_of_taken(taken_names((found.id for found in corpus.documents), sources, options.folder))
    lists: tuple[list[Failure], list[Failure]] = ([], [])
    for failure in corpus.failures:
        lists[failure.reason.startswith("an attachment")].append(failure)
    _list_failures(lists[0], "could not be read and was skipped", "could not be read and were skipped")
    _list_failures(lists[1], "attachment of a mail was left out", "attachments of mails were left out")
    return _split_media(corpus, options) if options.media else corpus


def list_readings(sources: Sequence[Path], options: IndexOptions, *, as_json: bool) -> None:
    """Say what was read of each file, and warn of those that look badly read."""
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.corpus.readers import check_reading

    chunker = chunker_of(options, manifest_of(options.folder))
    cutter = SentenceChunker() if isinstance(chunker, str) else chunker
    found = [check_reading(document, cutter) for document in read_sources(sources, options).documents]
    if as_json:
        say_json([asdict(document) for document in found])
        return
    for document in found:
        size = f"{count(document.passages, 'passage')}, {document.characters:,} characters"
        say(f"{document.id}  {document.title} ({size})")
        more = len(document.headings) - _SHOWN_HEADINGS
        shown = [*document.headings[:_SHOWN_HEADINGS], *([f"{more:,} more"] if more > 0 else [])]
        if shown:
            say("; ".join(shown), indent=4)
        if document.warnings:
            note(f"{document.id} looks badly read: {', '.join(document.warnings)}.", "yellow")
    note("Nothing was built (--dry-run).")


_SHOWN_HEADINGS = 8


def _warn_of_taken(names: Sequence[str]) -> None:
    """Warn that files replace files of another folder with the same names."""
    if names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        note(
            f"{count(len(names), 'file')} of another folder had the same id and is replaced: {shown}. Ids are paths "
            "relative to the given folder. To keep both, index their common parent folder.",
            "yellow",
        )


def _split_media(corpus: LoadedDocuments, options: IndexOptions) -> LoadedDocuments:
    from sire_core.corpus.chunker import SentenceChunker
    from sire_core.corpus.media import split_media

    chunker = chunker_of(options, manifest_of(options.folder))
    found = split_media(corpus.documents, chunker if isinstance(chunker, SentenceChunker) else None)
    note(f"Separate passages: {count(found.tables, 'table')} and {count(found.images, 'image')}.")
    return replace(corpus, documents=found.documents)


def _say(result: _Result, folder: Path | None) -> None:
    report = result.report
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (report.added, "added"),
            (report.updated, "updated"),
            (report.removed, "removed"),
            (report.unchanged, "unchanged"),
        )
        if number
    ]
    held = list(dict.fromkeys(built.name for built in result.before.recipes))
    if held and result.recipe not in held:
        say(f"Recipe {result.recipe} added to {folder}, beside {', '.join(held)}.")
    if settings := result.settings():
        say(f"Settings of {result.recipe} changed: {settings}. Other settings are unchanged.")
    if held and result.before.recipes[-1].name != result.recipe:
        say(
            f"Searches without -r use {result.recipe} from now on; -r NAME selects another recipe. Open indexes keep "
            "theirs."
        )
    if report.generation == result.before.generation:
        what = "No document" if settings or report.learned_again else "Nothing"
        say(f"{what} changed: {folder} holds these documents, indexed with {result.recipe}.")
        return
    if report.dropped:
        note(f"Removed, because this change used another model or extractor: {', '.join(report.dropped)}.", "yellow")
    say(f"{folder}: documents {', '.join(parts) or 'none'}.")
    say(f"{result.recipe}: {count(sum(report.units.values()), 'unit')}{kinds(report.units)} in {_seconds(report)}.")


def _note_embedder(semantic: bool) -> None:
    """After a first build, where a model is on this machine: which embedder was taken, and why."""
    from sire_core.models.onnx_embedder import semantic_choice

    choice = semantic_choice()
    if choice is None:
        return
    spec, why = choice
    if semantic:
        note(f"Embedder {spec}: {why}.")
    else:
        note(f"Embedder lexical, the default. --embedder semantic takes {spec}: {why}.")


def _seconds(report: BuildReport) -> str:
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in report.seconds.items() if seconds >= 0.05)
    return f"{sum(report.seconds.values()):.1f} s" + (f" ({stages})" if stages else "")


def report_json(report: BuildReport, recipe: str, skipped: Sequence[Failure] = ()) -> dict[str, Any]:
    """A report for scripts."""
    return {
        "recipe": recipe,
        "added": report.added,
        "updated": report.updated,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "units": sum(report.units.values()),
        "kinds": dict(report.units),
        "calls": report.calls,
        "cached": report.cached,
        "input_tokens": report.input_tokens,
        "output_tokens": report.output_tokens,
        "usage": {stage: asdict(used) for stage, used in report.usage.items()},
        "skipped": [{"where": failure.where, "reason": failure.reason} for failure in skipped],
        "failures": [{"where": failure.where, "reason": failure.reason} for failure in report.failures],
        "seconds": {stage: round(seconds, 3) for stage, seconds in report.seconds.items()},
        "generation": report.generation,
        "dropped": list(report.dropped),
        "learned_again": report.learned_again,
    }


def _list_failures(failures: Sequence[Failure], one: str, several: str) -> None:
    if not failures:
        return
    note(f"{len(failures):,} {one if len(failures) == 1 else several}:", "yellow")
    places: dict[str, list[str]] = {}
    for failure in failures:
        places.setdefault(failure.reason, []).append(failure.where)
    for reason, where in list(places.items())[:_SHOWN]:
        more = f" and {len(where) - _NAMED:,} more" if len(where) > _NAMED else ""
        note(f"  {', '.join(where[:_NAMED])}{more}: {shorten(reason, 200)}")
    unsaid = sum(len(where) for where in list(places.values())[_SHOWN:])
    if unsaid:
        note(f"  and {unsaid:,} more (--json lists all)")


def _refuse_inside(source: Path, folder: Path | None) -> None:
    """An index inside a source folder would be read as documents by the next run, unless it is hidden."""
    if folder is None or folder.is_file():
        return
    inner, outer = folder.resolve(), source.resolve()
    if not source.is_dir() or not inner.is_relative_to(outer):
        return
    if not any(part.startswith(".") for part in inner.relative_to(outer).parts):
        raise ConfigurationError(
            f"The index {folder} would lie inside {source} and be read as documents. "
            "Name a folder outside, or one whose name starts with a dot."
        )


def stored_hashes(folder: Path) -> dict[str, str]:
    """What the documents of an index depend on, by id; also of one that is not searched before it was mended."""
    from contextlib import closing

    from sire_core.storage.index_files import IndexFiles

    with closing(IndexFiles(folder)) as files:
        return {name: document.hash for name, document in files.store.documents().items()}


def ids_of(given: Iterable[str], folder: Path) -> list[str]:
    """Ids as they were given, or of the files that were named by their paths, which need not exist any more."""
    from sire_core.storage.folder import Folder

    known, roots = set(stored_hashes(folder)), Folder(folder).sources()
    return list(dict.fromkeys(_id_of(name, known, roots) for name in given))


def _id_of(name: str, known: Collection[str], roots: Sequence[str]) -> str:
    if name in known:
        return name
    place = PurePath(os.path.realpath(Path(name).parent), Path(name).name)
    below = [place.relative_to(root).as_posix() for root in roots if place.is_relative_to(root)]
    # Where folders are known, a bare name is the id of a file right inside one: another file may have the same name.
    return next((found for found in (below if roots else [place.name]) if found in known), name)


def left_out_sources(gone: Iterable[str], sources: Iterable[Path], folder: Path) -> list[str]:
    """Folders that were read before, are not or not wholly read now, and still hold some of the documents."""
    from sire_core.storage.folder import Folder

    now, names = [PurePath(os.path.realpath(source)) for source in sources], list(gone)
    roots = [root for root in Folder(folder).sources() if not any(PurePath(root).is_relative_to(one) for one in now)]
    return [root for root in roots if any(Path(root, name).is_file() for name in names)]


def is_inside(source: Path, root: str) -> bool:
    """Whether a file or folder lies below a folder, and is not the folder itself."""
    place = os.path.realpath(source)
    return place != os.path.realpath(root) and PurePath(place).is_relative_to(os.path.realpath(root))


def taken_names(names: Iterable[str], sources: Iterable[Path], folder: Path) -> list[str]:
    """Ids that two different files have: one in a folder that is read now, one in a folder that was read before."""
    from sire_core.storage.folder import Folder

    now = [os.path.realpath(source) for source in sources if source.is_dir()]
    before = [root for root in Folder(folder).sources() if root not in now]
    # Of folders inside each other ids are paths below the outer one: no name is taken twice.
    pairs = [(new, old) for new in now for old in before if os.path.commonpath([new, old]) not in (new, old)]
    return [name for name in names if any(_both(Path(new, name), Path(old, name)) for new, old in pairs)]


def _both(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and other.is_file() and not one.samefile(other)
    except (OSError, ValueError):  # an id of a record that is no name of a file
        return False
