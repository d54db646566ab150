"""The pages Reason and Evaluate: what takes a while, and shows how far it is."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from sire_core.algorithms.wording import count
from sire_core.explore.marks import escaped
from sire_core.reason.steps import IntermediateAnswer, Retrieved, SubQuestion, Thought
from sire_core.serve.page import views
from sire_core.serve.page.ask import asked_html, guarded, question_field, show_html
from sire_core.serve.page.explorer import ExplorerQuery
from sire_core.serve.page.views import address, link

if TYPE_CHECKING:
    from sire_core.reason.steps import Answer, ReasoningStep
    from sire_core.serve.page.explorer import Explorer
    from sire_core.types import Hit

__all__ = ["answer_html", "evaluate_panel", "reason_panel", "step_html"]


def reason_panel(explorer: Explorer) -> None:
    """Reasoning step by step, as it happens; without a model the evidence."""
    from sire_core.reason import STRATEGIES

    if explorer.model is None:
        ui.label("No language model was given (--llm): instead of an answer the evidence is shown.")
    running: list[asyncio.Task[Any]] = []

    async def go() -> None:
        # Asked again: what the last question has still to cost is saved.
        for task in running:
            task.cancel()
        running[:] = [task for task in [asyncio.current_task()] if task]
        log.clear()
        status.set_text("Thinking ...")
        with log:
            await guarded(think)
        status.set_text("")

    question = question_field("Question", "", "Think", go)
    via = ui.select(list(STRATEGIES), label="Strategy", value="ircot").style("min-width:130px")
    log = ui.column().classes("sire-wide").props("role=log aria-label=Steps")
    status = ui.label("").props("role=status").classes("sire-piece")

    async def think() -> None:
        if explorer.model is None:
            ui.html(asked_html(await explorer.ask(ExplorerQuery(question.value or ""))), sanitize=False)
        else:
            await _steps(explorer, via.value, question.value or "", log)


async def _steps(explorer: Explorer, via: str, question: str, log: ui.column) -> None:
    """Draw the steps as they come, and the answer while it is written."""
    from sire_core.reason import Answer, AnswerPiece, reason

    recipe = explorer.recipes()[0]
    piece = None
    async with aclosing(reason(via, explorer.index(), question, stream=True)) as steps:
        async for step in steps:
            if log.is_deleted:  # nobody looks any more
                return
            if isinstance(step, AnswerPiece):
                piece = piece or ui.label("").classes("sire-piece")
                piece.set_text(("" if step.restart else piece.text) + step.text)
            elif isinstance(step, Answer):
                if piece:  # it stands in the answer, whole
                    piece.delete()
                show_html(answer_html(step, recipe))
            else:
                show_html(step_html(step, recipe))


def evaluate_panel(explorer: Explorer) -> None:
    """Recipes measured on the questions of a file."""
    ui.label(
        "A file of questions: a line {'id', 'question', 'supporting': [ids of documents]}, as `sire eval` reads it."
    )
    with ui.row().classes("sire-wide sire-low") as controls:
        recipes = explorer.recipes()
        chosen = ui.select(recipes, label="Recipes", value=recipes, multiple=True).style("min-width:200px")
        k = ui.number("Hits that count", value=5, min=1, max=100, precision=0).style("min-width:120px")
    status = ui.label("").props("role=status")
    result = ui.column().classes("sire-wide")

    async def take(event: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "questions.jsonl"
            path.write_bytes(await event.file.read())
            upload.reset()
            result.clear()
            with result:
                await guarded(lambda: read(path))

    async def read(path: Path) -> None:
        def say(recipe: str, done: int, total: int) -> None:
            status.set_text(f"{recipe}: {done:,} of {total:,} questions")

        measured = await explorer.measure(explorer.questions(path), chosen.value, int(k.value or 5), say)
        show_html(views.measured_html(measured))

    # The framework's own field for files has buttons without names: it stays hidden, and a button of ours opens it.
    upload = ui.upload(auto_upload=True, on_upload=take, max_file_size=50_000_000).classes("sire-hidden")
    opens = ui.button("Choose a file of questions").on(
        "click", js_handler=f"() => runMethod({upload.id}, 'pickFiles', [])"
    )
    opens.move(controls)


def step_html(step: ReasoningStep, recipe: str) -> str:
    """A step; what a search found opens by a click."""
    if isinstance(step, Retrieved):
        found = f"Found {count(len(step.hits), 'passage')}, {step.new:,} of them new"
        items = "".join(f"<li>{_linked(hit, recipe)}</li>" for hit in step.hits)
        return f"<details><summary>{found}</summary><ol>{items}</ol></details>"
    if isinstance(step, SubQuestion):
        return f"<p><b>Searching:</b> {escaped(step.text)}</p>"
    if isinstance(step, IntermediateAnswer):
        return f"<p><b>{escaped(step.question)}</b> {escaped(step.text or 'unknown')}</p>"
    assert isinstance(step, Thought)
    return f"<p>{escaped(step.text)}</p>"


def answer_html(answer: Answer, recipe: str) -> str:
    """The answer, the passages that it cites, and whether they suffice."""
    cited = [(number, answer.hits[number - 1]) for number in answer.citations]
    read = cited or list(enumerate(answer.hits[:5], 1))
    sources = "".join(f"<li>[{number}] {_linked(hit, recipe)}</li>" for number, hit in read)
    why = f"{answer.stop}: {answer.note}" if answer.note else answer.stop
    usage = answer.usage
    spent = f"{count(usage.calls, 'call')} of the model, {count(usage.retrievals, 'search', 'searches')}"
    return (
        f'<h2>Answer</h2><p class="text">{escaped(answer.text or "There is no answer.")}</p>'
        + (f"<p>{'Sources' if cited else 'Read, but not cited'}:</p><ul class=plain>{sources}</ul>" if sources else "")
        + f"<p>The evidence is sufficient: {'yes' if answer.sufficient else f'no (stopped by {escaped(why)})'}.</p>"
        f'<p class="meta">{spent}</p>'
    )


def _linked(hit: Hit, recipe: str) -> str:
    return link(hit.unit.title or hit.unit.text[:80], address(recipe, hit.unit.kind.value, hit.unit.id))
