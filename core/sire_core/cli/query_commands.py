"""`sire query` and `sire demo`: the evidence for a question, in an index and in the packaged corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sire_core.algorithms.text import split_sentences
from sire_core.algorithms.wording import shorten
from sire_core.cli import arguments
from sire_core.cli.arguments import grouped
from sire_core.cli.options import IndexOptions, SearchOptions, check_folder, open_index
from sire_core.cli.output import check_writable, count, kinds, note, say, say_json, some
from sire_core.recipes.registry import DEFAULT_RECIPE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sire_core.corpus.benchmarks import Question
    from sire_core.types import Document, Hit

__all__ = ["demo", "hit_json", "query", "say_hit"]

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
    if html is not None:
        check_writable("--html", html)
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


_EXCERPT = 260
_TITLES = 4


def demo(k: arguments.K = 4) -> None:
    """Index a small sample corpus and ask it questions.

    Uses the default recipe, without a model and without an API key. Every question needs two documents. Shows the first
    k hits of each question, and the first hit that contains the answer.
    """
    from sire_core.data import demo_documents, demo_questions

    documents = {document.id: document for document in demo_documents()}
    with open_index(IndexOptions(recipe=DEFAULT_RECIPE)) as index, open_index(IndexOptions(recipe="flat")) as plain:
        report = index.build(documents.values())
        plain.build(documents.values())
        units = sum(report.units.values())
        say(f"{count(len(documents), 'passage')} about the Halvern Isles, an archipelago that does not exist.")
        say(
            f"Indexed with {DEFAULT_RECIPE} in {sum(report.seconds.values()):.1f} s, without a language model: "
            f"{count(units, 'unit')}{kinds(report.units)}."
        )
        for number, question in enumerate((q for q in demo_questions() if q.metadata.get("demo")), 1):
            hits = index.search(question.question, units)
            passages = plain.search(question.question, len(documents))
            say(f"\nQuestion {number}: {question.question}", "bold")
            say(f"Answer: {question.answers[0]}. It needs two documents. Their ranks:")
            _say_places(question, hits, passages, documents)
            _say_hits(question, hits, k, documents)
    say('\nYour own documents: sire index FOLDER --to my-index, then sire query my-index "QUESTION" --explain')


def _say_places(
    question: Question, hits: Sequence[Hit], passages: Sequence[Hit], documents: Mapping[str, Document]
) -> None:
    sentence = _answer_sentence(question, documents)
    rows = [(documents[doc_id].title, _first(hits, doc_id), _first(passages, doc_id)) for doc_id in question.supporting]
    rows.append(("the sentence with the answer", _stating(hits, sentence), _stating(passages, sentence)))
    for name, ours, theirs in rows:
        say(f"  {name:<30} {DEFAULT_RECIPE} {ours:>3}    vector search {theirs:>3}")


def _say_hits(question: Question, hits: Sequence[Hit], k: int, documents: Mapping[str, Document]) -> None:
    sentence = _answer_sentence(question, documents)
    answering = _stating(hits, sentence)
    for place, hit in enumerate(hits, 1):
        if place <= k or place == answering:
            say()
            say(f"{place}. {_excerpt(hit.unit.text, sentence)}", "green" if place == answering else "", indent=2)
            say(f"from  {_titles(question, hit, documents)}", "cyan", indent=5)
            say(f"why   {'; '.join(step.note for step in hit.path)}", "cyan", indent=5)


def _titles(question: Question, hit: Hit, documents: Mapping[str, Document]) -> str:
    """The first documents of a hit, and those that the question needs."""
    kept = [doc_id for place, doc_id in enumerate(hit.doc_ids) if place < _TITLES or doc_id in question.supporting]
    more = len(hit.doc_ids) - len(kept)
    return ", ".join(documents[doc_id].title for doc_id in kept) + (f", and {more} more" if more else "")


def _answer_sentence(question: Question, documents: Mapping[str, Document]) -> str:
    """The sentence that states the answer, without its first word: units spell out whom a pronoun means."""
    text = documents[question.supporting[-1]].text
    return next(s.split(" ", 1)[1] for s in split_sentences(text) if question.answers[0] in s)


def _first(hits: Sequence[Hit], doc_id: str) -> int:
    return next(place for place, hit in enumerate(hits, 1) if doc_id in hit.doc_ids)


def _stating(hits: Sequence[Hit], sentence: str) -> int:
    # Always somewhere: the whole pool was ranked, and the passage itself is in it.
    return next(place for place, hit in enumerate(hits, 1) if sentence in hit.unit.text)


def _excerpt(text: str, sentence: str) -> str:
    """The first sentences of a text, and the sentence in question when it lies further on."""
    first, *rest = (" ".join(s.split()) for s in split_sentences(text))
    shown = [first]
    for following in rest:
        if sum(map(len, shown)) + len(following) > _EXCERPT:
            break
        shown.append(following)
    left = rest[len(shown) - 1 :]
    shown += [f"... {s}" for s in left if sentence in s]
    return " ".join(shown) + (" ..." if left and sentence not in left[-1] else "")
