"""Selectors: from a ranking to the context of an answer."""
