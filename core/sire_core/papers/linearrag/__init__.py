"""LinearRAG: sentences join entities, without relations (Zhuang et al. 2025)."""
