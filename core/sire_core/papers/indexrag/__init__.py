"""IndexRAG (Bao and Shi): bridging facts across documents, written at indexing time."""
