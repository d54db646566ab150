"""`sire query`, `sire demo` and `sire ask`: the evidence for a question, and an answer with citations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from sire_core.cli import option_groups
from sire_core.cli.model_options import AnswerOptions, LimitOptions, refuse_without_model
from sire_core.cli.option_groups import grouped, option
from sire_core.cli.options import IndexOptions, SearchOptions, check_folder, open_index, read_examples
from sire_core.cli.output import check_writable, note, on_terminal, say, say_json, say_marked, say_part
from sire_core.documents.document_names import documents_of, page_label
from sire_core.errors import ConfigurationError
from sire_core.recipes.registry import DEFAULT_RECIPE
from sire_core.search.validity import superseded_mark
from sire_core.text.pluralize import count, count_units, excerpt, kind_name, shorten, some
from sire_core.text.snippets import snippet
from sire_core.text.words import split_sentences

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.protocols import LanguageModel
    from sire_core.questions import Question
    from sire_core.reason.steps import Answer, AnswerPiece, ReasoningStep, Trace
    from sire_core.types import Document, Hit, PathStep

_TEXT = 320

_EXCERPT = 260
_SHOWN_TITLES = _SHOWN_PASSAGES = 5


@dataclass(frozen=True, slots=True)
class EvidenceOptions:
    """Options of a context within a number of tokens."""

    group: ClassVar[str] = "Evidence"

    max_tokens: Annotated[
        int | None,
        option(
            "--max-tokens N",
            "Print the parts of the best passages that answer the question, in N tokens (words and punctuation marks). "
            "With --json, all that is printed has at most N. -k has no effect.",
            min=1,
        ),
    ] = None
    more: Annotated[
        bool, option("--more", "With --max-tokens: also name the documents that match well and are not shown.")
    ] = False

    def check(self, *, shows_paths: bool, as_json: bool) -> None:
        """Refuse options that do not go together."""
        if self.max_tokens is not None and shows_paths:
            raise ConfigurationError("--max-tokens prints evidence: leave --explain and --html out.")
        if self.more and (self.max_tokens is None or as_json):
            raise ConfigurationError("--more is for --max-tokens, without --json.")

    def say(self, index: Index, question: str, *, as_json: bool, **search: Any) -> None:
        """Print the context for a question, and the names of further documents that match."""
        assert self.max_tokens is not None
        from sire_core.search.context import ContextOptions, context_text, evidence_json, head_json

        def label(number: int, hit: Hit) -> str:
            return f"[{number}] {_origin(hit)}:"

        options = ContextOptions(
            write=evidence_json if as_json else lambda evidence: context_text(evidence, label),
            head=head_json if as_json else lambda hit: f"{label(1, hit)} {hit.unit.title}",
        )
        context = index.context(question, self.max_tokens, options=options, **search)
        if not context.evidence:
            few = f"not one word of them fits {self.max_tokens} tokens; allow more"
            note(f"No evidence: {few if context.left_out else 'nothing was found, or nothing passes the filter'}.")
        typer.echo(context.text or ("[]" if as_json else ""))
        if self.more and context.more:
            matching = count(len(context.more), "further document matches", "further documents match")
            note(f"{matching} well: {', '.join(context.more)}")


@grouped
def query(
    folder: option_groups.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    searching: SearchOptions,
    choosing: EvidenceOptions,
    k: option_groups.K = 10,
    filter: option_groups.Filter = None,
    as_of: option_groups.AsOf = None,
    explain: Annotated[
        bool, option("--explain", "Show the steps to each hit, with an excerpt (--json: whole texts).")
    ] = False,
    returns: option_groups.Returns = "passages",
    as_json: option_groups.AsJson = False,
    *,
    html: Annotated[
        Path | None,
        option("--html FILE", "Also write an HTML page with the paths to the hits; works offline."),
    ] = None,
) -> None:
    """Find evidence for a question.

    Example: sire query my-index "When did Lothair II's mother die?" -k 5 --explain

    JSON: a list of {"id", "kind", "score", "title", "text", "doc_ids", "chunk_ids", "pages", "metadata", "path",
    "snippet"}; pages where there are any; path is a list of {"step", "ids", "note"}. With --max-tokens: a list of
    {"id", "doc_ids", "title", "page", "spans", "text"}; spans are characters of the passage that are quoted.
    """
    check_folder(folder, question)
    choosing.check(shows_paths=explain or html is not None, as_json=as_json)
    if html is not None:
        check_writable("--html", html)
    search: dict[str, Any] = {"filter": filter, "returns": returns, "as_of": as_of}
    with open_index(searching.options(folder)) as index:
        if choosing.max_tokens is not None:
            choosing.say(index, question, as_json=as_json, **search)
            return
        if html is not None:
            index.show(question, k, **search).save(html)
            note(f"Wrote {html}")
        hits = index.search(question, k, **search)
        if explain and not as_json:
            say_unanswered(question, hits)
            say(index.explain(question, k, **search))
            return
    if as_json:
        say_json([hit_json(hit, question) for hit in hits])
        return
    if not hits:
        note("No hits: nothing in the index passes the filter." if filter else "No hits: the index holds no documents.")
    say_unanswered(question, hits)
    _say_hits_and_links(question, hits)


def _say_hits_and_links(question: str, hits: Sequence[Hit]) -> None:
    numbers = {hit.unit.id: number for number, hit in enumerate(hits, 1)}
    for number, hit in enumerate(hits, 1):
        say_hit(number, hit, question)
        for step in hit.path:
            if step.sentence and step.ids[0] in numbers and step.ids[-1] == hit.unit.id:
                say_link(numbers[step.ids[0]], number, step)


def say_unanswered(question: str, hits: Sequence[Hit], tell: Callable[[str, str], None] = note) -> None:
    """Warn if the hits hardly share a word with the question."""
    from sire_core.search.unanswered import unanswered_note

    if warning := unanswered_note(question, hits):
        tell(warning, "yellow")


def say_hit(number: int, hit: Hit, question: str) -> None:
    """Print a numbered hit with the sentences that share most with the question."""
    from sire_core.explore.highlight import marked
    from sire_core.search.explanation import text_below_title, without_sessions

    unit = hit.unit
    say(f"[{number}] {unit.title or shorten(unit.text, 60)}", "bold")
    say(f"{kind_name(unit.kind)}, score {hit.score:.4f}, from {_origin(hit)}", "cyan", indent=4)
    if mark := superseded_mark(step.note for step in hit.path):
        say(mark.strip("() "), "yellow", indent=4)
    say_marked(
        marked(snippet(without_sessions(text_below_title(unit)), question, _TEXT, hit.led_by), question), indent=4
    )
    say()


def _origin(hit: Hit) -> str:
    return ", ".join(filter(None, (documents_of(hit), page_label(hit))))


def say_link(source: int, target: int, step: PathStep) -> None:
    """Print the sentence that leads from one hit to another, with the name that it goes by."""
    from sire_core.explore.highlight import marked

    say_marked([(f"[{source}] -> [{target}]: ", ""), *marked(step.sentence, "", [step.name])], indent=4)
    say()


def hit_json(hit: Hit, question: str) -> dict[str, Any]:
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
        **({"pages": pages} if (pages := hit.pages()) else {}),
        "metadata": dict(hit.metadata),
        "path": [{"step": step.step, "ids": list(step.ids), "note": step.note} for step in hit.path],
        "snippet": hit.snippet(question),
    }


def demo(k: option_groups.K = 4) -> None:
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
        say(f"{count(len(documents), 'document')} about the Halvern Isles, an archipelago that does not exist.")
        say(
            f"Indexed with {DEFAULT_RECIPE} in {sum(report.seconds.values()):.1f} s, without a language model: "
            f"{count_units(report.units)}."
        )
        questions = sorted((q for q in demo_questions() if q.metadata.get("demo")), key=lambda q: q.metadata["demo"])
        for number, question in enumerate(questions, 1):
            hits = index.search(question.question, units)
            passages = plain.search(question.question, len(documents))
            say(f"\nQuestion {number}: {question.question}", "bold")
            say(f"Answer: {question.answers[0]}. It needs two documents. Their ranks:")
            sentence = _answer_sentence(question, documents)
            _say_places(question, sentence, hits, passages, documents)
            _say_hits(question, sentence, hits, k, documents)
    say('\nYour own documents: sire index FOLDER --to my-index, then sire query my-index "QUESTION" --explain')


def _say_places(
    question: Question, sentence: str, hits: Sequence[Hit], passages: Sequence[Hit], documents: Mapping[str, Document]
) -> None:
    rows = [(documents[name].title, _rank_of(hits, name), _rank_of(passages, name)) for name in question.supporting]
    rows.append(("the sentence with the answer", _stating(hits, sentence), _stating(passages, sentence)))
    for name, ours, theirs in rows:
        say(f"  {name:<30} {DEFAULT_RECIPE} {ours:>3}    vector search {theirs:>3}")


def _say_hits(
    question: Question, sentence: str, hits: Sequence[Hit], k: int, documents: Mapping[str, Document]
) -> None:
    answering = _stating(hits, sentence)
    for rank, hit in enumerate(hits, 1):
        if rank <= k or rank == answering:
            titles = [documents[name].title for name in sorted(hit.doc_ids, key=lambda d: d not in question.supporting)]
            text = excerpt(hit.unit.text, sentence, _EXCERPT)
            say()
            say(f"{rank}. {text}", "green" if rank == answering else "", indent=2)
            say(f"from  {some(titles)}", "cyan", indent=5)
            say(f"why   {'; '.join(step.note for step in hit.path)}", "cyan", indent=5)


def _answer_sentence(question: Question, documents: Mapping[str, Document]) -> str:
    """The sentence that states the answer, without its first word: units spell out whom a pronoun means."""
    text = documents[question.supporting[-1]].text
    return next(s.split(" ", 1)[1] for s in split_sentences(text) if question.answers[0] in s)


def _rank_of(hits: Sequence[Hit], doc_id: str) -> int:
    return next(rank for rank, hit in enumerate(hits, 1) if doc_id in hit.doc_ids)


def _stating(hits: Sequence[Hit], sentence: str) -> int:
    # Always somewhere: the whole pool was ranked, and the passage itself is in it.
    return next(rank for rank, hit in enumerate(hits, 1) if sentence in hit.unit.text)


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """Options of how is reasoned."""

    group: ClassVar[str] = "Reasoning"

    via: Annotated[
        str,
        option(
            "--via single|ircot|self-ask",
            "`single` searches once and answers in one call; `ircot` alternates reasoning and searching; "
            "`self-ask` asks itself follow-up questions.",
        ),
    ] = "single"
    flavor: option_groups.Flavor = None
    examples: option_groups.Examples = None

    def arguments(self, model: LanguageModel | None, limits: LimitOptions) -> dict[str, Any]:
        """Arguments of `reason`: the strategy and its settings; without a model one search, and no answer."""
        from sire_core.reason import settings_of

        settings = settings_of(self.via, self.flavor, read_examples(self.examples))
        limits.need_model(model)
        if model is None and self.via != "single":
            refuse_without_model({f"--via {self.via}": self.via})
        result = {"strategy": self.via, **settings} if model else {"strategy": "single", "answer": False}
        return {**result, "limits": limits.of_reasoning()}


@grouped
def ask(
    folder: option_groups.Folder,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    searching: SearchOptions,
    answering: AnswerOptions,
    limits: LimitOptions,
    strategy: StrategyOptions,
    k: option_groups.AnswerK = None,
    filter: option_groups.Filter = None,
    as_of: option_groups.AsOf = None,
    as_json: option_groups.AsJson = False,
) -> None:
    """Answer a question, with citations.

    Shows every step as it happens; on a terminal, the answer streams.

    Example: sire ask my-index "When did Lothair II's mother die?" --via ircot --llm gpt-4o-mini

    Without --llm the answer is extracted: the sentences and rows of tables that answer best. A model says
    "insufficient evidence" if the evidence does not contain the answer. The exit code is 1 if a model was given but
    produced no answer.

    JSON: {"question", "answer", "outcome", "sufficient", "citations", "findings", "stop", "note", "warning", "steps",
    "hits", "usage"}; outcome is "answered", "doubted" (there is a text, and `warning` or `note` says what is wrong with
    it) or "unanswered"; hits are those of `sire query --json`, quoted ones first without --llm, citations their numbers
    from 1; the warning says what the hits lack of the question. Only a model judges what is `sufficient`: without --llm
    it is always false.
    """
    from sire_core.models.sync import run_sync

    check_folder(folder, question)
    model = answering.model()
    asked = {"question": question, "k": k, "filter": filter, "as_of": as_of, **strategy.arguments(model, limits)}
    with open_index(searching.options(folder, model)) as index:
        trace, was_streamed = _run(index, asked, shows=not as_json and model is not None)
        hint = "" if model else _no_model(index)
        lacking = "" if trace.answer.hits else run_sync(index.afilter_hint(filter))
    if as_json:
        say_json(answer_json(question, trace, lacking or hint))
    elif trace.answer.stop == "extracted":
        say_extracted(question, trace.answer, hint)
    else:
        say_answer(question, trace.answer, hint, lacking, was_streamed=was_streamed)
    if model is not None and _has_failed(trace.answer):
        raise typer.Exit(1)


def _run(index: Index, asked: Mapping[str, Any], *, shows: bool) -> tuple[Trace, bool]:
    """Run a strategy to its end, showing every step as it happens; also whether the answer was shown in pieces."""
    from sire_core.reason import PassageSource, extract_answer, iterate_sync, reason
    from sire_core.reason.steps import Answer, AnswerPiece, Trace
    from sire_core.search.extracts import PASSAGES

    is_answered = asked.get("answer", True)
    options = {**asked, "k": asked["k"] or (None if is_answered else PASSAGES)}
    done: list[ReasoningStep] = []
    pieces = 0
    for step in iterate_sync(reason(index=PassageSource(index), stream=shows and on_terminal(), **options)):
        if isinstance(step, AnswerPiece):
            say_piece(step, begins=not pieces)
            pieces += 1
            continue
        done.append(step)
        if shows:
            say_step(step)
    answer = done[-1]
    assert isinstance(answer, Answer)  # what every strategy ends with
    return Trace(tuple(done), answer if is_answered else extract_answer(asked["question"], answer.hits)), pieces > 0


def _has_failed(answer: Answer) -> bool:
    """True if there is no answer, or a part of one that broke off."""
    return answer.stop in ("model_failed", "timeout") or (not answer.text and answer.stop != "empty_index")


def _no_model(index: Index) -> str:
    """A hint how to get an answer."""
    built_by = str(index.stats()["language_model"]).removeprefix("openai:")
    return f"Quoted from the documents. For a written answer: --llm {built_by or 'MODEL'} (--base-url URL)."


def say_step(step: ReasoningStep) -> None:
    """Print a step; the answer is left to `say_answer`."""
    from sire_core.reason.steps import IntermediateAnswer, Retrieved, SubQuestion, Thought

    if isinstance(step, Thought):
        say(f"thought {step.number}: {step.text}")
    elif isinstance(step, SubQuestion):
        say(f"question {step.number}: {step.text}")
    elif isinstance(step, IntermediateAnswer):
        say(f"answer {step.number}: {step.text or 'unknown'}")
    elif isinstance(step, Retrieved):
        titles = dict.fromkeys(hit.unit.title or shorten(hit.unit.text, 40) for hit in step.hits)
        listed = "; ".join(list(titles)[:_SHOWN_TITLES])
        say(f"found {count(len(step.hits), 'hit')}, {step.new} new{listed and ': '}{listed}", "cyan", indent=4)


def say_piece(piece: AnswerPiece, *, begins: bool) -> None:
    """Print a piece of an answer on a terminal, as it is written."""
    if begins or piece.restart:
        say_part("\nAnswer: " if begins else "\n\nAnswer, asked for again: ", "bold")
    say_part(piece.text, "bold")


def say_answer(question: str, answer: Answer, hint: str = "", lacking: str = "", *, was_streamed: bool = False) -> None:
    """Print an answer and the hits that it cites; all hits when it cites none."""
    from sire_core.reason.answer_reader import INSUFFICIENT

    if was_streamed:
        say("\n")
    if answer.note:
        failed = answer.stop not in ("answered", "done", "extracted")
        note(f"error: {answer.note}" if failed else answer.note, "red" if failed else "yellow")
    if not answer.text and not hint and answer.hits:
        note("No answer. The evidence that was found:")
    if not was_streamed and (answer.text or (answer.stop == "empty_index" and not hint)):
        say(f"\nAnswer: {answer.text or INSUFFICIENT}\n", "bold green" if answer.sufficient else "bold yellow")
    cited = answer.citations if answer.sufficient else ()
    for number, hit in enumerate(answer.hits, 1):
        if not cited or number in cited:
            say_hit(number, hit, question)
    if not answer.hits:
        note(f"No hits: nothing is indexed, or nothing passes the filter. {lacking}".rstrip())
    if hint:
        note(hint, "yellow")
        return
    if cited and len(cited) < len(answer.hits):
        note(f"{count(len(answer.hits) - len(cited), 'more hit')} read and not cited; --json lists all.")
    used = answer.usage
    findings = "".join(f" Finding {finding}." for finding in answer.findings)
    tokens = f"{used.input_tokens:,} + {used.output_tokens:,} tokens"
    note(f"Stopped: {answer.stop}. {count(used.calls, 'call')}, {tokens}, searches: {used.retrievals}.{findings}")


def say_extracted(question: str, answer: Answer, hint: str) -> None:
    """Print the sentences of an extracted answer, and where they stand."""
    from sire_core.explore.highlight import marked

    if answer.note:
        say(answer.note, "yellow")  # a part of the answer: who keeps the one should have the other
    if answer.text:
        say("\nSentences nearest to the question:", "bold")
    elif answer.hits:
        say("\nNo sentence of the hits answers the question. The nearest passages:", "bold")
    for line in answer.text.splitlines():
        say_marked(marked(line, question), indent=2)
    say()
    numbers: dict[str, list[str]] = {}  # of the passages of one place
    for number in answer.citations or range(1, min(len(answer.hits), _SHOWN_PASSAGES) + 1):
        hit = answer.hits[number - 1]
        mark = superseded_mark(step.note for step in hit.path)
        title = hit.unit.title or shorten(hit.unit.text, 60)
        numbers.setdefault(f"{mark}{title}, from {_origin(hit)}", []).append(f"[{number}]")
    for origin, cited in numbers.items():
        say(f"{' '.join(cited)} {origin}", "cyan", indent=2)
    note(hint, "yellow")


def answer_json(question: str, trace: Trace, hint: str = "") -> dict[str, Any]:
    """A reasoning for scripts."""
    from sire_core.reason.steps import plain_step
    from sire_core.search.unanswered import unanswered_note

    answer = trace.answer
    return {
        "question": question,
        "answer": answer.text,
        "outcome": answer.outcome,
        "sufficient": answer.sufficient,
        "citations": list(answer.citations),
        "findings": list(answer.findings),
        "stop": answer.stop,
        "note": hint or answer.note,
        "warning": answer.note if answer.stop == "extracted" else unanswered_note(question, answer.hits),
        "steps": [plain_step(step, "hits", lambda hit: hit.unit.id, "step") for step in trace.steps[:-1]],
        "hits": [hit_json(hit, question) for hit in answer.hits],
        "usage": asdict(answer.usage),
    }
