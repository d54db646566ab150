"""LangChain components."""
