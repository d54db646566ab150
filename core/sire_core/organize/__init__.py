"""Organize."""
