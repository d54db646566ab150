"""LlamaIndex components."""
