"""What a model is asked and costs: shown, agreed to, and said afterwards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sire_core.cli.output import note
from sire_core.errors import ConfigurationError

if TYPE_CHECKING:
    from sire_core.index import Index
    from sire_core.models.prices import Price
    from sire_core.pipeline.estimate import Estimate
    from sire_core.types import BuildReport, Document

__all__ = ["approve_cost", "ask_to_go_on", "estimate_json", "find_price", "say_usage", "usage_json"]


def find_price(llm: str, prices: Path | None) -> Price | None:
    """The model's price from a table of the user's; None without one, which means the packaged table.

    Raises:
        ConfigurationError: The table cannot be read, or does not have the model.
    """
    if prices is None:
        return None
    from sire_core.models.prices import load_prices, price_of

    price = price_of(llm, load_prices(prices))
    if price is None:
        raise ConfigurationError(f"{prices} has no price of {llm}.")
    return price


def approve_cost(index: Index, documents: Sequence[Document], price: Price | None, *, yes: bool) -> bool:
    """Show what a build or change would cost and ask whether to go on, unless it costs nothing.

    Returns whether somebody agreed: False where nothing is paid.

    Args:
        index: What would be built or changed.
        documents: What it would hold then.
        price: Of the model; None means the packaged table's.
        yes: Shows, and does not ask.

    Raises:
        Exit: With 1 when the answer is no, with 2 when nobody is there to answer, with 130 when interrupted.
    """
    estimate = index.estimate(documents, price)
    if estimate.total.calls[1] == 0:
        note("No model calls are needed.")
        return False
    note(f"Expected model calls:\n{estimate.describe()}")
    ask_to_go_on(yes=yes)
    return True


def ask_to_go_on(*, yes: bool) -> None:
    """Ask whether to go on.

    Args:
        yes: Whether that was agreed to before.

    Raises:
        Exit: With 1 when the answer is no, with 2 when nobody is there to answer, with 130 when interrupted.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        note("error: Cannot ask for confirmation: stdin is not a terminal. Add --yes to continue.", "red")
        raise typer.Exit(2)
    try:
        agreed, code = typer.confirm("Continue?", err=True), 1
    except typer.Abort:  # Ctrl-C
        agreed, code = False, 130
        note("")
    if not agreed:
        note("Nothing was changed, and no model was called.")
        raise typer.Exit(code)


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """An estimate for scripts; ranges are pairs of the lowest and the highest value."""
    stages = {"extraction": estimate.extraction, "summaries": estimate.summaries, "total": estimate.total}
    costs = {name: asdict(cost) for name, cost in stages.items()}
    return {"passages": estimate.passages, "stored": estimate.stored, **costs}


def say_usage(report: BuildReport, prefix: str = "") -> None:
    """Say on stderr what the models were asked, stage by stage."""
    from sire_core.models.usage import UsageReport

    for stage, used in report.usage.items():
        note(prefix + UsageReport({stage: used}).describe())


def usage_json(report: BuildReport) -> dict[str, dict[str, int]]:
    """Usage by stage for scripts."""
    return {stage: asdict(used) for stage, used in report.usage.items()}
