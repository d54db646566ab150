"""Measuring retrieval and answers: metrics, data sets, the runner and its report."""
