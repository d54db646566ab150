"""Passages alone: vectors, BM25 or both."""
