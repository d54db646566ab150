"""Personalized PageRank over passages and entities, after HippoRAG (2024)."""
