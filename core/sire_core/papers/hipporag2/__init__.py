"""HippoRAG 2: triples near the question start a walk over phrases and passages (Gutierrez et al. 2025)."""
