"""Abstractors that are trained (extra `torch`); those that are not live in `algorithms/perspectives.py`."""
