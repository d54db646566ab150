"""How the text of a unit is written."""
