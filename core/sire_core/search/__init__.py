"""Rankers order a pool for a question; selectors turn the order into context."""
