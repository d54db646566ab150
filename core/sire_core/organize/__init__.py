"""Organizers: each builds one part of the pool from the corpus."""
