"""Kinds of edges: passage to entity, passage to keyword, relation to entity. Importing them loads no arrays."""

__all__ = ["KEYWORD", "MENTIONS", "RELATES"]

MENTIONS = "mentions"
"""From a passage to an entity that it names; metadata `names` and, for its title, `title`."""
RELATES = "relates"
"""From a relation to its head and to its tail."""
KEYWORD = "keyword"
"""From a passage to the id of a keyword; metadata `phrase`. These edges are the inverted index of keywords."""
