"""Rankers over any pool and over the graph of entities and relations."""
