"""Measuring retrieval and answers; see `Experiment`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.evaluate.datasets import DataSet as DataSet
    from sire_core.evaluate.datasets import load_dataset as load_dataset
    from sire_core.evaluate.datasets import load_questions as load_questions
    from sire_core.evaluate.experiment import Experiment as Experiment
    from sire_core.evaluate.rows import EvalRow as EvalRow
    from sire_core.evaluate.runner import EvalConfig as EvalConfig

__all__ = ["DataSet", "EvalConfig", "EvalRow", "Experiment", "load_dataset", "load_questions"]

_MODULES = {"Experiment": "experiment", "EvalConfig": "runner", "EvalRow": "rows"}


def __getattr__(name: str) -> Any:
    """Load public names when they are first used: the command line imports parts of this package at every start."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'datasets')}"), name)
