"""IIER (Guo et al., 2024): evidence chains over a graph of passages."""

GRAPH_NOTE = "interactions-3"  # Key of the note that stores the interaction graph; its number changes with the layout

WORDS_NOTE = "words-2"  # Key of the note that stores the words of the passages; its number changes with the layout

INTERACTS = "interacts"
"""Kind of the edges between two passages, the earlier passage first. Metadata: `structural` (1), `similarity` (cosine),
`near` (1 the source lists the target, 2 the reverse, 3 both), `keywords` (number of shared keywords); zeros are left
out."""
