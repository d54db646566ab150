"""Weights of a linear score, learned from which candidates of each question meet its needs (listwise softmax)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from collections.abc import Sequence


def listwise_weights(
    tables: Sequence[np.ndarray], needs: Sequence[Sequence[np.ndarray]], penalty: float
) -> list[float]:
    """Weights that maximise the share of what meets a need in the sum over the candidates, every question alike.

    Args:
        tables: Of each question the features of its candidates, `[candidates, features]`.
        needs: Of each question, for each of its needs the candidates that meet it, maybe none.
        penalty: On the squares of the weights of features with a standard deviation of 1.
    """
    spread = np.concatenate(tables).std(axis=0) + 1e-9

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = penalty * weights @ weights, 2 * penalty * weights
        for table, wanted in zip(tables, needs, strict=True):
            columns = table / spread
            scores = columns @ weights
            whole = np.logaddexp.reduce(scores)
            pull = np.exp(scores - whole)
            for rows in filter(len, wanted):
                part = np.logaddexp.reduce(scores[rows])
                share = 1.0 / len(wanted) / len(tables)
                total += share * (whole - part)
                slope = slope + share * (pull @ columns - np.exp(scores[rows] - part) @ columns[rows])
        return float(total), slope

    found = minimize(loss, np.zeros(len(spread)), jac=True, method="L-BFGS-B").x
    return [float(weight) for weight in found / spread]
