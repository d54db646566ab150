"""SMART: reports on communities of entities, from several perspectives."""
