"""Reads files, checks documents and cuts them into passages."""
