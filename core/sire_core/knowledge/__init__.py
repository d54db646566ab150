"""The knowledge graph of a corpus: derivation, storage and reading, shared by several recipes."""

MENTIONS = "mentions"
"""Kind of edges from a passage to an entity that it names; metadata `names` and, for its title, `title`."""
RELATES = "relates"  # Kind of edges from a relation to its head and to its tail
KEYWORD = "keyword"
"""Kind of edges from a passage to the id of a keyword; metadata `phrase`. They are an inverted index of keywords."""
