"""Extraction of entities, facts and keywords from passages."""
