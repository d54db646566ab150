"""SiReRAG (Zhang et al., 2025): a tree over similar passages and one over facts grouped by entity."""
