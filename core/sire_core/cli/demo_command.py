"""`sire demo`: three questions to the packaged corpus, with the evidence and its reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.algorithms.text import split_sentences
from sire_core.cli import arguments
from sire_core.cli.options import IndexOptions, open_index
from sire_core.cli.output import count, say, shorten, some

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sire_core.corpus.benchmarks import Question
    from sire_core.index import Index
    from sire_core.types import Hit

__all__ = ["demo"]

_TEXT = 230


def demo(k: arguments.K = 8) -> None:
    """Index the packaged corpus with SiReRAG, without any model or key, and ask questions that need two documents."""
    from sire_core.data import demo_documents, demo_questions

    documents = demo_documents()
    titles = {document.id: document.title for document in documents}
    with open_index(IndexOptions(recipe="sirerag")) as index, open_index(IndexOptions(recipe="flat")) as plain:
        report = index.build(documents)
        plain.build(documents)
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(report.units.items()))
        say(f"{count(len(documents), 'passage')} about the Halvern Isles, an archipelago that does not exist.")
        say(
            f"Indexed with SiReRAG in {sum(report.seconds.values()):.1f} s, without a language model: "
            f"{count(sum(report.units.values()), 'unit')} ({kinds})."
        )
        for number, question in enumerate((q for q in demo_questions() if q.metadata.get("demo")), 1):
            hits = index.search(question.question, k)
            say(f"\nQuestion {number}: {question.question}", "bold")
            say(_verdict(question, hits, plain, titles))
            _say_hits(question, hits, titles)
    say('\nYour own documents: sire index FOLDER --to my-index, then sire query my-index "QUESTION" --explain')


def _verdict(question: Question, hits: Sequence[Hit], plain: Index, titles: Mapping[str, str]) -> str:
    needed = " and ".join(titles[doc_id] for doc_id in question.supporting)
    found = _place(question, hits)
    passages = _place(question, plain.search(question.question, len(titles)))
    return (
        f"It takes two documents: {needed}. The answer, {question.answers[0]}, is in "
        f"{f'hit {found}' if found else f'none of the first {len(hits)} hits'}; "
        f"vector search over the passages alone has it at place {passages}."
    )


def _place(question: Question, hits: Sequence[Hit]) -> int | None:
    return next((place for place, hit in enumerate(hits, 1) if _holds_answer(question, hit)), None)


def _holds_answer(question: Question, hit: Hit) -> bool:
    # The words alone may stand elsewhere, too: they must come from the document that answers the question.
    return question.answers[0] in hit.unit.text and question.supporting[-1] in hit.doc_ids


def _say_hits(question: Question, hits: Sequence[Hit], titles: Mapping[str, str]) -> None:
    for number, hit in enumerate(hits, 1):
        answers = _holds_answer(question, hit)
        say(
            f"\n  {number}. {_excerpt(hit.unit.text, question.answers[0] if answers else '')}",
            "green" if answers else "",
        )
        say(f"     from  {some([titles[doc_id] for doc_id in hit.doc_ids], 4)}", "cyan")
        say(f"     why   {'; '.join(step.note for step in hit.path)}", "cyan")


def _excerpt(text: str, words: str) -> str:
    """The beginning of a text, and the sentence that holds the words when it lies further on."""
    beginning = shorten(text, _TEXT)
    if words in beginning:
        return beginning
    sentence = next(s for s in split_sentences(text) if words in s)
    return f"{beginning} {' '.join(sentence.split())}"
