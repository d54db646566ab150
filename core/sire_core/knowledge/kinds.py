"""Kinds of the edges of a knowledge graph; a module of its own, so that naming them imports nothing else."""

__all__ = ["MENTIONS", "RELATES"]

MENTIONS = "mentions"
"""Kind of the edges from a passage to the entities it names; metadata `names` and, for its title, `title`."""
RELATES = "relates"
"""Kind of the edges from a relation to its head and tail."""
