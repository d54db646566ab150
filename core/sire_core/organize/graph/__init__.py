"""Entities and relations of a corpus: tables, what a change does to them, their summaries."""
