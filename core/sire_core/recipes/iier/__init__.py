"""IIER (Guo et al., 2024): evidence chains over a graph of passages."""
