"""Steps of reasoning and their answer as HTML: what was thought, searched and found, with links to the passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sire_core.algorithms.wording import count
from sire_core.explore.escape import escaped
from sire_core.explore.views import address, link
from sire_core.reason.steps import IntermediateAnswer, Retrieved, SubQuestion, Thought

if TYPE_CHECKING:
    from sire_core.reason.steps import Answer, ReasoningStep
    from sire_core.types import Hit

__all__ = ["answer_html", "step_html"]


def step_html(step: ReasoningStep, recipe: str) -> str:
    """A step; what a search found opens by a click.

    Args:
        step: No piece of an answer, and not the answer.
        recipe: Where links lead.
    """
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
