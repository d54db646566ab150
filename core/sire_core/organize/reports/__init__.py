"""Partitions of the entities and the reports on them."""
