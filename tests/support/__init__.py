"""Servers, damage and files that our own tests need."""
