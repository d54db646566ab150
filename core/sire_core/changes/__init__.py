"""Derived data that stays true while documents come and go.

What is derived from a corpus is described by pure functions (`Step`, `Derivation`); which of them have to run after a
change, and what differs afterwards, is worked out here, once for all of them.
"""
