"""RAPTOR (Sarthi et al., 2024): a tree of summaries over similar passages."""
