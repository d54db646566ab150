"""Measuring retrieval and answers; see `Experiment`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sire_core.evaluate.bootstrap import Comparison as Comparison
    from sire_core.evaluate.datasets import DataSet as DataSet
    from sire_core.evaluate.datasets import load_dataset as load_dataset
    from sire_core.evaluate.datasets import load_questions as load_questions
    from sire_core.evaluate.experiment import Experiment as Experiment
    from sire_core.evaluate.qrels import read_qrels as read_qrels
    from sire_core.evaluate.qrels import write_qrels as write_qrels
    from sire_core.evaluate.row_list import EvalRows as EvalRows
    from sire_core.evaluate.rows import EvalRow as EvalRow
    from sire_core.evaluate.runner import EvalConfig as EvalConfig
    from sire_core.evaluate.trec_files import read_run as read_run
    from sire_core.evaluate.trec_files import row_of_run as row_of_run
    from sire_core.evaluate.trec_files import write_run as write_run

_MODULES = {
    "experiment": "Experiment",
    "runner": "EvalConfig",
    "rows": "EvalRow",
    "bootstrap": "Comparison",
    "row_list": "EvalRows",
    "qrels": "read_qrels write_qrels",
    "trec_files": "read_run row_of_run write_run",
    "datasets": "DataSet load_dataset load_questions",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Comparison",
    "DataSet",
    "EvalConfig",
    "EvalRow",
    "EvalRows",
    "Experiment",
    "load_dataset",
    "load_questions",
    "read_qrels",
    "read_run",
    "row_of_run",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    """Load public names when they are first used: the command line imports parts of this package at every start."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
